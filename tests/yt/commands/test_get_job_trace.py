"""`get_job_trace` through the real client."""


def test_get_job_trace(client, failed):
    assert client.get_job_trace(*failed).read() == b""


def test_of_any_job(client, operation):
    assert client.get_job_trace(*operation, trace_id="1-2-3-4", from_time=0, to_time=1).read() == b""
