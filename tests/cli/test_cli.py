"""The command line, as somebody uses it who has just built the program."""

import csv
import http.client
import json
import os
import re
import signal
import subprocess
import types

import pytest
from harness import BINARY, Cluster, ServerError, free_port, wait_for

ID = re.compile(r"[0-9a-f]+-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+")


def millpond(*arguments, env=None, timeout=180, cwd=None):
    done = subprocess.run([str(BINARY), *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, env={**os.environ, "NO_COLOR": "1", **(env or {})}, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


# --- up

class Up:
    """`millpond up` in a directory."""

    def __init__(self, directory, *arguments):
        self.address = f"127.0.0.1:{free_port()}"
        self.log = directory / "up.log"
        self.popen = subprocess.Popen(
            [str(BINARY), "up", "--listen", self.address, "--data", str(directory / "data"), *arguments],
            stdin=subprocess.DEVNULL, stdout=open(self.log, "ab"), stderr=subprocess.STDOUT, start_new_session=True)
        self.cluster = Cluster.__new__(Cluster)
        self.cluster.address, self.cluster.directory = self.address, directory / "data"
        # What the groups of its nodes have in their names.
        self.cluster.nodes = [types.SimpleNamespace(name="-" + self.address.split(":")[1] + "-")]

    def wait_ready(self, nodes=1):
        def ready():
            assert self.popen.poll() is None, self.log.read_text()
            try:
                return len(self.cluster.online()) == nodes
            # It is starting, or was killed in the middle of the answer.
            except (OSError, ServerError, http.client.HTTPException, ValueError):
                return False
        wait_for(ready, what="the cluster to be up")
        wait_for(lambda: "YT_PROXY" in self.log.read_text(), what="the banner")

    def millpond(self, *arguments, **options):
        return millpond(*arguments, env={"MILLPOND_PROXY": self.address}, **options)

    def interrupt(self, number=signal.SIGINT):
        # As a terminal does: to the whole group.
        os.killpg(self.popen.pid, number)
        return self.popen.wait(180)


@pytest.fixture
def start_up(tmp_path):
    """Starts `up` in the directory of the test; what a failed test leaves running is stopped."""
    started = []

    def start(*arguments):
        started.append(Up(tmp_path, *arguments))
        return started[-1]
    yield start
    for up in started:
        if up.popen.poll() is None:
            up.popen.terminate()
            up.popen.wait(180)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_and_clean_stop(start_up, number):
    up = start_up("--nodes", "2", "--node-resources", "cpu=8,memory=16GiB,user_slots=32")
    up.wait_ready(nodes=2)
    code, out, _ = up.millpond("node", "list", "--json")
    assert code == 0 and len(json.loads(out)) == 2
    up.millpond("pool", "create", "p")
    code, out, err = up.millpond("run", "--pool", "p", "--quiet", "--", "sleep", "1000")
    assert code == 0, err
    operation = ID.search(out)[0]
    wait_for(lambda: up.cluster.counters(operation)["running"] == 1, what="a job")
    if os.geteuid() == 0:
        assert up.cluster.cgroups(), "the look for leftovers knows the groups of these nodes"
    if number == signal.SIGTERM:
        up.popen.terminate()
        assert up.popen.wait(180) == 0
    else:
        assert up.interrupt(number) == 0
    text = up.log.read_text()
    assert up.address in text and "YT_PROXY" in text, "the banner says how to use it"
    assert "panicked" not in text and " ERROR " not in text, text
    left = up.cluster.left_behind()
    assert not left, left


def test_up_keeps_its_data(start_up):
    up = start_up()
    up.wait_ready()
    up.millpond("pool", "create", "kept", "--weight", "3")
    assert up.interrupt() == 0
    up = start_up()
    up.wait_ready()
    code, out, _ = up.millpond("get", "//sys/pools/kept/@weight", "--json")
    assert (code, json.loads(out)) == (0, 3.0)
    assert up.interrupt() == 0


def test_up_restarts_what_dies(start_up):
    up = start_up()
    up.wait_ready()
    up.millpond("pool", "create", "p")
    code, out, _ = up.millpond("run", "--pool", "p", "--quiet", "--", "sleep", "8")
    operation = ID.search(out)[0]
    wait_for(lambda: up.cluster.counters(operation)["running"] == 1, what="a job")
    for role in [" server ", " node "]:
        [pid] = [p for p, c in up.cluster.pids().items() if role in c and "job-proxy" not in c]
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda role=role, pid=pid: [p for p, c in up.cluster.pids().items() if role in c and p != pid
                                             and "job-proxy" not in c], what=f"a new{role}")
        up.wait_ready()
    wait_for(lambda: up.cluster.state(operation) == "completed", what="the job to end")
    assert up.cluster.counters(operation)["failed"] == 0
    assert up.interrupt() == 0


# --- against a running cluster

@pytest.fixture
def cli(cluster):
    """Calls the command and checks its exit code."""
    def call(*arguments, code=0, **options):
        got, out, err = cluster.millpond(*map(str, arguments), check=False, **options)
        assert got == code, f"millpond {arguments}: exit code {got}\n{out}\n{err}"
        return out if code == 0 else err
    return call


def test_run_quiet_prints_the_id(cluster, cli, pool):
    operation = cli("run", "--pool", pool, "--quiet", "--", "true").strip()
    assert ID.fullmatch(operation)
    cluster.wait_state(operation, "completed")


def test_run_follow(cluster, pool):
    code, out, err = cluster.millpond("run", "--pool", pool, "--follow", "--", "sh", "-c",
                                      "echo one; sleep 0.3; echo two", check=False)
    assert code == 0, err
    assert re.search(r"one\n(.*\n)*?.*two", out + err)
    assert "one" in out, "the output of jobs is data: it goes to stdout"


def test_run_follow_prefixes_several_jobs(cluster, pool):
    code, out, _ = cluster.millpond("run", "--pool", pool, "--jobs", "3", "--name", "count", "--follow", "--",
                                    "sh", "-c", "echo number $YT_JOB_COOKIE", check=False)
    assert code == 0
    for i in range(3):
        assert re.search(rf"count/{i}.*number {i}", out), out


def test_run_gives_the_result(cluster, pool):
    code, out, err = cluster.millpond("run", "--pool", pool, "--follow", "--max-failed", "1", "--", "sh", "-c",
                                      "echo broken >&2; exit 7", check=False)
    assert code == 1
    assert "broken" in out + err and "7" in err


def test_run_of_an_aborted_operation(cluster, pool):
    process = subprocess.Popen([str(BINARY), "run", "--proxy", cluster.address, "--pool", pool, "--follow", "--",
                                "sleep", "1000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    operation = wait_for(lambda: cluster.command("list_operations", pool=pool)["operations"], what="it")[0]["id"]
    cluster.command("abort_operation", operation_id=operation)
    process.communicate(timeout=180)
    assert process.returncode == 3


def test_run_detaches_on_interrupt(cluster, pool):
    process = subprocess.Popen([str(BINARY), "run", "--proxy", cluster.address, "--pool", pool, "--follow", "--",
                                "sh", "-c", "echo ready; sleep 1000"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # The first line of the job: by now the command follows.
    assert "ready" in process.stdout.readline()
    operation = cluster.command("list_operations", pool=pool)["operations"][0]["id"]
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=180)
    assert process.returncode == 130
    assert operation in err, "how to go on is said"
    assert cluster.state(operation) == "running"


def test_run_aborts_on_interrupt_if_asked(cluster, pool):
    process = subprocess.Popen([str(BINARY), "run", "--proxy", cluster.address, "--pool", pool, "--follow",
                                "--abort-on-interrupt", "--", "sh", "-c", "echo ready; sleep 1000"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "ready" in process.stdout.readline()
    operation = cluster.command("list_operations", pool=pool)["operations"][0]["id"]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=180)
    assert process.returncode in (3, 130)
    cluster.wait_state(operation, "aborted")


def test_run_arguments_are_quoted(cluster, pool):
    """What the user's shell gave as one argument stays one."""
    code, out, _ = cluster.millpond("run", "--pool", pool, "--follow", "--", "printf", "%s|", "a b", "$HOME", "it's", "*",
                                    check=False)
    assert code == 0 and "a b|$HOME|it's|*|" in out


def test_run_with_files_and_environment(cluster, pool, tmp_path):
    (tmp_path / "input.txt").write_text("from a file\n")
    code, out, err = cluster.millpond(
        "run", "--pool", pool, "--follow", "--file", str(tmp_path / "input.txt"), "--env", "WHO=me", "--cpu", "0.5",
        "--memory", "128MiB", "--", "sh", "-c", "cat input.txt; echo $WHO", check=False)
    assert code == 0, err
    assert "from a file" in out and "me" in out


def test_op_commands(cluster, cli, pool):
    operation = cluster.start_vanilla("echo said; sleep 1000", pool=pool, spec={"alias": "*cli", "title": "a title"})
    cluster.wait_counters(operation, running=1)
    assert operation in cli("op", "list")
    assert operation in cli("op", "list", "--quiet").split()
    listed = json.loads(cli("op", "list", "--json"))
    listed = listed if isinstance(listed, list) else listed["operations"]
    assert [o["id"] for o in listed if o["id"] == operation]
    text = cli("op", "get", operation)
    assert "running" in text and pool in text
    assert json.loads(cli("op", "get", "*cli", "--json"))["id"] == operation
    wait_for(lambda: "said" in cli("op", "logs", operation), what="the output")
    cli("op", "suspend", operation)
    assert cluster.operation(operation, "suspended")["suspended"]
    cli("op", "resume", operation)
    [job] = cli("job", "list", operation, "--quiet").split()
    assert json.loads(cli("job", "get", operation, job, "--json"))["id"] == job
    assert "said" in cli("job", "stderr", operation, job)
    cli("op", "abort", operation)
    cluster.wait_state(operation, "aborted")
    other = cluster.start_vanilla("sleep 1000", pool=pool)
    cluster.wait_state(other, "running")
    cli("op", "complete", other)
    cluster.wait_state(other, "completed")


def test_pool_commands(cluster, cli):
    cli("pool", "create", "cli-parent", "--weight", "2")
    cli("pool", "create", "cli-child", "--parent", "cli-parent")
    cli("pool", "set", "cli-child", "--weight", "4", "max_running_operation_count=7")
    assert cluster.get("//sys/pools/cli-parent/cli-child/@weight") == 4
    assert cluster.get("//sys/pools/cli-parent/cli-child/@max_running_operation_count") == 7
    text = cli("pool", "tree")
    assert text.index("cli-parent") < text.index("cli-child")
    assert "cli-child" in cli("pool", "list")
    cli("pool", "remove", "cli-child")
    cli("pool", "remove", "cli-parent")
    assert not cluster.exists("//sys/pools/cli-parent")


def test_tree_commands(cli):
    cli("create", "map_node", "//tmp/cli")
    cli("set", "//tmp/cli/x", "{a=[1;2;%true]}")
    assert json.loads(cli("get", "//tmp/cli/x", "--json")) == {"a": [1, 2, True]}
    assert '"a" = [' in cli("get", "//tmp/cli/x")
    assert cli("list", "//tmp/cli", "--quiet").split() == ["x"]
    assert "true" in cli("exists", "//tmp/cli/x")
    assert "recursive" in cli("remove", "//tmp/cli/x", code=1)
    cli("remove", "//tmp/cli/x", "--recursive")
    assert "false" in cli("exists", "//tmp/cli/x", code=0)
    cli("remove", "//tmp/cli")


@pytest.mark.parametrize("arguments", [
    ["op", "list"], ["pool", "list"], ["pool", "tree"], ["pool", "explain", "<Root>"], ["node", "list"],
    ["get", "//sys/pool_trees/@default_tree"], ["list", "//sys"], ["exists", "//tmp"], ["top", "--once"], ["version"],
], ids=" ".join)
def test_json_and_quiet_everywhere(cluster, cli, pool, arguments):
    operation = cluster.run_vanilla("true", pool=pool)
    assert operation
    json.loads(cli(*arguments, "--json"))
    quiet = cli(*arguments, "--quiet")
    assert "\x1b" not in quiet
    human = cli(*arguments)
    assert human.strip() and "\x1b" not in human, "no colours when it is not a terminal"


# --- mistakes

@pytest.mark.parametrize(("arguments", "code", "words"), [
    (["frobnicate"], 2, ["frobnicate"]),
    (["op", "lst"], 2, ["list"]),
    (["pool", "list", "--jsn"], 2, ["--json"]),
    (["run", "--pool", "p"], 2, ["--"]),
    (["pool", "set", "p", "weight"], 2, ["weight"]),
    (["run", "--pool", "p", "--memory", "12parsecs", "--", "true"], 2, ["12parsecs"]),
    (["get", "//tmp/absent"], 1, ["absent"]),
    (["op", "get", "1-2-3e80001-4"], 1, ["1-2-3e80001-4"]),
    (["op", "get", "nonsense"], (1, 2), ["nonsense"]),
    (["set", "//tmp/x", "{a="], (1, 2), []),
])
def test_mistakes(cluster, arguments, code, words):
    got, out, err = cluster.millpond(*arguments, check=False)
    assert got in (code if isinstance(code, tuple) else (code,)), (got, out, err)
    for word in words:
        assert word in err, err
    assert out == "" and "panicked" not in err, "errors go to stderr"


def test_no_server():
    code, out, err = millpond("op", "list", "--proxy", f"127.0.0.1:{free_port()}")
    assert code == 4 and out == ""
    assert "millpond up" in err, "the hint"


def test_nearest_pool_is_suggested(cluster, cli):
    cluster.create_pool("research")
    err = cli("pool", "set", "reserch", "--weight", "2", code=1)
    assert "research" in err


def test_broken_pipe_is_fine(cluster, pool):
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {BINARY} list //sys --proxy {cluster.address} | head -1"],
                          capture_output=True, text=True)
    assert done.returncode == 0 and "panicked" not in done.stderr, done.stderr


def test_help_has_examples():
    for command in [["--help"], ["up", "--help"], ["run", "--help"], ["op", "list", "--help"], ["pool", "create", "--help"],
                    ["get", "--help"]]:
        code, out, _ = millpond(*command)
        assert code == 0 and "millpond" in out
        assert "xample" in out or "Start here" in out, command


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions(shell):
    code, out, _ = millpond("completions", shell)
    assert code == 0 and "millpond" in out
    if shell == "bash":
        assert subprocess.run(["bash", "-n"], input=out, text=True).returncode == 0


def test_top_once(cluster, cli, pool):
    operation = cluster.start_vanilla("sleep 1000", pool=pool)
    cluster.wait_counters(operation, running=1)
    # What it shows is of the last update of the shares.
    wait_for(lambda: pool in cli("top", "--once"), what="the pool to be shown")


# --- the future of a running cluster

def test_what_if_on_a_running_cluster(cluster, cli, pool, tmp_path):
    """What runs and waits now is simulated from here, as it is and with a change; the cluster is only read."""
    running = cluster.start_vanilla("sleep 10000", job_count=3, pool=pool)
    cluster.wait_jobs(running, 3)
    # Wants more than any node has: it waits, and starts where nodes are larger.
    too_large = cluster.start_vanilla("true", pool=pool, cpu_limit=1000)
    places = {job["id"]: job["address"] for job in cluster.jobs(running, state="running")}
    variant = tmp_path / "larger.json"
    limits = "/cluster/node_groups/0/resource_limits"
    variant.write_text(json.dumps({"format": "millpond-variant/1", "name": "larger", "set": {f"{limits}/cpu": 5000}}))
    out = cli("sim", "what-if", "--from", cluster.address, "--variant", variant, "--out", tmp_path / "now",
              "--duration", "2h", "--json")
    fates = {operation["id"]: operation["runs"] for operation in json.loads(out)["operations"]}
    assert fates[too_large]["base"]["wait_ms"] is None, fates
    assert fates[too_large]["larger"]["wait_ms"] is not None, fates

    scenario = json.loads((tmp_path / "now/snapshot/scenario.json").read_text())
    names = [name for group in scenario["cluster"]["node_groups"] for name in group["names"]]
    assert set(places.values()) <= set(names)
    for group in scenario["cluster"]["node_groups"]:
        assert len(group["heartbeat_phases"]) == len(group["names"])
        assert all(0 <= phase <= group["heartbeat_period"] for phase in group["heartbeat_phases"])
    for run in ["base", "larger"]:
        with open(tmp_path / "now" / run / "allocations.csv", newline="") as file:
            mine = [row for row in csv.DictReader(file) if row["operation"] == running]
        assert sorted(row["node"] for row in mine) == sorted(places.values()), "they go on where they are"
        assert {row["ordered_ms"] for row in mine} == {"0"} and {row["outcome"] for row in mine} == {"completed"}
    # Nothing of that has happened.
    assert {job["id"] for job in cluster.jobs(running, state="running")} == set(places)


def test_a_snapshot_of_nobody(cli, tmp_path):
    told = cli("sim", "what-if", "--from", f"127.0.0.1:{free_port()}", "--out", tmp_path / "now", code=4)
    assert "127.0.0.1" in told and not (tmp_path / "now").exists()
