"""`read_table` through the real client."""

import http.client
import json

import pytest
import yt.yson
from calls import closed, denied, fresh, plain, raw, refused

TEXT = {"$value": "yson", "$attributes": {"format": "text"}}


@pytest.fixture
def table(client, home):
    client.create("table", f"{home}/t")
    raw(client, "write_table", path=f"{home}/t", data=b"".join(b"{a=%d;b=x};" % n for n in range(6)))
    return f"{home}/t"


def read(cluster, path, format="json", **parameters):
    """What the server says without the client, which knows paths itself: the `a` of rows, or the error."""
    status, _, body = plain(cluster, "GET", "read_table", {"path": path, "output_format": format, **parameters})
    return [json.loads(line).get("a") for line in body.splitlines()] if status == 200 else json.loads(body)


def shown(cluster, path, format, **parameters):
    """The bytes in some format."""
    status, _, body = plain(cluster, "GET", "read_table", {"path": path, "output_format": format, **parameters})
    assert status == 200, body
    return body


def test_read_table(client, home):
    client.write_table(f"{home}/t", [{"a": n} for n in range(5)])
    assert list(client.read_table(f"{home}/t[#1:#3]")) == [{"a": 1}, {"a": 2}]


def test_read_table_ranges(cluster, client, table):
    for path, expected in (
            ("[#6]", []), ("[#5]", [5]), ("[#100:]", []), ("[#2:#2]", []), ("[#5:#3]", []), ("[#4:#3,#5]", [5]), ("[:]", [*range(6)]),
            ("[#1:#3,#2:#4]", [1, 2, 2, 3]), ("[#5,#0]", [5, 0]), ("[#9223372036854775807]", [])):
        assert read(cluster, table + path) == expected, path
    for attributes, expected in (
            ("lower_limit={row_index=4}", [4, 5]), ("upper_limit={row_index=1u}", [0]), ("exact={row_index=3}", [3]), ("ranges=[{}]", [*range(6)]),
            ("ranges=[]", []),
            ("ranges=[{lower_limit={row_index=5}};{exact={row_index=0}}]", [5, 0]), ("lower_limit={row_index=2};upper_limit={row_index=3}", [2])):
        assert read(cluster, f"<{attributes}>{table}") == expected, attributes
        assert [row["a"] for row in client.read_table(f"<{attributes}>{table}")] == expected, attributes
    assert read(cluster, f"<ranges=#;lower_limit=#;columns=#>{table}") == [*range(6)], "an entity is as if nothing was said"


def test_read_table_ranges_that_are_none(cluster, table):
    for path, words in (
            (f"<lower_limit={{row_index=-1}}>{table}", '"row_index" of "lower_limit" must be a non-negative integer, found -1'),
            (f"<upper_limit={{row_index=\"4\"}}>{table}", '"row_index" of "upper_limit" must be a non-negative integer, found "4"'),
            (f"<exact={{row_index=1.0}}>{table}", '"row_index" of "exact" must be'),
            (f"<ranges={{}}>{table}", '"ranges" of the path must be a list'),
            (f"<ranges=[5]>{table}", "list of maps, found int64"), (f"<lower_limit=5>{table}", '"lower_limit" of a range must be a map, found 5'),
            (f"<lower_limit={{key=[1]}}>{table}", 'limits by "key" are not supported'), (f"{table}[a:b]", 'limits by "key" are not supported'),
            (f"<lower_limit={{row=1}}>{table}", 'limits by "row"'), (f"{table}[#1:", "cannot parse path"),
            (f"{table}[#-1:]", "non-negative integer, found -1"),
            (f"{table}{{a", "cannot parse path"), (f"<columns=5>{table}", "list of strings, found int64"),
            (f"<columns=[5]>{table}", "list of strings")):
        error = read(cluster, path)
        assert error["code"] == 1 and words in error["message"], (path, error)


