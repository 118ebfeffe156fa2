"""`get_job_stderr` through the real client."""

from harness import wait_for


def test_get_job_stderr(client, operation):
    wait_for(lambda: client.get_job_stderr(operation[0], operation[1]).read() == b"hello\n", what="what the job has said")
