"""`set` through the real client."""

def test_set(client, home):
    client.set(f"{home}/@x", [1, "two"])
    assert client.get(f"{home}/@x") == [1, "two"]
