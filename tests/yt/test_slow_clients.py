"""Clients that are as slow as can be, more of them than the server has threads, do not hold up others (http-api.md 2.7,
2.10)."""

import contextlib
import json
import resource
import socket

import pytest
from harness import cluster as make_cluster, wait_for

# More than any pool of threads has unless somebody has thought of them.
CLIENTS = 600
# More than all buffers between the disk and a client hold, so that the end of it waits for the client.
ROW = b'{"text"="' + b"x" * 1000 + b'";};\n'
ROWS = 16_000


@pytest.fixture(scope="module")
def cluster():
    # A connection here, a connection and a file there.
    least = 4 * CLIENTS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < least:
        pytest.skip(f"a process may have {hard} open files here, {least} are needed")
    if soft != resource.RLIM_INFINITY and soft < least:
        resource.setrlimit(resource.RLIMIT_NOFILE, (least, hard))
    with make_cluster(nodes=0) as c:
        c.command("create", type="table", path="//tmp/table")
        put(c, "write_table", "//tmp/table", ROW * ROWS)
        c.command("create", type="file", path="//tmp/file")
        put(c, "write_file", "//tmp/file", ROW * ROWS)
        c.command("create", type="document", path="//tmp/document", attributes={"value": "x" * (4 << 20)})
        yield c


def head(cluster, method, command, path, *headers):
    lines = [f"{method} /api/v4/{command} HTTP/1.1", f"Host: {cluster.address}", "X-YT-Header-Format: json",
             f"X-YT-Parameters: {json.dumps({'path': path})}", *headers, "", ""]
    return "\r\n".join(lines).encode()


def put(cluster, command, path, body):
    with connection(cluster) as c:
        c.sendall(head(cluster, "PUT", command, path, f"Content-Length: {len(body)}", "Connection: close") + body)
        heard = b"".join(iter(lambda: c.recv(65536), b""))
        assert heard.startswith(b"HTTP/1.1 200 "), heard


def connection(cluster):
    """The system takes little of what nobody reads."""
    c = socket.socket()
    c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    c.settimeout(300)
    host, port = cluster.address.split(":")
    c.connect((host, int(port)))
    return c


def others_are_served(cluster, number):
    """All kinds of calls, each of which needs something that slow clients could have taken."""
    path = f"//tmp/quick-{number}"
    assert cluster.get("//tmp/table/@row_count") == ROWS
    cluster.command("create", type="table", path=path)
    put(cluster, "write_table", path, ROW * 3)
    with connection(cluster) as c:
        c.sendall(head(cluster, "GET", "read_table", path, "Connection: close"))
        assert b"".join(iter(lambda: c.recv(65536), b"")).count(b'"text"') == 3
    cluster.command("list_operations")
    cluster.remove(path)


def blobs(cluster):
    return {path.name for path in (cluster.directory / "server" / "blobs").iterdir()}


def heard_from(c, least):
    """At least so many bytes, one by one."""
    heard = b""
    while len(heard) < least:
        piece = c.recv(1)
        assert piece, heard
        heard += piece
    return heard


@pytest.mark.parametrize(("command", "path"), [("read_table", "//tmp/table"), ("read_file", "//tmp/file")])
def test_readers_of_a_byte_at_a_time(cluster, command, path):
    with contextlib.ExitStack() as open_ones:
        slow = [open_ones.enter_context(connection(cluster)) for _ in range(CLIENTS)]
        for c in slow:
            c.sendall(head(cluster, "GET", command, path, "Connection: close"))
        for c in slow:
            assert heard_from(c, 20).startswith(b"HTTP/1.1 200 ")
        others_are_served(cluster, command)
        for c in slow:
            heard_from(c, 10)
        others_are_served(cluster, command)
        # Whoever is slow gets all of it nevertheless.
        rest = b"".join(iter(lambda: slow[-1].recv(1 << 20), b""))
        assert rest.count(b"x" * 1000) == pytest.approx(ROWS, rel=0.01)


def test_readers_of_a_large_value(cluster):
    with contextlib.ExitStack() as open_ones:
        slow = [open_ones.enter_context(connection(cluster)) for _ in range(20)]
        for c in slow:
            c.sendall(head(cluster, "GET", "get", "//tmp/document", "Connection: close"))
        # What nobody reads is bounded: some are told to come again.
        answers = [heard_from(c, 20)[:12] for c in slow]
        assert b"HTTP/1.1 200" in answers and set(answers) <= {b"HTTP/1.1 200", b"HTTP/1.1 400"}, answers
        others_are_served(cluster, "value")


@pytest.mark.parametrize("command", ["write_table", "write_file"])
def test_writers_that_pause(cluster, command):
    kind = command.partition("_")[2]
    cluster.command("create", type=kind, path=f"//tmp/slow-{kind}", ignore_existing=True)
    before = blobs(cluster)
    with contextlib.ExitStack() as open_ones:
        slow = [open_ones.enter_context(connection(cluster)) for _ in range(CLIENTS)]
        for c in slow:
            c.sendall(head(cluster, "PUT", command, f"//tmp/slow-{kind}", f"Content-Length: {2 * len(ROW)}",
                           "Connection: close") + ROW)
        wait_for(lambda: len(blobs(cluster) - before) == CLIENTS, what="all of them to be written")
        others_are_served(cluster, command)
        for c in slow:
            c.sendall(ROW[:500])
        others_are_served(cluster, command)
        slow[-1].sendall(ROW[500:])
        assert heard_from(slow[-1], 20).startswith(b"HTTP/1.1 200 ")
    read = "read_table" if kind == "table" else "read_file"
    with connection(cluster) as c:
        c.sendall(head(cluster, "GET", read, f"//tmp/slow-{kind}", "Connection: close"))
        heard = b"".join(iter(lambda: c.recv(65536), b""))
        assert heard.count(b"x" * 1000) == 2
    # Of those that have gone in the middle nothing is left.
    wait_for(lambda: len(blobs(cluster) - before) == 1, what="the parts to be gone")
