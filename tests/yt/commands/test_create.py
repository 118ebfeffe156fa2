"""`create` through the real client."""

import pytest
import yt.yson
from calls import formatted, fresh, inside, known_by, told


def test_create(client, home):
    id = client.create("document", f"{home}/a/b", recursive=True, attributes={"value": 5})
    assert client.get(f"{home}/a/b") == 5 and client.get(f"#{id}/@path") == f"{home}/a/b"


@pytest.mark.parametrize("kind, value", [
    ("map_node", {}), ("list_node", []), ("string_node", ""), ("int64_node", 0), ("uint64_node", 0), ("double_node", 0.0),
    ("boolean_node", False)])
def test_create_empty(client, home, kind, value):
    assert formatted(client, "create", type=kind, path=f"{home}/n").keys() == {"node_id"}
    assert client.get(f"{home}/n/@type") == kind and client.get(f"{home}/n") == value


@pytest.mark.parametrize("kind", ["document", "file", "table"])
def test_create_empty_opaque(client, home, kind):
    client.create(kind, f"{home}/n")
    assert client.get(f"{home}/n/@type") == kind and isinstance(client.get(f"{home}/n"), yt.yson.YsonEntity)


def test_create_with_attributes(client, home, user):
    acl = [{"action": "allow", "subjects": [user], "permissions": ["read"], "inheritance_mode": "object_and_descendants"}]
    special = {"acl": acl, "inherit_acl": False, "account": "sys", "opaque": True, "owner": user}
    client.create("int64_node", f"{home}/n", attributes={"value": 7, "mine": 1, **special})
    assert client.get(f"{home}/n") == 7 and client.get(f"{home}/n/@", attributes=list(special)) == special
    assert client.get(f"{home}/n/@user_attributes") == {"mine": 1}
    client.create("table", f"{home}/t", attributes={"schema": [{"name": "k", "type": "int64", "sort_order": "ascending"}]})
    assert client.get(f"{home}/t/@sorted_by") == ["k"]
    client.create("link", f"{home}/l", attributes={"target_path": f"{home}/n"})
    assert client.get(f"{home}/l") == 7


def test_create_owner_and_account(client, home):
    client.set(f"{home}/@account", "sys")
    client.create("map_node", f"{home}/n")
    assert client.get(f"{home}/n/@owner") == "root" and client.get(f"{home}/n/@account") == "sys"


@pytest.mark.parametrize("kind, attributes, code, words", [
    ("map_node", {"id": "1-2-3-4"}, 1, ['"id"', "cannot be changed"]), ("map_node", {"": 1}, 1, ["empty"]),
    ("map_node", {"acl": 5}, 1, ["acl", "list", "int64"]), ("map_node", {"account": "none-such"}, 905, ["none-such"]),
    ("map_node", {"opaque": "x"}, 1, ["opaque", "boolean", "string"]), ("int64_node", {"value": "x"}, 1, ["int64", "string"]),
    ("table", {"schema": 5}, 1, ["schema", "list", "int64"]), ("file", {"executable": 5}, 1, ["executable", "boolean", "int64"]),
    ("table", {"schema": [{"name": "a", "type": "inte"}]}, 1, ["inte", "int64"]), ("table", {"row_count": 5}, 1, ['"row_count"']),
    ("file", {"md5": "x"}, 1, ['"md5"']), ("string_node", {"value": "x" * 65537}, 503, ["65537"]), ("link", {}, 1, ["target_path"]),
    ("link", {"target_path": "a"}, 1, ["target_path", "`/` or `#`"]),
], ids=range(14))
def test_create_bad_attributes(client, home, kind, attributes, code, words):
    """Nothing is made, no parents either."""
    with told(code, *words):
        client.create(kind, f"{home}/a/n", attributes={"good": 1, **attributes}, recursive=True)
    assert client.list(home) == []


@pytest.mark.parametrize("kind", ["nonsense", "transaction", "lock", "", "Map_node"])
def test_create_unknown_kinds(client, home, kind):
    with told(1, f'"{kind}"', "map_node", "table", "document"):
        client.create(kind, f"{home}/n")
    assert client.list(home) == []


def test_create_missing_parents(client, home):
    with told(500, '"a"', home):
        client.create("map_node", f"{home}/a/b")
    assert client.list(home) == []
    client.set(f"{home}/n", 1)
    client.create("document", f"{home}/d", attributes={"value": {}})
    for path in ("n/x", "n/x/y", "d/x"):
        with told(500, "cannot have children"):
            client.create("map_node", f"{home}/{path}", recursive=True)


