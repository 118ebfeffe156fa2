"""`alter_table` through the real client."""

import pytest
import yt.yson
from calls import closed, denied, formatted, raw, refused


def column(name, type="int64", key=False, **more):
    return {"name": name, "type": type, **({"sort_order": "ascending"} if key else {}), **more}


def schema(*columns, **attributes):
    return yt.yson.to_yson_type(list(columns), attributes=attributes)


@pytest.fixture
def table(client, home):
    """A row of a table sorted by `k` and `l`."""
    columns = [column("k", key=True, required=True), column("l", key=True), column("v", "string")]
    client.create("table", f"{home}/t", attributes={"schema": columns})
    raw(client, "write_table", path=f"{home}/t", data=b"{k=5;l=1;v=x};")
    return f"{home}/t"


def test_alter_table(client, home):
    client.create("table", f"{home}/t")
    client.alter_table(f"{home}/t", schema=[{"name": "a", "type": "int64"}])
    assert client.get(f"{home}/t/@schema")[0]["name"] == "a"


K, L, V = column("k", key=True, required=True), column("l", key=True), column("v", "string")


def test_alter_table_what_rows_fit(client, table):
    """One after the other: each asks less of rows than the one before."""
    client.alter_table(table, dynamic=False, schema=[K, L, V, column("new", "any")])
    for columns, by in (
            ([K, L, column("new", "any"), V], ["k", "l"]), ([column("k", key=True), L, V, column("new", "any")], ["k", "l"]),
            ([column("k", key=True), column("l"), V, column("new", "any")], ["k"]),
            ([column("k"), column("l"), column("v", "any"), column("new", "any")], [])):
        client.alter_table(table, schema=columns)
        assert [c["name"] for c in client.get(f"{table}/@schema")] == [c["name"] for c in columns]
        assert client.get(f"{table}/@key_columns") == by and client.get(f"{table}/@sorted") == bool(by)
    client.alter_table(table, schema=schema(column("k"), strict=False))
    client.alter_table(table, schema=schema(strict=False))
    assert client.get(f"{table}/@schema_mode") == "weak"
    assert list(client.read_table(table)) == [{"k": 5, "l": 1, "v": "x"}]


def test_alter_table_what_rows_need_not_fit(client, table):
    before = client.get(f"{table}/@schema")
    for columns, words in (
            ([K, L, V, column("new", required=True)], '"new" is new'), ([K, L], '"v" is gone'), ([K, L, column("v")], '"v" has another type'),
            ([K, column("l", key=True, required=True), V], '"l" was not required'), ([L, K, V], "not sorted like that"),
            ([K, L, column("v", "string", key=True)], "not sorted like that"), (schema(K, L, V, unique_keys=True), "keys may be there twice")):
        with refused(1, "need not fit the new schema: .*" + words):
            client.alter_table(table, schema=columns)
    assert client.get(f"{table}/@schema") == before
    client.alter_table(table, schema=schema(K, L, V, strict=False))
    for columns, words in (([K, L, V], "other columns were allowed"),
                           (schema(K, L, V, column("new"), strict=False), '"new" may be there with any type')):
        with refused(1, words):
            client.alter_table(table, schema=columns)
    client.alter_table(table, schema=schema(strict=False))
    with refused(1, "may have any columns"):
        client.alter_table(table, schema=[K, L, V])
    assert list(client.read_table(table)) == [{"k": 5, "l": 1, "v": "x"}]


@pytest.mark.parametrize("narrow, wide", [("int8", "int64"), ("uint16", "uint32"), ("utf8", "string")])
def test_alter_table_wider_types(client, home, narrow, wide):
    client.create("table", f"{home}/t", attributes={"schema": [column("a", narrow)]})
    raw(client, "write_table", path=f"{home}/t", data=b'{a="x"};' if narrow == "utf8" else b"{a=1};")
    client.alter_table(f"{home}/t", schema=[column("a", wide)])


