"""`get_job_stderr` through the real client."""

import pytest
import yt.wrapper
import yt.yson
from calls import NO_JOB, fresh, refused, refuses_strange_operations, vanilla
from harness import NOT_ANSWERED, wait_for
from yt.wrapper.driver import make_request


def stderr(client, **parameters):
    return make_request("get_job_stderr", parameters, client=client)


def said(client, operation, job):
    """What a job has said; `None` if neither its node nor the archive can tell it yet."""
    try:
        return client.get_job_stderr(operation, job).read()
    except yt.wrapper.YtResponseError as error:
        assert error.contains_code(NOT_ANSWERED), error
        return None


def test_get_job_stderr(client, operation):
    wait_for(lambda: said(client, *operation) == b"hello\n", what="what the job has said", seen=lambda: said(client, *operation))


def test_of_one_that_is_over(cluster, client, pool):
    """Bytes as they were written, by id and by alias, in parts."""
    alias = f"*{fresh('stderr')}"
    id = vanilla(client, pool, r"printf '\0\377 {\n' >&2", alias=alias)
    cluster.wait_state(id, "completed")
    job, = client.list_jobs(id)["jobs"]
    printed = b"\0\xff {\n"
    for named in ({"operation_id": id}, {"operation_alias": alias}, {"operation_id": alias}, {}):
        assert stderr(client, job_id=job["id"], **named) == printed
    dressed = yt.yson.to_yson_type(job["id"], attributes={"address": "n:1"})
    assert stderr(client, job_id=dressed, operation_id=id) == printed
    for part in ((0, 2), (1, 2), (3, 10), (5, 10), (50, 10), (1, 0)):
        assert stderr(client, job_id=job["id"], offset=part[0], limit=part[1]) == printed[part[0]:sum(part)]
    assert client.get_job_stderr(id, job["id"], stderr_type="user_job_stderr").read() == printed
    assert client.get_job_stderr(id, job["id"], stderr_type="gpu_check_stderr").read() == b""


def test_who_has_said_nothing(cluster, client, pool):
    id = vanilla(client, pool)
    job, = cluster.wait_jobs(id)
    first = wait_for(lambda: [s] if (s := said(client, id, job)) is not None else None, what="an answer of the node")
    client.abort_operation(id)
    over = wait_for(lambda: [s] if (s := said(client, id, job)) is not None else None, what="an answer of the archive")
    assert first == over == [b""], (first, over)


def test_jobs_that_are_not_there(client, operation, pool):
    other = vanilla(client, pool)
    for over in (False, True):
        for named in ({"job_id": operation[1], "operation_id": other}, {"job_id": NO_JOB, "operation_id": other}, {"job_id": NO_JOB}):
            with refused(203, "No such job"):
                stderr(client, **named)
        if not over:
            client.abort_operation(operation[0])


@pytest.mark.parametrize("more, words", [
    ({"type": "core"}, 'type.*user_job_stderr.*"core"'), ({"limit": -1}, "limit.*-1"), ({"offset": "x"}, "offset.*x"),
    ({"job_id": "xyz"}, "job_id"), ({"job_id": None}, "job_id"),
])
def test_what_is_refused(client, operation, more, words):
    with refused(1, words):
        stderr(client, **{"operation_id": operation[0], "job_id": operation[1], **more})


def test_operations_that_are_not_there(client):
    refuses_strange_operations(lambda **named: stderr(client, job_id=NO_JOB, **named), missing=False)
