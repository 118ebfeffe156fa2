"""S18: the disk under the store is full. Questions are answered, changes are refused at once, and with room again work goes
on by itself."""

import contextlib
import json
import shutil
import urllib.error
import urllib.request

import pytest
import yt.wrapper
from harness import Cluster, ServerError, wait_for

# Some waits of three minutes.
pytestmark = pytest.mark.timeout(900)
UNAVAILABLE = 105
# Seconds. A request that hangs is the fault that is looked for: it hung until the next start of the server. A step of a
# late machine may take a minute.
PATIENCE = 120


@contextlib.contextmanager
def on(disk, **options):
    """A cluster whose server has its data on this disk."""
    c = Cluster(auth=True, **options)
    shown = str(c.directory / "server")
    (c.directory / "server").symlink_to(disk / "server")
    (disk / "server").mkdir()
    assert shown in map(str, c.server.arguments)
    try:
        yield c
        c.stop()
    except BaseException:
        print(c.logs())
        raise
    finally:
        c.clean_up()
        shutil.rmtree(disk / "server", ignore_errors=True)


def fill(disk):
    """Leaves no room. To be called again: what is removed meanwhile makes some."""
    with open(disk / "filler", "ab", buffering=0) as file, contextlib.suppress(OSError):
        for size in (1 << 16, 1 << 12):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))


def health(c):
    """Status of `/health` and what it says."""
    try:
        with urllib.request.urlopen(f"http://{c.address}/health", timeout=PATIENCE) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


# Of the real client: no transaction around a read.
WITHOUT = "{read_retries={create_transaction_and_take_snapshot_lock=%false}}"


