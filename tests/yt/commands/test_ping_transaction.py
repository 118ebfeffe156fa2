"""`ping_transaction` through the real client."""

def test_ping_transaction(client, transaction):
    before = client.get(f"#{transaction[0]}/@last_ping_time")
    client.ping_transaction(transaction[0])
    assert client.get(f"#{transaction[0]}/@last_ping_time") > before
