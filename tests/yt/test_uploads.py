"""Uploads that break off, clients that hang up, and many that append at once (http-api.md 2.10, 8.3)."""

import contextlib
import http.client
import itertools
import json
import socket
import struct
import threading
import urllib.error
import urllib.request

import pytest
from harness import ServerError, wait_for

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
        self.connection = socket.create_connection((host, int(port)), timeout=180)

    def send_head(self, *headers):
        lines = [f"PUT /api/v4/{COMMANDS[self.kind][0]} HTTP/1.1", f"Host: {self.cluster.address}", "X-YT-Header-Format: json",
                 f"X-YT-Parameters: {json.dumps({'path': self.target})}", *headers, "", ""]
        self.connection.sendall("\r\n".join(lines).encode())

    def send(self, data):
        self.connection.sendall(data)

    def wait_until_it_is_being_written(self):
        wait_for(lambda: blobs(self.cluster) - self.blobs, what="the server to begin writing")

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
    """Names of the contents on disk. Those that were replaced are removed behind the answer, in order of the requests."""
    return {path.name for path in (cluster.directory / "server" / "blobs").iterdir()}


def settled_blobs(cluster):
    """Names of the contents on disk when the removals of all earlier requests are done: the last of them is awaited."""
    path = f"//tmp/settled-{next(_numbers)}"
    cluster.command("create", type="file", path=path)
    before = blobs(cluster)
    request(cluster, "write_file", {"path": path}, path.encode())
    replaced = blobs(cluster) - before
    cluster.remove(path)
    assert len(replaced) == 1, replaced
    wait_for(lambda: not blobs(cluster) & replaced, what="a replaced content to be removed")
    return blobs(cluster)


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


def open_content(cluster, kind, path):
    asked = urllib.request.Request(
        f"http://{cluster.address}/api/v4/{COMMANDS[kind][1]}", headers={"X-YT-Parameters": json.dumps({"path": path})})
    return urllib.request.urlopen(asked, timeout=120)


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
    wait_for(lambda: not blobs(cluster) - upload.blobs, what="the part to be gone", seen=lambda: blobs(cluster) - upload.blobs)
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


