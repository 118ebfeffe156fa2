"""`start_operation` through the real client."""

def test_start_operation(client, operation):
    assert client.get_operation_state(operation[0]).name == "running"
