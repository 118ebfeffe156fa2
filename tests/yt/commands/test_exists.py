"""`exists` through the real client."""

import pytest
from calls import formatted, inside, told


def test_exists(client, home):
    assert client.exists(home) and not client.exists(f"{home}/nothing")


@pytest.fixture
def tree(client, home):
    client.set(home, {"n": 1, "l": [1, {"k": 2}]}, force=True)
    client.set(f"{home}/@a", {"k": [1]})
    client.create("document", f"{home}/d", attributes={"value": {"k": [1, {"m": 2}]}})
    client.link(f"{home}/n", f"{home}/link")
    client.link(f"{home}/nothing", f"{home}/broken", force=True)
    return home


@pytest.mark.parametrize("path, there", [
    ("/n", True), ("/n/below", False), ("/x/y/z", False),
    ("/l/0", True), ("/l/-1/k", True), ("/l/2", False), ("/l/-3", False), ("/l/word", False), ("/l/end", False),
    ("/@a", True), ("/@a/k/0", True), ("/@a/k/1", False), ("/@a/x", False), ("/@", True), ("/@x", False), ("/x/@id", False),
    ("/@type", True), ("/@type/below", False), ("/n/@key", True), ("/@expiration_time", False),
    ("/d/k/1/m", True), ("/d/k/2", False), ("/d/x", False), ("/d/@value/k", True),
    ("/link", True), ("/link/@value", True), ("/link&", True), ("/link&/@target_path", True), ("/link/@target_path", False),
    ("/broken", False), ("/broken/x", False), ("/broken/@id", False), ("/broken&", True), ("/broken&/@broken", True),
    ("/*", False), ("/@*", False),
], ids=range(36))
def test_exists_every_way_of_not_being_there_is_false(client, tree, path, there):
    assert bool(client.exists(tree + path)) is there
    assert formatted(client, "exists", path=tree + path) == {"value": there}


def test_exists_by_id(client, home, transaction, pool):
    id, within = transaction
    lock = within.lock(home)["lock_id"]
    known = [client.get(f"{home}/@id"), id, lock, client.get(f"//sys/pools/{pool}/@id")]
    assert [client.exists(f"#{one}") for one in known] == [True] * 4
    assert client.exists(f"#{id}/@state") and not client.exists(f"#{id}/@nothing")
    assert not client.exists("#1-2-3-4") and not client.exists("#1-2-3-4/@id") and not client.exists("#0-0-0-0")


def test_exists_orchid(client, pool):
    orchid = "//sys/scheduler/orchid/scheduler"
    assert client.exists(f"{orchid}/pool_trees/physical") and client.exists(f"{orchid}/default_pool_tree")
    assert not client.exists(f"{orchid}/nothing") and not client.exists(f"{orchid}/default_pool_tree/below")


def test_exists_a_transaction_sees_what_it_did(client, home):
    client.set(f"{home}/a", 1)
    _, within = inside(client)
    within.remove(f"{home}/a")
    within.set(f"{home}/b", 1)
    assert [c.exists(f"{home}/{name}") for c in (within, client) for name in "ab"] == [False, True, True, False]


@pytest.mark.parametrize("parameters", [{}, {"path": 5}, {"path": "//a//b"}, {"path": "a"}])
def test_exists_what_is_no_path(client, parameters):
    with told(1, '"path"'):
        formatted(client, "exists", **parameters)
