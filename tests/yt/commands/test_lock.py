"""`lock` through the real client."""

import pytest
import yt.wrapper
import yt.yson
from calls import formatted, inside, told


def test_lock(client, home, transaction):
    inside = transaction[1]
    lock = inside.lock(home, mode="exclusive")
    assert client.get(f"#{lock['lock_id']}/@state") == "acquired"
    with pytest.raises(yt.wrapper.YtResponseError) as refused:
        client.set(f"{home}/@x", 1)
    assert refused.value.contains_code(402)


def state(client, lock):
    path = f"#{lock}/@state"
    return client.get(path) if client.exists(path) else None


def test_lock_the_answer(client, home, transaction):
    client.set(f"{home}/n", 1)
    lock = formatted(transaction[1], "lock", path=f"{home}/n")
    assert lock.keys() == {"lock_id", "node_id", "revision"}
    assert lock["node_id"] == client.get(f"{home}/n/@id") and isinstance(lock["revision"], yt.yson.YsonUint64)
    assert lock["revision"] == client.get(f"{home}/n/@revision")
    assert int(lock["lock_id"].split("-")[2], 16) & 0xffff == 200
    assert client.exists(f"//sys/locks/{lock['lock_id']}") and client.get(f"#{lock['lock_id']}/@type") == "lock"


def test_lock_shown(client, home):
    client.set(f"{home}/n", 1)
    id, within = inside(client)
    lock = within.lock(f"{home}/n", mode="shared", attribute_key="a")
    shown = {"id": lock["lock_id"], "state": "acquired", "transaction_id": id, "mode": "shared", "attribute_key": "a"}
    assert client.get(f"{home}/n/@locks") == [shown] and client.get(f"{home}/n/@lock_count") == 1
    assert within.get(f"{home}/n/@lock_mode") == "shared" and client.get(f"{home}/n/@lock_mode") == "none"
    assert client.get(f"#{id}/@locked_node_ids") == [lock["node_id"]]
    client.abort_transaction(id)
    assert client.get(f"{home}/n/@locks") == [] and not client.exists(f"#{lock['lock_id']}")


@pytest.mark.parametrize("parameters", [{}, {"transaction_id": "0-0-0-0"}])
def test_lock_needs_a_transaction(client, parameters):
    with told(1, "transaction_id"):
        formatted(client, "lock", path="//tmp", **parameters)


@pytest.mark.parametrize("parameters, words", [
    ({"path": None}, ['"path"', "Missing"]), ({"mode": "fancy"}, ['"fancy"', "snapshot", "shared", "exclusive"]),
    ({"mode": 5}, ['"mode"', "string", "int64"]), ({"waitable": "x"}, ['"waitable"', "boolean"]),
    ({"child_key": "k"}, ["child_key", '"shared"', '"exclusive"']), ({"mode": "snapshot", "attribute_key": "k"}, ["attribute_key", '"snapshot"']),
    ({"mode": "shared", "child_key": "k", "attribute_key": "k"}, ["exclude"]), ({"path": "//sys/scheduler/orchid"}, ["orchid"]),
    ({"path": "//sys/pool_trees/physical"}, ["physical"])], ids=range(9))
def test_lock_bad_parameters(client, home, transaction, parameters, words):
    with told(1, *words):
        formatted(transaction[1], "lock", **{"path": home, **parameters})
    assert client.get(f"{home}/@locks") == []


@pytest.mark.parametrize("name", ["child_key", "attribute_key"])
def test_lock_keys_are_strings(client, home, transaction, name):
    with told(1, name, "string", "int64"):
        formatted(transaction[1], "lock", path=home, mode="shared", **{name: 5})


def test_lock_what_is_missing(client, home, transaction):
    for path, word in (("x", '"x"'), ("@x", '"x"'), ("@type", "type"), ("x/y", '"x"')):
        with told(500, word):
            transaction[1].lock(f"{home}/{path}")


