"""`check_permission_by_acl` through the real client."""

from calls import formatted


def test_check_permission_by_acl(client, user):
    acl = [{"action": "allow", "subjects": [user], "permissions": ["read"]}]
    assert formatted(client, "check_permission_by_acl", user=user, permission="read", acl=acl)["action"] == "allow"
    assert formatted(client, "check_permission_by_acl", user=user, permission="write", acl=acl)["action"] == "deny"
