"""`get_job` through the real client."""

def test_get_job(client, operation):
    assert client.get_job(operation[0], operation[1])["state"] == "running"
