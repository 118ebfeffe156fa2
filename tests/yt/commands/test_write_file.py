"""`write_file` through the real client."""

import gzip
import hashlib
import json
import zlib

import pytest
from calls import closed, denied, plain, raw, refused


@pytest.fixture
def file(client, home):
    client.write_file(f"{home}/f", b"old", compute_md5=True)
    return f"{home}/f"


def test_write_file(client, home):
    client.write_file(f"{home}/f", b"abc", compute_md5=True)
    assert client.get(f"{home}/f/@md5") == hashlib.md5(b"abc").hexdigest()


def test_write_file_what_is_written_replaces_what_was_there(client, file):
    client.set(f"{file}/@executable", True)
    before = client.get(f"{file}/@", attributes=["id", "content_revision"])
    client.write_file(file, b"longer", file_writer={"upload_replication_factor": 1})
    after = client.get(f"{file}/@", attributes=["id", "content_revision", "executable", "uncompressed_data_size"])
    assert client.read_file(file).read() == b"longer" and not client.exists(f"{file}/@md5")
    assert (after["id"], after["executable"], after["uncompressed_data_size"]) == (before["id"], True, 6)
    assert after["content_revision"] > before["content_revision"]
    client.write_file(file, b"")
    assert client.read_file(file).read() == b"" and client.get(f"{file}/@uncompressed_data_size") == 0


def test_write_file_append(client, file):
    client.write_file(f"<append=%true>{file}", b"er")
    assert client.read_file(file).read() == b"older" and not client.exists(f"{file}/@md5")
    client.write_file(f"<append=%false>{file}", b"new")
    assert client.read_file(file).read() == b"new"


def test_write_file_behind_a_link(client, home, file):
    client.link(file, f"{home}/link")
    client.write_file(f"{home}/link", b"new")
    assert client.read_file(file).read() == b"new" and client.get(f"{home}/link&/@type") == "link"


def test_write_file_the_file_must_be_there(client, home):
    client.create("table", f"{home}/t")
    for path, code, word in ((f"{home}/nothing", 500, "nothing"), (f"{home}/t", 1, "expected a file"), (home, 1, "expected a file")):
        with refused(code, word):
            raw(client, "write_file", path=path, data=b"x")
    assert client.list(home) == ["t"]


def test_write_file_parameters(cluster, client, file):
    for path, parameters, words in ((f"<append=5>{file}", {}, ("append", "boolean", "int64")),
                                    (file, {"compute_md5": "yes"}, ("compute_md5", "boolean", "yes")),
                                    (file, {"transaction_id": "x"}, ("transaction_id",)), (None, {}, ("path",))):
        status, _, body = plain(cluster, "PUT", "write_file", {"path": path, **parameters}, b"new")
        error = json.loads(body)
        assert (status, error["code"]) == (400, 1) and all(word in error["message"] for word in words), error
    assert client.read_file(file).read() == b"old"


def test_write_file_methods(cluster, client, file):
    for method in ("PUT", "POST"):
        assert plain(cluster, method, "write_file", {"path": file}, method.encode())[::2] == (200, b"{}")
        assert client.read_file(file).read() == method.encode()
    status, headers, _ = plain(cluster, "GET", "write_file", {"path": file})
    assert (status, headers["Allow"]) == (405, "POST, PUT")


def test_write_file_encodings(cluster, client, file):
    packed = (("identity", bytes), ("gzip", gzip.compress), ("gzip", zlib.compress), ("deflate", zlib.compress),
              ("deflate", lambda data: zlib.compress(data, wbits=-15)))
    for number, (encoding, pack) in enumerate(packed):
        content = b"%d" % number * 1000
        assert plain(cluster, "PUT", "write_file", {"path": file}, pack(content), Content_Encoding=encoding)[0] == 200
        assert client.read_file(file).read() == content


def test_write_file_encodings_that_are_none(cluster, client, file):
    new = b"new" * 1000
    for encoding, body, status, word in (("zstd", new, 415, "zstd"), ("gzip", new, 400, "gzip"), ("gzip", gzip.compress(new)[:-9], 400, "gzip"),
                                         ("deflate", zlib.compress(new)[:-5], 400, "deflate")):
        told, _, error = plain(cluster, "PUT", "write_file", {"path": file}, body, Content_Encoding=encoding)
        error = json.loads(error)
        assert (told, error["code"]) == (status, 1) and word in error["message"], error
    assert client.read_file(file).read() == b"old"


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_write_file_encodings_of_the_client(client, file, encoding):
    client.config["proxy"].update(content_encoding=encoding, accept_encoding=encoding)
    client.write_file(file, b"abc" * 10_000)
    assert client.read_file(file).read() == b"abc" * 10_000


def test_write_file_in_a_transaction(client, transaction, file):
    id, inside = transaction
    inside.write_file(file, b"new")
    assert (inside.read_file(file).read(), client.read_file(file).read()) == (b"new", b"old")
    with refused(402, id):
        raw(client, "write_file", path=file, data=b"x")
    client.commit_transaction(id)
    assert client.read_file(file).read() == b"new"
    with refused(11000, id):
        raw(inside, "write_file", path=file, data=b"x")


def test_write_file_who_may(guarded):
    path, *users = closed(guarded, "file")
    for user in users:
        with denied(user, "write"):
            raw(user, "write_file", path=path, data=b"x")
    assert guarded.client().read_file(path).read() == b""


def test_write_file_a_part_of_a_file(cluster, client, file):
    assert plain(cluster, "PUT", "write_file", {"path": f"{file}[#1:#2]"}, b"x")[0] == 400
    assert client.read_file(file).read() == b"old"
