"""`move` through the real client."""

def test_move(client, home):
    client.set(f"{home}/a", 1)
    client.move(f"{home}/a", f"{home}/b")
    assert client.get(home) == {"b": 1}