# Whether the second is given while the first is there.
MODES = [
    ("exclusive", {}, "exclusive", {}, False), ("exclusive", {}, "shared", {}, False), ("exclusive", {}, "snapshot", {}, True),
    ("shared", {}, "exclusive", {}, False), ("shared", {}, "shared", {}, True), ("shared", {}, "snapshot", {}, True),
    ("snapshot", {}, "exclusive", {}, True), ("snapshot", {}, "shared", {}, True), ("snapshot", {}, "snapshot", {}, True),
    ("shared", {"child_key": "k"}, "shared", {"child_key": "k"}, False), ("shared", {"child_key": "k"}, "shared", {"child_key": "l"}, True),
    ("shared", {"child_key": "k"}, "shared", {"attribute_key": "k"}, True), ("shared", {"child_key": "k"}, "exclusive", {}, False),
    ("shared", {"attribute_key": "k"}, "shared", {"attribute_key": "k"}, False),
    ("shared", {"attribute_key": "k"}, "shared", {"attribute_key": "l"}, True), ("exclusive", {}, "shared", {"child_key": "k"}, False),
]


@pytest.mark.parametrize("first, key, second, other, given", MODES, ids=range(len(MODES)))
def test_lock_beside_another(client, home, first, key, second, other, given):
    (id, one), (_, two) = inside(client, attributes={"title": "the first"}), inside(client)
    one.lock(home, mode=first, **key)
    if given:
        assert two.lock(home, mode=second, **other)["lock_id"]
        return
    with told(402, second, first, home, id) as error:
        two.lock(home, mode=second, **other)
    winner = error.value.error["attributes"]["winner_transaction"]
    assert (winner["id"], winner["owner"], winner["title"]) == (id, "root", "the first")
    assert client.get(f"{home}/@lock_count") == 1
    client.abort_transaction(id)
    two.lock(home, mode=second, **other)


def test_lock_against_who_is_in_no_transaction(client, home):
    client.set(f"{home}/m", {"k": {"deep": 1}})
    id, within = inside(client)
    within.lock(f"{home}/m", mode="exclusive")
    for change in (lambda: client.set(f"{home}/m/new", 1), lambda: client.set(f"{home}/m/@x", 1), lambda: client.set(f"{home}/m", {}, force=True),
                   lambda: client.remove(f"{home}/m/k", recursive=True), lambda: client.remove(f"{home}/m", recursive=True)):
        with told(402, id):
            change()
    client.set(f"{home}/m/k/deep", 2)
    assert client.get(f"{home}/m") == {"k": {"deep": 2}}, "a lock is of the node, not of what is below"
    within.set(f"{home}/m/new", 1)


def test_lock_of_one_key(client, home):
    id, within = inside(client)
    within.lock(home, mode="shared", child_key="k")
    within.lock(home, mode="shared", attribute_key="a")
    for path in ("k", "@a"):
        with told(402, id):
            client.set(f"{home}/{path}", 1)
    client.set(f"{home}/l", 1)
    client.set(f"{home}/@b", 1)
    within.set(f"{home}/k", 2)
    client.commit_transaction(id)
    assert client.get(home) == {"k": 2, "l": 1}


def test_lock_without_a_lock(client, home):
    """Writing takes locks by itself, no larger than it needs (8.2)."""
    client.set(f"{home}/n", 1)
    (id, one), (_, two) = inside(client), inside(client)
    one.set(f"{home}/a", 1)
    one.set(f"{home}/@a", 1)
    one.set(f"{home}/n", 2)
    two.set(f"{home}/b", 1)
    two.set(f"{home}/@b", 1)
    for path in ("a", "@a", "n"):
        for other in (two, client):
            with told(402, id):
                other.set(f"{home}/{path}", 5)
    assert two.get(f"{home}/n") == client.get(f"{home}/n") == 1
    assert {lock["mode"] for lock in client.get(f"{home}/n/@locks")} == {"exclusive"}
    assert all(client.get(f"#{lock['id']}/@implicit") for lock in client.get(f"{home}/n/@locks"))


def test_lock_waits_for_its_turn(client, home):
    (first, one), (second, two), (_, three), (_, four) = (inside(client) for _ in range(4))
    one.lock(home)
    waiting = [formatted(tx, "lock", path=home, waitable=True, mode=mode)["lock_id"]
               for tx, mode in ((two, "exclusive"), (three, "shared"), (four, "shared"))]
    assert [state(client, lock) for lock in waiting] == ["pending"] * 3
    client.abort_transaction(first)
    assert [state(client, lock) for lock in waiting] == ["acquired", "pending", "pending"]
    client.commit_transaction(second)
    assert [state(client, lock) for lock in waiting] == [None, "acquired", "acquired"]


