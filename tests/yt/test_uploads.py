"""Uploads that break off, clients that hang up, and many that append at once (http-api.md 2.10, 8.3)."""

import contextlib
import itertools
import json
import socket
import struct
import threading
import urllib.request

import pytest
from harness import wait_for

_numbers = itertools.count()
OLD = b'{"old"=1;};\n'
PIECE = b'{"new"=1;};\n' * 4096
COMMANDS = {"file": ("write_file", "read_file"), "table": ("write_table", "read_table")}


class Upload:
    """A node with something in it, and a connection on which something else is being written to it."""

    def __init__(self, cluster, kind, append=False):
        self.cluster, self.kind = cluster, kind
        self.path = f"//tmp/upload-{next(_numbers)}"
        cluster.command("create", type=kind, path=self.path)
        put(cluster, kind, self.path, OLD)
        self.blobs = blobs(cluster)
        self.target = f"<append=%true>{self.path}" if append else self.path
        host, port = cluster.address.split(":")
        self.connection = socket.create_connection((host, int(port)), timeout=60)

    def send_head(self, *headers):
        lines = [f"PUT /api/v4/{COMMANDS[self.kind][0]} HTTP/1.1", f"Host: {self.cluster.address}", "X-YT-Header-Format: json",
                 f"X-YT-Parameters: {json.dumps({'path': self.target})}", *headers, "", ""]
        self.connection.sendall("\r\n".join(lines).encode())

    def send(self, data):
        self.connection.sendall(data)

    def wait_until_it_is_being_written(self):
        wait_for(lambda: blobs(self.cluster) != self.blobs, what="the server to begin writing")

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def close_half(self):
        """The client says no more but listens; gives back what it hears."""
        self.connection.shutdown(socket.SHUT_WR)
        heard = b""
        with contextlib.suppress(ConnectionError):
            while piece := self.connection.recv(65536):
                heard += piece
        self.connection.close()
        return heard

    def content(self):
        return read(self.cluster, self.kind, self.path)


def blobs(cluster):
    return sorted(path.name for path in cluster.directory.rglob("blobs/*"))


def request(cluster, command, parameters, body=None):
    asked = urllib.request.Request(
        f"http://{cluster.address}/api/v4/{command}", data=body, method="PUT" if body is not None else "GET",
        headers={"X-YT-Parameters": json.dumps(parameters)})
    with urllib.request.urlopen(asked, timeout=120) as reply:
        return reply.read()


def put(cluster, kind, path, body):
    request(cluster, COMMANDS[kind][0], {"path": path}, body)


def read(cluster, kind, path):
    return request(cluster, COMMANDS[kind][1], {"path": path})


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


# What has been sent when the client goes: every one is short of the end of the body.
CUTS = {
    "nothing": ("Transfer-Encoding: chunked", b""),
    "between chunks": ("Transfer-Encoding: chunked", chunk(PIECE)),
    "in a chunk": ("Transfer-Encoding: chunked", chunk(PIECE) + chunk(PIECE)[:20000]),
    "behind the rows of a chunk": ("Transfer-Encoding: chunked", chunk(PIECE)[:-2]),
    "in the size of a chunk": ("Transfer-Encoding: chunked", chunk(PIECE) + b"c0"),
    "in the last chunk": ("Transfer-Encoding: chunked", chunk(PIECE) + b"0\r\n"),
    "sized, nothing": (f"Content-Length: {len(PIECE)}", b""),
    "sized, between rows": (f"Content-Length: {len(PIECE)}", PIECE[:12 * 100]),
    "sized, one byte short": (f"Content-Length: {len(PIECE)}", PIECE[:-1]),
}


@pytest.mark.parametrize("append", [False, True], ids=["over", "behind"])
@pytest.mark.parametrize("going", ["close", "reset", "half"])
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("kind", COMMANDS)
def test_what_was_cut_is_never_the_whole(cluster, kind, cut, going, append):
    header, data = CUTS[cut]
    upload = Upload(cluster, kind, append)
    upload.send_head(header)
    upload.send(data)
    upload.wait_until_it_is_being_written()
    if going == "half":
        heard = upload.close_half()
        assert not heard.startswith(b"HTTP/1.1 200"), heard
    elif going == "reset":
        upload.reset()
    else:
        upload.connection.close()
    wait_for(lambda: blobs(cluster) == upload.blobs, what="the part to be gone")
    assert upload.content() == OLD


@pytest.mark.parametrize("kind", COMMANDS)
@pytest.mark.parametrize("header", ["Transfer-Encoding: chunked", f"Content-Length: {len(PIECE)}"], ids=["chunked", "sized"])
def test_what_has_come_whole_is_written_though_nobody_waits(cluster, kind, header):
    upload = Upload(cluster, kind)
    upload.send_head(header)
    upload.wait_until_it_is_being_written()
    upload.send(chunk(PIECE) + b"0\r\n\r\n" if "chunked" in header else PIECE)
    upload.connection.close()
    wait_for(lambda: upload.content() == PIECE, what="the content that came")
    wait_for(lambda: len(blobs(cluster)) == len(upload.blobs), what="the old content to be gone")


def test_tables_are_joined_though_nobody_waits(cluster):
    sources = [f"//tmp/source-{next(_numbers)}" for _ in range(3)]
    destination = f"//tmp/joined-{next(_numbers)}"
    for path in [*sources, destination]:
        cluster.command("create", type="table", path=path)
    for path in sources:
        put(cluster, "table", path, PIECE)
    body = json.dumps({"source_paths": sources, "destination_path": destination}).encode()
    host, port = cluster.address.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(b"POST /api/v4/concatenate HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % (cluster.address.encode(), len(body)))
        # Who asks for the body has begun; a request that nobody has looked at may go with its client.
        assert connection.recv(1000).startswith(b"HTTP/1.1 100")
        connection.sendall(body)
    wait_for(lambda: cluster.get(f"{destination}/@row_count") == 3 * 4096, what="the rows of all")


@pytest.mark.parametrize("kind", COMMANDS)
def test_all_that_append_at_once_are_there(cluster, kind):
    path = f"//tmp/shared-{next(_numbers)}"
    cluster.command("create", type=kind, path=path)
    writers, each = 8, 12
    before = blobs(cluster)
    failures = []

    def write(writer):
        try:
            for number in range(each):
                put(cluster, kind, f"<append=%true>{path}", b'{"writer"=%d;"number"=%d;};\n' % (writer, number))
        except Exception as error:  # noqa: BLE001: whatever it is, the test says it
            failures.append(error)
    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    lines = read(cluster, kind, path).splitlines(keepends=True)
    expected = [b'{"writer"=%d;"number"=%d;};\n' % (w, n) for w in range(writers) for n in range(each)]
    assert sorted(lines) == sorted(expected)
    for writer in range(writers):
        own = [line for line in lines if b'"writer"=%d;' % writer in line]
        assert own == [b'{"writer"=%d;"number"=%d;};\n' % (writer, n) for n in range(each)], "in the order of one writer"
    # Of a file one content is left, of a table a chunk of each.
    kept = 1 if kind == "file" else writers * each
    wait_for(lambda: len(blobs(cluster)) == len(before) + kept, what="what was joined to be gone")


def test_the_checksum_is_that_of_the_whole(cluster):
    import hashlib
    path = f"//tmp/summed-{next(_numbers)}"
    cluster.command("create", type="file", path=path)
    put(cluster, "file", path, b"abc")
    request(cluster, "write_file", {"path": f"<append=%true>{path}", "compute_md5": True}, b"def")
    assert cluster.get(f"{path}/@md5") == hashlib.md5(b"abcdef").hexdigest()
