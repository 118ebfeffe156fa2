"""`get_job_input` through the real client."""

import json


def test_get_job_input(client, failed):
    rows = client.get_job_input(failed[1]).read().splitlines()
    assert [json.loads(row) for row in rows] == [{"a": 1}, {"a": 2}]
