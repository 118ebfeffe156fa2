"""`list_job_traces` through the real client."""


def test_list_job_traces(client, failed):
    assert client.list_job_traces(*failed) == {"traces": []}


def test_of_any_job(client, operation):
    answer = client.list_job_traces(operation_id=operation[0], job_id=operation[1], per_process=True, limit=5)
    assert answer == {"traces": []}
