"""`commit_transaction` through the real client."""

import pytest
from calls import LATE, formatted, fresh, inside, known_by, raw, told
from harness import cluster as make_cluster


def test_commit_transaction(client, home, transaction):
    id, inside = transaction
    inside.set(f"{home}/a", 1)
    assert not client.exists(f"{home}/a")
    client.commit_transaction(id)
    assert client.get(f"{home}/a") == 1


def test_commit_transaction_all_at_once(client, home):
    client.set(home, {"gone": 1, "moved": {"k": 1}, "n": 1}, force=True)
    id, within = inside(client)
    made = within.create("document", f"{home}/d", attributes={"value": {"a": 1}})
    within.remove(f"{home}/gone")
    within.move(f"{home}/moved", f"{home}/there")
    within.set(f"{home}/n", 2)
    within.set(f"{home}/@x", 1)
    within.link(f"{home}/n", f"{home}/l")
    within.write_file(f"{home}/f", b"content")
    before = client.get(f"{home}/@revision")
    assert client.get(home) == {"gone": 1, "moved": {"k": 1}, "n": 1}
    assert formatted(client, "commit_transaction", transaction_id=id) == {}
    assert client.list(home) == ["d", "f", "l", "n", "there"] and client.get(f"{home}/d/@id") == made
    assert (client.get(f"{home}/n"), client.get(f"{home}/l"), client.get(f"{home}/@x"), client.get(f"{home}/there/k")) == (2, 2, 1, 1)
    assert client.read_file(f"{home}/f").read() == b"content" and client.get(f"{home}/@revision") > before
    assert client.get(f"{home}/@locks") == client.get(f"{home}/n/@locks") == []


def test_commit_transaction_into_the_one_around(client, home):
    client.set(home, {"a": 1, "b": 1}, force=True)
    id, outer = inside(client)
    nested, inner = inside(client, parent_transaction=id)
    outer.set(f"{home}/a", 2)
    inner.set(f"{home}/a", 3)
    inner.remove(f"{home}/b")
    inner.set(f"{home}/c", 1)
    assert (inner.get(home), outer.get(home)) == ({"a": 3, "c": 1}, {"a": 2, "b": 1})
    with told(402, nested):
        outer.set(f"{home}/a", 4)
    client.commit_transaction(nested)
    assert outer.get(home) == {"a": 3, "c": 1} and client.get(home) == {"a": 1, "b": 1}
    for path in ("a", "b", "c"):
        with told(402, id):
            client.set(f"{home}/{path}", 5)
    client.commit_transaction(id)
    assert client.get(home) == {"a": 3, "c": 1}


def test_commit_transaction_and_then_not_the_one_around(client, home):
    id, _ = inside(client)
    nested, inner = inside(client, parent_transaction=id)
    inner.set(f"{home}/a", 1)
    client.commit_transaction(nested)
    client.abort_transaction(id)
    assert client.list(home) == [] and client.get(f"{home}/@locks") == []


def test_commit_transaction_aborts_what_is_inside(client, home):
    id, outer = inside(client)
    nested, inner = inside(client, parent_transaction=id)
    deeper, deepest = inside(client, parent_transaction=nested)
    outer.set(f"{home}/a", 1)
    inner.set(f"{home}/b", 1)
    deepest.set(f"{home}/c", 1)
    client.commit_transaction(id)
    assert client.get(home) == {"a": 1}
    for over in (nested, deeper):
        assert not client.exists(f"#{over}")
        with told(11000, over):
            client.commit_transaction(over)


def test_commit_transaction_with_locks(client, home):
    id, _ = inside(client)
    nested, inner = inside(client, parent_transaction=id)
    inner.lock(home)
    client.commit_transaction(nested)
    with told(402, id):
        client.set(f"{home}/@x", 1)
    client.commit_transaction(id)
    client.set(f"{home}/@x", 1)


