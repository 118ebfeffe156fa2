"""`suspend_operation` through the real client."""

from calls import fresh, raw, refused, refuses_finished_operations, refuses_strange_operations, vanilla


def test_suspend_operation(client, operation):
    client.suspend_operation(operation[0])
    assert client.get_operation(operation[0], attributes=["suspended"])["suspended"]


def test_what_runs_goes_on_and_nothing_new_begins(cluster, client, operation):
    id, job = operation
    client.suspend_operation(id)
    client.suspend_operation(id)  # once more is fine
    assert client.get_operation(id, attributes=["state", "suspended"]) == {"state": "running", "suspended": True}
    assert [(j["id"], j["state"]) for j in client.list_jobs(id)["jobs"]] == [(job, "running")]
    client.abort_job(job)
    cluster.wait_counters(id, aborted=1)
    cluster.rounds()
    assert [j["state"] for j in client.list_jobs(id)["jobs"]] == ["aborted"]
    client.resume_operation(id)
    again, = cluster.wait_jobs(id)
    assert again != job


def test_jobs_are_aborted_if_that_is_asked(cluster, client, operation):
    client.suspend_operation(operation[0], abort_running_jobs=True)
    assert cluster.counters(operation[0])["aborted"] == 1
    job, = client.list_jobs(operation[0])["jobs"]
    assert (job["id"], job["state"], job["abort_reason"]) == (operation[1], "aborted", "operation_suspended")
    assert client.get_operation_state(operation[0]).is_running()


def test_why_is_an_alert(client, pool):
    id = vanilla(client, pool)
    for reason in ("lunch", "dinner"):
        client.suspend_operation(id, reason=reason)
        alert = client.get_operation(id, attributes=["alerts"])["alerts"]["operation_suspended"]
        assert reason in alert["message"]


def test_by_alias(client, pool):
    alias = f"*{fresh('suspend')}"
    id = vanilla(client, pool, alias=alias)
    client.suspend_operation(operation_alias=alias)
    assert client.get_operation(id, attributes=["suspended"])["suspended"]
    assert [o["suspended"] for o in client.list_operations(pool=pool)["operations"]] == [True]


def test_what_is_refused(cluster, client, pool):
    def suspend(**named):
        raw(client, "suspend_operation", **named)
    refuses_strange_operations(suspend)
    refuses_finished_operations(cluster, pool, suspend)
    id = vanilla(client, pool)
    for parameters, word in (({"abort_running_jobs": "yes"}, "abort_running_jobs.*boolean"), ({"reason": 5}, "reason.*string")):
        with refused(1, word):
            suspend(operation_id=id, **parameters)
    assert not client.get_operation(id, attributes=["suspended"])["suspended"]
