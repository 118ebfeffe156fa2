"""`abort_operation` through the real client."""

from calls import fresh, raw, refused, refuses_finished_operations, refuses_strange_operations, vanilla


def test_abort_operation(client, operation):
    client.abort_operation(operation[0])
    assert client.get_operation_state(operation[0]).name == "aborted"


def test_why_is_in_the_result(cluster, client, operation):
    client.abort_operation(operation[0], message="it takes too long")
    shown = client.get_operation(operation[0])
    error = shown["result"]["error"]
    assert (error["code"], error["message"]) == (1, "Operation aborted by user request")
    assert [inner["message"] for inner in error["inner_errors"]] == ["it takes too long"]
    assert shown["finish_time"] > shown["start_time"] and shown["events"][-1]["state"] == "aborted"
    job, = client.list_jobs(operation[0])["jobs"]
    assert (job["id"], job["state"]) == (operation[1], "aborted")
    counted = shown["brief_progress"]["jobs"]
    assert (counted["running"], counted["aborted"]) == (0, 1)


def test_without_a_word(client, pool):
    id = vanilla(client, pool)
    raw(client, "abort_operation", operation_id=id)
    error = client.get_operation(id, attributes=["result"])["result"]["error"]
    assert (error["message"], error["inner_errors"]) == ("Operation aborted by user request", [])


def test_by_alias_and_while_it_is_suspended(client, pool):
    for named in ("operation_id", "operation_alias"):
        alias = f"*{fresh('abort')}"
        id = vanilla(client, pool, alias=alias)
        client.suspend_operation(id)
        raw(client, "abort_operation", **{named: alias})
        assert client.get_operation(id, attributes=["state"])["state"] == "aborted"


def test_what_is_refused(cluster, client, pool):
    def abort(**named):
        raw(client, "abort_operation", **named)
    refuses_strange_operations(abort)
    refuses_finished_operations(cluster, pool, abort)
    id = vanilla(client, pool)
    with refused(1, "abort_message.*string"):
        abort(operation_id=id, abort_message=5)
    assert client.get_operation_state(id).is_running()
    abort(operation_id=id)
    with refused(200, "aborted"):
        abort(operation_id=id)
    client.abort_operation(id)  # asks for the state first