def test_commit_transaction_beside_others(client, home):
    """Children and attributes of one node come from whoever has made them."""
    (first, one), (second, two) = inside(client), inside(client)
    one.set(f"{home}/a", 1)
    two.set(f"{home}/b", 2)
    one.set(f"{home}/@a", 1)
    two.set(f"{home}/@b", 2)
    client.set(f"{home}/c", 3)
    client.commit_transaction(second)
    client.commit_transaction(first)
    assert client.get(home, attributes=["a", "b"]).attributes == {"a": 1, "b": 2} and client.get(home) == {"a": 1, "b": 2, "c": 3}


def test_commit_transaction_twice(client):
    id = client.start_transaction(timeout=LATE)
    client.commit_transaction(id)
    for command in ("commit_transaction", "abort_transaction"):
        with told(11000, id):
            formatted(client, command, transaction_id=id)


def test_commit_transaction_repeated_is_done_once(client):
    id = client.start_transaction(timeout=LATE)
    for retry in (False, True, True):
        assert formatted(client, "commit_transaction", transaction_id=id, mutation_id="7-7-7-6a", retry=retry) == {}


COMMANDS = [
    ("get", {"path": "{home}"}), ("list", {"path": "{home}"}), ("exists", {"path": "{home}"}), ("set", {"path": "{home}/n"}),
    ("multiset_attributes", {"path": "{home}"}), ("create", {"type": "map_node", "path": "{home}/n"}), ("remove", {"path": "{home}"}),
    ("copy", {"source_path": "{home}", "destination_path": "//tmp/n"}), ("move", {"source_path": "{home}", "destination_path": "//tmp/n"}),
    ("link", {"target_path": "{home}", "link_path": "//tmp/n"}), ("lock", {"path": "{home}"}), ("unlock", {"path": "{home}"}),
    ("concatenate", {"source_paths": [], "destination_path": "{home}"}), ("start_transaction", {}), ("abort_transaction", {}),
    ("start_operation", {"operation_type": "vanilla", "spec": {"tasks": {"t": {"command": "true", "job_count": 1}}}}),
]


@pytest.mark.parametrize("command, parameters", COMMANDS, ids=[command for command, _ in COMMANDS])
def test_commit_transaction_and_nothing_is_done_in_it(client, home, command, parameters):
    id = client.start_transaction(timeout=LATE)
    client.commit_transaction(id)
    parameters = {name: value.format(home=home) if isinstance(value, str) else value for name, value in parameters.items()}
    with told(11000, id):
        if command in ("set", "multiset_attributes"):
            raw(client, command, data=b"{}", input_format="yson", transaction_id=id, **parameters)
        else:
            formatted(client, command, transaction_id=id, **parameters)
    assert client.get(home) == {} and not client.exists("//tmp/n")


@pytest.mark.parametrize("parameters, word", [
    ({}, "Missing"), ({"transaction_id": "0-0-0-0"}, "Missing"), ({"transaction_id": 5}, "int64"), ({"transaction_id": "x"}, "Malformed")])
def test_commit_transaction_bad_parameters(client, parameters, word):
    for command in ("commit_transaction", "abort_transaction"):
        with told(1, '"transaction_id"', word):
            formatted(client, command, **parameters)


def test_commit_transaction_that_makes_too_much():
    """Limits are those of the moment: nothing of it comes."""
    with make_cluster(nodes=0, server_config="max_nodes_per_request = 100000") as cluster:
        client = cluster.client()
        client.set("//tmp/m", {str(n): 1 for n in range(49_999)})
        id, within = inside(client)
        within.set("//tmp/m/a", 1)
        within.set("//tmp/n", 1)
        client.set("//tmp/m/b", 1)
        with told(502, "50001"):
            client.commit_transaction(id)
        assert not client.exists("//tmp/n") and client.get("//tmp/m/@count") == 50_000
        client.remove("//tmp/m/b")


def test_commit_transaction_who_may(guarded):
    root, name = known_by(guarded, guarded.token), fresh("user")
    root.create("user", attributes={"name": name})
    other = known_by(guarded, root.issue_token(name))
    id = root.start_transaction(timeout=LATE)
    for end in ("commit_transaction", "abort_transaction"):
        with told(901, name):
            formatted(other, end, transaction_id=id)
    assert root.get(f"#{id}/@state") == "active"
