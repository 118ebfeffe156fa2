"""The way of real jobs through server, node, spawner and proxy, counted by the kernel.

Valgrind cannot follow it (namespaces, clone3 into a group). So `perf stat` counts system calls, page faults and
processor time of all processes that take part, jobs included, and the same of a loop that only spawns processes
(bench/ceiling.c), in turns.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

PAIRS = 15
JOBS = 100
OPERATIONS = 10
SPAWNS = 200
# Cores. Programs share caches, and two hardware threads share a core. So the same work needs more processor time beside
# other programs: pairs during which others use more than this are left out of the comparison of processor time.
OTHERS = 0.3
EVENTS = {"raw_syscalls:sys_enter": "system_calls", "page-faults": "page_faults", "task-clock": "processor"}
# How often a thread waits for others depends on the load of the machine: futex, epoll_wait, epoll_pwait, ppoll. These are the
# numbers of x86-64 and aarch64.
WAITS = {"x86_64": (202, 232, 281, 271), "aarch64": (98, 22, 73)}


def measure(binary, wanted):
    """{name: figures} of the paths, and why some were not measured."""
    names = [f"{path}.{driver}" for path in ("launch", "latency") for driver in ("simple", "hybrid")]
    names = [name for name in names if wanted(name)]
    if names and (why := cannot_count()):
        return {}, [f"system calls, page faults and processor time of jobs: {why}"]
    os.environ["MILLPOND_BINARY"] = str(binary)
    figures, skips = {}, []
    for driver in ("simple", "hybrid"):
        ours = [name for name in names if name.endswith(driver)]
        if ours and driver == "hybrid" and not pathlib.Path("/sys/fs/cgroup/freezer").exists():
            skips.append("jobs with the driver hybrid: this host has no cgroup v1")
        elif ours:
            for name, (found, busy) in of_driver(driver, ours).items():
                figures[name] = found
                if busy:
                    skips.append(f"processor time of {name}: {busy}")
    return figures, skips


def cannot_count():
    if shutil.which("perf") is None:
        return "perf is not installed"
    tried = subprocess.run(["perf", "stat", "-e", ",".join(EVENTS), "true"], capture_output=True, text=True)
    return None if tried.returncode == 0 and "<not supported>" not in tried.stderr else f"perf cannot count: {tried.stderr.strip()}"


def counted(pids):
    """Options of `perf stat`: all events, without waits and without the thread that writes the store.

    How many changes that thread writes together, and so how often it does, depends on the speed of the disk.
    """
    writers = [task.name for pid in pids for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
               if (task / "comm").read_text().strip() == "commit"]
    assert writers, "the server has no thread named commit"
    left_out = [f"id != {number}" for number in WAITS.get(os.uname().machine, ())] + [f"common_pid != {thread}" for thread in writers]
    calls, *others = EVENTS
    return ["-e", calls, "--filter", " && ".join(left_out), "-e", ",".join(others)]


class Counter:
    """`perf stat` on running processes and all that they start; counts only inside of `counting`."""

    def __init__(self, pids):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="millpond-perf-"))
        control, acknowledge, self.out = (self.folder / name for name in ("control", "acknowledge", "out"))
        os.mkfifo(control)
        os.mkfifo(acknowledge)
        self.perf = subprocess.Popen(
            ["perf", "stat", "-x", ",", "-D", "-1", *counted(pids), "--control", f"fifo:{control},{acknowledge}",
             "-o", self.out, "-p", ",".join(map(str, pids))], stderr=subprocess.DEVNULL)
        self.control = open(control, "w")
        self.acknowledge = open(acknowledge)

    def say(self, word):
        self.control.write(word + "\n")
        self.control.flush()
        self.acknowledge.readline()

    @contextlib.contextmanager
    def counting(self):
        self.say("enable")
        yield
        self.say("disable")

    def stop(self):
        """What was counted."""
        self.perf.send_signal(signal.SIGINT)
        self.perf.wait(timeout=60)
        self.control.close()
        self.acknowledge.close()
        figures = read(self.out.read_text())
        shutil.rmtree(self.folder)
        return figures


def read(text):
    """{what: number} of the lines of `perf stat -x ,`; processor time in milliseconds."""
    figures = {}
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and fields[2] in EVENTS:
            figures[EVENTS[fields[2]]] = float(fields[0])
    return figures


def spawn_loop(program):
    """Processor time of one spawn, in milliseconds."""
    done = subprocess.run(["perf", "stat", "-x", ",", "-e", "task-clock", program, str(SPAWNS)],
                          capture_output=True, text=True, check=True)
    return read(done.stderr)["processor"] / SPAWNS


def of_driver(driver, names):
    # Imported here: they read MILLPOND_BINARY.
    from bench.run import Connection, compiled, spec
    from harness import Cluster
    loop = compiled("ceiling")
    cluster = Cluster(resources="cpu=2,memory=4GiB,user_slots=2", environment=driver)
    try:
        cluster.start()
        cluster.create_pool("bench", max_operation_count=50000, max_running_operation_count=10000)
        connection = Connection(cluster)

        def run(jobs):
            operation = connection.start(spec("bench", "/bin/true", jobs))
            # Few questions, as they are counted too.
            time.sleep(0.05)
            connection.wait_completed(operation, 0.05)
        # The first jobs load what all others share.
        run(20)
        pids = [cluster.server.popen.pid, *(n.popen.pid for n in cluster.nodes), *cluster.spawners()]
        figures = {}
        if f"launch.{driver}" in names:
            figures[f"launch.{driver}"] = in_turns(pids, loop, JOBS, lambda: run(JOBS))
        if f"latency.{driver}" in names:
            figures[f"latency.{driver}"] = in_turns(pids, loop, OPERATIONS, lambda: [run(1) for _ in range(OPERATIONS)])
        cluster.stop()
        return figures
    except BaseException:
        sys.stderr.write(cluster.logs())
        cluster.clean_up()
        raise


def in_turns(pids, loop, count, work):
    """Medians over pairs of the work and the spawn loop, for each of `count` jobs; without "processor" on a busy host."""
    pairs, others = [], []
    for _ in range(PAIRS):
        watch = Others()
        spawn = spawn_loop(loop)
        counter = Counter(pids)
        with counter.counting():
            work()
        figures = counter.stop()
        others.append(watch.cores(figures["processor"] / 1000))
        figures = {what: number / count for what, number in figures.items()}
        figures["processor"] /= spawn
        pairs.append(figures)
    found = {what: round(statistics.median(pair[what] for pair in pairs)) for what in ("system_calls", "page_faults")}
    quiet = [pair["processor"] for pair, cores in zip(pairs, others, strict=True) if cores <= OTHERS]
    if len(quiet) <= PAIRS // 2:
        return found, f"other programs used {statistics.median(others):.1f} cores"
    return {**found, "processor": round(statistics.median(quiet), 2)}, None


class Others:
    """What other programs, and other virtual machines, take from the cores of the host, from now on."""

    def __init__(self):
        self.began, self.busy, self.own = time.monotonic(), busy_seconds(), own_seconds()

    def cores(self, measured):
        """In cores. `measured` is the processor time of the measured processes in seconds."""
        busy, own = busy_seconds() - self.busy, own_seconds() - self.own
        return (busy - own - measured) / (time.monotonic() - self.began)


def busy_seconds():
    """Processor time of all programs since the host started. What idles or waits for a disk is not in it."""
    user, nice, system, _, _, *interrupts_and_stolen = map(int, pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9])
    return (user + nice + system + sum(interrupts_and_stolen)) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    """Processor time of this process and of what it has started and waited for."""
    return sum(os.times()[:4])
