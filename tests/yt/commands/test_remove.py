"""`remove` through the real client."""

def test_remove(client, home):
    client.set(f"{home}/a", {"b": 1})
    client.remove(f"{home}/a", recursive=True)
    client.remove(f"{home}/a", force=True)
    assert client.list(home) == []
