"""`get_job_input` through the real client."""

import json

import pytest
from calls import NO_JOB, refused, refuses_strange_operations, vanilla
from yt.wrapper.driver import make_request


def ask(client, **parameters):
    return make_request("get_job_input", parameters, client=client)


def test_get_job_input(client, failed):
    rows = client.get_job_input(failed[1]).read().splitlines()
    assert [json.loads(row) for row in rows] == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("more", [{}, {"job_spec_source": "auto"}, {"job_spec_source": "node"}, {"job_spec_source": "archive"}])
def test_wherever_its_spec_is_from(client, failed, more):
    operation, job = failed
    assert ask(client, operation_id=operation, job_id=job, **more) == ask(client, job_id=job) != b""


def test_inputs_that_are_refused(cluster, client, failed, pool):
    refuses_strange_operations(lambda **named: ask(client, job_id=failed[1], **named), missing=False)
    for more, words in (({"job_spec_source": "memory"}, 'job_spec_source.*archive.*"memory"'), ({"job_id": "xyz"}, "job_id"),
                        ({"job_id": None}, "job_id")):
        with refused(1, words):
            ask(client, **{"job_id": failed[1], **more})
    other = vanilla(client, pool)
    for more in ({"job_id": failed[1], "operation_id": other}, {"job_id": NO_JOB, "operation_id": failed[0]}, {"job_id": NO_JOB}):
        with refused(203, "No such job"):
            ask(client, **more)
