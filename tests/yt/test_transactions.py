"""Transactions and locks through the real `yt` command and SDK (http-api.md 8.1, 8.2)."""

import threading
import time

import pytest
import yt.wrapper as yt_wrapper
from yt.wrapper import VanillaSpecBuilder
from yt.wrapper.file_commands import upload_file_to_cache
from harness import wait_for


@pytest.fixture
def place(client, request):
    path = f"//tmp/{request.node.name}"
    client.create("map_node", path)
    yield path
    client.remove(path, recursive=True, force=True)


def refused(call, code):
    with pytest.raises(yt_wrapper.YtResponseError) as info:
        call()
    assert info.value.contains_code(code), info.value
    return info.value


def test_inside_before_outside(client, place):
    with client.Transaction(attributes={"title": "a test"}) as tx:
        client.set(f"{place}/a", 1)
        assert client.get(f"{place}/a") == 1
        assert client.get(f"#{tx.transaction_id}/@title") == "a test"
        assert client.get(f"#{tx.transaction_id}/@state") == "active"
        outside = yt_wrapper.YtClient(config=client.config)
        assert not outside.exists(f"{place}/a")
    assert client.get(f"{place}/a") == 1


def test_an_exception_aborts(client, place):
    with pytest.raises(RuntimeError):
        with client.Transaction():
            client.set(f"{place}/a", 1)
            raise RuntimeError("no")
    assert not client.exists(f"{place}/a")


def test_nested(client, place):
    with client.Transaction():
        with client.Transaction():
            client.set(f"{place}/a", 1)
        assert client.get(f"{place}/a") == 1
        with pytest.raises(RuntimeError):
            with client.Transaction():
                client.set(f"{place}/a", 2)
                raise RuntimeError("no")
        assert client.get(f"{place}/a") == 1
    assert client.get(f"{place}/a") == 1


def test_locks_conflict_and_wait(cluster, client, place):
    other = cluster.client()
    client.set(f"{place}/a", 1)
    taken = threading.Event()

    def wait_for_it():
        with other.Transaction():
            other.lock(f"{place}/a", waitable=True, wait_for=180_000)
            taken.set()

    with client.Transaction() as tx:
        assert client.lock(f"{place}/a")["node_id"]
        error = refused(lambda: cluster.client().set(f"{place}/a", 2), 402)
        assert tx.transaction_id in str(error), "it says who was first"
        waiter = threading.Thread(target=wait_for_it)
        waiter.start()
        wait_for(lambda: client.get(f"{place}/a/@lock_count") == 2, what="the second lock")
        assert not taken.is_set()
        assert {lock["state"] for lock in client.get(f"{place}/a/@locks")} == {"acquired", "pending"}
    assert taken.wait(180)
    waiter.join()
    assert client.get(f"{place}/a/@lock_count") == 0


def test_the_command_line(cluster, place):
    def yt(*arguments):
        return cluster.yt(*arguments)[1].strip()

    tx = yt("start-tx", "--timeout", "600000")
    yt("--tx", tx, "set", f"{place}/a", "5")
    assert yt("exists", f"{place}/a") == "false"
    assert yt("--tx", tx, "get", f"{place}/a") == "5"
    yt("--tx", tx, "lock", place, "--mode", "shared", "--attribute-key", "colour")
    yt("--tx", tx, "unlock", place)
    yt("ping-tx", tx)
    assert tx in yt("list", "//sys/transactions")
    yt("commit-tx", tx)
    assert yt("get", f"{place}/a") == "5"
    assert "No such transaction" in cluster.yt("ping-tx", tx, check=False)[2]
    tx = yt("start-tx", "--timeout", "600000")
    yt("--tx", tx, "remove", f"{place}/a")
    yt("abort-tx", tx)
    assert yt("get", f"{place}/a") == "5"


def test_nobody_pings(client, place):
    bound = yt_wrapper.YtClient(config=client.config)
    # On a late machine a short transaction is over before anything is done in it.
    for timeout in (3_000, 15_000, 75_000):
        begin = time.monotonic()
        tx = client.start_transaction(timeout=timeout)
        try:
            with bound.Transaction(transaction_id=tx, ping=False):
                bound.set(f"{place}/a", 1)
            break
        except yt_wrapper.YtResponseError as error:
            assert error.contains_code(11000) and time.monotonic() - begin >= timeout / 1000, error
    else:
        pytest.fail("no transaction lasted for one change")
    with bound.Transaction(transaction_id=tx, ping=False):
        wait_for(lambda: not client.exists(f"#{tx}"), what="its end")
        refused(lambda: bound.get(f"{place}/a"), 11000)
    assert not client.exists(f"{place}/a")


