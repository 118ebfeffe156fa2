"""`move` through the real client."""

import pytest
from calls import formatted, fresh, inside, known_by, told


def test_move(client, home):
    client.set(f"{home}/a", 1)
    client.move(f"{home}/a", f"{home}/b")
    assert client.get(home) == {"b": 1}


def test_move_all_that_is_below(client, home):
    client.set(f"{home}/m", {"l": [1, {"k": 2}]})
    client.set(f"{home}/m/l/@mine", 1)
    client.write_file(f"{home}/m/f", b"content")
    before = client.get(f"{home}/m/@id")
    made = formatted(client, "move", source_path=f"{home}/m", destination_path=f"{home}/n")
    assert made == {"node_id": client.get(f"{home}/n/@id")} and made["node_id"] != before and not client.exists(f"#{before}")
    assert client.get(f"{home}/n/l") == [1, {"k": 2}] and client.get(f"{home}/n/l/@mine") == 1 and client.list(home) == ["n"]
    assert client.read_file(f"{home}/n/f").read() == b"content"


def test_move_over_what_is_there(client, home):
    client.set(home, {"a": 1, "m": {"k": 2}}, force=True)
    for options in ({}, {"ignore_existing": True}):
        with told(501, f"{home}/m", "already exists"):
            formatted(client, "move", source_path=f"{home}/a", destination_path=f"{home}/m", **options)
    assert client.get(home) == {"a": 1, "m": {"k": 2}}
    client.move(f"{home}/a", f"{home}/m", force=True)
    assert client.get(home) == {"m": 1}


def test_move_into_itself(client, home):
    client.set(f"{home}/m", {"k": {"l": 1}})
    for source, destination in (("m", "m/x"), ("m", "m/k/x"), ("m", "m"), ("m/k", "m")):
        with told(1, f"{home}/{source}", "one contains the other"):
            client.move(f"{home}/{source}", f"{home}/{destination}", force=True)
    assert client.get(home) == {"m": {"k": {"l": 1}}}


def test_move_what_is_missing(client, home):
    client.set(f"{home}/n", 1)
    for source, destination, word in (("x", "y", '"x"'), ("n", "a/b", '"a"'), ("n/@type", "y", '"type"')):
        with told(500, word):
            client.move(f"{home}/{source}", f"{home}/{destination}")
    assert client.get(home) == {"n": 1}
    client.move(f"{home}/n", f"{home}/a/b", recursive=True)
    assert client.get(home) == {"a": {"b": 1}}


def test_move_links(client, home):
    client.set(home, {"n": 1, "m": {"k": 1}}, force=True)
    client.link(f"{home}/n", f"{home}/l")
    client.move(f"{home}/l&", f"{home}/link")
    assert client.get(f"{home}/link&/@type") == "link" and client.list(home) == ["link", "m", "n"]
    client.link(f"{home}/m/k", f"{home}/below")
    client.move(f"{home}/m", f"{home}/away")
    assert client.get(f"{home}/below&/@broken")


def test_move_items(client, home):
    client.set(home, {"l": [1, {"k": 2}], "n": 0}, force=True)
    client.move(f"{home}/n", f"{home}/l/begin")
    client.move(f"{home}/l/-1", f"{home}/m")
    client.move(f"{home}/l/0", f"{home}/l/end")
    assert client.get(home) == {"l": [1, 0], "m": {"k": 2}}


@pytest.mark.parametrize("path", ["//sys/users/root", "//sys/users", "//tmp", "//sys", "/", "//sys/scheduler/orchid"])
def test_move_what_is_no_ordinary_node(client, path):
    with told(1, "move"):
        client.move(path, "//home/moved")
    assert not client.exists("//home/moved") and client.exists(path)


def test_move_among_users(client, home):
    client.set(f"{home}/n", 1)
    path = f"//sys/users/{fresh('odd')}"
    try:
        with told(1):
            client.move(f"{home}/n", path)
    finally:
        client.remove(path, force=True)


@pytest.mark.parametrize("name", ["owner", "account", "acl"])
def test_move_keeps_what_it_is_told_to(client, home, user, name):
    """Of the node and of what is below."""
    entry = {"action": "allow", "subjects": [user], "permissions": ["read"], "inheritance_mode": "object_and_descendants"}
    attributes = {"owner": user, "account": "sys", "acl": [entry]}
    client.create("map_node", f"{home}/m/below", attributes=attributes, recursive=True)
    client.move(f"{home}/m", f"{home}/n", **{f"preserve_{name}": True})
    assert client.get(f"{home}/n/below/@{name}") == attributes[name]


@pytest.mark.parametrize("parameters, words", [
    ({"source_path": "//tmp/x"}, ['"destination_path"', "Missing"]), ({"destination_path": "//tmp/x"}, ['"source_path"', "Missing"]),
    ({"source_path": "//tmp/x", "destination_path": "//tmp/y", "force": 5}, ['"force"', "boolean", "int64"]),
], ids=range(3))
def test_move_bad_parameters(client, parameters, words):
    with told(1, *words):
        formatted(client, "move", **parameters)


def test_move_in_a_transaction(client, home):
    client.set(f"{home}/m", {"k": 1})
    id, within = inside(client)
    within.move(f"{home}/m", f"{home}/n")
    assert within.get(home) == {"n": {"k": 1}} and within.get(f"{home}/n/k/@path") == f"{home}/n/k"
    assert client.get(home) == {"m": {"k": 1}}
    for path in ("m/x", "n"):
        with told(402, id):
            client.set(f"{home}/{path}", 1)
    client.set(f"{home}/other", 1)
    client.commit_transaction(id)
    assert client.get(home) == {"n": {"k": 1}, "other": 1}


def test_move_what_is_locked(client, home):
    client.set(home, {"a": 1, "m": {"k": 1}}, force=True)
    id, within = inside(client)
    within.lock(f"{home}/m/k", mode="shared")
    with told(402, id):
        client.move(f"{home}/m", f"{home}/n")
    with told(402, id):
        client.move(f"{home}/a", f"{home}/m", force=True)
    assert client.get(home) == {"a": 1, "m": {"k": 1}}


def test_move_repeated_is_done_once(client, home):
    client.set(f"{home}/n", 1)
    mutation = dict(source_path=f"{home}/n", destination_path=f"{home}/m", mutation_id="7-7-7-f1")
    assert formatted(client, "move", **mutation, retry=False) == formatted(client, "move", **mutation, retry=True)
    assert client.get(home) == {"m": 1}


def test_move_who_may(guarded):
    root, name = known_by(guarded, guarded.token), fresh("user")
    root.create("user", attributes={"name": name})
    other = known_by(guarded, root.issue_token(name))
    root.set(f"//tmp/{name}", {"n": 1, "m": {"k": 1}})
    root.set(f"//tmp/{name}/m/k/@acl", [{"action": "deny", "subjects": [name], "permissions": ["remove"]}])
    with told(901, name, "remove"):
        other.move(f"//tmp/{name}/m", f"//tmp/{name}/x")
    with told(901, name):
        other.move(f"//tmp/{name}/n", "//sys/x")
    assert root.get(f"//tmp/{name}") == {"n": 1, "m": {"k": 1}}
    other.move(f"//tmp/{name}/n", f"//tmp/{name}/x")