@pytest.mark.parametrize("attributes", [
    "lower_limit={row_index=4};ranges=[{exact={row_index=0}}]", "exact={row_index=4};ranges=[{exact={row_index=0}}]", "ranges=[{exact={}}]",
], ids=["lower_limit", "exact", "nothing"])
def test_read_table_ranges_that_contradict_each_other(cluster, table, attributes):
    error = read(cluster, f"<{attributes}>{table}")
    assert isinstance(error, dict) and error["code"] == 1


def test_read_table_columns(cluster, table):
    for columns, expected in (("{a}", b'{"a"=0;};\n'), ("{b,a}", b'{"a"=0;"b"="x";};\n'), ("{a,a}", b'{"a"=0;};\n'), ("{}", b"{};\n"),
                              ("{none}", b"{};\n"), ("{none,b}", b'{"b"="x";};\n')):
        assert shown(cluster, f"{table}{columns}[#0]", TEXT) == expected, columns


def test_read_table_what_is_told_beside(cluster, table):
    """From which row on, and how many (http-api.md 8.3)."""
    for path, start, count in (("", 0, 6), ("[#2:]", 2, 4), ("[#5,#0]", 5, 2), ("[#6:]", 6, 0), ("[#100:]", 6, 0), ("{}[#1:#3]", 1, 2)):
        _, headers, _ = plain(cluster, "GET", "read_table", {"path": table + path})
        told = json.loads(headers["X-YT-Response-Parameters"])
        assert told == {"start_row_index": start, "approximate_row_count": count, "omitted_inaccessible_columns": []}, path
    status, headers, body = plain(cluster, "GET", "read_table", {"path": f"{table}[#2:]", "start_row_index_only": True})
    assert (status, body, json.loads(headers["X-YT-Response-Parameters"])["start_row_index"]) == (200, b"", 2)
    text = yt.yson.dumps({"path": table}, yson_format="text").decode()
    _, headers, _ = plain(cluster, "GET", "read_table", X_YT_Header_Format="<format=text>yson", X_YT_Parameters=text)
    assert yt.yson.loads(headers["X-YT-Response-Parameters"].encode())["approximate_row_count"] == 6


def test_read_table_control_attributes(cluster, table):
    control = {f"enable_{what}_index": True for what in ("row", "range", "table")}
    assert shown(cluster, f"{table}{{a}}[#1,#4]", "json", control_attributes=control) == (
        b'{"$attributes":{"table_index":0},"$value":null}\n{"$attributes":{"range_index":0},"$value":null}\n'
        b'{"$attributes":{"row_index":1},"$value":null}\n{"a":1}\n'
        b'{"$attributes":{"table_index":0},"$value":null}\n{"$attributes":{"range_index":1},"$value":null}\n'
        b'{"$attributes":{"row_index":4},"$value":null}\n{"a":4}\n')
    # A line of DSV has no room for them; what is not known, or off, or nothing, is nothing.
    assert shown(cluster, f"{table}[#1]", "dsv", control_attributes=control) == b"a=1\tb=x\n"
    for nothing in ({"enable_key_switch": True, "new": 1}, {"enable_row_index": False}, {"enable_row_index": None}, None):
        assert shown(cluster, f"{table}{{a}}[#1]", TEXT, control_attributes=nothing) == b'{"a"=1;};\n', nothing
    for wrong, words in ((5, "control_attributes"), ({"enable_range_index": 1}, "enable_range_index")):
        error = read(cluster, table, control_attributes=wrong)
        assert error["code"] == 1 and words in error["message"] and "int64" in error["message"], error


def test_read_table_control_attributes_of_a_query_string(cluster, table):
    query = f"?path={table}[%231]&output_format=json&control_attributes[enable_row_index]=true"
    status, _, body = plain(cluster, "GET", "read_table", query=query)
    assert status == 200 and b'"row_index":1' in body, body


