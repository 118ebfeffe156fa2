"""`resume_operation` through the real client."""

def test_resume_operation(client, operation):
    client.suspend_operation(operation[0])
    client.resume_operation(operation[0])
    assert not client.get_operation(operation[0], attributes=["suspended"])["suspended"]
