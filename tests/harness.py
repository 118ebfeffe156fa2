"""A real cluster of real processes for tests: start, kill, restart, and look for what is left.

Every cluster lives in a temporary directory of its own on a free port. Processes are killed by the
pids that this module started, never by name. `Cluster.stop` fails the test if a process, a mount or
a cgroup of the cluster is left behind.
"""

import contextlib
import datetime
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import pytest
from warm_yt import Warm

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = pathlib.Path(os.environ.get("MILLPOND_BINARY", ROOT / "target/release/millpond"))
YT = pathlib.Path(sys.executable).parent / "yt"
WARM_YT = Warm(YT)
# Whether each call of `yt` is a process of its own, which takes four times as long.
FRESH_YT = bool(os.environ.get("MILLPOND_TEST_FRESH_YT"))
# Of nodes, where a test does not care: all of them can be run on another one.
ENVIRONMENT = os.environ.get("MILLPOND_TEST_ENVIRONMENT", "auto")
BUILD = ROOT / "build"

# Beginning of the reason of a skip for which the host is responsible; tests/conftest.py counts these skips.
TOO_LITTLE_PROCESSOR = "for lack of processor"

# Inherited by every process of a cluster but the users': by it they are found again.
MARK = "MILLPOND_TEST_CLUSTER"
# Of the names of clusters.
PREFIX = "millpond-test-"
_clusters = itertools.count()


# Number of the pytest-xdist worker, from 1; 0 in a run without workers. At most 8 workers are supported: every worker
# has ports and user ids of its own.
WORKER = 1 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw-1").removeprefix("gw"))
assert WORKER <= 8, "at most 8 workers: every worker has a range of ports"
# Ports below the range that the system gives to outgoing connections, and below those of jobs (20,000).
PORTS_OF_A_WORKER = 1000
# Added to the user ids of jobs. A cluster has at most ten nodes with at most a thousand slots each.
UID_OFFSET = 10_000 * WORKER


_ports = None


def free_port():
    """Returns a port of this worker that has no listener.

    The port is outside the range of outgoing connections: a restarted cluster must find its port free. A port is
    returned a second time only after all others.
    """
    global _ports
    if _ports is None:
        own = range(10_000 + PORTS_OF_A_WORKER * WORKER, 10_000 + PORTS_OF_A_WORKER * (WORKER + 1))
        # A later run, or another one on this machine, begins elsewhere.
        begin = random.randrange(len(own))
        _ports = itertools.cycle([*own[begin:], *own[:begin]])
    for port in _ports:
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port


# Of a job, whatever it does.
MOST_PROCESSES = 4096

# Code of an error: the node of a job did not answer in time.
NOT_ANSWERED = 3


class Bomb:
    """A fork bomb that does not take the machine with it if nobody contains it: every process makes two and stays, for
    so many generations that they would be twice as many as a job may have."""

    def __init__(self):
        self.sleep = f"sleep 7{random.randrange(10000, 99999)}"
        self.script = f"b() {{ [ $1 = 0 ] || {{ b $(($1 - 1)) & b $(($1 - 1)) & }}; exec {self.sleep}; }}; b 12"

    def size(self):
        found = 0
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    # Not the proxy, and not who was told to run it.
                    found += command.startswith((self.sleep, "/bin/bash -c", "/bin/sh -c", "bash -c", "sh -c")) and self.sleep in command
        return found

    def most(self, least):
        """Its processes, once they are so many and get no more."""
        sizes = [0]

        def settled():
            sizes.append(self.size())
            return sizes[-1] >= least and len(set(sizes[-5:])) == 1
        wait_for(settled, what="the bomb to have gone off", timeout=180, period=0.1)
        return max(sizes)


def wait_for(condition, timeout=180.0, what="the condition", period=None, seen=None):
    """Waits until `condition()` is true and returns its value; fails after `timeout` seconds.

    The message has `what`, the last value of the condition, and the value of `seen()` if given. Without `period` the pause
    between two looks grows from 10 ms to 100 ms with the time waited: many workers that look all the time would take the
    processor from what they wait for.
    """
    begin = time.monotonic()
    deadline = begin + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            more = f"; seen: {seen()!r}" if seen else ""
            raise AssertionError(f"timed out after {timeout} s waiting for {what}; last value: {value!r}{more}")
        time.sleep(period or max(0.01, min(0.1, (time.monotonic() - begin) / 10)))


