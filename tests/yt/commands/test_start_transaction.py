"""`start_transaction` through the real client."""

import datetime

import pytest
import yt.wrapper
from calls import LATE, formatted, fresh, inside, known_by, told
from harness import wait_for


def test_start_transaction(client):
    id = client.start_transaction(timeout=LATE, attributes={"title": "mine"})
    assert client.get(f"#{id}/@title") == "mine"
    client.abort_transaction(id)


def start(client, **parameters):
    return formatted(client, "start_transaction", **{"timeout": LATE, **parameters})["transaction_id"]


def test_start_transaction_the_answer(client):
    made = formatted(client, "start_transaction")
    id = made["transaction_id"]
    assert made.keys() == {"transaction_id"} and int(id.split("-")[2], 16) & 0xffff == 1
    assert client.get(f"#{id}/@timeout") == 30000 and client.get(f"#{id}/@type") == "transaction"


def test_start_transaction_attributes(client):
    id = start(client, attributes={"title": "T", "hostname": "h", "pid": 5, "deep": {"k": [1]}})
    shown = client.get(f"#{id}/@")
    assert (shown["id"], shown["state"], shown["owner"], shown["timeout"]) == (id, "active", "root", LATE)
    assert (shown["title"], shown["hostname"], shown["pid"]) == ("T", "h", 5) and client.get(f"#{id}/@deep/k/0") == 1
    assert shown["parent_id"] == "0-0-0-0" and shown["nested_transaction_ids"] == shown["locked_node_ids"] == []
    assert shown["start_time"] <= shown["last_ping_time"]
    assert client.get(f"//sys/transactions/{id}/@") == client.get(f"#{id}/@") and id in client.list("//sys/transactions")
    assert client.get(f"#{id}/@", attributes=["title", "none"]) == {"title": "T"}
    with told(500, '"none"'):
        client.get(f"#{id}/@none")


def test_start_transaction_attributes_of_the_system_stay(client):
    id = start(client, attributes={"state": "x", "id": "1-2-3-4", "owner": "me", "timeout": 1, "mine": 1})
    assert client.get(f"#{id}/@", attributes=["state", "id", "owner", "timeout", "mine"]) == {
        "state": "active", "id": id, "owner": "root", "timeout": LATE, "mine": 1}


def test_start_transaction_what_is_shown_cannot_be_changed(client, transaction):
    for path in ("@state", "@title", "@timeout"):
        with told(1, "cannot be changed"):
            client.set(f"#{transaction[0]}/{path}", "x")
    with told(1, "cannot be changed"):
        client.remove(f"#{transaction[0]}")
    assert client.get(f"#{transaction[0]}/@state") == "active"


def test_start_transaction_in_another(client):
    id, outer = inside(client)
    nested = [client.start_transaction(parent_transaction=id, timeout=LATE) for _ in range(2)]
    assert sorted(client.get(f"#{id}/@nested_transaction_ids")) == sorted(nested)
    assert [client.get(f"#{one}/@parent_id") for one in nested] == [id, id]
    assert client.get(f"#{start(outer)}/@parent_id") == id, "of who is in it"


@pytest.mark.parametrize("parameters, words", [
    ({"timeout": -1}, ['"timeout"', "-1"]), ({"timeout": "5"}, ['"timeout"', "integer", "string"]), ({"timeout": 5.5}, ['"timeout"', "double"]),
    ({"attributes": 5}, ['"attributes"', "map", "int64"]), ({"attributes": {"big": "x" * 70000}}, ["attributes", "65536"]),
    ({"deadline": "tomorrow"}, ['"deadline"', '"tomorrow"', "2026-01-02T"]), ({"deadline": 5}, ['"deadline"', "string", "int64"]),
    ({"prerequisite_transaction_ids": "1-2-10001-4"}, ['"prerequisite_transaction_ids"', "list of strings"]),
    ({"prerequisite_transaction_ids": ["x"]}, ['"prerequisite_transaction_ids"', '"x"']), ({"transaction_id": "x"}, ['"transaction_id"', '"x"']),
], ids=range(10))
def test_start_transaction_bad_parameters(client, parameters, words):
    before = set(client.list("//sys/transactions"))
    with told(1, *words):
        formatted(client, "start_transaction", **parameters)
    assert set(client.list("//sys/transactions")) <= before


