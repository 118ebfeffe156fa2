"""`check_permission` through the real client."""

def test_check_permission(client, user):
    assert client.check_permission(user, "read", "//tmp")["action"] == "allow"
