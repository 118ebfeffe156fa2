"""`commit_transaction` through the real client."""

def test_commit_transaction(client, home, transaction):
    id, inside = transaction
    inside.set(f"{home}/a", 1)
    assert not client.exists(f"{home}/a")
    client.commit_transaction(id)
    assert client.get(f"{home}/a") == 1
