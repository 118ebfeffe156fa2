"""`remove` through the real client."""

import pytest
from calls import formatted, fresh, inside, known_by, told


def test_remove(client, home):
    client.set(f"{home}/a", {"b": 1})
    client.remove(f"{home}/a", recursive=True)
    client.remove(f"{home}/a", force=True)
    assert client.list(home) == []


def test_remove_what_is_not_empty(client, home):
    client.set(home, {"m": {"a": 1, "b": 2}, "l": [1, 2, 3], "em": {}, "el": [], "n": 1}, force=True)
    for name, count in (("m", 2), ("l", 3)):
        for force in (False, True):
            with told(1, f"{home}/{name}", str(count), '"recursive"'):
                client.remove(f"{home}/{name}", force=force)
    for name in ("em", "el", "n"):
        client.remove(f"{home}/{name}")
    assert client.get(home) == {"m": {"a": 1, "b": 2}, "l": [1, 2, 3]}
    id = client.get(f"{home}/m/a/@id")
    client.remove(f"{home}/m", recursive=True)
    assert client.list(home) == ["l"] and not client.exists(f"#{id}")


def test_remove_nothing_is_the_answer(client, home):
    assert formatted(client, "remove", path=home) == {} == formatted(client, "remove", path=home, force=True)


@pytest.mark.parametrize("path", ["x", "x/y/z", "n/x", "l/5", "l/-5", "l/word", "@x", "@a/x", "@a/l/7", "@a/k/deep", "x/@id", "d/x", "d/l/7"])
def test_remove_what_is_missing(client, home, path):
    client.set(home, {"n": 1, "l": [1]}, force=True)
    client.set(f"{home}/@a", {"k": 1, "l": []})
    client.create("document", f"{home}/d", attributes={"value": {"l": []}})
    for recursive in (False, True):
        with told(500):
            client.remove(f"{home}/{path}", recursive=recursive)
    client.remove(f"{home}/{path}", force=True)
    assert client.list(home) == ["d", "l", "n"] and client.get(f"{home}/l") == [1] and client.get(f"{home}/@a") == {"k": 1, "l": []}


def test_remove_items(client, home):
    client.set(f"{home}/l", [0, 1, 2, 3])
    client.remove(f"{home}/l/-1")
    client.remove(f"{home}/l/0")
    assert client.get(f"{home}/l") == [1, 2]


def test_remove_all_below(client, home):
    client.set(home, {"m": {"a": {"b": 1}}, "l": [1, 2]}, force=True)
    client.create("document", f"{home}/d", attributes={"value": {"a": 1}})
    for name in "mld":
        client.remove(f"{home}/{name}/*")
        client.remove(f"{home}/{name}/*")
    assert client.get(f"{home}/m") == {} and client.get(f"{home}/l") == [] and client.get(f"{home}/d") == {}
    client.set(f"{home}/n", 1)
    with told(500, "cannot have children"):
        client.remove(f"{home}/n/*")
    client.remove(f"{home}/*")
    assert client.list(home) == []


def test_remove_attributes(client, home):
    client.set(f"{home}/@", {"a": {"k": 1, "l": [1, 2]}, "b": 1, "c": 2})
    client.remove(f"{home}/@b")
    client.remove(f"{home}/@a/l/0")
    client.remove(f"{home}/@a/k")
    assert client.get(f"{home}/@user_attributes") == {"a": {"l": [2]}, "c": 2}
    client.set(f"{home}/@opaque", True)
    client.remove(f"{home}/@*")
    assert client.get(f"{home}/@user_attributes") == {} and client.get(f"{home}/@opaque") and client.exists(f"{home}/@id")


@pytest.mark.parametrize("name", ["id", "type", "acl", "owner", "account", "opaque", "locks"])
def test_remove_attributes_of_the_system(client, home, name):
    for force in (False, True):
        with told(1, f'"{name}"', "cannot be changed"):
            client.remove(f"{home}/@{name}", force=force)


def test_remove_inside_of_documents(client, home):
    client.create("document", f"{home}/d", attributes={"value": {"a": {"b": 1, "c": 2}, "l": [1, {"k": 2}]}})
    for path in ("a/b", "l/0", "l/-1/k"):
        client.remove(f"{home}/d/{path}")
    assert client.get(f"{home}/d") == {"a": {"c": 2}, "l": [{}]}


def test_remove_links(client, home):
    client.set(f"{home}/m", {"a": 1, "b": 2})
    for target, path in (("m", "l"), ("m", "l&"), ("none", "l"), ("none", "l&")):
        client.link(f"{home}/{target}", f"{home}/l", force=True)
        client.remove(f"{home}/{path}")
        assert client.list(home) == ["m"]
    client.link(f"{home}/m", f"{home}/l")
    client.remove(f"{home}/l/a")
    assert client.get(f"{home}/m") == {"b": 2}
    client.remove(f"{home}/l/*")
    assert client.get(f"{home}/m") == {} and client.list(home) == ["l", "m"]


def test_remove_by_id(client, home):
    client.set(f"{home}/n", 1)
    client.remove(f"#{client.get(f'{home}/n/@id')}")
    with told(500, "No such object"):
        client.remove("#1-2-1012f-4")
    client.remove("#1-2-1012f-4", force=True)
    assert client.list(home) == []


