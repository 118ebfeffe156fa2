"""`read_file` through the real client."""

import json

import pytest
import yt.yson
from calls import closed, denied, plain, raw, refused


@pytest.fixture
def file(client, home):
    client.write_file(f"{home}/f", b"abcdef")
    return f"{home}/f"


def test_read_file(client, home):
    client.write_file(f"{home}/f", b"abcdef")
    assert client.read_file(f"{home}/f", offset=1, length=3).read() == b"bcd"


def test_read_file_parts(client, file):
    for parameters, expected in (
            ({}, b"abcdef"), ({"offset": 0}, b"abcdef"), ({"offset": 4}, b"ef"), ({"length": 2}, b"ab"), ({"length": 0}, b""),
            ({"offset": 6}, b""), ({"offset": 100, "length": 1}, b""), ({"offset": 4, "length": 100}, b"ef"),
            ({"length": 2**63 - 1, "offset": 1}, b"bcdef"), ({"file_reader": {"window_size": 1}}, b"abcdef")):
        assert client.read_file(file, **parameters).read() == expected, parameters


def test_read_file_parts_that_are_none(client, file):
    for name in ("offset", "length"):
        for value, found in ((-1, "int64 -1"), ("x", 'string "x"'), ("1", 'string "1"'), (1.5, "double")):
            with refused(1, f'"{name}" must be non-negative integer, found {found}'):
                raw(client, "read_file", path=file, **{name: value})


def test_read_file_a_query_string(cluster, file):
    """Numbers come as strings there."""
    assert plain(cluster, "GET", "read_file", query=f"?path={file}&offset=1&length=2")[2] == b"bc"
    status, _, body = plain(cluster, "GET", "read_file", query=f"?path={file}&offset=x")
    assert status == 400 and '"offset"' in json.loads(body)["message"]


def test_read_file_what_is_told_beside(cluster, client, file):
    wanted = {name: client.get(f"{file}/@{name}") for name in ("id", "revision")}
    _, headers, _ = plain(cluster, "GET", "read_file", {"path": file})
    assert json.loads(headers["X-YT-Response-Parameters"]) == wanted
    text = yt.yson.dumps({"path": file}, yson_format="text").decode()
    _, headers, _ = plain(cluster, "GET", "read_file", X_YT_Header_Format="<format=text>yson", X_YT_Parameters=text)
    assert yt.yson.loads(headers["X-YT-Response-Parameters"].encode()) == wanted


def test_read_file_what_is_no_file(client, home, file):
    client.create("table", f"{home}/t")
    client.link(f"{home}/nothing", f"{home}/broken", force=True)
    for path, code, word in ((f"{home}/nothing", 500, "nothing"), (f"{home}/t", 1, "expected a file"), (home, 1, "expected a file"),
                             (f"{file}/x", 500, "cannot have children"), (f"{home}/broken", 500, "nothing")):
        with refused(code, word):
            raw(client, "read_file", path=path)


def test_read_file_a_file_by_its_id_and_behind_a_link(client, home, file):
    client.link(file, f"{home}/link")
    for path in ("#" + client.get(f"{file}/@id"), f"{home}/link"):
        assert client.read_file(path).read() == b"abcdef"
    client.create("file", f"{home}/unwritten")
    assert client.read_file(f"{home}/unwritten").read() == b""


def test_read_file_methods(cluster, file):
    for method, body in (("GET", None), ("POST", b""), ("POST", b"{}")):
        assert plain(cluster, method, "read_file", {"path": file}, body)[::2] == (200, b"abcdef")
    status, headers, _ = plain(cluster, "PUT", "read_file", {"path": file}, b"")
    assert (status, headers["Allow"]) == (405, "GET, POST")


def test_read_file_who_may(guarded):
    path, reader, stranger = closed(guarded, "file")
    assert reader.read_file(path).read() == b""
    with denied(stranger, "read"):
        raw(stranger, "read_file", path=path)
    # Nor is he told what is not there.
    with denied(stranger, "read"):
        raw(stranger, "read_file", path=f"{path}/x")
