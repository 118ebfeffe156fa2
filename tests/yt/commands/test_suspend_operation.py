"""`suspend_operation` through the real client."""

def test_suspend_operation(client, operation):
    client.suspend_operation(operation[0])
    assert client.get_operation(operation[0], attributes=["suspended"])["suspended"]
