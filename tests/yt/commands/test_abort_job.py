"""`abort_job` through the real client."""

import pytest
from calls import NO_JOB, raw, refused, vanilla
from harness import wait_for


def test_abort_job(cluster, client, operation):
    client.abort_job(operation[1])
    wait_for(lambda: cluster.counters(operation[0])["aborted"] == 1, what="the job to be aborted")


def test_why_it_is_gone_and_who_follows(cluster, client, operation):
    id, job = operation
    assert raw(client, "abort_job", job_id=job) == {}
    again, = [j for j in wait_for(lambda: [j for j in client.list_jobs(id, job_state="running")["jobs"] if j["id"] != job], what="another")]
    told = client.get_job(id, job)
    assert (told["state"], told["abort_reason"], told["error"]["attributes"]["abort_reason"]) == ("aborted", "user_request", "user_request")
    assert (again["job_cookie"], again["task_name"]) == (told["job_cookie"], told["task_name"])
    assert client.get_operation_state(id).is_running() and cluster.counters(id)["failed"] == 0


def test_who_is_not_running(cluster, client, operation, pool):
    id, job = operation
    client.suspend_operation(id)
    client.abort_job(job)
    cluster.wait_counters(id, aborted=1)
    done = vanilla(client, pool, "true")
    cluster.wait_state(done, "completed")
    for over in (job, client.list_jobs(done)["jobs"][0]["id"], NO_JOB):
        with refused(203, f"No such job {over}") as error:
            client.abort_job(over)
        assert error.value.contains_code(1916)
    assert cluster.counters(id)["aborted"] == 1


def test_who_would_not_hear_it(client, operation):
    """A signal that no job has asked for is not sent; without a time-out it is aborted at once."""
    with refused(1209, "interruption_signal"):
        client.abort_job(operation[1], interrupt_timeout=1000)
    assert client.get_job(*operation)["state"] == "running"
    client.abort_job(operation[1], interrupt_timeout=0)
    wait_for(lambda: client.get_job(*operation)["state"] == "aborted", what="its end")


def test_a_job_of_another_operation(client, operation, pool):
    with refused(203):
        raw(client, "abort_job", job_id=operation[1], operation_id=vanilla(client, pool))
    assert client.get_job(*operation)["state"] == "running"


@pytest.mark.parametrize("parameters, words", [
    ({}, "job_id"), ({"job_id": "xyz"}, "job_id"), ({"job_id": 5}, "job_id.*int64"),
    ({"interrupt_timeout": -1}, "interrupt_timeout.*-1"), ({"interrupt_timeout": "soon"}, "interrupt_timeout.*soon"),
])
def test_what_is_refused(client, operation, parameters, words):
    job = {"job_id": operation[1]} if "interrupt_timeout" in parameters else {}
    with refused(1, words):
        raw(client, "abort_job", **job, **parameters)
    assert client.get_job(*operation)["state"] == "running"