def moment(text):
    """Seconds since the epoch of a time as the server writes it."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def skip_without_processor(used, wall, least):
    """Skips a test that compares processor times if the host gave it less than `least` cores.

    `used` is the processor time in seconds that the measured processes got during `wall` seconds.
    """
    if used < least * wall:
        pytest.skip(f"{TOO_LITTLE_PROCESSOR}: the host gave {used:.2f} s in {wall:.2f} s, {used / wall:.2f} of a core, "
                    f"of which the comparison needs {least}")


def lies_beside(found, expected, close):
    """Whether a series goes as another does: no farther than `close` from it, at a constant distance, but for a quarter of
    the points. A server that had to stand still for a moment is late for a second or two, and right again after them;
    who is wrong moves away and stays away."""
    distances = [f - e for f, e in zip(found, expected, strict=True)]
    middle = sorted(distances)[len(distances) // 2]
    near = sum(abs(d - middle) <= close for d in distances)
    return near >= 0.75 * len(distances)


class Process:
    """One of ours, with its log."""

    def __init__(self, name, arguments, log, env=None):
        self.name, self.arguments, self.log, self.env = name, arguments, log, env
        self.popen = None

    def start(self):
        assert not self.running(), f"{self.name} runs already"
        with open(self.log, "ab") as log:
            self.popen = subprocess.Popen(
                [str(a) for a in self.arguments],
                # `--supervised`: they stop when this pipe closes, so that a killed run leaves nothing.
                stdin=subprocess.PIPE, stdout=log, stderr=log,
                env={**os.environ, **(self.env or {})}, start_new_session=True,
            )
        return self

    def running(self):
        return self.popen is not None and self.popen.poll() is None

    def kill(self):
        """kill -9."""
        if self.running():
            self.popen.kill()
        if self.popen is not None:
            self.popen.wait()

    def terminate(self, timeout=180):
        if self.running():
            self.popen.terminate()
            try:
                self.popen.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"{self.name} did not stop within {timeout} s of SIGTERM\n{self.tail()}")
        return self.popen.returncode if self.popen is not None else None

    def tail(self, lines=60):
        with contextlib.suppress(FileNotFoundError):
            return "\n".join(pathlib.Path(self.log).read_text(errors="replace").splitlines()[-lines:])
        return ""


def write_secret(file, text):
    """Into a new file that only this user can read."""
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(f"{text}\n")


class Cluster:
    """A server and nodes as separate processes."""

    # Of who may do everything, where users are on.
    token = None

    def __init__(self, nodes=1, resources="cpu=4,memory=4GiB,user_slots=16", environment=ENVIRONMENT,
                 server_arguments=(), directory=None, server_config="", node_config="", auth=False):
        self.directory = pathlib.Path(directory or tempfile.mkdtemp(prefix=PREFIX))
        self.directory.mkdir(parents=True, exist_ok=True)
        # Unique on this machine: nodes and their groups are named after it. A directory of a test may be called "c".
        self.name = self.directory.name if directory is None else f"{PREFIX}{os.getpid()}-{next(_clusters)}"
        # The one directory of the host that jobs and tests share: otherwise jobs see little of it.
        self.shared = self.directory / "shared"
        self.shared.mkdir(exist_ok=True)
        self.shared.chmod(0o1777)
        self.mark = {MARK: str(self.directory), "RUST_BACKTRACE": "1"}
        self.port = free_port()
        # Who asks, when the server wants to know.
        self.auth = auth
        server_arguments = [*server_arguments, *(["--auth"] if auth else [])]
        self.address = f"127.0.0.1:{self.port}"
        self.server = Process(
            "server",
            [BINARY, "server", "--listen", self.address, "--data", self.directory / "server", "--supervised",
             *server_arguments, *self.configuration("server", server_config)],
            self.directory / "server.log", self.mark,
        )
        if environment == "simple" and "isolation" not in (node_config or ""):
            # Tests and benches of this environment are those of jobs without namespaces, also for root.
            node_config = f'isolation = "none"\n{node_config or ""}'
        self.nodes = []
        for i in range(nodes):
            name = f"{self.name}-{i}"
            join_token = ["--join-token-file", self.directory / f"node-{i}.join-token"] if auth else []
            self.nodes.append(Process(
                name,
                [BINARY, "node", "--server", self.address, "--name", name,
                 "--data", self.directory / f"node-{i}", "--resources", resources,
                 "--job-environment", environment, "--uid-offset", UID_OFFSET + 1000 * i, "--stop-jobs", "--supervised", *join_token,
                 *self.configuration("node", f'shared_directories = ["{self.shared}:rw"]\n{node_config or ""}')],
                self.directory / f"node-{i}.log", self.mark,
            ))

    def configuration(self, section, text):
        """Arguments for settings that have no argument of their own: one section of a configuration file."""
        if not text:
            return []
        file = self.directory / f"{section}.toml"
        file.write_text(f"[{section}]\n{text}")
        return ["--config", file]

    # --- life

    def start(self):
        self.server.start()
        self.wait_server()
        for node in self.nodes:
            node.start()
        self.wait_nodes()
        return self

    def wait_server(self):
        def answers():
            if not self.server.running():
                raise AssertionError(f"the server ended with {self.server.popen.returncode}\n{self.server.tail()}")
            with contextlib.suppress(OSError):
                with urllib.request.urlopen(f"http://{self.address}/ping", timeout=10) as reply:
                    return reply.status == 200
            return False
        wait_for(answers, what="the server to answer /ping")
        if self.auth:
            self.token = (self.directory / "server" / "root.token").read_text().strip()
        self.write_join_tokens()

    def write_join_tokens(self):
        """A join token for each node, once: with it the node gets its identity, which it keeps."""
        for node in self.nodes:
            if "--join-token-file" not in node.arguments:
                continue
            name, file = (node.arguments[node.arguments.index(option) + 1] for option in ("--name", "--join-token-file"))
            if not pathlib.Path(file).exists():
                write_secret(file, self.command("create_join_token", name=str(name), replace=True))

    def online(self):
        nodes = self.command("get", path="//sys/scheduler/orchid/scheduler/nodes")["value"]
        return [a for a, n in nodes.items() if n.get("scheduler_state") == "online"]

    def wait_nodes(self, count=None):
        expected = [n for n in self.nodes if n.running()]
        count = len(expected) if count is None else count

        def online():
            for node in expected:
                if not node.running():
                    raise AssertionError(f"{node.name} ended with {node.popen.returncode}\n{node.tail()}")
            return len(self.online()) >= count
        wait_for(online, what=f"{count} nodes online", seen=self.online)

    def stop(self, check=True):
        problems = []
        for process in [*self.nodes, self.server]:
            try:
                process.terminate()
            except AssertionError as error:
                problems.append(str(error))
        left = self.left_behind()
        self.clean_up()
        if check:
            assert not problems, "\n".join(problems)
            assert not left, f"left behind: {left}"

    def restart(self):
        """Starts what is not running and waits until the cluster is whole again."""
        if not self.server.running():
            self.server.start()
        for node in self.nodes:
            if not node.running():
                node.start()
        self.wait_server()
        self.wait_nodes()

    def logs(self):
        return "\n".join(f"--- {p.name}\n{p.tail()}" for p in [self.server, *self.nodes])

    # --- leftovers

    def pids(self):
        """Living processes that belong to this cluster: its directory is in their command line,
        working directory or environment."""
        needle = str(self.directory).encode()
        own = os.getpid()
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == own:
                continue
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes()
                if command == b"":
                    continue  # a zombie or a kernel thread
                cwd = os.readlink(entry / "cwd").encode()
                environment = (entry / "environ").read_bytes()
                if needle in command or cwd.startswith(needle) or needle in environment:
                    found[int(entry.name)] = command.replace(b"\0", b" ").decode(errors="replace").strip()
        return found

    def proxies(self):
        """Pids of the job proxies."""
        return self._named(lambda comm, command: comm == "mp-job-proxy")

    def spawners(self):
        """Pids of the processes that fork the job proxies."""
        forks = ("mp-job-proxy", "mp-init")  # they keep the command line of their parent
        return self._named(lambda comm, command: comm not in forks and "job-proxy-spawner" in command)

    def find_process(self, *arguments):
        """Pid of a living process with exactly these arguments, `None` without one. (The job sees another pid.)

        A process in a control group of another test cluster is not considered: other workers run the same commands.
        """
        wanted = "\0".join([*arguments, ""]).encode()
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and (entry / "cmdline").read_bytes() == wanted:
                    groups = (entry / "cgroup").read_text()
                    if PREFIX not in groups or self.name in groups:
                        return int(entry.name)
        return None

    def job_processes(self):
        """Pids of the users' processes: they live in a sandbox and know nothing of the mark."""
        found = []
        for pid in self.pids():
            with contextlib.suppress(OSError):
                if MARK.encode() not in pathlib.Path(f"/proc/{pid}/environ").read_bytes():
                    found.append(pid)
        return found

    def _named(self, condition):
        found = []
        for pid, command in self.pids().items():
            with contextlib.suppress(OSError):
                if condition(pathlib.Path(f"/proc/{pid}/comm").read_text().strip(), command):
                    found.append(pid)
        return found

    def cgroups(self):
        names = [n.name for n in self.nodes]
        found = []
        for base, directories, _ in os.walk("/sys/fs/cgroup"):
            found += [os.path.join(base, d) for d in directories if any(n in d for n in names)]
        return found

    def mounts(self):
        needle = str(self.directory)
        return [line.split()[4] for line in open("/proc/self/mountinfo") if needle in line]

    def job_cgroups(self):
        """Groups of single jobs, in every hierarchy."""
        found = []
        for group in self.cgroups():
            jobs = os.path.join(group, "jobs")
            with contextlib.suppress(OSError):
                found += [e.path for e in os.scandir(jobs) if e.is_dir()]
        return found

    def left_behind(self):
        # A process that was killed a moment ago may still be on its way out.
        deadline = time.monotonic() + 180
        while True:
            left = {"processes": self.pids(), "cgroups": self.cgroups(), "mounts": self.mounts()}
            left = {k: v for k, v in left.items() if v}
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.05)

    def clean_up(self):
        """Removes everything by force, so that a failed test does not disturb the next one."""
        for process in [*self.nodes, self.server]:
            process.kill()
        for _ in range(50):
            pids = self.pids()
            if not pids:
                break
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        for mount in reversed(self.mounts()):
            subprocess.run(["umount", "-l", mount], check=False)
        for group in sorted(self.cgroups(), key=len, reverse=True):
            for base, directories, _ in os.walk(group, topdown=False):
                for d in directories:
                    with contextlib.suppress(OSError):
                        os.rmdir(os.path.join(base, d))
            with contextlib.suppress(OSError):
                os.rmdir(group)
            # What nodes share goes with the last of them.
            with contextlib.suppress(OSError):
                os.rmdir(os.path.dirname(group))
        if "MILLPOND_KEEP" not in os.environ:
            shutil.rmtree(self.directory, ignore_errors=True)

    # --- talking to it

    def command(self, name, /, method=None, timeout=120, token=None, **parameters):
        """A command over plain HTTP with JSON; gives the parsed reply."""
        body = json.dumps(parameters).encode()
        if name == "set":
            value = json.dumps(parameters.pop("value")).encode()
            request = urllib.request.Request(
                f"http://{self.address}/api/v4/set", data=value, method="PUT",
                headers={"X-YT-Parameters": json.dumps(parameters), "Content-Type": "application/json"})
        elif (method or self.method(name)) == "GET":
            request = urllib.request.Request(
                f"http://{self.address}/api/v4/{name}", method="GET",
                headers={"X-YT-Parameters": json.dumps(parameters)})
        else:
            request = urllib.request.Request(
                f"http://{self.address}/api/v4/{name}", data=body, method="POST",
                headers={"Content-Type": "application/json"})
        if token or self.token:
            request.add_header("Authorization", f"OAuth {token or self.token}")
        try:
            with urllib.request.urlopen(request, timeout=timeout) as reply:
                data = reply.read()
        except urllib.error.HTTPError as error:
            raise ServerError(json.loads(error.read())) from None
        if name in ("get_job_stderr", "get_job_input", "get_job_fail_context"):
            return data
        return json.loads(data)

    @staticmethod
    def method(name):
        reads = {"get", "list", "exists", "get_operation", "list_operations", "list_jobs", "get_job",
                 "get_job_stderr", "get_job_input", "get_job_input_paths", "get_job_fail_context",
                 "abort_job", "abandon_job", "check_permission"}
        return "GET" if name in reads else "POST"

    def start_transaction(self, token=None):
        """Starts a transaction that does not end because the machine is late, and gives its id.

        `command` takes `timeout` for that of the request.
        """
        request = urllib.request.Request(
            f"http://{self.address}/api/v4/start_transaction", data=json.dumps({"timeout": 600_000}).encode(), method="POST",
            headers={"Content-Type": "application/json"})
        if token or self.token:
            request.add_header("Authorization", f"OAuth {token or self.token}")
        with urllib.request.urlopen(request, timeout=120) as reply:
            return json.loads(reply.read())["transaction_id"]

    def get(self, path):
        return self.command("get", path=path)["value"]

    def set(self, path, value):
        return self.command("set", path=path, value=value)

    def remove(self, path, **options):
        return self.command("remove", path=path, **options)

    def exists(self, path):
        return self.command("exists", path=path)["value"]

    def pool_orchid(self, pool, tree="physical"):
        """What the scheduler says of a pool. One that has just been made is shown by the next update."""
        path = f"//sys/scheduler/orchid/scheduler/pool_trees/{tree}/pools/{pool}"
        wait_for(lambda: self.exists(path), what=f"an update that knows pool {pool}")
        return self.get(path)

    def rounds(self, count=2, seconds=0.0, heartbeats=True):
        """Waits until the scheduler has had `count` occasions to act since the call, over at least `seconds` of its own time.

        An occasion is a fair-share update and, with `heartbeats`, a heartbeat of each online node. The times are those of
        the server: the proof that something does not happen does not depend on the speed of the machine.
        """
        def times():
            base = "//sys/scheduler/orchid/scheduler"
            nodes = self.get(f"{base}/nodes") if heartbeats else {}
            return {"the fair-share update": self.get(f"{base}/last_fair_share_update_time"),
                    **{a: n["last_heartbeat_time"] for a, n in nodes.items() if n.get("scheduler_state") == "online"}}
        seen = {name: [at] for name, at in times().items()}

        def over():
            now = times()
            for name, known in list(seen.items()):
                if name not in now:
                    del seen[name]  # a node that has left
                elif now[name] != known[-1]:
                    known.append(now[name])
            return all(len(known) > count and moment(known[-1]) - moment(known[0]) >= seconds for known in seen.values())
        wait_for(over, what=f"{count} rounds of the scheduler over {seconds} s", seen=lambda: seen, period=0.02)

    def create_pool(self, name, **attributes):
        return self.command("create", type="scheduler_pool",
                            attributes={"name": name, "pool_tree": "physical", **attributes})

    def start_vanilla(self, command="true", job_count=1, pool="p", spec=None, **task):
        tasks = {"t": {"command": command, "job_count": job_count, "cpu_limit": 0.1,
                       "memory_limit": 64 << 20, **task}}
        return self.command("start_operation", operation_type="vanilla",
                            spec={"pool": pool, "tasks": tasks, **(spec or {})})["operation_id"]

    def operation(self, operation, *attributes):
        return self.command("get_operation", operation_id=operation, attributes=list(attributes))

    def state(self, operation):
        return self.operation(operation, "state")["state"]

    def jobs(self, operation, **filters):
        return self.command("list_jobs", operation_id=operation, **filters)["jobs"]

    def counters(self, operation):
        return self.operation(operation, "brief_progress")["brief_progress"]["jobs"]

    def wait_state(self, operation, *states, timeout=180):
        """Waits for one of the states; fails at once if the operation ends in another one."""
        def reached():
            state = self.state(operation)
            if state in states:
                return state
            if state in ("completed", "failed", "aborted"):
                result = self.operation(operation, "result").get("result")
                raise AssertionError(f"operation {operation} is {state}, not {states}: {json.dumps(result, indent=1)}")
            return None
        return wait_for(reached, timeout=timeout, what=f"operation {operation} to be {states}")

    def wait_counters(self, operation, timeout=180, **wanted):
        """Waits until the counters of the operation's jobs have these values."""
        def reached():
            counters = self.counters(operation)
            return counters if all(counters[k] == v for k, v in wanted.items()) else None
        return wait_for(reached, timeout=timeout, what=f"operation {operation} to have {wanted}")

    def wait_jobs(self, operation, count=1, state="running", timeout=180):
        """Waits for so many jobs in this state and gives their ids."""
        def there():
            ids = [j["id"] for j in self.jobs(operation, state=state)]
            return ids if len(ids) == count else None
        return wait_for(there, timeout=timeout, what=f"{count} {state} jobs of {operation}")

    def result(self, operation):
        """The error of a finished operation."""
        return self.operation(operation, "result")["result"]["error"]

    def run_vanilla(self, *arguments, state="completed", timeout=180, **options):
        """Starts an operation, waits for its end and gives its id."""
        operation = self.start_vanilla(*arguments, **options)
        self.wait_state(operation, state, timeout=timeout)
        return operation

    def stderr(self, operation, job):
        """What the job has written. A node that is late is asked again: the server waits for its answer for ten seconds."""
        def told():
            try:
                return [self.command("get_job_stderr", operation_id=operation, job_id=job)]
            except ServerError as error:
                if error.error["code"] != NOT_ANSWERED:
                    raise
                return None
        return wait_for(told, what=f"stderr of job {job}", seen=lambda: self.jobs(operation))[0]

    def yt_environment(self):
        # Milliseconds; the client's own period grows to 5 s, meant for long operations.
        return {**os.environ, "YT_PROXY": self.address, "YT_TOKEN": "", "YT_LOG_LEVEL": "INFO",
                "YT_OPERATION_STATE_UPDATE_PERIOD": "500"}

    def yt(self, *arguments, check=True, stdin=None, timeout=180, token=None, fresh=False):
        """Runs the real `yt` command and returns (exit code, stdout, stderr).

        With `fresh` or MILLPOND_TEST_FRESH_YT it is a new process, otherwise a fork of one that has imported the modules of
        the command (warm_yt.py).
        """
        environment = {**self.yt_environment(), **({"YT_TOKEN": token or self.token} if token or self.token else {})}
        if fresh or FRESH_YT:
            done = subprocess.run([str(YT), *arguments], input=stdin, capture_output=True, text=True, timeout=timeout, env=environment)
            code, out, err = done.returncode, done.stdout, done.stderr
        else:
            code, out, err = WARM_YT.call(*arguments, environment=environment, stdin=stdin, timeout=timeout)
        if check:
            assert code == 0, f"yt {' '.join(arguments)}: {out}{err}"
        return code, out, err

    def millpond(self, *arguments, check=True, stdin=None, timeout=180, token=None):
        """Our own command line. Gives (exit code, stdout, stderr)."""
        done = subprocess.run(
            [str(BINARY), *arguments], input=stdin, capture_output=True, text=True, timeout=timeout,
            env={**os.environ, "MILLPOND_PROXY": self.address, "NO_COLOR": "1",
                 **({"MILLPOND_TOKEN": token or self.token} if token or self.token else {})})
        if check:
            assert done.returncode == 0, f"millpond {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.returncode, done.stdout, done.stderr

    def client(self, token=None):
        """The real Python client."""
        import yt.wrapper
        return yt.wrapper.YtClient(proxy=self.address, token=token or self.token or "", config={
            "proxy": {"enable_proxy_discovery": False, "retries": {"count": 2}},
            "operation_tracker": {"poll_period": 100}})


def walk_error(error):
    """An error and all its inner ones."""
    yield error
    for inner in error["inner_errors"]:
        yield from walk_error(inner)


def error_codes(error):
    return {e["code"] for e in walk_error(error)}


def error_text(error):
    """All messages of the tree, for looking for words."""
    return "\n".join(e["message"] for e in walk_error(error))


def find_error(error, code):
    """The first error with this code; fails with the tree if there is none."""
    for e in walk_error(error):
        if e["code"] == code:
            return e
    raise AssertionError(f"no error {code} in {json.dumps(error, indent=1)}")


class ServerError(Exception):
    """An error reply."""

    def __init__(self, error):
        super().__init__(json.dumps(error, indent=1))
        self.error = error

    def codes(self):
        return error_codes(self.error)

    def text(self):
        return error_text(self.error)


@contextlib.contextmanager
def cluster(start=True, **options):
    """A cluster for a `with` statement; shows the logs when the body fails."""
    c = Cluster(**options)
    try:
        if start:
            c.start()
        yield c
    except BaseException:
        sys.stderr.write(c.logs())
        c.clean_up()
        raise
    c.stop()
