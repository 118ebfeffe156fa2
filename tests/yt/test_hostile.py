"""What somebody who means no good may ask for, and that others are served all the same (issue 6, "Bad input and
faults"). Sizes and depths of bodies and paths are in test_checklist.py and in the tests of the crate `api`."""

import contextlib
import json
import socket
import urllib.error
import urllib.request

import pytest
from harness import cluster as make_cluster, wait_for

FILES = 400


@pytest.fixture
def crowded():
    """A server that may have few files open, so that few connections are too many."""
    with make_cluster(nodes=0) as cluster:
        cluster.server.terminate()
        cluster.server.arguments = ["prlimit", f"--nofile={FILES}:{FILES}", *cluster.server.arguments]
        cluster.server.start()
        cluster.wait_server()
        yield cluster


def connect(cluster):
    host, port = cluster.address.split(":")
    return socket.create_connection((host, int(port)), timeout=120)


def is_closed(connection):
    connection.setblocking(False)
    try:
        return connection.recv(100) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_more_connections_than_there_is_room_for(crowded):
    """Some have said half of a request, some have asked something and keep the connection: others are let in, and the
    store still finds files for what they write."""
    with contextlib.ExitStack() as open_ones:
        idle = [open_ones.enter_context(connect(crowded)) for _ in range(FILES)]
        for connection in idle:
            with contextlib.suppress(OSError):
                connection.sendall(b"GET /ping HTTP/1.1\r\nHost: localhost\r\n\r\n")
                connection.recv(1000)
        half = [open_ones.enter_context(connect(crowded)) for _ in range(FILES)]
        for connection in half:
            with contextlib.suppress(OSError):
                connection.sendall(b"GET /ping HTTP/1.1\r\nHo")
        client = crowded.client()
        client.write_file("//tmp/file", b"content")
        client.write_table("//tmp/table", [{"a": 1}])
        assert client.read_file("//tmp/file").read() == b"content"
        # Who was heard of least lately goes first. By itself none of them would go within ten minutes.
        wait_for(lambda: all(map(is_closed, idle)), what="idle connections to be closed", seen=lambda: sum(map(is_closed, idle)))
        assert sum(map(is_closed, half)) >= FILES // 2
        # Whoever stays without ever asking for anything is sent away in the end.
        wait_for(lambda: all(map(is_closed, half)), what="half requests to be cut off", period=0.5, seen=lambda: sum(map(is_closed, half)))
    assert crowded.get("//tmp/table/@row_count") == 1


def test_who_is_served_is_not_sent_away(crowded):
    """The answer that a quiet client waits for comes, whole, however many come meanwhile."""
    content = b"x" * (32 << 20)
    crowded.client().write_file("//tmp/large", content)
    with contextlib.ExitStack() as open_ones:
        slow = open_ones.enter_context(connect(crowded))
        slow.sendall(b"GET /api/v4/read_file?path=//tmp/large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        received = slow.recv(1000)
        others = [open_ones.enter_context(connect(crowded)) for _ in range(FILES)]
        assert others
        while piece := slow.recv(1 << 20):
            received += piece
    assert received.startswith(b"HTTP/1.1 200") and received.count(b"x") >= len(content)


def user_of(cluster, name):
    request = urllib.request.Request(f"http://{cluster.address}/api/v4/get_current_user",
                                     headers={"X-YT-User-Name": name.decode("latin-1")})
    try:
        return json.loads(urllib.request.urlopen(request, timeout=180).read())["user"].encode("latin-1").decode()
    except urllib.error.HTTPError as error:
        return json.loads(error.read())["code"]


def test_a_name_that_is_none_is_not_passed_over(cluster):
    """The request would run as somebody else than it says, and that is `root` here."""
    cluster.command("create", type="user", attributes={"name": "анна".encode().decode("latin-1")}, ignore_existing=True)
    assert user_of(cluster, "анна".encode()) == "анна"
    assert user_of(cluster, b"\xff\xfe") == 900
    assert user_of(cluster, b"") == 900


def test_an_input_of_more_pieces_than_can_be_kept(cluster):
    """Few words, and a list of chunks for each of them."""
    client = cluster.client()
    client.write_table("//tmp/pieces", [{"a": 1}])
    client.concatenate(["//tmp/pieces"] * 250, "//tmp/pieces")
    assert client.get("//tmp/pieces/@chunk_count") == 250
    spec = {"input_table_paths": ["//tmp/pieces"] * 1000, "output_table_paths": [], "mapper": {"command": "cat"}}
    operation = cluster.command("start_operation", operation_type="map", spec=spec)["operation_id"]
    cluster.wait_state(operation, "failed")
    assert "200000 pieces" in json.dumps(cluster.result(operation))