def test_alter_table_schemas_that_are_none(client, home):
    client.create("table", f"{home}/t")
    for odd, words in (
            (5, "expected a list of columns, found int64"), ([5], "column 0: expected a map, found int64"), ([{}], '"name" must be'),
            ([column("")], '"name" must be'), ([{"name": "a"}], 'needs a "type"'),
            ([column("a", "blob")], 'unknown type "blob", expected one of int8'),
            ([column("a"), column("a")], 'column "a" is there twice'), ([column("a", sort_order="odd")], 'must be "ascending", found "odd"'),
            ([column("a"), K], 'key column "k" must stand in front'), (schema(column("a"), unique_keys=True), "needs a key column"),
            (schema(strict=5), '"strict" must be boolean, found int64'), ([column("a", required="yes")], '"required" must be boolean'),
            ([column("a", "any", required=True)], "cannot be required")):
        with refused(1, words) as error:
            client.alter_table(f"{home}/t", schema=odd)
        assert f"{home}/t" in str(error.value)
    assert client.get(f"{home}/t/@schema_mode") == "weak"


def test_alter_table_parameters(client, home, table):
    client.create("file", f"{home}/f")
    for path, code, word in ((f"{home}/nothing", 500, "nothing"), (f"{home}/f", 1, "expected a table"), (home, 1, "expected a table")):
        with refused(code, word):
            client.alter_table(path, schema=[K])
    with refused(1, '"dynamic" must be %false'):
        client.alter_table(table, schema=[K, L, V], dynamic=True)
    with refused(1, '"dynamic" must be boolean, found string "no"'):
        formatted(client, "alter_table", path=table, schema=[K, L, V], dynamic="no")
    with refused(1, '"path"'):
        formatted(client, "alter_table", schema=[K])
    client.link(table, f"{home}/link")
    assert formatted(client, "alter_table", path=f"{home}/link", schema=[K, L, V, column("new")]) == {}
    assert len(client.get(f"{table}/@schema")) == 4


def test_alter_table_rows_of_a_shorter_key(client, table):
    client.alter_table(table, schema=[K, column("l"), V])
    raw(client, "write_table", path=f"<append=%true>{table}", data=b"{k=5;l=0};")
    with refused(1, r"key \[4;\] comes behind \[5;\]"):
        raw(client, "write_table", path=f"<append=%true>{table}", data=b"{k=4;l=0};")
    assert client.get(f"{table}/@row_count") == 2 and client.get(f"{table}/@sorted_by") == ["k"]


def test_alter_table_leaves_the_order(client, home):
    client.create("table", f"{home}/t", attributes={"schema": [column("k")]})
    raw(client, "write_table", path=f"<sorted_by=[k]>{home}/t", data=b"{k=1};{k=2};")
    assert client.get(f"{home}/t/@sorted_by") == ["k"]
    client.alter_table(f"{home}/t", schema=[column("k"), column("new")])
    assert client.get(f"{home}/t/@sorted")


def test_alter_table_in_a_transaction(client, transaction, table):
    id, inside = transaction
    inside.alter_table(table, schema=[K, L, V, column("new")])
    assert (len(inside.get(f"{table}/@schema")), len(client.get(f"{table}/@schema"))) == (4, 3)
    with refused(402, id):
        client.alter_table(table, schema=[K, L, V, column("other")])
    client.abort_transaction(id)
    assert len(client.get(f"{table}/@schema")) == 3


def test_alter_table_a_repeated_mutation(client, table):
    parameters = {"path": table, "schema": [K, L, V, column("new")], "mutation_id": "1-2-8302-1"}
    assert formatted(client, "alter_table", **parameters) == {}
    revision = client.get(f"{table}/@revision")
    assert formatted(client, "alter_table", **parameters, retry=True) == {}
    assert client.get(f"{table}/@revision") == revision


def test_alter_table_who_may(guarded):
    path, *users = closed(guarded, "table")
    for user in users:
        with denied(user, "write"):
            user.alter_table(path, schema=[K])
    assert guarded.client().get(f"{path}/@schema_mode") == "weak"
