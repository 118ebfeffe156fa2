"""`get_job_fail_context` through the real client."""

import json

from calls import NO_JOB, refused, refuses_strange_operations, vanilla
from yt.wrapper import job_commands
from yt.wrapper.driver import make_request


def test_get_job_fail_context(client, failed):
    rows = job_commands.get_job_fail_context(*failed, client=client).read().splitlines()
    assert [json.loads(row) for row in rows] == [{"a": 1}, {"a": 2}]


def test_fail_contexts_that_are_refused(client, failed, pool):
    def ask(**parameters):
        return make_request("get_job_fail_context", parameters, client=client)
    assert ask(job_id=failed[1]) == ask(job_id=failed[1], operation_id=failed[0]) != b""
    refuses_strange_operations(lambda **named: ask(job_id=failed[1], **named), missing=False)
    for more in ({"operation_id": failed[0]}, {"job_id": "xyz"}):
        with refused(1, "job_id"):
            ask(**more)
    for more in ({"job_id": failed[1], "operation_id": vanilla(client, pool)}, {"job_id": NO_JOB, "operation_id": failed[0]}):
        with refused(203):
            ask(**more)
