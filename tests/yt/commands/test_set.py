"""`set` through the real client."""

import pytest
import yt.yson
from calls import formatted, fresh, inside, known_by, raw, told
from harness import cluster as make_cluster
from yt.yson import YsonUint64, to_yson_type


def put(client, data, **parameters):
    return raw(client, "set", data=data, input_format="yson", **parameters)


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


def test_set(client, home):
    client.set(f"{home}/@x", [1, "two"])
    assert client.get(f"{home}/@x") == [1, "two"]


@pytest.mark.parametrize("value, kind", [
    (-5, "int64_node"), (YsonUint64(5), "uint64_node"), (2.0, "double_node"), (True, "boolean_node"), ("s", "string_node"),
    ([1, {"k": []}], "list_node"), ({"a": {"b": [1]}}, "map_node")], ids=lambda x: x if isinstance(x, str) else "")
def test_set_kind_by_the_value(client, home, value, kind):
    client.set(f"{home}/n", value)
    assert client.get(f"{home}/n/@type") == kind and client.get(f"{home}/n") == value


def test_set_nothing_is_the_answer(client, home):
    assert put(client, b"1", path=f"{home}/n") == {}


@pytest.mark.parametrize("before, now, expected, found", [
    (1, "s", "int64", "string"), (1, 2.0, "int64", "double"), (1, YsonUint64(2**63), "int64", "uint64"),
    (YsonUint64(1), -1, "uint64", "int64"), (YsonUint64(1), 1.0, "uint64", "double"), (1.0, "s", "double", "string"),
    (True, 1, "boolean", "int64"), ("s", None, "string", "entity"), ("s", 1, "string", "int64"), (1, {}, "int64", "map"),
    ([1], {"a": 1}, "list", "map"), ([1], 1, "list", "int64"), ({"a": 1}, [1], "map", "list"), ({"a": 1}, 1, "map", "int64"),
], ids=range(14))
def test_set_the_type_must_match(client, home, before, now, expected, found):
    client.set(f"{home}/n", before)
    for force in (False, True):
        with told(1, f"expected {expected}", f"found {found}", f"{home}/n") as error:
            client.set(f"{home}/n", now, force=force)
        attributes = error.value.error["attributes"]
        assert (attributes["expected_type"], attributes["actual_type"]) == (expected, found)
    assert client.get(f"{home}/n") == before


@pytest.mark.parametrize("before, now", [
    (1, YsonUint64(7)), (YsonUint64(1), 7), (1.0, 7), (1.0, -7), (1.0, YsonUint64(7))], ids=range(5))
def test_set_numbers_are_converted_in_range(client, home, before, now):
    client.set(f"{home}/n", before)
    kind = type(client.get(f"{home}/n"))
    client.set(f"{home}/n", now)
    assert client.get(f"{home}/n") == kind(int(now)) and type(client.get(f"{home}/n")) is kind


def test_set_a_map_is_replaced_by_force_alone(client, home):
    client.set(f"{home}/m", {"a": 1, "b": 2})
    id = client.get(f"{home}/m/@id")
    with told(1, f"{home}/m", '"force"'):
        client.set(f"{home}/m", {"c": 3})
    assert client.get(f"{home}/m") == {"a": 1, "b": 2}
    client.set(f"{home}/m", {"c": 3}, force=True)
    assert client.get(f"{home}/m") == {"c": 3} and client.get(f"{home}/m/@id") == id


def test_set_lists_and_documents_are_replaced(client, home):
    client.set(f"{home}/l", [1, 2])
    client.create("document", f"{home}/d", attributes={"value": {"a": 1}})
    ids = [client.get(f"{home}/{name}/@id") for name in "ld"]
    client.set(f"{home}/l", [{"k": 3}])
    for value in (5, None, [1, {"k": None}], "s", {"b": 2}):
        client.set(f"{home}/d", value)
        assert client.get(f"{home}/d") == value or value is None
    assert client.get(f"{home}/l") == [{"k": 3}] and [client.get(f"{home}/{name}/@id") for name in "ld"] == ids
    assert client.get(f"{home}/d/@type") == "document"


