"""Shells beside running jobs: the real client, our command line and the plain API (http-api.md 8.7)."""

import http.client
import json
import os
import pathlib
import pty
import re
import select
import subprocess
import sys
import time

import pytest
from harness import BINARY, ServerError, cluster as make_cluster, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not root: jobs have no namespaces")


@pytest.fixture(scope="module")
def cluster():
    with make_cluster(resources="cpu=8,memory=8GiB,user_slots=16") as c:
        yield c


@pytest.fixture
def job(cluster, pool):
    """A running job, for as long as the test lasts."""
    operation = cluster.start_vanilla(
        "echo $$ >pid; sleep 1000", pool=pool, environment={"COLOUR": "blue"},
        spec={"secure_vault": {"password": "hidden"}, "enable_secure_vault_variables_in_job_shell": False,
              "job_shells": [{"name": "private", "owners": ["anna"]}]})
    yield cluster.wait_jobs(operation)[0]
    cluster.command("abort_operation", operation_id=operation)
    cluster.wait_state(operation, "aborted")


class Terminal:
    """A person at a terminal, running a program."""

    def __init__(self, arguments, env):
        self.seen = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(arguments[0], arguments, {**os.environ, **env, "TERM": "xterm"})

    def type(self, text):
        os.write(self.fd, text.encode())

    def read(self, timeout):
        if not select.select([self.fd], [], [], timeout)[0]:
            return False
        try:
            piece = os.read(self.fd, 65536)
        except OSError:
            piece = b""
        self.seen += piece
        return bool(piece)

    def wait(self, pattern, timeout=180):
        deadline = time.monotonic() + timeout
        while not re.search(pattern.encode(), self.seen):
            assert time.monotonic() < deadline, f"no {pattern!r} in {self.seen.decode(errors='replace')}"
            self.read(0.2)
        return self.seen.decode(errors="replace")

    def end(self, timeout=180):
        """Waits for the program; gives its exit code."""
        deadline = time.monotonic() + timeout
        while True:
            self.read(0.1)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                while self.read(0.1):
                    pass
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            assert time.monotonic() < deadline, self.seen.decode(errors="replace")


def yt(cluster, *arguments):
    pytest.importorskip("tornado", reason="the yt client needs tornado for its job shell")
    program = os.path.join(os.path.dirname(sys.executable), "yt")
    return Terminal([program, *arguments], cluster.yt_environment())


def millpond(cluster, *arguments):
    return Terminal([str(BINARY), "--proxy", cluster.address, *arguments], {})


def test_the_real_client(cluster, job):
    person = yt(cluster, "run-job-shell", job)
    person.wait("terminate shell(.|\n)*slot_.*\\$ ")
    person.type("echo $((6*7)) $COLOUR [$YT_SECURE_VAULT_password]; pwd; cat pid; tty; echo yt=$YT_PROXY; echo do''ne\r")
    seen = person.wait("done")
    assert "42 blue []" in seen and "/slots/" in seen and "/dev/pts/" in seen, seen
    assert f"yt=http://{cluster.address}" in seen, "the client hands its cluster on"
    person.type("exit\r")
    person.end()
    assert b"Shell exited" in person.seen


def test_a_command_of_the_real_client(cluster, job):
    person = yt(cluster, "run-job-shell", job, "echo from $YT_JOB_ID; stty size")
    person.end()
    assert f"from {job}" in person.seen.decode()
    assert cluster.yt("run-job-shell-command", job, "echo out; echo err >&2; exit 3")[1] == "out\nerr\n"


