"""`write_table` through the real client."""

import gzip
import itertools
import json
import zlib

import pytest
from calls import closed, denied, plain, raw, refused


@pytest.fixture
def table(client, home):
    client.create("table", f"{home}/t")
    raw(client, "write_table", path=f"{home}/t", data=b"{old=1};")
    return f"{home}/t"


def rows(client, path):
    return list(client.read_table(path))


def text(cluster, path):
    """The rows as they are, types and all."""
    return plain(cluster, "GET", "read_table", {"path": path, "output_format": {"$value": "yson", "$attributes": {"format": "text"}}})[2]


def put(cluster, path, body, **parameters):
    """Status and error of a write without the client."""
    status, _, answer = plain(cluster, "PUT", "write_table", {"path": path, **parameters}, body)
    return status, json.loads(answer)


def test_write_table(client, home):
    client.write_table(f"{home}/t", [{"a": 1}])
    client.write_table(f"<append=%true>{home}/t", [{"a": 2}])
    assert client.get(f"{home}/t/@row_count") == 2


def test_write_table_what_is_no_row(cluster, client, table):
    for body, words in ((b"[1;2]", "Row 0 must be a map, found list"), (b"{a=1};#", "Row 1 must be a map, found entity"),
                        (b"{a=1};5", "Row 1 must be a map, found int64"), (b"<x=1>{a=1}", "found a map with attributes"),
                        (b"<table_index=0>#;{a=1}", "found entity"), (b"{a=1};{a=", "Cannot parse row 1 as YSON"),
                        (b"{a=1}{b=1}", "Cannot parse row"), (b"{a=1};;{a=2}", "Cannot parse row 1"), (b"]", "Cannot parse row 0")):
        status, error = put(cluster, table, body)
        assert (status, error["code"]) == (400, 1) and words in error["message"], (body, error)
    for body, words in ((b'{"a":1}[1]', "Row 1 must be a map, found list"), (b'{"a":1}{"a"', "Cannot parse row 1 as JSON"),
                        (b'{"a":1},{"a":2}', "Cannot parse row 1 as JSON"), ('{"a":"\u044f"}'.encode(), "encode_utf8")):
        status, error = put(cluster, table, body, input_format="json")
        assert (status, error["code"]) == (400, 1) and words in error["message"], (body, error)
    assert rows(client, table) == [{"old": 1}], "nothing is half written"


def test_write_table_rows_of_json(cluster, table):
    def written(body, **attributes):
        status, error = put(cluster, table, body, input_format={"$value": "json", "$attributes": attributes})
        assert status == 200, error
        return text(cluster, table)
    assert written(b'{"a":{"$value":5,"$attributes":{"x":1}}}') == b'{"a"=<"x"=1;>5;};\n'
    assert written(b'{"a":{"$type":"uint64","$value":7},"$$k":1}') == b'{"a"=7u;"$k"=1;};\n'
    assert written(b'{"a":9007199254740993,"b":18446744073709551615}') == b'{"a"=9007199254740993;"b"=18446744073709551615u;};\n'
    assert written(b'{"a":null,"b":[true,1.5,{}]}') == b'{"a"=#;"b"=[%true;1.5;{};];};\n'
    # A code point is a byte, unless the strings are said to be text.
    assert written(b'{"a":"\\u00d1\\u008f"}') == written('{"a":"\u044f"}'.encode(), encode_utf8=False) == b'{"a"="\\xD1\\x8F";};\n'
    assert written(b"", something_new=1) == b""


def test_write_table_rows_of_yson(cluster, table):
    """Text and binary in one document, and space anywhere."""
    for body in (b"{\x01\x02a=\x02\x02;b=2u};{a=%true}", b" { a = 1 ; b=2u ; } ;\n{\x01\x02a=\x05};\n"):
        assert put(cluster, table, body)[0] == 200
        assert text(cluster, table) == b'{"a"=1;"b"=2u;};\n{"a"=%true;};\n'
    assert put(cluster, table, b"{a=%nan;b=-inf;c=%-inf;\"\"=<x=#>[]}")[0] == 400
    assert put(cluster, table, b"{a=%nan;c=%-inf;\"\"=<x=#>[]}")[0] == 200
    assert text(cluster, table) == b'{"a"=%nan;"c"=%-inf;""=<"x"=#;>[];};\n'


def test_write_table_dsv_with_a_prefix(cluster, table):
    format = {"$value": "dsv", "$attributes": {"line_prefix": "tskv"}}
    assert put(cluster, table, b"tskv\ta=1\tb=x\\=y\\\\\\0\n", input_format=format)[0] == 200
    assert text(cluster, table) == b'{"a"="1";"b"="x=y\\\\\\0";};\n'
    status, error = put(cluster, table, b"a=1\n", input_format=format)
    assert status == 400 and "line prefix" in error["message"], error