def test_set_what_holds_no_value(client, home):
    client.create("table", f"{home}/t")
    client.set(f"{home}/n", 1)
    client.link(f"{home}/n", f"{home}/l")
    for path, kind in (("t", "table"), ("l&", "link")):
        with told(1, '"set" is not supported', kind):
            client.set(f"{home}/{path}", 1)
    for path in ("t/x", "n/x", "n/x/y"):
        with told(500, "cannot have children"):
            client.set(f"{home}/{path}", 1, recursive=True)
    client.set(f"{home}/l", 2)
    assert client.get(f"{home}/n") == 2 and client.get(f"{home}/l&/@type") == "link"


def test_set_an_entity_is_no_node(client, home):
    for value in (None, {"a": 1, "b": None}, [None]):
        with told(1, "entity", "document"):
            client.set(f"{home}/n", value)
    assert client.list(home) == []


def test_set_missing_parents(client, home):
    with told(500, '"a"', home):
        client.set(f"{home}/a/b/c", 1)
    assert client.list(home) == []
    client.set(f"{home}/a/b/c", 1, recursive=True)
    assert client.get(home) == {"a": {"b": {"c": 1}}}


def test_set_attributes_of_the_value(client, home):
    value = to_yson_type({"k": to_yson_type(5, attributes={"inner": 1})}, attributes={"outer": [2]})
    client.set(f"{home}/m", value)
    assert client.get(f"{home}/m", attributes=["inner", "outer"]) == value
    client.set(f"{home}/m/k", to_yson_type(6, attributes={"more": 1}))
    assert client.get(f"{home}/m/k/@user_attributes") == {"inner": 1, "more": 1}


def test_set_bad_attributes_of_the_value(client, home):
    client.set(f"{home}/n", 5)
    bad = to_yson_type(6, attributes={"good": 1, "id": "1-2-3-4"})
    for value, path in ((bad, "n"), (bad, "new"), ({"a": 1, "k": bad}, "map")):
        with told(1, '"id"', "cannot be changed"):
            client.set(f"{home}/{path}", value)
    assert client.get(home) == {"n": 5} and not client.exists(f"{home}/n/@good")


# --- lists

def test_set_places_in_lists(client, home):
    client.set(f"{home}/l", [1, 2])
    for place, value in (("end", 3), ("begin", 0), ("before:1", "b"), ("after:-1", "a"), ("0", -1), ("before:-1", {"k": 1})):
        client.set(f"{home}/l/{place}", value)
    assert client.get(f"{home}/l") == [-1, "b", 1, 2, 3, {"k": 1}, "a"] and client.get(f"{home}/l/@count") == 7
    client.set(f"{home}/l/-2/n", 2)
    assert client.get(f"{home}/l/5") == {"k": 1, "n": 2} and client.get(f"{home}/l/5/@path") == f"{home}/l/5"


@pytest.mark.parametrize("place", ["7", "-8", "before:7", "after:-8", "word", "01"])
def test_set_no_place_in_a_list(client, home, place):
    client.set(f"{home}/l", [1])
    with told(500, f"{home}/l", "has no child with index", "1 items"):
        client.set(f"{home}/l/{place}", 2)
    assert client.get(f"{home}/l") == [1]


def test_set_words_of_lists_are_keys_of_maps(client, home):
    for name in ("begin", "end", "before:1", "0", "-1"):
        client.set(f"{home}/{name}", 1)
    assert set(client.list(home)) == {"begin", "end", "before:1", "0", "-1"}


# --- attributes

def test_set_inside_of_attributes(client, home):
    client.set(f"{home}/@a", {"x": {"y": 1}, "l": [1]})
    client.set(f"{home}/@a/x/new", 2)
    client.set(f"{home}/@a/l/end", 2)
    client.set(f"{home}/@a/l/begin", 0)
    client.set(f"{home}/@a/l/-1", 3)
    assert client.get(f"{home}/@a") == {"x": {"y": 1, "new": 2}, "l": [0, 1, 3]}
    for path, word in (("a/q/new", '"q"'), ("none/new", '"none"'), ("a/x/y/z", "cannot have children"), ("a/l/9", "index 9")):
        with told(500, word):
            client.set(f"{home}/@{path}", 2)
    assert client.get(f"{home}/@a") == {"x": {"y": 1, "new": 2}, "l": [0, 1, 3]} and not client.exists(f"{home}/@none")


