"""`check_operation_permission` through the real client."""

from calls import formatted


def test_check_operation_permission(client, operation, user):
    told = formatted(client, "check_operation_permission", operation_id=operation[0], user=user, permission="manage")
    assert told["action"] == "deny"