@pytest.mark.parametrize("path", ["/", "//sys", "//tmp", "//home", "//sys/users", "//sys/users/root", "//sys/groups/everyone",
                                  "//sys/accounts/tmp", "//sys/scheduler/orchid", "//sys/scheduler", "//sys/scheduler/*"])
def test_remove_what_the_system_stands_on(client, path):
    with told(1):
        client.remove(path, recursive=True, force=True)
    assert client.exists("//sys/scheduler/orchid") and client.exists("//sys/users/root") and client.exists("//home")


def test_remove_objects(client, user):
    group = fresh("group")
    client.create("group", attributes={"name": group})
    client.add_member(user, group)
    id = client.get(f"//sys/users/{user}/@id")
    client.remove(f"//sys/users/{user}")
    assert not client.exists(f"#{id}") and client.get(f"//sys/groups/{group}/@members") == []
    client.remove(f"#{client.get(f'//sys/groups/{group}/@id')}")
    assert group not in client.list("//sys/groups")


@pytest.mark.parametrize("parameters, words", [
    ({}, ['"path"', "Missing"]), ({"path": "//tmp/x", "recursive": 1}, ['"recursive"', "boolean"]),
    ({"path": "//tmp/x", "force": "x"}, ['"force"', "boolean"]), ({"path": "//tmp/*/x"}, ['"path"', "offset"])], ids=range(4))
def test_remove_bad_parameters(client, parameters, words):
    with told(1, *words):
        formatted(client, "remove", **parameters)


def test_remove_in_a_transaction(client, home):
    client.set(home, {"m": {"a": 1}, "n": 1}, force=True)
    client.set(f"{home}/@x", 1)
    id, within = inside(client)
    within.remove(f"{home}/m", recursive=True)
    within.remove(f"{home}/@x")
    assert within.list(home) == ["n"] and client.get(home) == {"m": {"a": 1}, "n": 1} and client.exists(f"{home}/@x")
    for path in ("m", "m/a", "@x", ""):
        with told(402, id):
            client.remove(f"{home}/{path}".rstrip("/"), recursive=True)
    with told(402, id):
        client.set(f"{home}/m/new", 1)
    client.commit_transaction(id)
    assert client.list(home) == ["n"] and not client.exists(f"{home}/@x")


def test_remove_nothing_if_something_below_is_locked(client, home):
    client.set(home, {"a": 1, "m": {"b": 2}}, force=True)
    id, within = inside(client)
    within.lock(f"{home}/m/b", mode="shared")
    for path in (home, f"{home}/*"):
        with told(402, id):
            client.remove(path, recursive=True)
    assert client.get(home) == {"a": 1, "m": {"b": 2}}


def test_remove_repeated_is_done_once(client, home):
    client.set(f"{home}/n", 1)
    assert formatted(client, "remove", path=f"{home}/n", mutation_id="7-7-7-d1", retry=False) == {}
    client.set(f"{home}/n", 2)
    assert formatted(client, "remove", path=f"{home}/n", mutation_id="7-7-7-d1", retry=True) == {}
    assert client.get(f"{home}/n") == 2


def test_remove_only_while_a_transaction_lives(client, home):
    ended = client.start_transaction()
    client.abort_transaction(ended)
    with told(1000, ended):
        formatted(client, "remove", path=home, prerequisite_transaction_ids=[ended])
    assert client.exists(home)


def test_remove_who_may(guarded):
    root, name = known_by(guarded, guarded.token), fresh("user")
    root.create("user", attributes={"name": name})
    other = known_by(guarded, root.issue_token(name))
    entry = {"action": "allow", "subjects": [name], "permissions": ["read", "write"]}
    root.create("map_node", f"//tmp/{name}", attributes={"inherit_acl": False, "acl": [entry]})
    root.set(f"//tmp/{name}/m", {"k": 1})
    for path in ("m", "*"):
        with told(901, name, "remove"):
            other.remove(f"//tmp/{name}/{path}", recursive=True)
    root.set(f"//tmp/{name}/@acl", [{**entry, "permissions": ["read", "write", "remove"]}])
    root.set(f"//tmp/{name}/m/k/@acl", [{**entry, "action": "deny", "permissions": ["remove"]}])
    with told(901, name, "remove"):
        other.remove(f"//tmp/{name}/m", recursive=True)
    assert root.get(f"//tmp/{name}/m") == {"k": 1}
    root.set(f"//tmp/{name}/m/k/@acl", [])
    other.remove(f"//tmp/{name}/m", recursive=True)


def test_remove_all_user_attributes(client, home):
    """What the system keeps beside them stays."""
    kept = {"compression_codec": "lz4", "replication_factor": 3, "optimize_for": "scan"}
    client.create("table", f"{home}/t", attributes={**kept, "mine": 1, "also": {"mine": 2}})
    client.remove(f"{home}/t/@*")
    assert client.get(f"{home}/t/@user_attributes") == {}
    assert {name: client.get(f"{home}/t/@{name}") for name in kept} == kept
    client.set(f"{home}/t/@", {"other": 1})
    assert client.get(f"{home}/t/@user_attributes") == {"other": 1} and client.get(f"{home}/t/@optimize_for") == "scan"
