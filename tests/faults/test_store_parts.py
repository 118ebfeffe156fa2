"""S17: a server whose data directory has lost a part, or got one of another cluster, does not start, says what is missing
and what to do, and removes nothing. A start that would remove many blobs asks."""

import contextlib
import io
import json
import pathlib
import shutil
import tarfile

import pytest
from harness import ServerError, cluster as make_cluster, wait_for

RELEASES = sorted(pathlib.Path(__file__).parents[1].glob("data/release-*/server.tar.xz"))
FILES = 30


def data(c):
    return c.directory / "server"


def blobs(c):
    return {path.name for path in (data(c) / "blobs").iterdir() if path.name != "cluster_id"}


def write_files(c, count=FILES):
    client = c.client()
    for i in range(count):
        client.write_file(f"//tmp/f{i}", io.BytesIO(b"content %d" % i))


def contents(c, count=FILES):
    return [c.client().read_file(f"//tmp/f{i}").read() for i in range(count)] == [b"content %d" % i for i in range(count)]


def does_not_start(c, *words):
    """The server ends with these words, and nothing goes."""
    before = {path for path in data(c).rglob("*") if path.is_file()}
    pathlib.Path(c.server.log).write_text("")
    c.server.start()
    wait_for(lambda: not c.server.running(), what="the server to refuse its data", seen=c.server.tail)
    text = c.server.tail()
    assert c.server.popen.returncode != 0 and "panicked" not in text, text
    for word in (str(data(c)), "backup", "--new-cluster", *words):
        assert word in text, f"{word!r} is not in {text}"
    assert before <= {path for path in data(c).rglob("*")}, "something was removed"


def restart(c, *arguments):
    c.server.terminate()
    c.server.arguments += arguments
    c.server.start()
    c.wait_server()


def held(c):
    alerts = [alert for alert in c.get("//sys/scheduler/@alerts") if alert["attributes"]["alert_type"] == "garbage_collection_held"]
    return alerts[0] if alerts else None


@pytest.mark.parametrize("how", ["missing", "empty"])
def test_a_store_that_is_gone_is_no_new_cluster(how):
    """S17: all blobs were deleted, root was locked out by a token that nobody knew, and a new cluster ran."""
    with make_cluster(nodes=0, auth=True) as c:
        write_files(c)
        there, token = blobs(c), c.token
        c.server.terminate()
        store, copy = data(c) / "store.redb", c.directory / "copy"
        shutil.copy(store, copy)
        if how == "missing":
            store.unlink()
        else:
            store.write_bytes(b"")
        does_not_start(c, f"store.redb is {how}", "blobs", "root.token")
        assert blobs(c) == there
        # Restored from a backup.
        shutil.copy(copy, store)
        c.server.start()
        c.wait_server()
        assert c.token == token and contents(c) and blobs(c) == there


def test_blobs_that_are_gone_or_of_another_cluster():
    """S17: a disk that is not mounted, and a copy that went to the wrong directory."""
    with make_cluster(nodes=0) as c, make_cluster(nodes=0) as other:
        write_files(c)
        write_files(other)
        for server in (c.server, other.server):
            server.terminate()
        own = (data(c) / "cluster_id").read_text().strip()
        shutil.move(data(c) / "blobs", c.directory / "blobs")
        does_not_start(c, "blobs is missing")
        (data(c) / "blobs").mkdir(mode=0o700)
        does_not_start(c, "blobs/cluster_id is missing", own)
        (data(c) / "blobs").rmdir()
        shutil.copytree(data(other) / "blobs", data(c) / "blobs")
        does_not_start(c, own, (data(other) / "cluster_id").read_text().strip())
        shutil.rmtree(data(c) / "blobs")
        shutil.move(c.directory / "blobs", data(c) / "blobs")
        c.server.start()
        c.wait_server()
        assert contents(c)
        other.server.start()
        other.wait_server()


def test_a_new_cluster_on_purpose():
    """S17: what was there is moved aside; the option does nothing to a whole cluster."""
    with make_cluster(nodes=0, auth=True) as c:
        write_files(c)
        there, token = blobs(c), c.token
        c.server.terminate()
        (data(c) / "store.redb").unlink()
        c.server.arguments.append("--new-cluster")
        c.server.start()
        c.wait_server()
        assert c.token != token and not c.exists("//tmp/f0")
        [aside] = data(c).glob("before-new-cluster-*")
        assert {path.name for path in (aside / "blobs").iterdir()} == {*there, "cluster_id"}
        assert (aside / "root.token").read_text().strip() == token
        c.set("//tmp/@new", 1)
        restart(c)
        assert c.get("//tmp/@new") == 1 and len(list(data(c).glob("before-new-cluster-*"))) == 1


