"""A node of a user without privileges (jobs-and-nodes.md 4.10): jobs run, end, are measured and fail at their limits;
what nobody enforces is said. Where the host lets users make user namespaces, jobs are kept apart by them."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest
from harness import BINARY, find_error, free_port, wait_for
from test_modes import children

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not root: cannot become somebody else")
NOBODY = 65534
PROCESSES = 4096


# Prefix of a command that looks into other processes, as root may; the rest of its rights are those of nobody.
MAY_LOOK = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups",
            "--inh-caps=+sys_ptrace", "--ambient-caps=+sys_ptrace"]


class Up:
    """`millpond up` of the user nobody."""

    def __init__(self, may_look=False):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="millpond-nobody-"))
        self.directory.chmod(0o755)
        self.binary = self.directory / "millpond"
        shutil.copy(BINARY, self.binary)
        self.binary.chmod(0o755)
        home = self.directory / "home"
        home.mkdir()
        os.chown(home, NOBODY, NOBODY)
        self.home = home
        self.address = f"127.0.0.1:{free_port()}"
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(home), "MILLPOND_PROXY": self.address, "NO_COLOR": "1"}
        user = {} if may_look else {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self.process = subprocess.Popen(
            [*(MAY_LOOK if may_look else []), str(self.binary), "up", "--listen", self.address, "--data", str(home / "data"),
             "--node-resources", "cpu=4,memory=2GiB,user_slots=8"],
            **user, cwd=home, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)

    def millpond(self, *arguments):
        done = subprocess.run([str(self.binary), *arguments], user=NOBODY, group=NOBODY, extra_groups=[], cwd=self.home,
                              env=self.environment, capture_output=True, text=True, timeout=180)
        return done.returncode, done.stdout, done.stderr

    def nodes(self):
        code, out, _ = self.millpond("get", "//sys/scheduler/orchid/scheduler/nodes", "--json")
        return [n for n in json.loads(out).values() if n["scheduler_state"] == "online"] if code == 0 else []

    def process_of(self, role):
        """Pid of the server or the node."""
        below = {}
        for pid in children(self.process.pid):
            # Of those below them some live for a moment.
            with contextlib.suppress(OSError):
                below[pid] = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        found = [pid for pid, command in below.items() if command[:2] == [b"millpond", role.encode()]]
        assert len(found) == 1, below
        return found[0]

    def stop(self):
        self.process.terminate()
        self.process.wait(180)
        shutil.rmtree(self.directory)


@pytest.fixture(scope="module")
def up():
    up = Up()
    try:
        wait_for(up.nodes, what="the node")
        yield up
    finally:
        up.stop()


def processes_of_nobody(*arguments):
    """Pid and start time of those with exactly these arguments: a shell that is about to run them has others, and a job
    that is started again has other processes."""
    wanted, found = "\0".join([*arguments, ""]).encode(), set()
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cmdline").read_bytes() == wanted and entry.stat().st_uid == NOBODY:
                    found.add((int(entry.name), stat(entry.name)[19]))
            except OSError:
                pass
    return found


def stat(pid):
    """From the third column on."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()


def test_it_is_chosen_and_says_what_it_does_not_enforce(up):
    [node] = up.nodes()
    assert node["job_environment"] == "rootless"
    code, out, err = up.millpond("get", f"//sys/cluster_nodes/{node['tags'][0]}/@alerts", "--json")
    assert code == 0, err
    alerts = out
    for word in ("memory limit", "cpu guarantee"):
        assert word in alerts, alerts


def test_jobs_run_as_their_owner(up):
    code, out, err = up.millpond("run", "--follow", "--quiet", "--", "bash", "-c", "id -u; pwd; echo $YT_JOB_ID; echo x >f; cat f")
    assert code == 0, err
    uid, sandbox, job, content = out.splitlines()
    assert uid == str(NOBODY) and "/slots/" in sandbox and job and content == "x"


def run(up, script, *options, code=0):
    got, out, err = up.millpond("run", "--follow", "--quiet", *options, "--", "bash", "-c", script)
    assert got == code, (out, err)
    return out


@pytest.fixture(scope="module")
def namespaces():
    done = subprocess.run(["unshare", "-Urpf", "--mount-proc", "true"], user=NOBODY, group=NOBODY, extra_groups=[],
                          capture_output=True)
    if done.returncode:
        pytest.skip(f"this host lets nobody make no user namespaces: {done.stderr.decode()}")


def test_a_job_sees_itself_only(up, namespaces):
    """Its processes, its sandbox, its names; devices work; the cluster's data and the host's sockets are covered."""
    script = f"""
        [ $(ls -d /proc/[0-9]* | wc -l) -lt 8 ] && cat /proc/1/comm
        hostname | grep -o ^slot_
        for f in /etc/x /x {up.home}/data/x ../x ../../x ../../../x; do (echo x >$f) 2>/dev/null && echo wrote $f; done
        ls -A {up.home} {up.home}/data | grep -v "^$\\|:$\\|^data$\\|^node-[0-9]*$"; find /run -type s; cat {up.home}/data/*/journal* 2>/dev/null | head -c 10
        echo x >/tmp/x-{up.directory.name} && echo x >/dev/shm/x-{up.directory.name} && head -c 3 /dev/zero | wc -c; echo x >/dev/null
        grep ^Cap[PEB] /proc/self/status | grep -cv 0000000000000000
        unshare -U true 2>/dev/null && echo unshared; mount -t tmpfs x /tmp 2>/dev/null && echo mounted; true"""
    assert run(up, script).split() == ["mp-init", "slot_", "3", "0"]
    assert not any(os.path.exists(f"{directory}/x-{up.directory.name}") for directory in ("/tmp", "/dev/shm"))


