"""`get` through the real client."""

def test_get(client, home):
    client.set(f"{home}/a", {"b": 1})
    assert client.get(home) == {"a": {"b": 1}} and client.get(f"{home}/a/@count") == 1