def test_set_all_attributes(client, home):
    client.set(f"{home}/@before", 1)
    client.set(f"{home}/@", {"a": 1, "opaque": True})
    assert client.get(f"{home}/@user_attributes") == {"a": 1} and client.get(f"{home}/@opaque")
    for value, words in ((5, ["expected map", "int64"]), ({"b": 1, "id": "x"}, ['"id"', "cannot be changed"])):
        with told(1, *words):
            client.set(f"{home}/@", value)
    assert client.get(f"{home}/@user_attributes") == {"a": 1}


@pytest.mark.parametrize("name", [
    "id", "type", "path", "key", "parent_id", "creation_time", "revision", "count", "locks", "lock_count", "ref_counter",
    "resource_usage", "effective_acl", "user_attributes", "builtin", "type/below", "locks/end"])
def test_set_attributes_of_the_system(client, home, name):
    with told(1, f'"{name.split("/")[0]}"', "cannot be changed", home):
        client.set(f"{home}/@{name}", 1)


@pytest.mark.parametrize("name, value, code, words", [
    ("owner", 5, 1, ["expected string", "int64"]), ("owner", "nobody-here", 907, ['"owner"', "nobody-here"]),
    ("account", 5, 1, ["expected string", "int64"]), ("account", "none-such", 905, ['"account"', "none-such"]),
    ("inherit_acl", "yes", 1, ["expected boolean", "string"]), ("opaque", 1, 1, ["expected boolean", "int64"]),
    ("acl", 5, 1, ["acl", "expected list", "int64"]), ("acl", [5], 1, ["acl", "map"]),
    ("acl", [{"action": "allow", "subjects": ["root"], "permissions": ["fly"]}], 1, ["permission", '"fly"', "read", "write"]),
    ("acl", [{"action": "shrug", "subjects": ["root"], "permissions": ["read"]}], 1, ["action", '"shrug"', "allow", "deny"]),
    ("acl", [{"action": "allow", "subjects": ["nobody-here"], "permissions": ["read"]}], 907, ["nobody-here"]),
    ("acl/end", {"action": "allow"}, 1, ["acl"]),
], ids=range(12))
def test_set_bad_values_of_settable_attributes(client, home, name, value, code, words):
    before = client.get(f"{home}/@{name.split('/')[0]}")
    with told(code, *words):
        client.set(f"{home}/@{name}", value)
    assert client.get(f"{home}/@{name.split('/')[0]}") == before


def test_set_settable_attributes(client, home, user):
    entry = {"action": "allow", "subjects": [user], "permissions": ["read"], "inheritance_mode": "object_only"}
    client.set(f"{home}/@owner", user)
    client.set(f"{home}/@account", "sys")
    client.set(f"{home}/@inherit_acl", False)
    client.set(f"{home}/@acl/end", entry)
    client.set(f"{home}/@acl/end", {**entry, "action": "deny"})
    assert client.get(f"{home}/@acl") == [entry, {**entry, "action": "deny"}]
    assert client.get(f"{home}/@", attributes=["owner", "account", "inherit_acl"]) == {
        "owner": user, "account": "sys", "inherit_acl": False}
    client.set(f"{home}/@inherit_acl", True)


def test_set_value_as_an_attribute(client, home):
    client.set(f"{home}/n", 5)
    client.create("document", f"{home}/d", attributes={"value": {"a": 1}})
    client.set(f"{home}/n/@value", 6)
    client.set(f"{home}/d/@value/b", 2)
    assert client.get(f"{home}/n") == 6 and client.get(f"{home}/d") == {"a": 1, "b": 2}
    with told(1, "expected int64", "string"):
        client.set(f"{home}/n/@value", "s")


