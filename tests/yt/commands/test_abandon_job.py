"""`abandon_job` through the real client."""

from calls import raw


def test_abandon_job(cluster, client, operation):
    raw(client, "abandon_job", job_id=operation[1])
    cluster.wait_state(operation[0], "completed", timeout=120)
