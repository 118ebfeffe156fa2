"""`list_jobs` through the real client."""

def test_list_jobs(client, operation):
    assert [job["id"] for job in client.list_jobs(operation[0])["jobs"]] == [operation[1]]
