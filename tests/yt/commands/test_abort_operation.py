"""`abort_operation` through the real client."""

def test_abort_operation(client, operation):
    client.abort_operation(operation[0])
    assert client.get_operation_state(operation[0]).name == "aborted"