def content(c, path):
    """Content of a file, without the transaction in which the client reads."""
    request = urllib.request.Request(f"http://{c.address}/api/v4/read_file", headers={
        "X-YT-Parameters": json.dumps({"path": path}), "Authorization": f"OAuth {c.token}"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
        return reply.read()


def set_until_refused(c, disk, prefix):
    """Numbers of the values that were acknowledged, and the error of the one that was not."""
    acknowledged = []
    for i in range(2000):
        fill(disk)
        try:
            c.command("set", path=f"//tmp/{prefix}{i}", value="v" * 20_000, timeout=PATIENCE)
        except ServerError as error:
            return acknowledged, error
        acknowledged.append(i)
    raise AssertionError("the disk was never full")


def refused(c, name, **parameters):
    with pytest.raises(ServerError) as error:
        c.command(name, timeout=PATIENCE, **parameters)
    return error.value


def is_explained(error):
    assert error.error["code"] == UNAVAILABLE, error
    assert "No space left" in error.text() and "Try again" in error.text() and "by itself" in error.text(), error
    assert error.error["attributes"]["retry_after"] == 5000, error


def test_a_full_disk_stops_changes_and_nothing_else(small_disk):
    """S18: after the store had failed once, questions hung until a restart, with users all of them."""
    with on(small_disk, nodes=1) as c:
        c.start()
        c.command("create", type="user", attributes={"name": "ann"})
        ann = c.command("issue_token", user="ann")
        c.create_pool("p")
        c.client().write_file("//tmp/file", b"content")
        c.client().write_table("//tmp/table", [{"n": 1}])
        operation = c.start_vanilla("until [ -e end ]; do sleep 0.1; done; echo done >&2", memory_limit=16 << 20)
        [job] = c.wait_jobs(operation)
        acknowledged, error = set_until_refused(c, small_disk, "k")
        failed = len(acknowledged)

        for _ in range(3):
            # Questions, of everybody, about what is durable and nothing else.
            assert c.command("get_current_user", method="GET", token=ann, timeout=PATIENCE)["user"] == "ann"
            for i in acknowledged[-20:]:
                assert len(c.command("get", path=f"//tmp/k{i}", token=ann, timeout=PATIENCE)["value"]) == 20_000, i
            assert content(c, "//tmp/file") == b"content"
            assert c.state(operation) in ("running", "reviving_jobs")
            assert c.get("//sys/scheduler/orchid/scheduler/pool_trees/physical/pools/p")["mode"] == "fair_share"
            assert c.millpond("op", "list", timeout=PATIENCE)[0] == 0
            with urllib.request.urlopen(urllib.request.Request(
                    f"http://{c.address}/metrics", headers={"Authorization": f"OAuth {c.token}"}), timeout=PATIENCE) as reply:
                assert b"millpond_alerts" in reply.read()
            # The real client: what needs no transaction, and files and tables without one.
            assert c.yt("get", "//tmp/file/@type", timeout=PATIENCE)[1].strip() == '"file"'
            assert "file" in c.yt("list", "//tmp", timeout=PATIENCE)[1].split()
            assert c.yt("read-file", "//tmp/file", "--config", WITHOUT, timeout=PATIENCE)[1] == "content"
            assert json.loads(c.yt("read-table", "//tmp/table", "--format", "json", "--config", WITHOUT, timeout=PATIENCE)[1]) == {"n": 1}
            # With one the client is refused at once, and told how to read.
            error = refused(c, name="start_transaction")
            is_explained(error)
            assert "create_transaction_and_take_snapshot_lock" in error.text(), error
            # Changes, of all kinds.
            is_explained(refused(c, name="set", path="//tmp/more", value=1))
            is_explained(refused(c, name="start_operation", operation_type="vanilla", spec={
                "pool": "p", "tasks": {"t": {"command": "true", "job_count": 1}}}))
            is_explained(refused(c, name="issue_token", user="ann"))
            # The reason is for those who may know it: the alert has it.
            status, body = health(c)
            assert status == 400 and "No space left" not in json.dumps(body), body
            [alert] = [a for a in c.get("//sys/scheduler/@alerts") if a["attributes"]["alert_type"] == "store_failing"]
            assert "No space left" in json.dumps(alert)
        is_explained(error)
        with pytest.raises(yt.wrapper.YtError, match="cannot write its store"):
            c.client().write_file("//tmp/file2", b"content")
        was_there = c.exists(f"//tmp/k{failed}")

        (small_disk / "filler").unlink()
        wait_for(lambda: health(c)[0] == 200, what="the server to write again", seen=lambda: health(c))
        assert c.server.running() and "panicked" not in c.server.tail(1000), c.server.tail()
        for i in acknowledged:
            assert c.exists(f"//tmp/k{i}"), i
        assert c.exists(f"//tmp/k{failed}") == was_there, "what was shown as durable is so"
        c.set("//tmp/after", 1)
        assert c.get("//tmp/after") == 1 and not [
            a for a in c.get("//sys/scheduler/@alerts") if a["attributes"]["alert_type"] == "store_failing"]
        # The node comes back with the job that ran all the time.
        c.wait_nodes()
        assert c.wait_jobs(operation) == [job]
        for sandbox in c.directory.glob("node-*/slots/*/sandbox"):
            (sandbox / "end").touch()
        c.wait_state(operation, "completed")
        assert [j["id"] for j in c.jobs(operation)] == [job] and c.stderr(operation, job) == b"done\n"
        c.run_vanilla("true", memory_limit=16 << 20)
        # And once more; then the server is killed as it stands.
        acknowledged, _ = set_until_refused(c, small_disk, "l")
        c.server.kill()
        (small_disk / "filler").unlink()
        c.server.start()
        c.wait_server()
        for prefix, count in (("k", failed), ("l", len(acknowledged))):
            for i in range(count):
                assert c.exists(f"//tmp/{prefix}{i}"), (prefix, i)


def test_a_server_that_starts_on_a_full_disk(small_disk):
    """S18: it answers questions from the store, and goes on to work when there is room. The third time it has no key of vaults,
    as after an update of release 0.1: such a start ended."""
    with on(small_disk, nodes=0) as c:
        c.start()
        key = c.directory / "server/vault.key"
        acknowledged, _ = set_until_refused(c, small_disk, "k")
        for has_key in (True, True, False):
            c.server.kill()
            if not has_key:
                key.unlink()
            fill(small_disk)
            c.server.start()
            c.wait_server()
            assert health(c)[0] == 400, c.server.tail()
            for i in acknowledged:
                assert c.command("exists", path=f"//tmp/k{i}", timeout=PATIENCE)["value"], i
            is_explained(refused(c, name="set", path="//tmp/more", value=1))
        (small_disk / "filler").unlink()
        wait_for(lambda: health(c)[0] == 200, what="the server to write", seen=lambda: health(c))
        c.set("//tmp/more", 1)
        assert key.stat().st_mode & 0o7777 == 0o600
        c.start_vanilla("true", spec={"secure_vault": {"word": "secret"}})
        c.server.terminate()
        c.server.start()
        c.wait_server()
        assert c.get("//tmp/more") == 1 and all(c.exists(f"//tmp/k{i}") for i in acknowledged)
