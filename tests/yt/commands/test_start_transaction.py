"""`start_transaction` through the real client."""

from calls import LATE


def test_start_transaction(client):
    id = client.start_transaction(timeout=LATE, attributes={"title": "mine"})
    assert client.get(f"#{id}/@title") == "mine"
    client.abort_transaction(id)
