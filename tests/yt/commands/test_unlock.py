"""`unlock` through the real client."""

import pytest
from calls import formatted, inside, told


def test_unlock(client, home, transaction):
    inside = transaction[1]
    inside.lock(home)
    inside.unlock(home)
    client.set(f"{home}/@x", 1)


def test_unlock_all_of_the_node(client, home, transaction):
    within = transaction[1]
    within.lock(home)
    within.lock(home, mode="shared", child_key="k")
    within.lock(home, mode="shared", attribute_key="a")
    assert client.get(f"{home}/@lock_count") > 1
    assert formatted(within, "unlock", path=home) == {}
    assert client.get(f"{home}/@locks") == [] and client.get(f"#{transaction[0]}/@locked_node_ids") == []
    assert formatted(within, "unlock", path=home) == {}, "there is nothing to do"


def test_unlock_only_ones_own(client, home, transaction):
    id, other = inside(client)
    transaction[1].lock(home, mode="shared")
    kept = other.lock(home, mode="shared")["lock_id"]
    transaction[1].unlock(home)
    assert [lock["id"] for lock in client.get(f"{home}/@locks")] == [kept]
    nested, inner = inside(client, parent_transaction=id)
    inner.unlock(home)
    assert client.get(f"{home}/@lock_count") == 1, "nor those of who is around"


def test_unlock_not_what_was_written(client, home):
    client.set(f"{home}/n", 1)
    id, within = inside(client)
    within.lock(f"{home}/n")
    within.set(f"{home}/n", 2)
    within.unlock(f"{home}/n")
    with told(402, id):
        client.set(f"{home}/n", 3)
    client.commit_transaction(id)
    assert client.get(f"{home}/n") == 2


def test_unlock_lets_others_in(client, home, transaction):
    _, other = inside(client)
    transaction[1].lock(home)
    lock = formatted(other, "lock", path=home, waitable=True)["lock_id"]
    assert client.get(f"#{lock}/@state") == "pending"
    transaction[1].unlock(home)
    assert client.get(f"#{lock}/@state") == "acquired"


def test_unlock_what_waits(client, home, transaction):
    _, other = inside(client)
    transaction[1].lock(home)
    lock = formatted(other, "lock", path=home, waitable=True)["lock_id"]
    other.unlock(home)
    assert not client.exists(f"#{lock}") and client.get(f"{home}/@lock_count") == 1


def test_unlock_a_snapshot(client, home, transaction):
    client.set(f"{home}/n", 1)
    id = transaction[1].lock(f"{home}/n", mode="snapshot")["node_id"]
    client.set(f"{home}/n", 2)
    assert transaction[1].get(f"#{id}") == 1
    transaction[1].unlock(f"{home}/n")
    assert transaction[1].get(f"#{id}") == 2


@pytest.mark.parametrize("path", ["none", "@none"])
def test_unlock_what_is_missing(home, transaction, path):
    with told(500, '"none"'):
        transaction[1].unlock(f"{home}/{path}")


def test_unlock_bad_parameters(client, home, transaction):
    with told(1, "transaction_id"):
        client.unlock(home)
    with told(1, '"path"', "Missing"):
        formatted(transaction[1], "unlock")
    client.abort_transaction(transaction[0])
    with told(11000, transaction[0]):
        transaction[1].unlock(home)
