"""`resume_operation` through the real client."""

from calls import fresh, raw, refused, refuses_finished_operations, refuses_strange_operations, vanilla


def test_resume_operation(client, operation):
    client.suspend_operation(operation[0])
    client.resume_operation(operation[0])
    assert not client.get_operation(operation[0], attributes=["suspended"])["suspended"]


def test_what_is_not_suspended(client, pool):
    id = vanilla(client, pool)
    with refused(201, f"{id}.*not suspended"):
        client.resume_operation(id)
    client.suspend_operation(id)
    client.suspend_operation(id)
    client.resume_operation(id)
    with refused(201):
        client.resume_operation(id)


def test_what_was_suspended_from_the_beginning_runs(cluster, client, pool):
    alias = f"*{fresh('resume')}"
    id = vanilla(client, pool, "true", alias=alias, suspend_operation_after_materialization=True)
    client.resume_operation(operation_alias=alias)
    cluster.wait_state(id, "completed")
    assert not client.get_operation(id, attributes=["suspended"])["suspended"]


def test_what_is_refused(cluster, client, pool):
    def resume(**named):
        raw(client, "resume_operation", **named)
    refuses_strange_operations(resume)
    refuses_finished_operations(cluster, pool, resume)