def test_write_table_formats(cluster, client, table):
    for format, word in (("parquet", "parquet"), (5, "int64"), ({"$value": "yson", "$attributes": {"format": "odd"}}, "odd")):
        status, error = put(cluster, table, b"{a=1}", input_format=format)
        assert (status, error["code"]) == (400, 1) and "input_format" in error["message"] and word in error["message"], error
    # The parameter is stronger than the header, and that is stronger than the type of the body.
    for expected, parameters, headers in (
            (b"{a=1}", {}, {}), (b'{"a":1}', {}, {"Content_Type": "application/json"}),
            (b"{a=1}", {}, {"Content_Type": "application/json", "X_YT_Input_Format": '"yson"'}),
            (b'{"a":1}', {"input_format": "json"}, {"X_YT_Input_Format": '"yson"'}),
            (b"a=1\n", {}, {"Content_Type": "text/tab-separated-values"}), (b"tskv\ta=1\n", {}, {"Content_Type": "text/x-tskv"}),
            (b"{a=1}", {}, {"Content_Type": "application/x-www-form-urlencoded"})):
        assert plain(cluster, "PUT", "write_table", {"path": table, **parameters}, expected, **headers)[0] == 200, (expected, headers)
        assert rows(client, table)[0]["a"] in (1, "1")


def test_write_table_encodings(cluster, client, table):
    body = b"{a=1};" * 1000
    for encoding, pack in (("gzip", gzip.compress), ("gzip", zlib.compress), ("deflate", zlib.compress), ("identity", bytes)):
        plain(cluster, "PUT", "write_table", {"path": table}, b"")
        assert plain(cluster, "PUT", "write_table", {"path": table}, pack(body), Content_Encoding=encoding)[0] == 200, encoding
        assert client.get(f"{table}/@row_count") == 1000
    for encoding, wrong, status in (("gzip", gzip.compress(body)[:-9], 400), ("br", b"nonsense", 400), ("lz4", body, 415)):
        assert plain(cluster, "PUT", "write_table", {"path": table}, wrong, Content_Encoding=encoding)[0] == status, encoding
    assert client.get(f"{table}/@row_count") == 1000


def test_write_table_paths(cluster, client, home, table):
    client.create("file", f"{home}/f")
    for path, code, words in ((f"<append=5>{table}", 1, '"append".*boolean, found int64'), (f"{home}/nothing", 500, "nothing"),
                              (f"{home}/f", 1, "of type file, expected a table"), (f"{table}/x", 500, "cannot have children"),
                              (f"<sorted_by=k>{table}", 1, "sorted_by.*list of strings"), (f"<sorted_by=[]>{table}", 1, "sorted_by"),
                              (f"<sorted_by=[5]>{table}", 1, "sorted_by"), (f"<schema=5>{table}", 1, "list of columns, found int64"),
                              (f"<schema=[{{name=a;type=blob}}]>{table}", 1, "unknown type.*blob")):
        with refused(code, words):
            raw(client, "write_table", path=path, data=b"{a=1};")
    with refused(1, '"path"'):
        raw(client, "write_table", data=b"{a=1};")
    assert rows(client, table) == [{"old": 1}]
    for path in (f"<append=%true;optimize_for=scan;compression_codec=lz4;odd=1>{table}", f"<append=true>{table}", f"<append=#>{table}"):
        raw(client, "write_table", path=path, data=b"{a=1};", table_writer={"max_row_weight": 1000})
    assert rows(client, table) == [{"a": 1}], "an entity is as if nothing was said"


@pytest.mark.parametrize("columns", ["[k;k]", '[""]', '[k;""]'])
def test_write_table_sorted_by_strange_columns(client, table, columns):
    with refused(1, "sorted_by"):
        raw(client, "write_table", path=f"<sorted_by={columns}>{table}", data=b"{k=1};")


def test_write_table_sorted_by_a_column_that_is_not_in_the_schema(client, table):
    with refused(1, "sorted by"):
        raw(client, "write_table", path=f"<schema=[{{name=k;type=int64}}];sorted_by=[other]>{table}", data=b"{k=1};")


def test_write_table_the_order_of_keys(client, table):
    """Nothing, then integers, doubles, booleans, strings; of each signedness apart."""
    keys = [b"#", b"-5", b"7", b"0u", b"1.5", b"%false", b"%true", b'""', b"a", b"b"]
    path = f"<sorted_by=[k]>{table}"
    raw(client, "write_table", path=path, data=b"{};" + b"".join(b"{k=%s};" % key for key in keys))
    assert client.get(f"{table}/@sorted_by") == ["k"]
    for first, second in itertools.pairwise(keys):
        with refused(1, "Row 1: the table is sorted, but key"):
            raw(client, "write_table", path=path, data=b"{k=%s};{k=%s};" % (second, first))
    assert client.get(f"{table}/@row_count") == len(keys) + 1


