"""`ping_transaction` through the real client."""

import time

import pytest
import yt.wrapper
from calls import LATE, formatted, inside, told
from harness import ServerError


def test_ping_transaction(client, transaction):
    before = client.get(f"#{transaction[0]}/@last_ping_time")
    client.ping_transaction(transaction[0])
    assert client.get(f"#{transaction[0]}/@last_ping_time") > before


@pytest.mark.parametrize("ancestors", [False, True])
def test_ping_transaction_and_those_around(client, ancestors):
    outer = client.start_transaction(timeout=LATE)
    middle = client.start_transaction(parent_transaction=outer, timeout=LATE)
    inner = client.start_transaction(parent_transaction=middle, timeout=LATE)
    deepest = client.start_transaction(parent_transaction=inner, timeout=LATE)

    def times():
        return [client.get(f"#{id}/@last_ping_time") for id in (outer, middle, inner, deepest)]
    before = times()
    assert formatted(client, "ping_transaction", transaction_id=inner, ping_ancestor_transactions=ancestors) == {}
    assert [now > then for now, then in zip(times(), before)] == [ancestors, ancestors, True, False]


@pytest.mark.timeout(600)
def test_ping_transaction_keeps_it(client, home):
    # On a late machine a short timeout passes between two pings.
    for timeout in (3, 15, 60):
        last = time.monotonic()
        id = client.start_transaction(timeout=1000 * timeout)
        # Longer than its timeout, which only time can show.
        ends = time.monotonic() + timeout + 1
        try:
            while time.monotonic() < ends:
                begin = time.monotonic()
                client.ping_transaction(id)
                last = begin
                time.sleep(0.2)
            assert client.get(f"#{id}/@state") == "active"
            break
        except yt.wrapper.YtResponseError as error:
            assert time.monotonic() - last >= timeout, f"{timeout} s after the last ping it was over: {error}"
    else:
        pytest.fail("more than a minute passed between two pings")
    client.abort_transaction(id)


def test_ping_transaction_that_is_over(client):
    ended = {"commit": client.start_transaction(timeout=LATE), "abort": client.start_transaction(timeout=LATE)}
    client.commit_transaction(ended["commit"])
    client.abort_transaction(ended["abort"])
    for id in (*ended.values(), "1-2-10001-4", client.get("//tmp/@id")):
        with told(11000, id):
            client.ping_transaction(id)


def test_ping_transaction_inside_one_that_is_over(client):
    outer = client.start_transaction(timeout=LATE)
    nested, _ = inside(client, parent_transaction=outer)
    client.abort_transaction(outer)
    with told(11000, nested):
        client.ping_transaction(nested)


@pytest.mark.parametrize("parameters, word", [
    ({}, "Missing"), ({"transaction_id": "0-0-0-0"}, "Missing"), ({"transaction_id": 5}, "int64"), ({"transaction_id": "x"}, "Malformed")])
def test_ping_transaction_bad_parameters(cluster, parameters, word):
    """(The client tries again whatever is wrong.)"""
    with pytest.raises(ServerError) as refused:
        cluster.command("ping_transaction", **parameters)
    assert refused.value.error["code"] == 1 and word in refused.value.text() and '"transaction_id"' in refused.value.text()