def test_processes_are_bounded(up, namespaces):
    """By the job's own user namespace: the kernel counts anew in it, whatever else the node's user runs."""
    assert run(up, "ulimit -u; ulimit -Hu").split() == [str(PROCESSES)] * 2
    bomb = "import os, time\nn = 0\nwhile n < 200:\n try: pid = os.fork()\n except OSError: break\n if not pid: time.sleep(1000)\n n += 1\nprint(n, flush=True)\nos.kill(-1, 9)"
    # Its shell, itself and the first process of the namespace are there already.
    assert 36 <= int(run(up, f"ulimit -u 40; python3 -c '{bomb}'")) <= 39


def test_a_job_dies_with_its_proxy(up, namespaces):
    """Whatever it did to hide: no group remembers it."""
    code, out, err = up.millpond("run", "--quiet", "--", "bash", "-c", "setsid env -i sleep 76544 & exec env -i sleep 76545")
    assert code == 0, err
    operation = out.split()[0]

    def both():
        daemon, main = processes_of_nobody("sleep", "76544"), processes_of_nobody("sleep", "76545")
        return daemon and main and (daemon, main)
    daemon, main = wait_for(both, what="the job")
    [(pid, _)] = main
    proxy = int(stat(pid)[1])
    assert pathlib.Path(f"/proc/{proxy}/comm").read_text().strip() == "mp-job-proxy"
    os.kill(proxy, 9)

    # The operation fails by it, or starts the job again: what counts is who was there.
    def left():
        return (daemon | main) & (processes_of_nobody("sleep", "76544") | processes_of_nobody("sleep", "76545"))
    wait_for(lambda: not left(), what="their end")

    def ended():
        code, out, err = up.millpond("job", "list", operation, "--json")
        assert code == 0, err
        return [j for j in json.loads(out) if j["state"] in ("failed", "aborted")]
    [job, *_] = wait_for(ended, what="its death to be told")
    assert "signal 9" in json.dumps(job), job
    up.millpond("op", "abort", operation)


def test_daemons_and_deaf_jobs_do_not_stay(up):
    code, out, err = up.millpond("run", "--follow", "--quiet", "--", "bash", "-c", "setsid -f sleep 76543 <&- >&- 2>&- 5>&-; trap '' TERM HUP; echo done")
    assert code == 0 and out == "done\n", err
    wait_for(lambda: not processes_of_nobody("sleep", "76543"), what="the daemon of the job to be killed")


def test_memory_is_watched_though_no_kernel_limits_it(up):
    hog = "x = bytearray(300 << 20); import time; time.sleep(1000)"
    code, out, err = up.millpond("run", "--memory", "100MiB", "--max-failed", "1", "--quiet", "--", "python3", "-c", hog)
    assert code == 0, err
    operation = out.split()[0]

    def ended():
        _, text, _ = up.millpond("op", "get", operation, "--json")
        found = json.loads(text)
        return found if found["state"] in ("failed", "completed", "aborted") else None
    error = wait_for(ended, what="the job to fail")["result"]["error"]
    limit = find_error(error, 1200)
    assert limit["message"] == "Memory limit exceeded" and limit["attributes"]["limit"] == 100 << 20
    assert any(p["name"].startswith("python3") for p in limit["attributes"]["processes"])


ATTACH = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
SEIZE = 0x4206
if libc.ptrace(SEIZE, int(sys.argv[1]), None, None) != 0:
    sys.exit(f"ptrace: {os.strerror(ctypes.get_errno())}")
"""


def looks_into(pid):
    """What of a process the user nobody gets at: its memory, by reading it and as a debugger."""
    as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "capture_output": True, "text": True, "timeout": 180, "cwd": "/"}
    reads = subprocess.run(["dd", f"if=/proc/{pid}/mem", "of=/dev/null", "count=0"], **as_nobody)
    attaches = subprocess.run(["/usr/bin/python3", "-c", ATTACH, str(pid)], **as_nobody)
    for done in (reads, attaches):
        assert done.returncode == 0 or "ermission denied" in done.stderr or "not permitted" in done.stderr, done
    return {name for name, done in (("memory", reads), ("debugger", attaches)) if done.returncode == 0}


def is_closed(pid):
    """The kernel gives what `/proc` has of a process with closed memory to root."""
    return os.stat(f"/proc/{pid}/environ").st_uid == 0


def test_memory_of_server_and_agent_is_closed(up):
    """Tokens and vaults are in the memory of the server and of the agent: another process of their user does not get at it. A
    process of nobody that does nothing about it shows that this host has no other bar. An agent closes its memory when it
    may look into processes, as that of root may: otherwise it could not look after its job proxies."""
    with subprocess.Popen(["sleep", "1000"], user=NOBODY, group=NOBODY, extra_groups=[]) as control:
        try:
            wait_for(lambda: pathlib.Path(f"/proc/{control.pid}/comm").read_text() == "sleep\n", what="the open process")
            assert not is_closed(control.pid)
            usual = looks_into(control.pid)
        finally:
            control.kill()
    if usual != {"memory", "debugger"}:
        print(f"SKIPPED: this host keeps processes of one user apart: nobody gets at {usual or 'nothing'} of its own")
    server = up.process_of("server")
    assert is_closed(server) and looks_into(server) == set()
    if subprocess.run([*MAY_LOOK, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this host does not let the test hand on CAP_SYS_PTRACE")
    strong = Up(may_look=True)
    try:
        wait_for(strong.nodes, what="the node", seen=strong.nodes)
        for role in ("server", "node"):
            pid = strong.process_of(role)
            assert is_closed(pid) and looks_into(pid) == set(), role
    finally:
        strong.stop()