def test_our_command_line(cluster, job):
    person = millpond(cluster, "job", "shell", job)
    person.wait("Ctrl-\\] leaves(.|\n)*slot_.*\\$ ")
    person.type("echo $COLOUR; stty -echo; echo rea''dy\r")
    assert "blue" in person.wait("ready")
    def sleeps():
        return "sleep 1234" in shell(cluster, job, "ps -eo args=")
    person.type("sleep 1234\r")
    wait_for(sleeps, what="the command to begin")
    person.type("\x03")
    wait_for(lambda: not sleeps(), what="Ctrl-C to end it")
    person.type("\x1d")
    assert person.end() == 0
    # The shell and all it started are gone: only the job's own processes are left.
    wait_for(lambda: "bash" not in shell(cluster, job, "ps -eo comm=").replace("bash\nps", ""), what="the shell to go")
    assert cluster.millpond("job", "shell", job, "--", "echo", "$COLOUR", "|", "tr", "a-z", "A-Z")[1] == "BLUE\n"
    refused = subprocess.run([BINARY, "--proxy", cluster.address, "job", "shell", job], stdin=subprocess.DEVNULL,
                             capture_output=True, text=True)
    assert refused.returncode == 2 and "needs a terminal" in refused.stderr


def test_a_shell_by_operation(cluster, pool):
    """Beside the job that has run longest, which is named; all the same for a person at a terminal."""
    tasks = {name: {"command": f"echo {name} >task; sleep 1000", "job_count": 1, "cpu_limit": 0.1, "memory_limit": 64 << 20}
             for name in ("first", "second")}
    operation = cluster.command("start_operation", operation_type="vanilla", spec={"pool": pool, "tasks": tasks})["operation_id"]
    cluster.wait_jobs(operation, count=2)
    jobs = {j["task_name"]: j for j in cluster.jobs(operation)}
    # Of a job that is being prepared a shell is refused; they are up when they have written.
    for job in jobs.values():
        wait_for(lambda: cluster.millpond("job", "shell", job["id"], "--", "cat task", check=False)[0] == 0, what="both to be up")
    _, out, err = cluster.millpond("op", "shell", operation, "--", "cat", "task")
    oldest = jobs[out.strip()]
    # Both may have been started in the same moment.
    assert oldest["id"] in err and oldest["start_time"] == min(j["start_time"] for j in jobs.values()), (out, err, jobs)
    for name, job in jobs.items():
        _, out, err = cluster.millpond("op", "shell", operation, "--task", name, "--", "cat", "task")
        assert out == name + "\n" and f"job {job['id']} ({name}/0)" in err, (out, err)
    person = millpond(cluster, "op", "shell", operation, "--task", "second")
    person.wait("Ctrl-\\] leaves(.|\n)*slot_.*\\$ ")
    person.type("cat task; echo $((6*7)); tty\r")
    seen = person.wait("42(.|\n)*/dev/pts/")
    assert "second" in seen and jobs["second"]["id"] in seen, seen
    person.type("exit\r")
    assert person.end() == 0
    code, _, err = cluster.millpond("op", "shell", operation, "--task", "third", "--", "true", check=False)
    assert code == 1 and "no running job of task" in err and "op explain" in err, err
    cluster.command("abort_operation", operation_id=operation)
    cluster.wait_state(operation, "aborted")
    code, _, err = cluster.millpond("op", "shell", operation, "--", "true", check=False)
    assert code == 1 and "has no running job" in err, err


def shell(cluster, job, command):
    """`run_job_shell_command`."""
    connection = http.client.HTTPConnection(cluster.address, timeout=180)
    connection.request("POST", "/api/v4/run_job_shell_command", body=json.dumps({"job_id": job, "command": command}))
    reply = connection.getresponse()
    body = reply.read()
    assert reply.status == 200, body
    return body.decode()


def poll(cluster, job, **parameters):
    return cluster.command("poll_job_shell", method="POST", job_id=job, parameters=parameters)["result"]


def test_much_output(cluster, job):
    assert shell(cluster, job, "seq 1 300000").splitlines()[-1] == "300000"