def test_set_attributes_of_links(client, home):
    client.set(f"{home}/n", 1)
    client.link(f"{home}/n", f"{home}/l")
    client.set(f"{home}/l/@of", "target")
    client.set(f"{home}/l&/@of", "link")
    assert (client.get(f"{home}/n/@of"), client.get(f"{home}/l&/@of")) == ("target", "link")


# --- documents

def test_set_inside_of_documents(client, home):
    client.create("document", f"{home}/d", attributes={"value": {"a": {"b": 1}, "l": [1]}})
    client.set(f"{home}/d/a/c", to_yson_type({"v": 2}, attributes={"q": 3}))
    client.set(f"{home}/d/a/c/@q", 4)
    client.set(f"{home}/d/l/end", {"k": None})
    assert client.get(f"{home}/d/a/c") == to_yson_type({"v": 2}, attributes={"q": 4}) and client.get(f"{home}/d/l/1").keys() == {"k"}
    for path, word in (("x/y", '"x"'), ("a/b/c", "cannot have children"), ("l/7", "index 7")):
        with told(500, word):
            client.set(f"{home}/d/{path}", 1)
    client.set(f"{home}/d/x/y", 1, recursive=True)
    assert client.get(f"{home}/d/x") == {"y": 1} and client.list(home) == ["d"]


# --- how much

def test_set_long_names(client, home):
    with told(505, "4097", "4096") as error:
        client.set(f"{home}/m", {"k" * 4097: 1})
    assert error.value.error["attributes"]["limit"] == 4096
    with told(1, "4097", "4096"):
        client.set(f"{home}/@{'k' * 4097}", 1)
    with told(1, "empty"):
        client.set(f"{home}/m", {"": 1})
    assert client.list(home) == []


def test_set_long_strings(client, home):
    client.set(f"{home}/s", "y" * 65536)
    with told(503, f"{home}/t", "65537", "65536"):
        client.set(f"{home}/t", "y" * 65537)
    with told(503, f"{home}/s"):
        client.set(f"{home}/s", "y" * 65537)
    client.create("document", f"{home}/d", attributes={"value": "y" * 65537})
    with told(504, f"{home}/@big", "limit"):
        client.set(f"{home}/@big", "z" * (16 << 20))
    assert client.get(f"{home}/s") == "y" * 65536 and client.list(home) == ["d", "s"] and not client.exists(f"{home}/@big")


def test_set_many_children():
    with make_cluster(nodes=0, server_config="max_nodes_per_request = 100000") as cluster:
        client = cluster.client()
        for value in ({str(n): 1 for n in range(50001)}, [1] * 50001):
            with told(502, "//tmp/m", "50001", "50000"):
                client.set("//tmp/m", value)
        assert client.list("//tmp") == []


def test_set_deep_values(client, home):
    client.set(f"{home}/@deep", nested(128))
    client.create("document", f"{home}/d")
    client.set(f"{home}/d", nested(128))
    assert client.get(f"{home}/@deep") == client.get(f"{home}/d") == nested(128)
    for path, depth, words in (("@deep", 129, ["129", "128"]), ("d", 129, ["129", "128"]), ("d", 257, ["256 levels"]),
                               ("nodes", 70, ["Depth", "64"])):
        with told(1, *words):
            client.set(f"{home}/{path}", nested(depth))
    assert client.list(home) == ["d"] and client.get(f"{home}/d") == nested(128)


# --- what comes in

@pytest.mark.parametrize("data, words", [
    (b"", ["expected a value"]), (b"{a=", ["expected a value"]), (b"1;2", ["expected end of input"]), (b"[1", ["offset"]),
    (b"<a=1>", ["expected a value"]), (b'"a', ["offset"]), (b"%maybe", ["offset"]), (b"99999999999999999999", ["offset"]),
], ids=range(8))
def test_set_what_is_no_value(client, home, data, words):
    with told(1, 'input of "set"', *words):
        put(client, data, path=f"{home}/n")
    assert client.list(home) == []


