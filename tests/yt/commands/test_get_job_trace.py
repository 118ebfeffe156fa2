"""`get_job_trace` through the real client."""

def test_get_job_trace(client, failed):
    assert client.get_job_trace(*failed).read() == b""