@pytest.fixture
def types(client, home):
    """A row with a value of each type."""
    client.create("table", f"{home}/types")
    raw(client, "write_table", path=f"{home}/types",
        data='{i=-1;u=7u;d=2.0;s=xxxxx;b=%true;n=#;l=[1];a=<x=1>5;"$k"="\u044f"};'.encode())
    return f"{home}/types"


def test_read_table_formats(cluster, types):
    path = f"{types}{{i,u,d,b,n,a}}"
    assert shown(cluster, path, TEXT) == b'{"i"=-1;"u"=7u;"d"=2.;"b"=%true;"n"=#;"a"=<"x"=1;>5;};\n'
    assert shown(cluster, f"{types}{{i,l}}", {"$value": "yson", "$attributes": {"format": "pretty", "sort_keys": True}}) == (
        b'{\n    "i" = -1;\n    "l" = [\n        1;\n    ];\n};\n')
    assert shown(cluster, f"{types}{{i,u}}", {"$value": "yson", "$attributes": {"format": "binary"}}) == b"{\x01\x02i=\x02\x01;\x01\x02u=\x06\x07;};"
    assert shown(cluster, f"{types}{{i,u,d,b,n,s}}", "dsv") == b"i=-1\tu=7\td=2\ts=xxxxx\tb=true\n"
    for accept, expected in ((None, b'{"i"=-1;};\n'), ("*/*", b'{"i"=-1;};\n'), ("application/json", b'{"i":-1}\n'), ("text/odd", b'{"i"=-1;};\n'),
                             ("text/tab-separated-values", b"i=-1\n"), ("text/x-tskv", b"tskv\ti=-1\n"),
                             ("application/x-yt-yson-pretty", b'{\n    "i" = -1;\n};\n')):
        assert plain(cluster, "GET", "read_table", {"path": f"{types}{{i}}"}, **({"Accept": accept} if accept else {}))[2] == expected, accept
    _, headers, _ = plain(cluster, "GET", "read_table", {"path": types, "output_format": "json"})
    assert headers["Content-Type"] == "application/json"
    for format, words in (("odd", ("odd", '"yson", "json", "dsv"')), (5, ("int64",)),
                          ({"$value": "json", "$attributes": {"format": "odd"}}, ("odd", '"pretty"'))):
        error = read(cluster, types, format)
        assert error["code"] == 1 and all(word in error["message"] for word in ("output_format", *words)), error


def test_read_table_options_of_json(cluster, types):
    def row(columns="{i,u,d,s,b,n,l}", **attributes):
        return shown(cluster, types + columns, {"$value": "json", "$attributes": attributes}).decode("latin-1").rstrip("\n")
    assert row() == '{"i":-1,"u":7,"d":2.0,"s":"xxxxx","b":true,"n":null,"l":[1]}' == row(something_new=1)
    assert row(stringify=True) == '{"i":"-1","u":"7","d":"2.0","s":"xxxxx","b":"true","n":null,"l":["1"]}'
    assert row("{i,u,d,b}", annotate_with_types=True) == ",".join((
        '{"i":{"$type":"int64","$value":-1}', '"u":{"$type":"uint64","$value":7}', '"d":{"$type":"double","$value":2.0}',
        '"b":{"$type":"boolean","$value":true}}'))
    assert row("{n,l,s}", annotate_with_types=True) == '{"s":{"$type":"string","$value":"xxxxx"},"n":null,"l":[{"$type":"int64","$value":1}]}'
    assert row("{s}", string_length_limit=2) == '{"s":{"$incomplete":true,"$value":"xx"}}' and row("{s}", string_length_limit=5) == '{"s":"xxxxx"}'
    # Attributes when there are some, always, or never.
    assert row("{i,a}") == row("{i,a}", attributes_mode="on_demand") == '{"i":-1,"a":{"$attributes":{"x":1},"$value":5}}'
    assert row("{i,a}", attributes_mode="never") == '{"i":-1,"a":5}'
    assert '"i":{"$attributes":{},"$value":-1}' in row("{i}", attributes_mode="always")
    # Bytes as code points, or as text; keys that look special.
    assert json.loads(row('{"$k"}').encode("latin-1")) == {"$$k": "\u00d1\u008f"}
    assert json.loads(row('{"$k"}', encode_utf8=False).encode("latin-1")) == {"$$k": "\u044f"}