def test_many_blobs_are_not_removed_without_a_question():
    """S17: the store of yesterday beside the blobs of today: a start removed what was written since then."""
    with make_cluster(nodes=0, auth=True) as c:
        c.command("create", type="user", attributes={"name": "ann"})
        ann = c.command("issue_token", user="ann")
        c.server.terminate()
        store, newest = data(c) / "store.redb", c.directory / "newest"
        yesterday = store.read_bytes()
        c.server.start()
        c.wait_server()
        write_files(c)
        c.server.terminate()
        shutil.copy(store, newest)
        there = blobs(c)
        assert len(there) >= FILES

        store.write_bytes(yesterday)
        for life in ("the first", "a second"):
            c.server.start()
            c.wait_server()
            assert blobs(c) == there, f"{life} start has removed something"
            alert = held(c)
            assert alert and alert["attributes"]["blob_count"] == FILES and "millpond server gc --confirm" in alert["message"], alert
            assert "millpond server gc --confirm" in c.server.tail()
            assert alert["message"] in c.millpond("server", "gc")[1]
            c.server.terminate()
        # The alert was right: the newest store comes back, and nothing is lost.
        shutil.copy(newest, store)
        c.server.start()
        c.wait_server()
        assert held(c) is None and contents(c) and blobs(c) == there
        c.server.terminate()

        # The older copy is all there is, so the rest may go.
        store.write_bytes(yesterday)
        c.server.start()
        c.wait_server()
        write_files(c, 3)
        with pytest.raises(ServerError) as refused:
            c.command("gc_collect", token=ann)
        assert 901 in refused.value.codes() and held(c) and there <= blobs(c)
        c.millpond("server", "gc", "--confirm")
        wait_for(lambda: len(blobs(c)) == 3, what="the garbage to be removed", seen=lambda: sorted(blobs(c)))
        assert held(c) is None and contents(c, 3)
        # The event log is written behind the answer.
        audit = wait_for(lambda: c.millpond("audit", "--action", "gc_collect", "--json")[1], what="a line of the audit log")
        assert json.loads(audit.splitlines()[0])["action"] == "gc_collect", audit
        assert "nothing waits" in c.millpond("server", "gc")[1]
        restart(c)
        assert held(c) is None and contents(c, 3) and len(blobs(c)) == 3


def test_a_few_leftovers_are_removed_without_a_question():
    """S17: as many as a crash leaves behind, whatever part of all they are."""
    with make_cluster(nodes=0) as c:
        write_files(c, 3)
        there = blobs(c)
        c.server.kill()
        # Uploaded, and not yet the content of a file.
        left = [f"00000001{number + 0x100:08x}" for number in range(2)]
        for name in left:
            (data(c) / "blobs" / name).write_bytes(b"left")
        c.server.start()
        c.wait_server()
        assert blobs(c) == there and held(c) is None
        # More than a tenth: nothing tells them from contents that an older copy of the store does not know.
        told = [line for line in c.server.tail(200).splitlines() if "removing blobs that nothing refers to" in line]
        assert len(told) == 1 and all(name in told[0] for name in left), told


@contextlib.contextmanager
def of_release(archive):
    # Its operations are old by now.
    with make_cluster(nodes=0, start=False, auth=True, server_config='archive_age = "36500d"\n') as c:
        with tarfile.open(archive) as tar:
            tar.extractall(c.directory, filter="data")
        yield c


@pytest.mark.parametrize("archive", RELEASES, ids=lambda path: path.parent.name)
def test_data_of_a_release_without_ids_is_adopted(archive):
    """S17."""
    with of_release(archive) as c:
        there = blobs(c)
        c.server.start()
        c.wait_server()
        own = (data(c) / "cluster_id").read_text()
        assert own == (data(c) / "blobs" / "cluster_id").read_text() and held(c) is None
        assert len(there - blobs(c)) <= len(there) / 10, "blobs were removed"
        restart(c)
        assert own == (data(c) / "cluster_id").read_text()


@pytest.mark.parametrize("archive", RELEASES, ids=lambda path: path.parent.name)
def test_data_of_a_release_that_does_not_fit_is_not_adopted(archive):
    """S17."""
    with of_release(archive) as c:
        shutil.move(data(c) / "blobs", c.directory / "blobs")
        does_not_start(c, "blobs is missing")
        (data(c) / "blobs").mkdir(mode=0o700)
        does_not_start(c, "are missing in blobs/", "blobs/cluster_id")
        assert not (data(c) / "cluster_id").exists()
        (data(c) / "blobs").rmdir()
        shutil.move(c.directory / "blobs", data(c) / "blobs")
        c.server.start()
        c.wait_server()
        assert (data(c) / "cluster_id").exists()
