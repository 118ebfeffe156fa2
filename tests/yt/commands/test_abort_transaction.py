"""`abort_transaction` through the real client."""

from calls import LATE, formatted, inside, told


def test_abort_transaction(client, home, transaction):
    id, inside = transaction
    inside.set(f"{home}/a", 1)
    client.abort_transaction(id)
    assert not client.exists(f"{home}/a") and not client.exists(f"#{id}")


def test_abort_transaction_nothing_of_it_stays(client, home):
    client.set(home, {"gone": 1, "moved": {"k": 1}, "n": 1}, force=True)
    client.set(f"{home}/@x", 1)
    client.write_file(f"{home}/f", b"before")
    revision = client.get(f"{home}/n/@revision")
    id, within = inside(client)
    made = within.create("map_node", f"{home}/m")
    within.remove(f"{home}/gone")
    within.move(f"{home}/moved", f"{home}/there")
    within.set(f"{home}/n", 2)
    within.remove(f"{home}/@x")
    within.write_file(f"{home}/f", b"after")
    within.lock(f"{home}/there")
    assert formatted(client, "abort_transaction", transaction_id=id) == {}
    assert client.list(home) == ["f", "gone", "moved", "n"] and client.get(f"{home}/n") == client.get(f"{home}/@x") == 1
    assert client.get(f"{home}/n/@revision") == revision and client.read_file(f"{home}/f").read() == b"before"
    assert not client.exists(f"#{made}") and client.get(f"{home}/@locks") == client.get(f"{home}/n/@locks") == []
    client.set(f"{home}/n", 3)


def test_abort_transaction_with_what_is_inside(client, home):
    id, _ = inside(client)
    nested, inner = inside(client, parent_transaction=id)
    inner.set(f"{home}/a", 1)
    client.abort_transaction(id)
    for over in (id, nested):
        assert not client.exists(f"#{over}") and not client.exists(f"//sys/transactions/{over}")
        for end in ("abort_transaction", "commit_transaction"):
            with told(11000, over):
                formatted(client, end, transaction_id=over)
    with told(11000, nested):
        inner.get(home)


def test_abort_transaction_inside_alone(client, home):
    id, outer = inside(client)
    nested, inner = inside(client, parent_transaction=id)
    outer.set(f"{home}/a", 1)
    inner.set(f"{home}/a", 2)
    client.abort_transaction(nested)
    assert outer.get(f"{home}/a") == 1 and client.get(f"#{id}/@nested_transaction_ids") == []
    outer.set(f"{home}/a", 3)
    client.commit_transaction(id)
    assert client.get(f"{home}/a") == 3


def test_abort_transaction_unknown(client):
    for id in ("1-2-10001-4", client.get("//tmp/@id")):
        with told(11000, id):
            client.abort_transaction(id)


def test_abort_transaction_ids_are_written_as_one_likes(client):
    id = client.start_transaction(timeout=LATE)
    client.abort_transaction("-".join(part.upper().zfill(8) for part in id.split("-")))
    assert not client.exists(f"#{id}")


def test_abort_transaction_repeated_is_done_once(client):
    id = client.start_transaction(timeout=LATE)
    for retry in (False, True):
        assert formatted(client, "abort_transaction", transaction_id=id, mutation_id="7-7-7-8a", retry=retry) == {}
