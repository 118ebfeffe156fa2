"""`get_job_fail_context` through the real client."""

import json

from yt.wrapper import job_commands


def test_get_job_fail_context(client, failed):
    rows = job_commands.get_job_fail_context(*failed, client=client).read().splitlines()
    assert [json.loads(row) for row in rows] == [{"a": 1}, {"a": 2}]
