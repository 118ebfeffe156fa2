"""`generate_timestamp` through the real client."""

def test_generate_timestamp(client):
    first = client.generate_timestamp()
    assert client.generate_timestamp() >= first > 0