def test_write_table_keys_of_a_schema(client, home):
    table = f"{home}/t"
    columns = [{"name": name, "type": "int64", **({"sort_order": "ascending"} if name in "kl" else {})} for name in "klv"]
    client.create("table", table, attributes={"schema": columns})
    for by in ("[k]", "[k;l]"):
        raw(client, "write_table", path=f"<sorted_by={by}>{table}", data=b"{k=1;l=1};{k=1;l=2};")
        assert client.get(f"{table}/@sorted_by") == ["k", "l"]
    for by in ("[l]", "[k;l;v]", "[v]"):
        with refused(1, "schema of the table says"):
            raw(client, "write_table", path=f"<sorted_by={by}>{table}", data=b"{k=1;l=1};")
    for path, data, words in ((table, b"{k=1;l=2};{k=1;l=1};", "Row 1: the table is sorted, but key"),
                              (f"<append=%true>{table}", b"{k=0;l=9};", r"key \[0;9;\] comes behind \[1;2;\]")):
        with refused(1, words):
            raw(client, "write_table", path=path, data=data)
    raw(client, "write_table", path=f"<append=%true>{table}", data=b"{k=1;l=2};")
    assert [(row["k"], row["l"]) for row in rows(client, table)] == [(1, 1), (1, 2), (1, 2)]


def test_write_table_a_schema_on_the_path(client, table):
    """It becomes the table's with the rows, and only with them."""
    schema = "schema=[{name=a;type=int64;required=%true}]"
    path = f"<{schema}>{table}"
    with refused(1, 'Row 1: column "a": expected an integer'):
        raw(client, "write_table", path=path, data=b"{a=1};{a=x};")
    assert client.get(f"{table}/@schema_mode") == "weak" and rows(client, table) == [{"old": 1}]
    with refused(1, "may have any columns"):
        raw(client, "write_table", path=f"<append=%true;{schema}>{table}", data=b"{a=1};")
    raw(client, "write_table", path=path, data=b"{a=1};")
    assert client.get(f"{table}/@schema_mode") == "strong" and rows(client, table) == [{"a": 1}]
    raw(client, "write_table", path=f"<append=%true;schema=[{{name=a;type=int64}};{{name=b;type=string}}]>{table}", data=b"{b=x};")
    assert [column["name"] for column in client.get(f"{table}/@schema")] == ["a", "b"]
    assert rows(client, table) == [{"a": 1}, {"b": "x"}]
    with refused(1, "another type"):
        raw(client, "write_table", path=f"<append=%true;schema=[{{name=a;type=string}}]>{table}", data=b"{a=x};")


def test_write_table_values_of_a_schema(cluster, client, table):
    """What fits is converted, what does not is refused with its column."""
    for type, value, held in (("int8", b"127u", b"127"), ("uint8", b"255", b"255u"), ("double", b"2", b"2."), ("any", b"<x=1>[1]", b'<"x"=1;>[1;]'),
                              ("json", b'"[1]"', b'"[1]"'), ("date", b"0", b"0u"), ("boolean", b"%true", b"%true"), ("int8", b"#", b"#")):
        raw(client, "write_table", path=f"<schema=[{{name=a;type={type}}}]>{table}", data=b"{a=%s};" % value)
        assert text(cluster, table) == b'{"a"=%s;};\n' % held, type
    for type, value in (("int8", b"128"), ("uint8", b"-1"), ("uint8", b"256"), ("int64", b"1.0"), ("double", b"x"), ("utf8", b'"\xff"'),
                        ("json", b'"{"'), ("uuid", b"short"), ("boolean", b"1"), ("string", b"1"), ("null", b"1"), ("float", b"1e300")):
        with refused(1, 'Row 0: column "a": expected'):
            raw(client, "write_table", path=f"<schema=[{{name=a;type={type}}}]>{table}", data=b"{a=%s};" % value)


def test_write_table_conflicts(client, transaction, table):
    id, inside = transaction
    raw(inside, "write_table", path=table, data=b"{new=1};")
    for path in (table, f"<append=%true>{table}"):
        with refused(402, id):
            raw(client, "write_table", path=path, data=b"{other=1};")
    client.commit_transaction(id)
    assert rows(client, table) == [{"new": 1}]
    with refused(11000, id):
        raw(inside, "write_table", path=table, data=b"{other=1};")


def test_write_table_methods(cluster, client, table):
    assert plain(cluster, "POST", "write_table", {"path": table}, b"{new=1}")[::2] == (200, b"{}")
    assert rows(client, table) == [{"new": 1}]
    status, headers, _ = plain(cluster, "GET", "write_table", {"path": table})
    assert (status, headers["Allow"]) == (405, "POST, PUT")


def test_write_table_who_may(guarded):
    path, *users = closed(guarded, "table")
    for user in users:
        with denied(user, "write"):
            raw(user, "write_table", path=path, data=b"{a=1};")
    assert guarded.client().get(f"{path}/@row_count") == 0
