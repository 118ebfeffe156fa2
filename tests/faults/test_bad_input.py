"""Bad input and faults: each gets a clear error with code, text, the field and what is allowed, and
the cluster goes on.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from harness import (BINARY, MOST_PROCESSES, Bomb, Cluster, ServerError, cluster as make_cluster, error_text, find_error, free_port,
                     wait_for)


def refused(cluster, *words, code=1, call=None, **parameters):
    """The command is refused with this code, and the texts name these words."""
    with pytest.raises(ServerError) as info:
        cluster.command(call, **parameters)
    error = info.value
    assert code in error.codes(), error
    for word in words:
        assert word in str(error), f"{word!r} is not in {error}"
    return error


def spec(pool, command="true", task=None, **options):
    return {"pool": pool, "tasks": {"t": {"command": command, "job_count": 1, "cpu_limit": 0.1,
                                          "memory_limit": 64 << 20, **(task or {})}}, **options}


def raw(cluster, path, body=None, headers=None, method=None):
    """A request byte by byte. Gives (status, headers, body)."""
    request = urllib.request.Request(f"http://{cluster.address}{path}", data=body, headers=headers or {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=180) as reply:
            return reply.status, reply.headers, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


# --- requests

@pytest.mark.parametrize(("path", "body", "headers", "status", "words"), [
    ("/api/v4/create", b"{type=map_node;path=", {"Content-Type": "application/x-yt-yson-text"}, 400, ["YSON"]),
    ("/api/v4/create", b'{"type": "map_node", ', {"Content-Type": "application/json"}, 400, ["JSON"]),
    ("/api/v4/create", b'[1]', {"Content-Type": "application/json"}, 400, ["map"]),
    ("/api/v4/create", b'{"path": "//tmp/x"}', {"Content-Type": "application/json"}, 400, ["type"]),
    ("/api/v4/create", b'{"type": "cupboard", "path": "//tmp/x"}', {"Content-Type": "application/json"}, 400,
     ["cupboard"]),
    ("/api/v4/create", b'{"type": 5, "path": "//tmp/x"}', {"Content-Type": "application/json"}, 400, ["type"]),
    ("/api/v4/get", None, {"X-YT-Parameters": '{"path": '}, 400, ["X-YT-Parameters"]),
    ("/api/v4/get", None, {"X-YT-Parameters": '{}'}, 400, ["path"]),
    ("/api/v4/get", None, {"X-YT-Parameters": '{"path": "tmp"}'}, 400, ["tmp"]),
    ("/api/v4/get", None, {"X-YT-Parameters": '{"path": "//tmp", "output_format": "xml"}'}, 400, ["xml"]),
    ("/api/v4/frobnicate", None, {}, 404, ["frobnicate"]),
    ("/api/v4/Get!", None, {}, 404, []),
    ("/api/v9/get", None, {}, 404, []),
])
def test_malformed_requests(cluster, path, body, headers, status, words):
    got, reply_headers, reply = raw(cluster, path, body, headers)
    assert got == status, (got, reply)
    if status == 400 or words:
        error = json.loads(reply)
        assert set(error) == {"code", "message", "attributes", "inner_errors"}, error
        assert json.loads(reply_headers["X-YT-Error"]) == error
        for word in words:
            assert word in json.dumps(error), error
    assert raw(cluster, "/ping")[0] == 200


def test_get_on_a_change_is_405(cluster):
    status, headers, _ = raw(cluster, "/api/v4/remove?path=//tmp", method="GET")
    assert status == 405 and "POST" in headers["Allow"]


def test_garbage_on_the_port(cluster):
    for garbage in [b"\x00" * 100, b"GET / HTTP/9.9\r\n\r\n", b"\xff\xfe" * 5000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nxxxx"]:
        with socket.create_connection(("127.0.0.1", cluster.port), timeout=180) as s, contextlib.suppress(OSError):
            # Whether it is answered or not.
            s.settimeout(5)
            s.sendall(garbage)
            s.shutdown(socket.SHUT_WR)
            s.recv(1000)
    assert raw(cluster, "/ping")[0] == 200


def test_deep_nesting_is_refused(cluster):
    body = b"[" * 100_000
    status, _, reply = raw(cluster, "/api/v4/set", body, method="PUT", headers={
        "Content-Type": "application/x-yt-yson-text", "X-YT-Parameters": '{"path": "//tmp/deep"}'})
    assert status == 400 and b"nest" in reply.lower() or b"depth" in reply.lower(), reply
    assert raw(cluster, "/ping")[0] == 200


# --- the tree and pools

@pytest.mark.parametrize(("path", "words"), [
    ("//tmp/absent", ["//tmp", "absent"]),
    ("//tmp/@absent", ["absent"]),
    ("//absent/deeper/still", ["absent"]),
    ("//sys/pool_trees/absent", ["absent"]),
    ("//sys/pool_trees/physical/absent", ["absent"]),
    ("#1-2-3-4", ["1-2-3-4"]),
    ("//sys/scheduler/orchid/scheduler/absent", ["absent"]),
])
def test_path_that_does_not_resolve(cluster, path, words):
    refused(cluster, *words, code=500, call="get", path=path)


@pytest.mark.parametrize(("options", "words"), [
    ({"weight": -1}, ["weight", "-1"]),
    ({"weight": "heavy"}, ["weight"]),
    ({"max_operation_count": 3, "max_running_operation_count": 5}, ["max_running_operation_count", "3", "5"]),
    ({"max_running_operation_count": -1}, ["max_running_operation_count", "-1"]),
    ({"mode": "lottery"}, ["mode", "lottery", "fifo"]),
    ({"parent_name": "nobody"}, ["nobody"]),
    ({"pool_tree": "nowhere"}, ["nowhere"]),
    ({"name": "a/b"}, ["a/b"]),
    ({"name": ""}, ["name"]),
    ({"strong_guarantee_resources": {"bananas": 3}}, ["bananas"]),
    ({"integral_guarantees": {"guarantee_type": "sometimes"}}, ["sometimes", "burst", "relaxed"]),
])
def test_bad_pools(cluster, options, words):
    attributes = {"name": "never", "pool_tree": "physical", **options}
    with pytest.raises(ServerError) as info:
        cluster.command("create", type="scheduler_pool", attributes=attributes)
    for word in words:
        assert word in str(info.value), info.value
    assert "never" not in cluster.command("list", path="//sys/pools")["value"]


# --- specs

@pytest.mark.parametrize(("change", "words"), [
    ({"tasks": None}, ["tasks"]),
    ({"tasks": {}}, ["tasks"]),
    ({"tasks": {"": {"command": "true", "job_count": 1}}}, ["name"]),
    ({"tasks": {"t": {"job_count": 1}}}, ["command"]),
    ({"tasks": {"t": {"command": "true"}}}, ["job_count"]),
    ({"tasks": {"t": {"command": "true", "job_count": 0}}}, ["job_count"]),
    ({"tasks": {"t": {"command": "true", "job_count": "many"}}}, ["job_count"]),
    ({"tasks": {"t": {"command": "true", "job_count": 100001}}}, ["100000"]),
    ({"tasks": {str(i): {"command": "true", "job_count": 1} for i in range(101)}}, ["100"]),
    ({"tasks": {"t": {"command": "true", "job_count": 1, "cpu_limit": -1}}}, ["cpu_limit"]),
    ({"tasks": {"t": {"command": "true", "job_count": 1, "memory_limit": 0}}}, ["memory_limit"]),
    ({"tasks": {"t": {"command": "true", "job_count": 1, "environment": {"A B": "1"}}}}, ["A B"]),
    ({"tasks": {"t": {"command": "true", "job_count": 1, "job_time_limit": 5}}}, ["job_time_limit"]),
    ({"tasks": {"t": {"command": "true", "job_count": 1, "max_stderr_size": -5}}}, ["max_stderr_size"]),
    ({"tasks": {"t": {"command": "true", "job_count": 1, "file_paths": ["<file_name=\"../x\">//tmp/f"]}}}, ["../x"]),
    ({"alias": "noasterisk"}, ["alias", "*"]),
    ({"max_failed_job_count": -1}, ["max_failed_job_count"]),
    ({"weight": 0}, ["weight"]),
    ({"pool_trees": ["moon"]}, ["moon"]),
    ({"annotations": {"long": "x" * 20000}}, ["annotations"]),
])
def test_bad_specs(cluster, pool, change, words):
    wanted = {**spec(pool), **change}
    wanted = {k: v for k, v in wanted.items() if v is not None}
    refused(cluster, *words, call="start_operation", operation_type="vanilla", spec=wanted)
    assert cluster.command("list_operations", pool=pool)["operations"] == [], "a refused operation is not listed"


def test_unknown_options_are_shown(cluster, pool):
    operation = cluster.run_vanilla("true", pool=pool, spec={"colour": "red"}, size="large")
    assert cluster.operation(operation, "unrecognized_spec")["unrecognized_spec"] == {
        "colour": "red", "tasks": {"t": {"size": "large"}}}


def test_operation_types(cluster, pool):
    refused(cluster, "juggle", call="start_operation", operation_type="juggle", spec=spec(pool))


def test_pool_that_does_not_exist(cluster):
    refused(cluster, "nobodys-pool", call="start_operation", operation_type="vanilla",
            spec=spec("nobodys-pool", require_specified_pools_existence=True))


def test_too_many_operations(cluster):
    cluster.create_pool("narrow", max_operation_count=1, max_running_operation_count=1)
    operation = cluster.start_vanilla("sleep 1000", pool="narrow")
    try:
        refused(cluster, '\\"narrow\\"', '\\"physical\\"', '"limit": 1', code=202, call="start_operation",
                operation_type="vanilla", spec=spec("narrow"))
    finally:
        cluster.command("abort_operation", operation_id=operation)


def test_demand_that_no_node_can_satisfy(cluster, pool):
    """It waits with an explanation, or fails after the grace period; it never disappears."""
    operation = cluster.start_vanilla("true", pool=pool, cpu_limit=1000)
    cluster.wait_state(operation, "running", "failed")
    assert cluster.jobs(operation) == []
    cluster.command("abort_operation", operation_id=operation)


# --- jobs

def failed_job(cluster, operation):
    jobs = cluster.jobs(operation, state="failed")
    assert jobs, cluster.jobs(operation)
    return jobs[0]


def test_command_that_does_not_exist(cluster, pool):
    operation = cluster.run_vanilla("no-such-program --now", pool=pool, state="failed",
                                    spec={"max_failed_job_count": 1})
    error = cluster.result(operation)
    assert find_error(error, 215)["attributes"]["max_failed_job_count"] == 1
    assert find_error(error, 10000)["attributes"]["exit_code"] == 127
    job = failed_job(cluster, operation)
    assert b"no-such-program: command not found" in cluster.stderr(operation, job["id"])


def test_exit_code_and_signal(cluster, pool):
    operation = cluster.run_vanilla("exit 9", pool=pool, state="failed", spec={"max_failed_job_count": 1})
    assert find_error(cluster.result(operation), 10000)["attributes"]["exit_code"] == 9
    operation = cluster.run_vanilla("kill -SEGV $$", pool=pool, state="failed", spec={"max_failed_job_count": 1})
    assert find_error(cluster.result(operation), 10001)["attributes"]["signal"] == 11


@pytest.mark.parametrize("hog", [
    "python3 -c 'x = bytearray(400 << 20)' ",
    # Several processes, each below the limit.
    "for i in 1 2 3 4 5 6; do python3 -c 'import time; x = bytearray(30 << 20); time.sleep(1000)' & done; wait",
], ids=["one process", "many processes"])
def test_memory_limit(cluster, pool, hog):
    operation = cluster.run_vanilla(hog, pool=pool, state="failed", memory_limit=100 << 20,
                                    spec={"max_failed_job_count": 1})
    error = find_error(cluster.result(operation), 1200)
    assert error["message"] == "Memory limit exceeded"
    assert error["attributes"]["limit"] == 100 << 20
    processes = error["attributes"]["processes"]
    assert all({"pid", "cmdline", "rss"} <= set(p) for p in processes)
    assert find_error(failed_job(cluster, operation)["error"], 1200)


@pytest.mark.serial
def test_fork_bomb(cluster, pool):
    """It is bounded, it is killed to its last process, and others do not notice."""
    bomb = Bomb()
    operation = cluster.start_vanilla(bomb.script, pool=pool, spec={"max_failed_job_count": 1})
    wait_for(lambda: cluster.jobs(operation, state="running") or cluster.state(operation) == "failed",
             what="the bomb to start")
    wait_for(lambda: bomb.size() > 100 or cluster.state(operation) == "failed", what="the bomb to go off")
    assert raw(cluster, "/ping")[0] == 200
    cluster.run_vanilla("true", pool=pool)
    assert bomb.size() <= MOST_PROCESSES
    if cluster.state(operation) == "running":
        cluster.command("abort_operation", operation_id=operation)
    wait_for(lambda: not cluster.job_processes(), what="the bomb's processes to be gone")


def test_flood_of_stderr(cluster, pool):
    """Hundreds of megabytes: head and tail are kept up to the limit, nothing grows."""
    size = 300 << 20
    command = f"echo first line >&2; yes 0123456789abcdef | head -c {size} >&2; echo last line >&2"
    operation = cluster.run_vanilla(command, pool=pool, max_stderr_size=1 << 20, memory_limit=128 << 20)
    job = cluster.jobs(operation)[0]
    kept = cluster.stderr(operation, job["id"])
    assert len(kept) <= (1 << 20) + 100
    assert kept.startswith(b"first line\n") and kept.endswith(b"last line\n")
    assert b"\n...skipped...\n" in kept
    assert job["stderr_size"] == len(kept)


def test_descriptor_flood_of_statistics(cluster, pool):
    """Custom statistics: broken ones and too many of them fail the job with a text that says so."""
    operation = cluster.run_vanilla("echo '{a=' >&5", pool=pool, state="failed", spec={"max_failed_job_count": 1})
    assert "tatistics" in error_text(cluster.result(operation))
    command = "for i in $(seq 200); do echo \"{s$i=1};\" >&5; done"
    operation = cluster.run_vanilla(command, pool=pool, state="failed", spec={"max_failed_job_count": 1})
    assert "128" in str(cluster.result(operation))


def test_abort_while_starting(cluster, pool):
    """An abort at any moment of the start leaves nothing running, and is never answered with an error."""
    for i in range(20):
        operation = cluster.start_vanilla("sleep 1000", job_count=4, pool=pool, cpu_limit=0.1)
        # The moment of the abort is what varies.
        time.sleep(i * 0.002)
        cluster.command("abort_operation", operation_id=operation)
        cluster.wait_state(operation, "aborted")
    wait_for(lambda: not cluster.job_processes() and not cluster.job_cgroups(), what="everything to be gone")
    wait_for(lambda: cluster.pool_orchid(pool)["resource_usage"]["user_slots"] == 0, what="the slots to be free")


def test_missing_file(cluster, pool):
    """A file that is not there: refused at once, or the operation fails and says which file."""
    wanted = spec(pool, command="cat f", task={"file_paths": ["//tmp/no-such-file"]})
    try:
        operation = cluster.command("start_operation", operation_type="vanilla", spec=wanted)["operation_id"]
    except ServerError as error:
        assert "no-such-file" in str(error)
    else:
        cluster.wait_state(operation, "failed")
        assert "no-such-file" in str(cluster.result(operation))


# --- processes of the cluster

def ends_with_error(arguments, *words, timeout=120, env=None):
    done = subprocess.run([str(BINARY), *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})
    assert done.returncode not in (0, 101), done
    text = done.stdout + done.stderr
    for word in words:
        assert word in text, f"{word!r} is not in {text}"
    assert "panicked" not in text
    return done


def test_port_in_use(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for command in ("server", "up"):
            ends_with_error([command, "--listen", f"127.0.0.1:{port}", "--data", tmp_path / command], port, "in use")
            assert not (tmp_path / command / "store").exists(), "nothing was begun"


def test_second_server_on_the_same_data(cluster):
    ends_with_error(["server", "--listen", f"127.0.0.1:{free_port()}", "--data", cluster.directory / "server"],
                    str(cluster.directory / "server"))
    assert raw(cluster, "/ping")[0] == 200


def test_second_node_on_the_same_data(cluster):
    ends_with_error(["node", "--server", cluster.address, "--name", "other", "--data", cluster.directory / "node-0",
                     "--resources", "cpu=1,memory=1GiB,user_slots=1"], str(cluster.directory / "node-0"))


def test_second_up_on_the_same_data(tmp_path):
    address = f"127.0.0.1:{free_port()}"
    first = subprocess.Popen([str(BINARY), "up", "--listen", address, "--data", str(tmp_path / "d")],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        def answers():
            with contextlib.suppress(OSError):
                with urllib.request.urlopen(f"http://{address}/ping", timeout=10):
                    return True
        wait_for(answers, what="the first one to answer")
        ends_with_error(["up", "--listen", f"127.0.0.1:{free_port()}", "--data", tmp_path / "d"], str(tmp_path / "d"))
        wait_for(answers, what="the first one to answer still")
        assert first.poll() is None

        def whole():
            with contextlib.suppress(OSError):
                with urllib.request.urlopen(f"http://{address}/api/v4/get?path=//sys/scheduler/orchid/scheduler/nodes", timeout=180) as reply:
                    return '"scheduler_state":"online"' in reply.read().decode()
        # A node that is stopped while it starts leaves its control groups behind.
        wait_for(whole, what="its node to be online")
    finally:
        first.terminate()
        assert first.wait(120) == 0


@pytest.mark.parametrize(("arguments", "words"), [
    (["up", "--node-resources", "cpu=8,bananas=3"], ["bananas"]),
    (["up", "--node-resources", "cpu=lots"], ["cpu", "lots"]),
    (["up", "--node-resources", "memory=16XB"], ["16XB"]),
    (["up", "--listen", "nowhere"], ["nowhere"]),
    (["up", "--nodes", "many"], ["many"]),
    (["up", "--colour"], ["--colour"]),
    (["node", "--server", "127.0.0.1:1", "--resources", "cpu=1", "--job-environment", "bottle"], ["bottle"]),
    (["server", "--config", "/no/such/config.toml"], ["/no/such/config.toml"]),
    (["frobnicate"], ["frobnicate"]),
])
def test_bad_flags(tmp_path, arguments, words):
    # A data directory of the test, so that nothing can be made in the user's.
    ends_with_error(arguments, *words, env={"MILLPOND_DATA": str(tmp_path), "HOME": str(tmp_path)})


def test_data_directory_is_not_writable(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("a file, not a directory")
    ends_with_error(["server", "--listen", f"127.0.0.1:{free_port()}", "--data", blocked / "data"], str(blocked))


def test_damaged_store(tmp_path):
    """Garbage in place of the store: an error that names the file, and the file is left as it is."""
    with make_cluster(nodes=0, directory=tmp_path / "c") as c:
        c.set("//tmp/@x", 1)
        c.server.terminate()
        files = [p for p in (tmp_path / "c/server").rglob("*") if p.is_file() and p.stat().st_size > 4096]
        assert files, list((tmp_path / "c/server").rglob("*"))
        store = max(files, key=lambda p: p.stat().st_size)
        store.write_bytes(b"garbage" * 10000)
        ends_with_error(["server", "--listen", c.address, "--data", c.directory / "server"], str(store.parent))
        assert store.read_bytes().startswith(b"garbage")


# --- full disk

def test_full_disk_under_the_store(small_disk):
    """Writes are refused with an error that says why, nothing acknowledged is lost, and with space
    again the server works after a restart."""
    c = Cluster(nodes=0, server_arguments=())
    c.server.arguments[c.server.arguments.index("--data") + 1] = small_disk / "server"
    try:
        c.start()
        acknowledged, error = [], None
        filler = small_disk / "filler"
        with open(filler, "wb") as f, contextlib.suppress(OSError):
            while True:
                f.write(bytes(1 << 16))
                f.flush()
        for i in range(2000):
            try:
                c.command("set", path=f"//tmp/k{i}", value="v" * 20000)
                acknowledged.append(i)
            except ServerError as e:
                error = e
                break
            except (urllib.error.URLError, OSError) as e:
                # A server that ends with a clear message is fine, too.
                error = e
                break
        assert error is not None, "the disk was never full"
        if isinstance(error, ServerError):
            assert "store" in str(error) or "space" in str(error), error
        text = c.server.tail()
        assert "panicked" not in text, text
        assert "store" in text or "space" in text, text

        filler.unlink()
        c.server.kill()
        c.server.start()
        c.wait_server()
        for i in acknowledged:
            assert c.exists(f"//tmp/k{i}"), i
        c.set("//tmp/after", 1)
        assert c.get("//tmp/after") == 1
        c.stop()
    finally:
        c.clean_up()
        shutil.rmtree(small_disk / "server", ignore_errors=True)