def test_create_what_is_there(client, home):
    client.create("map_node", f"{home}/m", attributes={"old": 1})
    client.set(f"{home}/m/k", 1)
    id = client.get(f"{home}/m/@id")
    for options in ({}, {"ignore_type_mismatch": True}, {"recursive": True}):
        with told(501, f"{home}/m", "already exists"):
            client.create("map_node", f"{home}/m", attributes={"new": 1}, **options)
    assert client.create("map_node", f"{home}/m", ignore_existing=True, attributes={"new": 1, "id": "bad"}) == id
    with told(501, f"{home}/m") as error:
        client.create("table", f"{home}/m", ignore_existing=True)
    attributes = error.value.error["attributes"]
    assert (attributes["existing_type"], attributes["requested_type"]) == ("map_node", "table")
    assert client.create("table", f"{home}/m", ignore_existing=True, ignore_type_mismatch=True) == id
    with told(1, '"ignore_existing"', '"force"'):
        client.create("map_node", f"{home}/m", ignore_existing=True, force=True)
    assert client.get(f"{home}/m") == {"k": 1} and client.get(f"{home}/m/@user_attributes") == {"old": 1}


def test_create_by_force(client, home):
    client.set(f"{home}/m", {"k": {"l": 1}})
    client.set(f"{home}/m/@old", 1)
    before = client.get(f"{home}/m/@id")
    with told(1, "cannot be changed"):
        client.create("table", f"{home}/m", force=True, attributes={"id": "x"})
    assert client.get(f"{home}/m/@id") == before and client.get(f"{home}/m") == {"k": {"l": 1}}
    id = client.create("table", f"{home}/m", force=True)
    assert id != before and not client.exists(f"#{before}") and client.get(f"{home}/m/@type") == "table"
    assert client.get(f"{home}/m/@user_attributes") == {}
    assert client.create("table", f"{home}/new", force=True) == client.get(f"{home}/new/@id")


def test_create_through_links(client, home):
    client.create("map_node", f"{home}/m")
    client.link(f"{home}/m", f"{home}/l")
    client.create("map_node", f"{home}/l/below")
    assert client.list(f"{home}/m") == ["below"]
    with told(501, f"{home}/l"):
        client.create("map_node", f"{home}/l")
    assert client.create("map_node", f"{home}/l", ignore_existing=True) == client.get(f"{home}/m/@id")
    client.create("map_node", f"{home}/l", force=True)
    assert client.get(f"{home}/l&/@type") == "map_node" and client.list(f"{home}/m") == ["below"]


def test_create_in_lists(client, home):
    client.create("list_node", f"{home}/l")
    for place, value in (("end", 2), ("begin", 1), ("before:0", 0), ("after:-1", 3)):
        client.create("int64_node", f"{home}/l/{place}", attributes={"value": value})
    client.create("map_node", f"{home}/l/end/deep", recursive=True)
    assert client.get(f"{home}/l") == [0, 1, 2, 3, {"deep": {}}]
    for place, code in (("0", 501), ("9", 500), ("word", 500), ("before:9", 500)):
        with told(code, f"{home}/l"):
            client.create("map_node", f"{home}/l/{place}")
    assert client.get(f"{home}/l/@count") == 5


def test_create_by_id_of_the_parent(client, home):
    client.create("map_node", f"#{client.get(f'{home}/@id')}/n")
    assert client.list(home) == ["n"]


def test_create_too_deep(client, home):
    with told(1, "Depth", "64"):
        client.create("map_node", home + "/d" * 64, recursive=True)
    assert client.list(home) == []


@pytest.mark.parametrize("parameters, words", [
    ({"type": "map_node"}, ['"path"', "map_node"]), ({"path": "//tmp/x"}, ['"type"', "Missing"]),
    ({"type": 5, "path": "//tmp/x"}, ['"type"', "string", "int64"]),
    ({"type": "map_node", "path": "//tmp/x", "attributes": [1]}, ['"attributes"', "map", "list"]),
    ({"type": "map_node", "path": "//tmp/x", "recursive": "yes"}, ['"recursive"', "boolean", '"yes"']),
    ({"type": "map_node", "path": "//tmp/x", "ignore_existing": 1}, ['"ignore_existing"', "boolean"]),
    ({"type": "map_node", "path": "//tmp//x"}, ['"path"', "offset"]),
], ids=range(7))
def test_create_bad_parameters(client, parameters, words):
    with told(1, *words):
        formatted(client, "create", **parameters)
    assert not client.exists("//tmp/x")


