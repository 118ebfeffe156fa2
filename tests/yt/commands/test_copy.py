"""`copy` through the real client."""

def test_copy(client, home):
    client.set(f"{home}/a", 1)
    client.copy(f"{home}/a", f"{home}/b")
    assert client.get(home) == {"a": 1, "b": 1}
