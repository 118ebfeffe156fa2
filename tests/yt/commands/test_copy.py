"""`copy` through the real client."""

import pytest
from calls import formatted, fresh, inside, known_by, told


def test_copy(client, home):
    client.set(f"{home}/a", 1)
    client.copy(f"{home}/a", f"{home}/b")
    assert client.get(home) == {"a": 1, "b": 1}


def test_copy_all_that_is_below(client, home):
    client.set(f"{home}/m", {"a": 1, "l": [1, {"k": 2}]})
    client.set(f"{home}/m/a/@mine", 1)
    client.set(f"{home}/m/@opaque", True)
    client.create("document", f"{home}/m/d", attributes={"value": {"x": 1}})
    client.write_file(f"{home}/m/f", b"content")
    client.write_table(f"{home}/m/t", [{"r": 1}])
    client.link(f"{home}/m/a", f"{home}/m/link")
    made = formatted(client, "copy", source_path=f"{home}/m", destination_path=f"{home}/c")
    assert made == {"node_id": client.get(f"{home}/c/@id")} and made["node_id"] != client.get(f"{home}/m/@id")
    assert client.get(f"{home}/c/l") == [1, {"k": 2}] and client.get(f"{home}/c/a/@mine") == 1 and client.get(f"{home}/c/@opaque")
    assert client.get(f"{home}/c/d") == {"x": 1} and client.read_file(f"{home}/c/f").read() == b"content"
    assert list(client.read_table(f"{home}/c/t")) == [{"r": 1}]
    assert client.get(f"{home}/c/link&/@target_path") == f"{home}/m/a"
    client.set(f"{home}/c/a", 5)
    client.write_file(f"{home}/c/f", b"other")
    assert client.get(f"{home}/m/a") == 1 and client.read_file(f"{home}/m/f").read() == b"content"


def test_copy_over_what_is_there(client, home):
    client.set(home, {"a": 1, "b": 2, "m": {"k": 1}}, force=True)
    before = client.get(f"{home}/b/@id")
    with told(501, f"{home}/b", "already exists"):
        client.copy(f"{home}/a", f"{home}/b")
    assert formatted(client, "copy", source_path=f"{home}/a", destination_path=f"{home}/b", ignore_existing=True) == {"node_id": before}
    assert client.get(f"{home}/b") == 2
    with told(501, f"{home}/m"):
        client.copy(f"{home}/a", f"{home}/m", ignore_existing=True)
    client.copy(f"{home}/a", f"{home}/m", force=True)
    client.copy(f"{home}/a", f"{home}/new", force=True)
    assert client.get(home) == {"a": 1, "b": 2, "m": 1, "new": 1}


def test_copy_into_itself(client, home):
    client.set(f"{home}/m", {"k": {"l": 1}})
    for source, destination in (("m", "m/x"), ("m", "m/k/x"), ("m", "m"), ("m/k", "m")):
        with told(1, f"{home}/{source}", f"{home}/{destination}", "one contains the other"):
            client.copy(f"{home}/{source}", f"{home}/{destination}", force=True)
    assert client.get(home) == {"m": {"k": {"l": 1}}}


def test_copy_what_is_missing(client, home):
    client.set(f"{home}/n", 1)
    for source, destination, word in (("x", "y", '"x"'), ("n", "a/b", '"a"'), ("n/x", "y", "cannot have children"),
                                      ("n/@type", "y", '"type"')):
        with told(500, word):
            client.copy(f"{home}/{source}", f"{home}/{destination}")
    with told(1, "/@y", "no meaning"):
        client.copy(f"{home}/n", f"{home}/@y")
    assert client.list(home) == ["n"]
    client.copy(f"{home}/n", f"{home}/a/b", recursive=True)
    assert client.get(f"{home}/a") == {"b": 1}


def test_copy_links(client, home):
    """The source is followed, the destination is not."""
    client.set(f"{home}/n", 1)
    client.link(f"{home}/n", f"{home}/l")
    client.copy(f"{home}/l", f"{home}/of-target")
    client.copy(f"{home}/l&", f"{home}/of-link")
    kinds = [client.get(f"{home}/{name}&/@type") for name in ("of-target", "of-link")]
    assert kinds == ["int64_node", "link"] and client.get(f"{home}/of-link") == 1
    with told(501, f"{home}/l"):
        client.copy(f"{home}/n", f"{home}/l")
    client.copy(f"{home}/n", f"{home}/l", force=True)
    assert client.get(f"{home}/l&/@type") == "int64_node"


def test_copy_items(client, home):
    client.set(home, {"l": [1, {"k": 2}], "n": 0}, force=True)
    client.copy(f"{home}/n", f"{home}/l/begin")
    client.copy(f"{home}/l/-1", f"{home}/m")
    assert client.get(f"{home}/l") == [0, 1, {"k": 2}] and client.get(f"{home}/m") == {"k": 2}