def test_set_odd_values(client, home):
    put(client, b" { a = 1 ; a = 2 ; } ", path=f"{home}/twice")
    put(client, b'{"x"=%nan;"y"=%-inf;"z"=-0.;}', path=f"{home}/@odd")
    put(client, rb'"\x00\xff\n\101"', path=f"{home}/bytes")
    assert client.get(f"{home}/twice") == {"a": 2}
    odd = client.get(f"{home}/@odd")
    assert odd["x"] != odd["x"] and odd["y"] == float("-inf") and str(odd["z"]).startswith("-0")
    assert yt.yson.get_bytes(client.get(f"{home}/bytes")) == b"\0\xff\nA"


def test_set_json(client, home):
    raw(client, "set", data=b'{"a":{"$value":5,"$attributes":{"x":1}},"$$k":null}', path=f"{home}/@j", input_format="json")
    value = client.get(f"{home}/@j")
    assert value["a"] == to_yson_type(5, attributes={"x": 1}) and "$k" in value


@pytest.mark.parametrize("parameters, words", [
    ({}, ['"path"', "Missing"]),
    ({"path": "//tmp/x", "recursive": "yes"}, ['"recursive"', "boolean", '"yes"']),
    ({"path": "//tmp/x", "force": 1}, ['"force"', "boolean", "int64 1"]),
    ({"path": "//tmp/x", "mutation_id": "x"}, ['"mutation_id"', '"x"']),
    ({"path": "//tmp/@*"}, ["/@*", "no meaning"]),
])
def test_set_bad_parameters(client, parameters, words):
    with told(1, *words):
        put(client, b"1", **parameters)


def test_set_what_the_system_stands_on(client):
    for path in ("/", "//sys", "//sys/scheduler"):
        with told(1, "part of the system"):
            client.set(path, {}, force=True)
    for path in ("//sys/transactions/x", "//sys/locks/x"):
        with told(1, "cannot be changed"):
            client.set(path, 1)
    assert client.exists("//sys/scheduler/orchid")


@pytest.mark.parametrize("kind", ["users", "groups", "accounts"])
def test_set_no_node_is_a_user(client, kind):
    path = f"//sys/{kind}/{fresh('odd')}"
    try:
        with told(1, kind):
            client.set(path, 5)
    finally:
        client.remove(path, force=True)


# --- transactions, repetition

def test_set_in_a_transaction(client, home):
    client.set(f"{home}/n", 1)
    id, within = inside(client)
    within.set(f"{home}/n", 2)
    within.set(f"{home}/m", {"k": 1})
    within.set(f"{home}/@a", 1)
    assert client.get(home) == {"n": 1} and not client.exists(f"{home}/@a")
    for path in ("n", "m", "@a"):
        with told(402, id):
            client.set(f"{home}/{path}", 3)
    client.set(f"{home}/other", 4)
    client.set(f"{home}/@b", 4)
    client.commit_transaction(id)
    assert client.get(home) == {"n": 2, "m": {"k": 1}, "other": 4} and client.get(f"{home}/@a") == 1


def test_set_repeated_is_done_once(client, home):
    mutation = dict(path=f"{home}/l/end", mutation_id=fresh("7-7-7").replace("7-7-7", "7-7-7a"))
    client.set(f"{home}/l", [])
    for retry in (False, True, True):
        put(client, b"1", **mutation, retry=retry)
    assert client.get(f"{home}/l") == [1]


def test_set_repeated_is_refused_as_before(client, home):
    mutation = dict(path=f"{home}/a/b", mutation_id=fresh("7-7-7").replace("7-7-7", "7-7-7b"))
    for retry in (False, True):
        with told(500, '"a"'):
            put(client, b"1", **mutation, retry=retry)
        client.create("map_node", f"{home}/a", ignore_existing=True)
    assert client.get(f"{home}/a") == {}


def test_set_only_while_a_transaction_lives(client, home):
    ended = client.start_transaction()
    client.abort_transaction(ended)
    with told(1000, ended):
        put(client, b"1", path=f"{home}/n", prerequisite_transaction_ids=[ended])
    assert not client.exists(f"{home}/n")


