"""`link` through the real client."""

def test_link(client, home):
    client.set(f"{home}/a", 1)
    client.link(f"{home}/a", f"{home}/b")
    assert client.get(f"{home}/b") == 1 and client.get(f"{home}/b&/@type") == "link"
