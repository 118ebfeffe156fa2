"""`exists` through the real client."""

def test_exists(client, home):
    assert client.exists(home) and not client.exists(f"{home}/nothing")