def test_set_in_a_batch(client, home):
    items = [("set", {"path": f"{home}/a"}, 5), ("set", {"path": f"{home}/b/c"}, 5), ("get", {"path": f"{home}/a"}, None),
             ("set", {"path": f"{home}/none"}, None), ("set", {"path": f"{home}/@x"}, {"k": 1})]
    requests = [{"command": command, "parameters": parameters, **({} if value is None else {"input": value})}
                for command, parameters, value in items]
    results = formatted(client, "execute_batch", requests=requests, concurrency=1)["results"]
    assert results[0] == results[4] == {"output": {}} and results[2] == {"output": {"value": 5}}
    assert results[1]["error"]["code"] == 500 and "input" in results[3]["error"]["message"]
    assert client.get(home) == {"a": 5} and client.get(f"{home}/@x") == {"k": 1}


def test_set_who_may(guarded):
    root, name = known_by(guarded, guarded.token), fresh("user")
    root.create("user", attributes={"name": name})
    entry = {"action": "allow", "subjects": [name], "permissions": ["read", "write"]}
    root.create("map_node", f"//tmp/{name}", attributes={"inherit_acl": False, "acl": [entry]})
    root.set(f"//tmp/{name}/n", 1)
    other = known_by(guarded, root.issue_token(name))
    other.set(f"//tmp/{name}/n", 2)
    other.set(f"//tmp/{name}/@x", 2)
    with told(901, name, "administer"):
        other.set(f"//tmp/{name}/@acl", [])
    with told(901, name, "write"):
        other.set("//sys/@x", 1)
    root.set(f"//tmp/{name}/@acl", [{**entry, "permissions": ["read"]}])
    for path in ("n", "new", "@x", "n/@y"):
        with told(901, name):
            other.set(f"//tmp/{name}/{path}", 3)
    assert root.get(f"//tmp/{name}") == {"n": 2} and root.get(f"//tmp/{name}/@x") == 2


@pytest.mark.parametrize("name, wrong, right", [
    ("compression_codec", {"a": 1}, "lz4"), ("erasure_codec", 5, "none"), ("optimize_for", None, "scan"),
    ("replication_factor", "x", 2), ("replication_factor", 0, 1), ("replication_factor", 1.5, 3),
])
def test_set_how_tables_are_kept(client, home, name, wrong, right):
    """Nothing follows from it here, but what scripts set they find again, and not what has no meaning."""
    client.create("table", f"{home}/t", attributes={name: right})
    with told(1, f"@{name}", "expected"):
        client.set(f"{home}/t/@{name}", wrong)
    with told(1, f"@{name}", "expected"):
        client.create("table", f"{home}/wrong", attributes={name: wrong})
    assert client.get(f"{home}/t/@{name}") == right and not client.exists(f"{home}/wrong")
    assert name not in client.get(f"{home}/t/@user_attribute_keys") and name not in client.get(f"{home}/t/@user_attributes")
    client.set(f"{home}/@{name}", wrong)
    assert client.get(f"{home}/@user_attribute_keys") == [name], "a map has no such attribute of its own"


def test_set_transparent_what_cannot_be(client, home):
    client.create("document", f"{home}/d", attributes={"opaque": True})
    with told(1, f"{home}/d", "document"):
        client.set(f"{home}/d/@opaque", False)
    client.set(f"{home}/@opaque", True)
    client.set(f"{home}/@opaque", False)
    assert not client.get(f"{home}/@opaque") and client.get(f"{home}/d/@opaque")


@pytest.mark.parametrize("name", ["cluster_name", "primary_cell_tag"])
def test_set_what_the_cluster_is(client, name):
    before = client.get(f"//sys/@{name}")
    for change in (lambda: client.set(f"//sys/@{name}", "other"), lambda: client.remove(f"//sys/@{name}")):
        with told(1, f'"{name}"', "system attribute"):
            change()
    client.set("//sys/@remark", 1)
    client.remove("//sys/@*")
    assert client.get(f"//sys/@{name}") == before and not client.exists("//sys/@remark")
    assert name in client.get("//sys/@") and name not in client.get("//sys/@user_attribute_keys")