def test_lock_that_waits_goes_with_its_transaction(client, home, transaction):
    transaction[1].lock(home)
    id, within = inside(client)
    lock = formatted(within, "lock", path=home, waitable=True)["lock_id"]
    with told(402, transaction[0]):
        within.set(f"{home}/@x", 1)
    client.abort_transaction(id)
    assert state(client, lock) is None and client.get(f"{home}/@lock_count") == 1


def test_lock_that_need_not_wait(client, home, transaction):
    assert state(client, formatted(transaction[1], "lock", path=home, waitable=True)["lock_id"]) == "acquired"


def test_lock_again_and_stronger(client, home):
    (first, one), (second, two) = inside(client), inside(client)
    one.lock(home, mode="shared")
    two.lock(home, mode="shared")
    with told(402, second):
        one.lock(home)
    client.abort_transaction(second)
    one.lock(home)
    one.lock(home, mode="shared")
    assert one.get(f"{home}/@lock_mode") == "exclusive"


def test_lock_around_and_inside(client, home):
    id, outer = inside(client)
    outer.lock(home)
    nested, inner = inside(client, parent_transaction=id)
    inner.lock(home)
    inner.set(f"{home}/n", 1)
    with told(402, nested):
        outer.lock(home)
    client.commit_transaction(nested)
    outer.set(f"{home}/n", 2)
    with told(402, id):
        client.set(f"{home}/n", 3)


def test_lock_snapshot(client, home):
    """What was is read on, by path as long as there is one, and by id."""
    client.set(f"{home}/n", 1)
    client.set(f"{home}/n/@x", 1)
    client.create("document", f"{home}/d", attributes={"value": {"a": 1}})
    id, within = inside(client)
    node, document = (within.lock(f"{home}/{name}", mode="snapshot")["node_id"] for name in "nd")
    client.set(f"{home}/n", 2)
    client.set(f"{home}/n/@x", 2)
    client.set(f"{home}/d/a", 2)
    assert (within.get(f"{home}/n"), within.get(f"{home}/n/@x"), within.get(f"{home}/d")) == (1, 1, {"a": 1})
    client.remove(f"{home}/n")
    client.create("map_node", f"{home}/d", force=True)
    assert (within.get(f"#{node}"), within.get(f"#{node}/@x"), within.get(f"#{document}")) == (1, 1, {"a": 1})
    with told(500, "No such object"):
        client.get(f"#{node}")
    with told(402, "snapshot"):
        within.set(f"#{node}", 5)
    client.commit_transaction(id)
    assert not client.exists(f"#{node}") and client.list(home) == ["d"]


def test_lock_after_ones_own_snapshot(client, home, transaction):
    """What is being read as it was cannot be written; there is nobody to wait for."""
    id, within = transaction
    within.lock(home, mode="snapshot")
    for waitable in (False, True):
        with told(402, "exclusive", "snapshot", id):
            formatted(within, "lock", path=home, waitable=waitable)
    assert client.get(f"{home}/@lock_count") == 1


def test_lock_through_links(client, home, transaction):
    client.set(f"{home}/n", 1)
    client.link(f"{home}/n", f"{home}/l")
    within = transaction[1]
    assert within.lock(f"{home}/l")["node_id"] == client.get(f"{home}/n/@id")
    assert within.lock(f"{home}/l&")["node_id"] == client.get(f"{home}/l&/@id")
    assert within.lock(f"#{client.get(f'{home}/n/@id')}")["node_id"] == client.get(f"{home}/n/@id")
    with told(402):
        client.remove(f"{home}/l")


def test_lock_in_a_transaction_that_is_over(client, home):
    id, within = inside(client)
    client.abort_transaction(id)
    with told(11000, id):
        within.lock(home)


def test_lock_repeated_is_done_once(client, home, transaction):
    mutation = dict(path=home, mutation_id="7-7-7-b1")
    assert formatted(transaction[1], "lock", **mutation, retry=False) == formatted(transaction[1], "lock", **mutation, retry=True)
    assert client.get(f"{home}/@lock_count") == 1