def test_read_table_what_json_has_no_word_for(cluster, client, types):
    raw(client, "write_table", path=types, data=b"{nan=%nan;inf=%inf;minus=%-inf;large=9007199254740993};")
    def row(**attributes):
        return shown(cluster, types, {"$value": "json", "$attributes": attributes})
    assert row() == b'{"nan":null,"inf":null,"minus":null,"large":9007199254740993}\n'
    assert row(stringify_nan_and_infinity=True) == b'{"nan":"nan","inf":"inf","minus":"-inf","large":9007199254740993}\n'


def test_read_table_an_error_behind_the_first_rows_is_not_an_end(cluster, client, home):
    client.create("table", f"{home}/t")
    raw(client, "write_table", path=f"{home}/t", data=b'{a="%s"};' % (b"x" * 1000) * 5000 + b"{a={}};")
    connection = http.client.HTTPConnection(cluster.address, timeout=180)
    parameters = json.dumps({"path": f"{home}/t", "output_format": "dsv"})
    connection.request("GET", "/api/v4/read_table", headers={"X-YT-Parameters": parameters})
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        connection.getresponse().read()


def test_read_table_what_is_no_table(cluster, client, home, table):
    client.create("file", f"{home}/f")
    for path, code, word in ((f"{home}/nothing", 500, "nothing"), (f"{home}/f", 1, "expected a table"), (f"{table}/x", 500, "cannot have children")):
        with refused(code, word):
            raw(client, "read_table", path=path)
    with refused(1, '"path"'):
        raw(client, "read_table")
    client.link(table, f"{home}/link")
    for path in (f"{home}/link[#3]", f"#{client.get(f'{table}/@id')}[#3]"):
        assert read(cluster, path, unordered=True, table_reader={"window_size": 1}) == [3], path


def test_read_table_in_a_transaction(cluster, client, transaction, table):
    id, inside = transaction
    raw(inside, "write_table", path=table, data=b"{a=9};")
    assert read(cluster, table, transaction_id=id) == [9] and read(cluster, table) == [*range(6)]
    client.abort_transaction(id)
    assert read(cluster, table, transaction_id=id)["code"] == 11000


def test_read_table_who_may(guarded):
    path, reader, stranger = closed(guarded, "table")
    assert list(reader.read_table(path)) == []
    for asked in (path, f"{path}/x"):
        with denied(stranger, "read"):
            raw(stranger, "read_table", path=asked)


def test_read_table_columns_under_other_names(guarded):
    """A column that is closed stays so whatever it is called."""
    root = guarded.client()
    path, reader, _ = closed(guarded, "table")
    root.create("user", attributes={"name": fresh("payer")})
    root.set(f"{path}/@acl/end", {"action": "allow", "subjects": ["root"], "permissions": ["read"], "columns": ["pay"]})
    raw(root, "write_table", path=path, data=b"{name=x;pay=1};")
    for asked in ("<rename_columns={pay=z}>", "<rename_columns={pay=z};columns=[z]>", "<rename_columns={pay=name}>"):
        with refused(901, 'column "pay"'):
            raw(reader, "read_table", path=asked + path)
    assert list(reader.read_table(f"<rename_columns={{name=pay}};columns=[pay]>{path}")) == [{"pay": "x"}]
    left = reader.read_table(f"<rename_columns={{pay=z}}>{path}", omit_inaccessible_columns=True)
    assert list(left) == [{"name": "x"}]