@pytest.mark.parametrize("path", ["//sys/users/root", "//sys/users", "//sys/scheduler/orchid", "//sys/pool_trees/physical", "//sys"])
def test_copy_what_is_no_ordinary_node(client, home, path):
    with told(1, "copy"):
        client.copy(path, f"{home}/n")
    assert client.list(home) == []


def test_copy_times(client, home):
    client.set(f"{home}/n", 1)
    client.copy(f"{home}/n", f"{home}/new")
    client.copy(f"{home}/n", f"{home}/kept", preserve_creation_time=True)
    first, new, kept = (client.get(f"{home}/{name}/@creation_time") for name in ("n", "new", "kept"))
    assert first == kept < new


@pytest.fixture
def special(client, home, user):
    """A node that is not like others: its path, and what makes it special."""
    entry = {"action": "allow", "subjects": [user], "permissions": ["read"], "inheritance_mode": "object_and_descendants"}
    attributes = {"owner": user, "account": "sys", "acl": [entry]}
    client.create("map_node", f"{home}/n", attributes=attributes)
    client.set(f"{home}/n/k", 1)
    return f"{home}/n", {**attributes, "modification_time": client.get(f"{home}/n/@modification_time")}


@pytest.mark.parametrize("name", ["owner", "account", "acl", "modification_time"])
def test_copy_keeps_what_it_is_told_to(client, home, special, name):
    path, attributes = special
    client.copy(path, f"{home}/kept", **{f"preserve_{name}": True})
    assert client.get(f"{home}/kept/@{name}") == attributes[name]


def test_copy_is_like_new_otherwise(client, home, special):
    client.copy(special[0], f"{home}/new", preserve_owner=False, preserve_account=False, preserve_acl=False)
    assert client.get(f"{home}/new/@", attributes=["owner", "account", "acl"]) == {"owner": "root", "account": "tmp", "acl": []}


@pytest.mark.parametrize("parameters, words", [
    ({"source_path": "//tmp/x"}, ['"destination_path"', "Missing"]), ({"destination_path": "//tmp/x"}, ['"source_path"', "Missing"]),
    ({"source_path": "//tmp/x", "destination_path": 5}, ['"destination_path"', "string", "int64"]),
    ({"source_path": "//tmp/x", "destination_path": "//tmp/y", "force": 5}, ['"force"', "boolean", "int64"]),
    ({"source_path": "//tmp/x", "destination_path": "//tmp/y", "recursive": "x"}, ['"recursive"', "boolean"]),
], ids=range(5))
def test_copy_bad_parameters(client, parameters, words):
    with told(1, *words):
        formatted(client, "copy", **parameters)


def test_copy_in_a_transaction(client, home):
    client.set(f"{home}/n", 1)
    id, within = inside(client)
    within.set(f"{home}/n", 2)
    within.copy(f"{home}/n", f"{home}/c")
    client.copy(f"{home}/n", f"{home}/d")
    assert client.get(home) == {"n": 1, "d": 1}
    with told(402, id):
        client.copy(f"{home}/d", f"{home}/c")
    client.commit_transaction(id)
    assert client.get(home) == {"n": 2, "c": 2, "d": 1}


def test_copy_repeated_is_done_once(client, home):
    client.set(f"{home}/n", 1)
    mutation = dict(source_path=f"{home}/n", destination_path=f"{home}/c", mutation_id="7-7-7-e1")
    assert formatted(client, "copy", **mutation, retry=False) == formatted(client, "copy", **mutation, retry=True)


def test_copy_too_deep(client, home):
    client.create("map_node", f"{home}/a" + "/a" * 31, recursive=True)
    client.create("map_node", f"{home}/b" + "/b" * 30, recursive=True)
    with told(1, "Depth", "64"):
        client.copy(f"{home}/a", f"{home}/b" + "/b" * 30 + "/c")
    assert client.get(f"{home}/b" + "/b" * 30) == {}


def test_copy_who_may(guarded):
    root, name = known_by(guarded, guarded.token), fresh("user")
    root.create("user", attributes={"name": name})
    other = known_by(guarded, root.issue_token(name))
    root.set(f"//tmp/{name}", {"m": {"open": 1, "closed": 2}})
    root.set(f"//tmp/{name}/m/closed/@acl", [{"action": "deny", "subjects": [name], "permissions": ["read"]}])
    with told(901, name, "read"):
        other.copy(f"//tmp/{name}/m", f"//tmp/{name}/c")
    with told(901, name):
        other.copy(f"//tmp/{name}/m/open", "//sys/c")
    other.copy(f"//tmp/{name}/m/open", f"//tmp/{name}/c")
    assert root.get(f"//tmp/{name}/c/@owner") == name and not root.exists("//sys/c")