@pytest.mark.parametrize("path", ["@x", "*"])
def test_create_of_what_is_no_node(client, home, path):
    with told(1, path[0]):
        client.create("map_node", f"{home}/{path}")


# --- objects

def test_create_objects(client):
    for kind in ("user", "group", "account"):
        name = fresh(kind)
        made = formatted(client, "create", type=kind, attributes={"name": name, "mine": 1})
        assert made == {"object_id": client.get(f"//sys/{kind}s/{name}/@id")}
        assert client.get(f"//sys/{kind}s/{name}/@", attributes=["name", "type", "mine"]) == {"name": name, "type": kind, "mine": 1}
        with told(501, name):
            client.create(kind, attributes={"name": name})
        assert formatted(client, "create", type=kind, attributes={"name": name}, ignore_existing=True) == made


@pytest.mark.parametrize("kind", ["user", "group", "account"])
@pytest.mark.parametrize("attributes", [{}, {"name": ""}, {"name": 5}, {"name": None}], ids=range(4))
def test_create_objects_without_names(client, kind, attributes):
    with told(1, '"name"', kind):
        client.create(kind, attributes=attributes)


def test_create_users_and_groups_share_names(client, user):
    with told(501, user, "user"):
        client.create("group", attributes={"name": user})
    with told(501, "everyone", "group"):
        client.create("user", attributes={"name": "everyone"})


@pytest.mark.parametrize("kind", ["user", "group", "account"])
def test_create_objects_have_their_place(client, home, kind):
    with told(1, '"path"', kind):
        client.create(kind, f"{home}/n")
    assert client.list(home) == []


def test_create_among_objects(client):
    path = f"//sys/users/{fresh('odd')}"
    try:
        with told(1, "//sys/users"):
            client.create("map_node", path)
    finally:
        client.remove(path, force=True)


# --- transactions, repetition

def test_create_in_a_transaction(client, home):
    id, within = inside(client)
    node = within.create("map_node", f"{home}/n", attributes={"x": 1})
    assert within.exists(f"#{node}") and not client.exists(f"#{node}") and client.list(home) == []
    for options in ({}, {"ignore_existing": True}, {"force": True}):
        with told(402, id):
            client.create("map_node", f"{home}/n", **options)
    client.create("map_node", f"{home}/other")
    client.commit_transaction(id)
    assert client.get(f"{home}/n/@id") == node and client.get(f"{home}/n/@x") == 1
    id, within = inside(client)
    within.create("map_node", f"{home}/gone")
    client.abort_transaction(id)
    client.create("map_node", f"{home}/gone")


def test_create_anew_in_a_transaction(client, home):
    client.create("map_node", f"{home}/n")
    id, within = inside(client)
    within.remove(f"{home}/n")
    within.create("table", f"{home}/n")
    assert [c.get(f"{home}/n/@type") for c in (within, client)] == ["table", "map_node"]
    client.commit_transaction(id)
    assert client.get(f"{home}/n/@type") == "table"


def test_create_locks_what_is_there(client, home):
    client.create("map_node", f"{home}/n")
    id, within = inside(client)
    within.create("map_node", f"{home}/n", ignore_existing=True)
    client.set(f"{home}/n/@x", 1)
    within.create("map_node", f"{home}/n", ignore_existing=True, lock_existing=True)
    with told(402, id):
        client.set(f"{home}/n/@x", 2)


def test_create_repeated_is_done_once(client, home):
    mutation = dict(type="map_node", path=f"{home}/n", mutation_id="7-7-7-c1")
    first = formatted(client, "create", **mutation, retry=False)
    assert formatted(client, "create", **mutation, retry=True) == formatted(client, "create", **mutation, retry=False) == first
    with told(501, "already exists"):
        formatted(client, "create", **{**mutation, "mutation_id": "7-7-7-c2"}, retry=True)


def test_create_who_may(guarded):
    root, name = known_by(guarded, guarded.token), fresh("user")
    root.create("user", attributes={"name": name})
    other = known_by(guarded, root.issue_token(name))
    other.create("map_node", f"//tmp/{name}")
    assert root.get(f"//tmp/{name}/@owner") == name
    for kind, path in (("map_node", "//sys/x"), ("user", None)):
        with told(901, name) as error:
            other.create(kind, path, attributes={} if path else {"name": "mallory"})
        assert error.value.error["attributes"]["user"] == name
    assert not root.exists("//sys/x") and not root.exists("//sys/users/mallory")