def test_what_is_being_read_stays(client, place):
    """The SDK reads files under a snapshot lock, by id."""
    client.write_file(f"{place}/f", b"first")
    with client.Transaction():
        client.lock(f"{place}/f", mode="snapshot")
        id = client.get(f"{place}/f/@id")
        outside = yt_wrapper.YtClient(config=client.config)
        outside.write_file(f"{place}/f", b"second")
        outside.remove(f"{place}/f")
        assert client.read_file(f"#{id}").read() == b"first"
    assert not client.exists(f"#{id}")


def test_an_operation_ends_with_its_transaction(cluster, client, place, pool):
    builder = VanillaSpecBuilder().spec({"pool": pool})
    builder.begin_task("t").command("sleep 1000").job_count(1).cpu_limit(0.1).end_task()
    with pytest.raises(RuntimeError):
        with client.Transaction() as tx:
            operation = client.run_operation(builder, sync=False)
            id = operation.id
            cluster.wait_jobs(id)
            raise RuntimeError("no")
    cluster.wait_state(id, "aborted")
    assert tx.transaction_id in str(cluster.result(id))


def test_files_of_a_client_are_cached(client, place, tmp_path):
    file = tmp_path / "payload"
    file.write_bytes(b"once")
    client.config["remote_temp_files_directory"] = f"{place}/files"
    first = upload_file_to_cache(str(file), client=client)
    assert first == upload_file_to_cache(str(file), client=client)
    assert client.read_file(first).read() == b"once"


def test_transactions_survive_the_server(cluster, client, place):
    tx = client.start_transaction(timeout=600_000)
    bound = yt_wrapper.YtClient(config=client.config)
    with bound.Transaction(transaction_id=tx):
        bound.set(f"{place}/a", 1)
        bound.lock(place, mode="shared", attribute_key="colour")
        cluster.server.kill()
        cluster.server.start()
        cluster.wait_server()
        cluster.wait_nodes()
        assert bound.get(f"{place}/a") == 1
        refused(lambda: client.set(f"{place}/@colour", "red"), 402)
    client.commit_transaction(tx)
    assert client.get(f"{place}/a") == 1


def test_rows_of_several_transactions_come_into_one_table(cluster, client, place):
    """Nobody waits for anybody (8.2): rows come with the commit of their transaction, all together and not before."""
    table, behind = f"{place}/t", f"<append=%true>{place}/t"
    client.create("table", table)
    client.write_table(table, [{"n": 0}])

    def within(tx, act):
        bound = yt_wrapper.YtClient(config=client.config)
        with bound.Transaction(transaction_id=tx):
            return act(bound)

    def rows(of):
        return [row["n"] for row in of.read_table(table)]
    one, two, three = (client.start_transaction(timeout=600_000) for _ in range(3))
    within(one, lambda c: c.write_table(behind, [{"n": 10}, {"n": 11}]))
    within(two, lambda c: c.write_table(behind, [{"n": 20}]))
    within(three, lambda c: c.write_table(behind, [{"n": 30}]))
    client.write_table(behind, [{"n": 1}])
    within(one, lambda c: c.write_table(behind, [{"n": 12}]))
    refused(lambda: client.write_table(table, [{"n": 5}]), 402)
    refused(lambda: client.remove(table), 402)
    assert rows(client) == [0, 1]
    assert within(one, rows) == [0, 1, 10, 11, 12] and within(two, rows) == [0, 1, 20]
    cluster.server.kill()
    cluster.server.start()
    cluster.wait_server()
    cluster.wait_nodes()
    client.commit_transaction(two)
    assert rows(client) == [0, 1, 20] and within(one, rows) == [0, 1, 20, 10, 11, 12]
    client.abort_transaction(three)
    client.commit_transaction(one)
    assert rows(client) == [0, 1, 20, 10, 11, 12]
    client.write_table(table, [{"n": 5}])
    assert rows(client) == [5]
