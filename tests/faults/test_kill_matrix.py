"""kill -9 of the server, a node, the job proxies or all of them, while the cluster is idle, starts
jobs, runs them or finishes them.

After each kill and restart:
- pools and operations are back, with what was set and submitted;
- every unit of work is counted exactly once, and its process reached its end;
- at no time do two processes of one unit run: each job holds an exclusive lock of its cookie;
- where the processes beside it survived, a job goes on: it is not started a second time;
- nothing is left: no process, no cgroup of a job, and at the end no mount.

Every victim has a cluster of its own, and the clusters go through the states at the same time.
Repeats of each cell: MILLPOND_MATRIX_REPEATS, 5 without it.
"""

import collections
import concurrent.futures
import contextlib
import os
import pathlib
import random
import signal
import time

import pytest
from harness import Cluster, wait_for

REPEATS = int(os.environ.get("MILLPOND_MATRIX_REPEATS", 5))
VICTIMS = ["server", "node", "proxy", "all"]
STATES = ["idle", "starting", "running", "finishing"]
SEED = int(os.environ.get("MILLPOND_MATRIX_SEED", 20240817))

JOBS = 6  # of an operation
SLOTS = 4  # of the node: so there is always something running and something waiting

# The next run of a unit may be another user's: what one writes all must be able to write. The lock is inherited by every process of the job and free when the last one is gone. One short
# line per event, appended: such writes do not mix.
JOB = """\
umask 0
exec 9>>{d}/lock-$YT_JOB_COOKIE
flock -n 9 || {{ echo "$YT_JOB_COOKIE $YT_JOB_ID" >> {d}/violations; exit 77; }}
echo "start $YT_JOB_COOKIE $YT_JOB_ID" >> {d}/events
{work}
echo "end $YT_JOB_COOKIE $YT_JOB_ID" >> {d}/events
"""


class Work:
    """One operation with its files."""

    def __init__(self, cluster, pool, seconds=None):
        """Jobs take so long, or until `go`."""
        self.cluster = cluster
        self.directory = cluster.shared / f"work-{random.randrange(1 << 40):010x}"
        self.directory.mkdir()
        self.directory.chmod(0o777)
        work = f"while [ ! -e {self.directory}/go ]; do sleep 0.05; done" if seconds is None else f"sleep {seconds}"
        self.operation = cluster.start_vanilla(
            JOB.format(d=self.directory, work=work), job_count=JOBS, pool=pool, cpu_limit=0.1,
            # Every job of a dead proxy counts as failed; the default limit of 10 is more than enough.
            memory_limit=32 << 20)

    def go(self):
        (self.directory / "go").touch()

    def events(self, kind=None):
        with contextlib.suppress(FileNotFoundError):
            lines = [line.split() for line in (self.directory / "events").read_text().splitlines()]
            return [line for line in lines if kind in (None, line[0])]
        return []

    def check_end(self, adopted):
        """Waits for the end and looks at everything that can be known.

        `adopted` says which jobs must have survived the kill: none of them, those that had "started",
        or "all", also those whose start was being ordered.
        """
        cluster, operation = self.cluster, self.operation
        cluster.wait_state(operation, "completed")
        violations = self.directory / "violations"
        assert not violations.exists(), f"two processes of one unit at a time: {violations.read_text()}"

        counters = cluster.counters(operation)
        wanted = {"total": JOBS, "completed": JOBS, "running": 0, "pending": 0, "lost": 0}
        assert {k: counters[k] for k in wanted} == wanted, counters

        completed = cluster.jobs(operation, state="completed")
        cookies = sorted(j["job_cookie"] for j in completed)
        assert cookies == list(range(JOBS)), f"completed cookies: {cookies}"
        ended = {job for _, _, job in self.events("end")}
        missing = [j["id"] for j in completed if j["id"] not in ended]
        assert not missing, f"counted as completed without having ended: {missing}"

        if adopted:
            ends = collections.Counter(cookie for _, cookie, _ in self.events("end"))
            assert all(n == 1 for n in ends.values()), f"jobs that had ended were run again: {ends}"
            assert counters["failed"] == 0, counters
        if adopted == "all":
            starts = collections.Counter(cookie for _, cookie, _ in self.events("start"))
            assert all(n == 1 for n in starts.values()), f"jobs that lived on were started again: {starts}"
            assert counters["aborted"] == 0, counters