@pytest.mark.parametrize("kind", COMMANDS)
def test_contents_can_be_read_while_they_are_replaced(cluster, kind):
    """S15. An old content goes as soon as nothing refers to it, which may be between a question and its answer."""
    path = f"//tmp/replaced-{next(_numbers)}"
    cluster.command("create", type=kind, path=path)
    contents = [b'{"a"="%s";};\n' % (letter * 1000) for letter in [b"a", b"b"]]
    put(cluster, kind, path, contents[0])
    ended = threading.Event()

    def replace():
        try:
            for number in range(300):
                put(cluster, kind, path, contents[number % 2])
        finally:
            ended.set()
    found, failures = [], []

    def look():
        while not ended.is_set():
            try:
                found.append(read(cluster, kind, path))
            except (urllib.error.HTTPError, http.client.IncompleteRead) as error:
                failures.append(repr(error))
    threads = [threading.Thread(target=work) for work in [replace, look, look, look, look]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[:3]
    assert found and set(found) <= set(contents)


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_slow_reader_gets_all_of_a_content_that_was_replaced(cluster, kind):
    """S15. More than lies in buffers, and of a table more than one chunk; it is removed when the reader has it."""
    path = f"//tmp/replaced-{next(_numbers)}"
    cluster.command("create", type=kind, path=path)
    before = settled_blobs(cluster)
    parts = [b'{"part"=%d;"text"="%s";};\n' % (part, b"x" * 4000) * 2000 for part in range(6)]
    if kind == "file":
        put(cluster, kind, path, b"".join(parts))
    else:
        for part in parts:
            put(cluster, kind, f"<append=%true>{path}", part)
    old = settled_blobs(cluster) - before
    with open_content(cluster, kind, path) as answer:
        heard = answer.read(100)
        put(cluster, kind, path, OLD)
        assert read(cluster, kind, path) == OLD
        # Removals are done in order: those of the old content would have been.
        kept = settled_blobs(cluster)
        heard += answer.read()
    assert heard == b"".join(parts)
    assert kept & old, "it is kept while it is read"
    wait_for(lambda: not blobs(cluster) & old, what="the old content to be removed behind its reader")


def test_tables_are_joined_though_nobody_waits(cluster):
    sources = [f"//tmp/source-{next(_numbers)}" for _ in range(3)]
    destination = f"//tmp/joined-{next(_numbers)}"
    for path in [*sources, destination]:
        cluster.command("create", type="table", path=path)
    for path in sources:
        put(cluster, "table", path, PIECE)
    body = json.dumps({"source_paths": sources, "destination_path": destination}).encode()
    host, port = cluster.address.split(":")
    with socket.create_connection((host, int(port)), timeout=180) as connection:
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
    before = settled_blobs(cluster)
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


# --- concatenate of files

class Files:
    """Some with contents, and one that is to get others."""

    def __init__(self, cluster, *contents, present=b"present;"):
        self.cluster = cluster
        self.sources = [self.made(content) for content in contents]
        self.destination = self.made(present)
        self.blobs = settled_blobs(cluster)

    def made(self, content):
        path = f"//tmp/joined-{next(_numbers)}"
        self.cluster.command("create", type="file", path=path)
        if content is not None:
            request(self.cluster, "write_file", {"path": path, "compute_md5": True}, content)
        return path

    def concatenate(self, *sources, append=False, **parameters):
        return self.cluster.command("concatenate", source_paths=list(sources or self.sources),
                                    destination_path=("<append=%true>" if append else "") + self.destination, **parameters)

    def content(self):
        return read(self.cluster, "file", self.destination)

    def refused(self, *sources, **parameters):
        """The error of what changes nothing and leaves nothing."""
        before, here = self.content(), blobs(self.cluster)
        with pytest.raises(ServerError) as refused:
            self.concatenate(*sources, **parameters)
        assert self.content() == before
        wait_for(lambda: not blobs(self.cluster) - here, what="what was joined to be gone", seen=lambda: blobs(self.cluster) - here)
        return refused.value

    def wait_for_blobs(self, more=0):
        """Of the contents that were replaced none is left."""
        wait_for(lambda: len(blobs(self.cluster)) == len(self.blobs) + more, what="the contents from before to be gone")


@pytest.mark.parametrize("append", [False, True], ids=["over", "behind"])
def test_concatenate_puts_files_one_behind_the_other(cluster, append):
    # Of more than one piece, of none, and one that was never written.
    large = bytes(range(256)) * 5000
    files = Files(cluster, b"first;", large, b"", None, b"last")
    assert files.concatenate(append=append) == {}
    present = b"present;" if append else b""
    assert files.content() == present + b"first;" + large + b"last"
    assert cluster.get(f"{files.destination}/@uncompressed_data_size") == len(files.content())
    assert not cluster.exists(f"{files.destination}/@md5")
    assert [read(cluster, "file", path) for path in files.sources] == [b"first;", large, b"", b"", b"last"]
    files.wait_for_blobs()


def test_concatenate_of_the_same_file_many_times(cluster):
    files = Files(cluster, b"a")
    files.concatenate(*files.sources * 300)
    assert files.content() == b"a" * 300
    files.concatenate(files.destination, files.destination, append=True)
    assert files.content() == b"a" * 900
    files.concatenate(files.destination, *files.sources, files.destination)
    assert files.content() == b"a" * 1801
    files.wait_for_blobs()
    assert "has 10001 paths, at most 10000" in files.refused(*files.sources * 10001).text()


@pytest.mark.parametrize("kind", COMMANDS)
def test_concatenate_of_nothing(cluster, kind):
    path = f"//tmp/joined-{next(_numbers)}"
    cluster.command("create", type=kind, path=path)
    put(cluster, kind, path, OLD)
    cluster.command("concatenate", source_paths=[], destination_path=f"<append=%true>{path}")
    assert read(cluster, kind, path) == OLD
    cluster.command("concatenate", source_paths=[], destination_path=path)
    assert read(cluster, kind, path) == b""
    with pytest.raises(ServerError) as refused:
        cluster.command("concatenate", source_paths=path, destination_path=path)
    assert 'Parameter "source_paths" must be a list of paths' in refused.value.text()


def test_concatenate_mixes_no_files_with_tables(cluster):
    files = Files(cluster, b"a")
    table, folder = (f"//tmp/joined-{next(_numbers)}" for _ in range(2))
    cluster.command("create", type="table", path=table)
    cluster.command("create", type="map_node", path=folder)
    for path, kind in ((table, "table"), (folder, "map_node")):
        assert f"{path} is of type {kind}, expected a file" in files.refused(*files.sources, path).text()
    assert "is not a file" in files.refused("//sys/scheduler/orchid").text()
    assert "only whole files" in files.refused(f"{files.sources[0]}[#0:#1]").text()
    for destination, told in ((table, f"{files.sources[0]} is of type file, expected a table"),
                              (folder, f"{folder} is of type map_node, expected a file or a table")):
        with pytest.raises(ServerError) as refused:
            cluster.command("concatenate", source_paths=files.sources, destination_path=destination)
        assert told in refused.value.text()


@pytest.mark.parametrize("append", [False, True], ids=["over", "behind"])
def test_concatenate_without_one_of_the_files(cluster, append):
    files = Files(cluster, b"a", b"b")
    refused = files.refused(files.sources[0], "//tmp/nothing", files.sources[1], append=append)
    assert refused.error["code"] == 500 and "nothing" in refused.text()
    files.destination = "//tmp/nothing"
    with pytest.raises(ServerError) as refused:
        files.concatenate(append=append)
    assert refused.value.error["code"] == 500


def test_concatenate_in_a_transaction(cluster):
    files = Files(cluster, b"a", b"b")

    def inside(end):
        transaction = cluster.start_transaction()
        files.concatenate(append=True, transaction_id=transaction)
        assert request(cluster, "read_file", {"path": files.destination, "transaction_id": transaction}) == b"present;ab"
        assert files.content() == b"present;"
        # It wants the file for itself: who comes second has copied for nothing, and leaves nothing.
        here = blobs(cluster)
        with pytest.raises(ServerError) as refused:
            files.concatenate()
        assert refused.value.error["code"] == 402
        wait_for(lambda: not blobs(cluster) - here, what="what was joined to be gone", seen=lambda: blobs(cluster) - here)
        cluster.command(f"{end}_transaction", transaction_id=transaction)
        files.wait_for_blobs()
        return transaction
    aborted = inside("abort")
    assert files.content() == b"present;"
    assert files.refused(transaction_id=aborted).error["code"] == 11000
    inside("commit")
    assert files.content() == b"present;ab"


def test_concatenate_sees_what_its_transaction_sees(cluster):
    files = Files(cluster, b"a", b"b")
    transaction = cluster.start_transaction()
    request(cluster, "write_file", {"path": files.sources[0], "transaction_id": transaction}, b"new")
    files.concatenate()
    assert files.content() == b"ab"
    files.concatenate(transaction_id=transaction)
    cluster.command("commit_transaction", transaction_id=transaction)
    assert files.content() == b"newb"


def test_concatenate_repeated_is_done_once(cluster):
    """By a client that has not heard the answer, or does not wait for it; over a kill -9."""
    files = Files(cluster, b"a" * (1 << 20), b"b")
    whole = b"present;" + b"a" * (1 << 20) + b"b"
    answers = []

    def ask():
        answers.append(files.concatenate(append=True, mutation_id="1-2-3-4", retry=True))
    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [{}] * 6 and files.content() == whole
    files.wait_for_blobs()
    cluster.server.kill()
    cluster.restart()
    ask()
    assert files.content() == whole
    files.wait_for_blobs()
    # An answer for somebody who asks for something else.
    files.concatenate(append=True, mutation_id="1-2-3-5")
    assert files.content() == whole + b"a" * (1 << 20) + b"b"


def test_concatenate_in_a_batch_is_done_before_what_is_behind_it(cluster):
    files = Files(cluster, b"a" * (1 << 20), b"b")
    size = f"{files.destination}/@uncompressed_data_size"
    items = [("get", {"path": size}), ("concatenate", {"source_paths": files.sources, "destination_path": files.destination}),
             *[("remove", {"path": path}) for path in files.sources], ("get", {"path": size}), ("concatenate", {})]
    results = cluster.command("execute_batch", requests=[{"command": c, "parameters": p} for c, p in items])["results"]
    assert (results[0]["output"]["value"], results[-2]["output"]["value"]) == (len(b"present;"), (1 << 20) + 1)
    assert [list(result) for result in results] == [["output"]] * 5 + [["error"]]
    files.wait_for_blobs(more=-2)


def test_concatenate_while_others_write(cluster):
    """What is there in the end is what somebody has joined, as it was at one moment."""
    files = Files(cluster, b"0" * 100_000, b"0" * 100_000)
    failures, over = [], threading.Event()

    def guarded(work):
        try:
            work()
        except Exception as error:  # noqa: BLE001: whatever it is, the test says it
            failures.append(error)

    def write():
        for number in itertools.cycle(range(10)):
            if over.wait(0.05):
                return
            put(cluster, "file", files.sources[0], b"%d" % number * 100_000)
    writer = threading.Thread(target=guarded, args=(write,))
    joiners = [threading.Thread(target=guarded, args=(lambda: files.concatenate(append=True),)) for _ in range(6)]
    for thread in [writer, *joiners]:
        thread.start()
    for thread in joiners:
        thread.join()
    over.set()
    writer.join()
    assert not failures
    content = files.content().removeprefix(b"present;")
    assert len(content) == 6 * 200_000
    for start in range(0, len(content), 100_000):
        assert len(set(content[start:start + 100_000])) == 1, "a part of one content"
    files.wait_for_blobs()


def test_concatenate_is_in_the_audit_log(cluster):
    files = Files(cluster, b"abc", b"de")
    files.refused("//tmp/nothing")
    files.concatenate(append=True)

    def found():
        lines = cluster.millpond("audit", "--path", files.destination, "--json")[1].splitlines()
        return [line for line in map(json.loads, lines) if line["action"] == "concatenate"]
    wait_for(found, what="a line of the audit log")
    assert [(e["user"], e["sources"], e["append"], e["size"]) for e in found()] == [("root", files.sources, True, 13)]


def test_concatenate_by_the_command_line(cluster):
    files = Files(cluster, b"one;", b"two;")
    one, two = files.sources
    for append, expected in (("", b"one;two;one;"), ("<append=%true>", b"one;two;one;" * 2)):
        cluster.yt("concatenate", "--src", one, "--src", two, "--src", one, "--dst", append + files.destination)
        assert files.content() == expected
    cluster.yt("concatenate", "--src", one, "--dst", "//tmp/made-by-concatenate")
    assert read(cluster, "file", "//tmp/made-by-concatenate") == b"one;"


@pytest.mark.parametrize("parts", [2, 11], ids=["at once", "in groups"])
def test_parallel_upload_ends_with_concatenate(cluster, client, home, parts):
    """The client writes parts into files of its own, at the same time, and has them joined, four at a time."""
    client.config["write_parallel"].update(enable=True, max_thread_count=3, concatenate_size=4)
    client.config["write_retries"]["chunk_size"] = 100_000
    content = b"".join(b"%08d" % number for number in range(parts * 100_000 // 8 - 100))
    before = settled_blobs(cluster)
    client.write_file(f"{home}/f", content)
    assert client.read_file(f"{home}/f").read() == content
    client.write_file(f"<append=%true>{home}/f", content)
    assert client.read_file(f"{home}/f").read() == content * 2
    wait_for(lambda: len(blobs(cluster)) == len(before) + 1, what="the parts to be gone")
    with open("/proc/self/exe", "rb") as program:
        client.write_file(f"{home}/f", itertools.islice(iter(lambda: program.read(65536), b""), 40))
    with open("/proc/self/exe", "rb") as program:
        assert client.read_file(f"{home}/f").read() == program.read(40 * 65536)


SEVERAL_MB = 20 << 20


@pytest.mark.parametrize("path, headers, status", [
    ("write_file?path=//tmp/f", {"Content-Encoding": "foo"}, 415),
    ("write_file", {}, 400),
    ("write_file?path=//tmp/f", {"X-YT-Parameters": "{"}, 400),
    ("write_file?path=//tmp/f", {"X-YT-User-Name": "nobody"}, 400),
    ("write_table?path=//tmp/f&input_format=foo", {}, 400),
    ("set?path=//tmp/nothing/x", {"Content-Type": "foo/bar"}, 400),
    ("no_such_command", {}, 404),
    ("get?path=//tmp", {}, 405),
])
def test_who_is_refused_gets_to_read_why(cluster, path, headers, status):
    """Whatever is wrong is found before the body is read; a client that only sends must not get a broken pipe."""
    host, port = cluster.address.split(":")
    for _ in range(3):
        connection = http.client.HTTPConnection(host, int(port), timeout=180)
        connection.request("PUT", f"/api/v4/{path}", body=b"x" * SEVERAL_MB, headers=headers)
        answer = connection.getresponse()
        assert answer.status == status and json.loads(answer.read())["message"]
        connection.close()


def test_who_asks_first_need_not_send(cluster):
    host, port = cluster.address.split(":")
    with socket.create_connection((host, int(port)), timeout=180) as connection:
        connection.sendall(b"PUT /api/v4/no_such_command HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n"
                           b"Expect: 100-continue\r\n\r\n" % (cluster.address.encode(), SEVERAL_MB))
        assert connection.recv(1000).startswith(b"HTTP/1.1 404")


def test_a_body_that_never_comes_does_not_hold_up_the_refusal(cluster):
    host, port = cluster.address.split(":")
    for head in (b"Content-Length: 9", b"Transfer-Encoding: chunked"):
        with socket.create_connection((host, int(port)), timeout=120) as connection:
            connection.sendall(b"PUT /api/v4/no_such_command HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n"
                               % (cluster.address.encode(), head))
            assert connection.recv(1000).startswith(b"HTTP/1.1 404")


def test_a_sign_in_that_is_too_large(cluster):
    host, port = cluster.address.split(":")
    for _ in range(3):
        connection = http.client.HTTPConnection(host, int(port), timeout=180)
        connection.request("POST", "/login", body=b"x" * SEVERAL_MB)
        answer = connection.getresponse()
        assert answer.status == 400 and "too large" in json.loads(answer.read())["message"]
        connection.close()
