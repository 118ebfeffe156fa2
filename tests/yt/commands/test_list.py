"""`list` through the real client."""

def test_list(client, home):
    client.set(f"{home}/b", 1)
    client.set(f"{home}/a", 1)
    assert client.list(home) == ["a", "b"]
    assert [child.attributes["type"] for child in client.list(home, attributes=["type"])] == ["int64_node"] * 2
