"""`abort_transaction` through the real client."""

def test_abort_transaction(client, home, transaction):
    id, inside = transaction
    inside.set(f"{home}/a", 1)
    client.abort_transaction(id)
    assert not client.exists(f"{home}/a") and not client.exists(f"#{id}")
