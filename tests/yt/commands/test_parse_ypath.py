"""`parse_ypath` through the real client."""

import pytest
from calls import formatted, told
from yt.yson import YsonUint64, to_yson_type


def test_parse_ypath(client):
    parsed = formatted(client, "parse_ypath", path="//tmp/t{a}[#1:#2]")
    parsed = parsed["path"] if isinstance(parsed, dict) else parsed
    assert str(parsed) == "//tmp/t" and parsed.attributes["columns"] == ["a"]


def parsed(client, path):
    return formatted(client, "parse_ypath", path=path)


def rows(index):
    return {"row_index": index}


@pytest.mark.parametrize("path, bare, attributes", [
    ("//tmp/t", "//tmp/t", {}), ("/", "/", {}), ("#1-2-3-4", "#1-2-3-4", {}), ("#1-2-3-4/@x", "#1-2-3-4/@x", {}),
    ("  //tmp/t", "//tmp/t", {}), ("<append=%true>//tmp/t", "//tmp/t", {"append": True}),
    ('<a=1;"b c"={x=[]}> //tmp/t', "//tmp/t", {"a": 1, "b c": {"x": []}}),
    ("//tmp/t{a,\"b c\"}", "//tmp/t", {"columns": ["a", "b c"]}), ("//tmp/t{}", "//tmp/t", {"columns": []}),
    ("//tmp/t[#2]", "//tmp/t", {"ranges": [{"exact": rows(2)}]}),
    ("//tmp/t[#1:#3]", "//tmp/t", {"ranges": [{"lower_limit": rows(1), "upper_limit": rows(3)}]}),
    ("//tmp/t[:#5]", "//tmp/t", {"ranges": [{"upper_limit": rows(5)}]}),
    ("//tmp/t[#1:#2,#7:]", "//tmp/t", {"ranges": [{"lower_limit": rows(1), "upper_limit": rows(2)}, {"lower_limit": rows(7)}]}),
    ("//tmp/t{a}[:]", "//tmp/t", {"columns": ["a"], "ranges": [{}]}),
    ("//tmp/t[a:b]", "//tmp/t", {"ranges": [{"lower_limit": {"key": ["a"]}, "upper_limit": {"key": ["b"]}}]}),
    ("//tmp/t[(a,-1):(2u,%true,2.5)]", "//tmp/t", {"ranges": [
        {"lower_limit": {"key": ["a", -1]}, "upper_limit": {"key": [YsonUint64(2), True, 2.5]}}]}),
    ("<columns=[z];append=%true>//tmp/t{a}", "//tmp/t", {"columns": ["a"], "append": True}),
    ("//tmp/l/end", "//tmp/l/end", {}), ("//tmp/l/before:-1", "//tmp/l/before:-1", {}), ("//tmp/a&/@x/0", "//tmp/a&/@x/0", {}),
    ("//tmp/*", "//tmp/*", {}), ("//tmp/@*", "//tmp/@*", {}), ("//tmp/@", "//tmp/@", {}), (r"//\*alias", r"//\*alias", {}),
    (r"//a\x62c", "//abc", {}), ("//ü", r"//\xc3\xbc", {}), (r"//\x00", r"//\x00", {}), (r"//a\/\@\&\[\{\\", r"//a\/\@\&\[\{\\", {}),
    ("//a b;c=d", "//a b;c=d", {}), (r"//\x65nd", r"//\x65nd", {}),
], ids=range(30))
def test_parse_ypath_into(client, path, bare, attributes):
    answer = parsed(client, path)
    assert answer.keys() == {"path"} and str(answer["path"]) == bare and answer["path"].attributes == attributes
    assert parsed(client, answer["path"]) == answer, "the second time it is what it was"


def test_parse_ypath_attributes_beside_the_text(client):
    answer = parsed(client, to_yson_type("//tmp/t[#1]", attributes={"append": True}))["path"]
    assert answer.attributes == {"append": True, "ranges": [{"exact": {"row_index": 1}}]}


@pytest.mark.parametrize("path, word", [
    ("", "offset"), ("x", "`/` or `#`"), ("//", "empty"), ("//a//b", "empty"), ("//a/", "empty"), ("//tmp/t[", "row limit"),
    ("//tmp/t[#x]", "row index"), ("//tmp/t[#1", "`]`"), ("//tmp/t{a", "`}`"), ("//tmp/t{a}x", "end of the path"), ("//tmp/t[#1]{a}", "end of the path"),
    ("<a=1", "`>`"), ("<a>//tmp", "`=`"), (r"//\q", "escape"), ("//a@b", "`@`"), ("//a*", "`*`"), ("//*/a", "end of the path"),
    ("//@/a", "end of the path"), ("#1-2-3", "id"), ("#g-2-3-4", "id"), ("//" + "x" * 4097, "4097"), ("//\\", "escape"), (r"//\x4", "escape"),
], ids=range(23))
def test_parse_ypath_refuses(client, path, word):
    with told(1, '"path"', word):
        parsed(client, path)


@pytest.mark.parametrize("value, word", [(5, "int64"), ({}, "map"), (["//tmp"], "list")])
def test_parse_ypath_of_a_string(client, value, word):
    with told(1, '"path"', "string", word):
        parsed(client, value)
    with told(1, '"path"', "Missing"):
        formatted(client, "parse_ypath")


def test_parse_ypath_of_many_steps(client):
    assert str(parsed(client, "/" + "/a" * 100)["path"]) == "/" + "/a" * 100
    with told(1, "steps"):
        parsed(client, "/" + "/a" * 20000)