def test_start_transaction_sticky_and_of_any_type(client):
    assert client.exists(f"#{start(client, type='tablet', sticky=True)}")


def test_start_transaction_parents_must_live(client):
    over = start(client)
    client.commit_transaction(over)
    for parent in (over, "1-2-10001-4", client.get("//tmp/@id")):
        with told(11000, parent):
            start(client, transaction_id=parent)


def test_start_transaction_prerequisites(client):
    """They must live when it starts, and when it is committed."""
    first = start(client)
    second = start(client, prerequisite_transaction_ids=[first])
    client.abort_transaction(first)
    with told(1000, first) as error:
        client.commit_transaction(second)
    assert error.value.contains_code(11000) and client.get(f"#{second}/@state") == "active"
    with told(1000, first):
        start(client, prerequisite_transaction_ids=[second, first])
    client.abort_transaction(second)


def test_start_transaction_timeouts(client):
    """One that asks for more than anybody gets is not refused; one that asks for nothing is soon over."""
    assert client.get(f"#{start(client, timeout=10**15)}/@timeout") == 3_600_000
    id = start(client, timeout=0)
    wait_for(lambda: not client.exists(f"#{id}"), what="its end")


def test_start_transaction_ends_at_its_deadline(client, home):
    """However long its timeout is."""
    def now():
        return datetime.datetime.now(datetime.timezone.utc)
    # On a late machine a deadline that is near passes before anything is done.
    for seconds in (3, 15, 75):
        at = now() + datetime.timedelta(seconds=seconds)
        deadline = at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        try:
            id, within = inside(client, deadline=deadline)
            assert client.get(f"#{id}/@deadline") == deadline
            within.set(f"{home}/n", 1)
            break
        except yt.wrapper.YtResponseError as error:
            assert now() >= at, f"{at - now()} before the deadline: {error}"
    else:
        pytest.fail("no deadline was late enough for one change")
    wait_for(lambda: not client.exists(f"#{id}"), what="the deadline")
    with told(11000, id):
        client.commit_transaction(id)
    assert client.list(home) == []


def test_start_transaction_too_deep(client):
    id = None
    for _ in range(32):
        id = start(client, **({"transaction_id": id} if id else {}))
    with told(1, "Depth of a transaction", "32"):
        start(client, transaction_id=id)
    assert client.get(f"#{id}/@nested_transaction_ids") == []


def test_start_transaction_repeated_is_done_once(client):
    first = start(client, mutation_id="7-7-7-5a", retry=False)
    assert start(client, mutation_id="7-7-7-5a", retry=True) == first


def test_start_transaction_what_is_not_in_it(cluster, client, home):
    """Users, groups and pools are outside of transactions."""
    id, within = inside(client)
    name = fresh("user")
    within.create("user", attributes={"name": name})
    within.create("scheduler_pool", attributes={"name": name, "pool_tree": "physical"})
    assert client.exists(f"//sys/users/{name}") and client.exists(f"//sys/pools/{name}")
    client.abort_transaction(id)
    assert client.exists(f"//sys/users/{name}") and client.exists(f"//sys/pools/{name}")
    client.remove(f"//sys/pools/{name}")


def test_start_transaction_of_somebody(guarded):
    root, name = known_by(guarded, guarded.token), fresh("user")
    root.create("user", attributes={"name": name})
    other = known_by(guarded, root.issue_token(name))
    assert root.get(f"#{start(other)}/@owner") == name
