"""`list_job_traces` through the real client."""

def test_list_job_traces(client, failed):
    assert client.list_job_traces(*failed) == {"traces": []}