class Cell:
    """The life of one victim's cluster."""

    def __init__(self, victim, rng):
        self.victim, self.rng = victim, rng
        self.cluster = Cluster(nodes=1, resources=f"cpu=4,memory=4GiB,user_slots={SLOTS}")
        self.finished = []

    def start(self):
        self.cluster.start()
        self.cluster.create_pool("matrix", weight=2.5, strong_guarantee_resources={"cpu": 1})

    def kill(self):
        """kill -9 of the victims, at once."""
        cluster = self.cluster
        if self.victim == "proxy":
            return [self.kill_pid(pid) for pid in cluster.proxies()]
        pids = []
        if self.victim in ("server", "all"):
            pids.append(cluster.server.popen.pid)
        if self.victim in ("node", "all"):
            pids += [n.popen.pid for n in cluster.nodes]
        if self.victim == "all":
            pids += cluster.spawners() + cluster.proxies()
        for pid in pids:
            self.kill_pid(pid)
        for process in [cluster.server, *cluster.nodes]:
            if process.popen.pid in pids:
                process.popen.wait()
        return None

    @staticmethod
    def kill_pid(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def round(self, state):
        cluster = self.cluster
        if state == "idle":
            # Work of before, that must be remembered.
            work = Work(cluster, "matrix", 0.05)
            work.check_end(adopted="all")
        elif state == "starting":
            work = Work(cluster, "matrix", 0.4)
            time.sleep(self.rng.uniform(0, 0.06))
        elif state == "running":
            work = Work(cluster, "matrix")
            wait_for(lambda: len(work.events("start")) >= SLOTS, what="all slots to be taken")
            # Known to the server, too.
            cluster.wait_counters(work.operation, running=SLOTS)
        else:
            work = Work(cluster, "matrix", 0.3)
            wait_for(lambda: work.events("end"), what="a job to end", period=0.001)
            time.sleep(self.rng.uniform(0, 0.02))
        self.kill()
        time.sleep(self.rng.choice([0, 0.1, 0.5]))
        cluster.restart()
        work.go()

        assert cluster.get("//sys/pools/matrix/@weight") == 2.5
        assert cluster.get("//sys/pools/matrix/@strong_guarantee_resources/cpu") == 1
        work.check_end(self.survivors(state))
        self.finished.append(work)
        for old in self.finished[-8:]:
            assert cluster.state(old.operation) == "completed"
        if state == "idle":
            Work(cluster, "matrix", 0.01).check_end(adopted="all")
        self.check_clean()

    def survivors(self, state):
        """Processes go on when only those die that are not beside them."""
        if state == "idle" or (self.victim == "server" and state != "starting"):
            return "all"
        if self.victim in ("server", "node") and state != "starting":
            # A node that dies while a slot is filled again may lose the order; it is repeated.
            return "all" if state == "running" else "started"
        return None

    def check_clean(self):
        def clean():
            left = {"proxies": self.cluster.proxies(), "processes of jobs": self.cluster.job_processes(),
                    "groups of jobs": self.cluster.job_cgroups()}
            return not any(left.values()) or left
        deadline = time.monotonic() + 180
        while (left := clean()) is not True:
            assert time.monotonic() < deadline, f"left after the work: {left}"
            time.sleep(0.05)


@pytest.fixture(scope="module")
def matrix():
    """Futures of all cells: {(victim, state): future}. A cell that fails ends its victim's row."""
    futures = {(v, s): concurrent.futures.Future() for v in VICTIMS for s in [*STATES, "stop"]}

    def row(victim):
        cell = Cell(victim, random.Random(f"{SEED} {victim}"))
        at = (victim, "idle")
        try:
            cell.start()
            for state in STATES:
                at = (victim, state)
                for _ in range(REPEATS):
                    cell.round(state)
                futures[at].set_result(REPEATS)
            at = (victim, "stop")
            cell.cluster.stop()
            futures[at].set_result(None)
        except BaseException as error:
            if hasattr(error, "add_note"):
                error.add_note(cell.cluster.logs())
            futures[at].set_exception(error)
            cell.cluster.clean_up()
            for other in futures:
                if other[0] == victim and not futures[other].done():
                    futures[other].set_exception(AssertionError(f"not reached: {at} failed"))

    with concurrent.futures.ThreadPoolExecutor(len(VICTIMS)) as executor:
        for victim in VICTIMS:
            executor.submit(row, victim)
        yield futures


# More than the wait for a cell.
@pytest.mark.timeout(660)
@pytest.mark.parametrize("state", [*STATES, "stop"])
@pytest.mark.parametrize("victim", VICTIMS)
def test_kill(matrix, victim, state):
    """Cells in the order in which their clusters go through them; `stop` is the look for leftovers."""
    matrix[victim, state].result(timeout=600)


def test_locks_detect(tmp_path):
    """The lock of the jobs does see a second process: otherwise the matrix would show nothing."""
    import subprocess
    # Whoever gets the lock keeps it until the other one has been refused.
    script = JOB.format(d=tmp_path, work=f"while [ ! -e {tmp_path}/violations ]; do sleep 0.05; done")
    env = {**os.environ, "YT_JOB_COOKIE": "0", "YT_JOB_ID": "x"}
    both = [subprocess.Popen(["bash", "-c", script], env=env) for _ in range(2)]
    assert sorted(p.wait() for p in both) == [0, 77]
    assert (tmp_path / "violations").read_text() == "0 x\n"
