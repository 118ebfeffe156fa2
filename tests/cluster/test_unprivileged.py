"""A node of a user without privileges (jobs-and-nodes.md 4.10): jobs run, end, are measured and fail at their limits;
what nobody enforces is said."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest
from harness import BINARY, find_error, free_port, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not root: cannot become somebody else")
NOBODY = 65534


class Up:
    """`millpond up` of the user nobody."""

    def __init__(self):
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
        self.process = subprocess.Popen(
            [str(self.binary), "up", "--listen", self.address, "--data", str(home / "data"),
             "--node-resources", "cpu=4,memory=2GiB,user_slots=8"],
            user=NOBODY, group=NOBODY, extra_groups=[], cwd=home, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)

    def millpond(self, *arguments):
        done = subprocess.run([str(self.binary), *arguments], user=NOBODY, group=NOBODY, extra_groups=[], cwd=self.home,
                              env=self.environment, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def nodes(self):
        code, out, _ = self.millpond("get", "//sys/scheduler/orchid/scheduler/nodes", "--json")
        return [n for n in json.loads(out).values() if n["scheduler_state"] == "online"] if code == 0 else []

    def stop(self):
        self.process.terminate()
        self.process.wait(60)
        shutil.rmtree(self.directory)


@pytest.fixture(scope="module")
def up():
    up = Up()
    try:
        wait_for(up.nodes, what="the node", timeout=30)
        yield up
    finally:
        up.stop()


def processes_of_nobody(marker):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if marker in (entry / "cmdline").read_bytes() and entry.stat().st_uid == NOBODY:
                    found.append(entry.name)
            except OSError:
                pass
    return found


def test_it_is_chosen_and_says_what_it_does_not_enforce(up):
    [node] = up.nodes()
    assert node["job_environment"] == "simple"
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


def test_daemons_and_deaf_jobs_do_not_stay(up):
    code, out, err = up.millpond("run", "--follow", "--quiet", "--", "bash", "-c", "setsid -f sleep 76543 <&- >&- 2>&- 5>&-; trap '' TERM HUP; echo done")
    assert code == 0 and out == "done\n", err
    wait_for(lambda: not processes_of_nobody(b"76543"), what="the daemon of the job to be killed")


def test_memory_is_watched_though_no_kernel_limits_it(up):
    hog = "x = bytearray(300 << 20); import time; time.sleep(60)"
    code, out, err = up.millpond("run", "--memory", "100MiB", "--max-failed", "1", "--quiet", "--", "python3", "-c", hog)
    assert code == 0, err
    operation = out.split()[0]

    def ended():
        _, text, _ = up.millpond("op", "get", operation, "--json")
        found = json.loads(text)
        return found if found["state"] in ("failed", "completed", "aborted") else None
    error = wait_for(ended, what="the job to fail", timeout=40)["result"]["error"]
    limit = find_error(error, 1200)
    assert limit["message"] == "Memory limit exceeded" and limit["attributes"]["limit"] == 100 << 20
    assert any(p["name"].startswith("python3") for p in limit["attributes"]["processes"])
