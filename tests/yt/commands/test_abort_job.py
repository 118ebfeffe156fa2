"""`abort_job` through the real client."""

from harness import wait_for


def test_abort_job(cluster, client, operation):
    client.abort_job(operation[1])
    wait_for(lambda: cluster.counters(operation[0])["aborted"] == 1, what="the job to be aborted")
