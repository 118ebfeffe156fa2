"""`create` through the real client."""

def test_create(client, home):
    id = client.create("document", f"{home}/a/b", recursive=True, attributes={"value": 5})
    assert client.get(f"{home}/a/b") == 5 and client.get(f"#{id}/@path") == f"{home}/a/b"
