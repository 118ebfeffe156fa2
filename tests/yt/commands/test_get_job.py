"""`get_job` through the real client."""

import pytest
from calls import NO_JOB, NO_OPERATION, formatted, fresh, refused, refuses_strange_operations, vanilla
from harness import find_error


def test_get_job(client, operation):
    assert client.get_job(operation[0], operation[1])["state"] == "running"


def test_as_it_is_listed_and_more(client, operation):
    listed, = client.list_jobs(operation[0])["jobs"]
    told = client.get_job(*operation)
    assert told["id"] == told["job_id"] == operation[1]
    assert not set(listed) - set(told) - {"stderr_size"} and {"statistics", "events"} <= set(told)
    same = set("operation_id type state address start_time task_name pool pool_tree job_cookie allocation_id".split())
    assert {name: told[name] for name in same} == {name: listed[name] for name in same}
    assert all({"time", "state"} & set(event) for event in told["events"])


def test_where_it_is(client, operation):
    assert "slot_index" in client.get_job(*operation)["exec_attributes"]


def test_by_alias_and_by_itself(cluster, client, pool):
    alias = f"*{fresh('job')}"
    id = vanilla(client, pool, alias=alias)
    job, = cluster.wait_jobs(id)
    for over in (False, True):
        for named in ({"operation_alias": alias}, {"operation_id": alias}, {"operation_id": id}, {}):
            told = formatted(client, "get_job", job_id=job, **named)
            assert (told["id"], told["operation_id"], told["state"]) == (job, id, "aborted" if over else "running")
        if not over:
            client.abort_operation(id)


def test_attributes(client, operation):
    for over in (False, True):
        told = formatted(client, "get_job", operation_id=operation[0], job_id=operation[1], attributes=["state", "finish_time"])
        assert set(told) - {"id", "job_id"} == ({"state", "finish_time"} if over else {"state"})
        if not over:
            client.abort_operation(operation[0])


def test_statistics_of_one_that_is_done(cluster, client, pool):
    id = vanilla(client, pool, "true")
    cluster.wait_state(id, "completed")
    job, = client.list_jobs(id)["jobs"]
    told = client.get_job(id, job["id"])
    assert set(told["statistics"]["time"]["total"]) >= {"sum", "count", "min", "max"}
    assert told["statistics"]["time"]["total"]["count"] == 1 and "error" not in told
    assert told["finish_time"] >= told["start_time"]


@pytest.mark.parametrize("command, code, attribute", [("exit 7", 10000, ("exit_code", 7)), ("kill -9 $$", 10001, ("signal", 9))])
def test_why_it_failed(cluster, client, pool, command, code, attribute):
    id = vanilla(client, pool, command, max_failed_job_count=1)
    cluster.wait_state(id, "failed")
    job, = client.list_jobs(id)["jobs"]
    error = client.get_job(id, job["id"])["error"]
    assert error["code"] == 1205 and find_error(error, code)["attributes"][attribute[0]] == attribute[1]


def test_that_it_took_too_long(cluster, client, pool):
    id = vanilla(client, pool, task={"job_time_limit": 1000}, max_failed_job_count=1)
    cluster.wait_state(id, "failed")
    job, = client.list_jobs(id)["jobs"]
    find_error(client.get_job(id, job["id"])["error"], 1202)


def test_jobs_that_are_not_there(cluster, client, operation, pool):
    other = vanilla(client, pool)
    for over in (False, True):
        for id in (NO_JOB, operation[1]):
            with refused(203, f"No such job {id}") as error:
                client.get_job(other, id)
            assert error.value.contains_code(1916)
        if not over:
            client.abort_operation(operation[0])
    with refused(203, NO_JOB):
        formatted(client, "get_job", job_id=NO_JOB)
    with refused(1915, NO_OPERATION):
        client.get_job(NO_OPERATION, operation[1])


def test_what_is_refused(client, operation):
    refuses_strange_operations(lambda **named: formatted(client, "get_job", job_id=operation[1], **named), missing=False)
    for more, words in (({}, "job_id"), ({"job_id": "xyz"}, "job_id"), ({"job_id": 5}, "job_id.*int64"),
                        ({"job_id": operation[1], "attributes": "state"}, "attributes.*list of strings")):
        with refused(1, words):
            formatted(client, "get_job", operation_id=operation[0], **more)
