"""`get_operation` through the real client."""

def test_get_operation(client, operation):
    assert client.get_operation(operation[0])["type"] == "vanilla"