@pytest.mark.parametrize("time_of_leaving", ["while it prints", "when it waits for the reader", "while it is silent"])
def test_a_reader_that_leaves(cluster, job, time_of_leaving):
    """Its command ends. Six times: who notices it, at the next piece or while none comes, is left to chance."""
    for number in range(6):
        command = ["sleep" if "silent" in time_of_leaving else "yes", f"1234.{number}"]
        connection = http.client.HTTPConnection(cluster.address, timeout=180)
        connection.request("POST", "/api/v4/run_job_shell_command",
                           body=json.dumps({"job_id": job, "command": " ".join(command)}))
        pid = wait_for(lambda: cluster.find_process(*command), what="the command to begin")
        if "waits" in time_of_leaving:
            written = [0, 1]
            while written[0] != written[1]:
                written = [written[1], pathlib.Path(f"/proc/{pid}/io").read_text()]
                time.sleep(0.2)
        connection.close()
        wait_for(lambda: not cluster.find_process(*command), what=f"{command} to end")


def test_errors_and_events(cluster, job):
    def refused(code, text, **parameters):
        with pytest.raises(ServerError) as error:
            cluster.command("poll_job_shell", method="POST", **parameters)
        assert code in error.value.codes() and text in error.value.text()
    refused(203, "No such job", job_id="1-2-3-4", parameters={"operation": "spawn"})
    refused(1, "found \"dance\"", job_id=job, parameters={"operation": "dance"})
    refused(1, "No such shell", job_id=job, parameters={"operation": "poll", "shell_id": "1-2-3-4"})
    refused(1, "No such job shell", job_id=job, shell_name="other", parameters={"operation": "spawn"})
    shell_id = poll(cluster, job, operation="spawn", command="exit 4")["shell_id"]
    with pytest.raises(ServerError) as error:
        while True:
            poll(cluster, job, operation="poll", shell_id=shell_id)
    assert 1800 in error.value.codes() and "Shell exited" in error.value.text()

    def opened():
        events = [json.loads(line) for line in cluster.millpond("events", "--json")[1].splitlines()]
        return [e for e in events if e["event"] == "job_shell_opened" and e["job_id"] == job]
    # The files of the event log are written behind the answer.
    event = wait_for(opened, what="the line of the event log")[-1]
    assert event["command"] == "exit 4" and event["user"] == "root", event


def test_named_shells_are_for_their_owners(cluster, job):
    def spawn(user):
        connection = http.client.HTTPConnection(cluster.address, timeout=180)
        body = json.dumps({"job_id": job, "shell_name": "private", "parameters": {"operation": "spawn", "command": "true"}})
        connection.request("POST", "/api/v4/poll_job_shell", body=body, headers={"X-YT-User-Name": user})
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    status, answer = spawn("anna")
    assert status == 200 and answer["result"]["shell_id"], answer
    status, error = spawn("bert")
    assert error["code"] == 901 and "bert" in error["message"] and "private" in error["message"], (status, error)
    assert spawn("root")[0] == 200


def test_a_shell_outlives_the_node_agent(cluster, job):
    shell_id = poll(cluster, job, operation="spawn", term="dumb", height=24, width=80)["shell_id"]

    def type_and_read(offset, keys, wanted):
        answer = poll(cluster, job, operation="update", shell_id=shell_id, keys=keys.encode().hex(), input_offset=offset)
        seen, deadline = "", time.monotonic() + 180
        while wanted not in seen:
            assert time.monotonic() < deadline, seen
            seen += poll(cluster, job, operation="poll", shell_id=shell_id)["output"]
        return answer["consumed_offset"]

    consumed = type_and_read(0, "x=kept; echo rea''dy\n", "ready")
    node = cluster.nodes[0]
    node.kill()
    cluster.restart()
    wait_for(lambda: poll(cluster, job, operation="update", shell_id=shell_id, keys="")["consumed_offset"] == consumed,
             what="the node to find the shell again")
    type_and_read(consumed, "echo [$x]\n", "[kept]")
    poll(cluster, job, operation="terminate", shell_id=shell_id)
