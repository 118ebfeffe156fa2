"""`check_operation_permission` through the real client."""

import pytest
from calls import acting, formatted, fresh, group, refused, refuses_strange_operations, vanilla


def test_check_operation_permission(client, operation, user):
    told = formatted(client, "check_operation_permission", operation_id=operation[0], user=user, permission="manage")
    assert told["action"] == "deny"


@pytest.fixture
def other(client):
    name = fresh("other")
    client.create("user", attributes={"name": name})
    return name


@pytest.fixture
def start(cluster, pool, user):
    """Starts an operation of the user."""
    return lambda **spec: vanilla(acting(cluster, user), pool, **spec)


def may(client, operation, user):
    """`r` for read, `m` for manage."""
    def told(permission):
        return formatted(client, "check_operation_permission", operation_id=operation, user=user, permission=permission)
    answers = {permission: told(permission) for permission in ("read", "manage")}
    assert all(list(answer) == ["action"] for answer in answers.values())
    return "".join(permission[0] for permission, answer in answers.items() if answer["action"] == "allow")


def test_check_operation_permission_who_may_without_a_word(client, start, user, other):
    operation = start()
    assert [may(client, operation, name) for name in (user, other, "root", "guest")] == ["rm", "", "rm", ""]
    for granting in ("admins", "superusers"):
        client.add_member(other, granting)
        assert may(client, operation, other) == "rm", granting
        client.remove_member(other, granting)
    assert may(client, operation, other) == ""


def test_check_operation_permission_lists_of_the_spec(client, start, user, other):
    entry = {"action": "allow", "subjects": [other], "permissions": ["read"]}
    for spec, expected in (
            ({"acl": [entry]}, ("rm", "r")), ({"acl": [{**entry, "permissions": ["manage"]}]}, ("rm", "m")),
            ({"acl": [{**entry, "subjects": [group(client, other)]}]}, ("rm", "r")), ({"acl": [{**entry, "subjects": ["everyone"]}]}, ("rm", "r")),
            ({"acl": [{**entry, "action": "deny", "subjects": ["users"], "permissions": ["manage"]}]}, ("r", "")),
            ({"add_authenticated_user_to_acl": False}, ("", "")), ({"add_authenticated_user_to_acl": False, "acl": [entry]}, ("", "r"))):
        operation = start(**spec)
        assert (may(client, operation, user), may(client, operation, other)) == expected, spec
    assert "m" in may(client, start(owners=[other]), other), "the old form of an entry to manage"


def test_check_operation_permission_lists_that_change(client, start, user, other):
    operation = start()
    client.update_operation_parameters(operation, {"acl": [{"action": "allow", "subjects": [other], "permissions": ["manage"]}]})
    assert (may(client, operation, other), may(client, operation, user)) == ("m", "rm")
    client.update_operation_parameters(operation, {"acl": []})
    assert may(client, operation, other) == ""


def test_check_operation_permission_an_operation_that_is_over(cluster, client, start, user, other):
    operation = start(acl=[{"action": "allow", "subjects": [other], "permissions": ["read"]}])
    client.abort_operation(operation)
    cluster.wait_state(operation, "aborted")
    assert (may(client, operation, user), may(client, operation, other)) == ("rm", "r")


def test_check_operation_permission_by_alias(client, start, user):
    alias = f"*{fresh('checked')}"
    start(alias=alias)
    for name, expected in ((user, "allow"), ("guest", "deny")):
        told = formatted(client, "check_operation_permission", operation_alias=alias, user=name, permission="read")
        assert told == {"action": expected}


def test_check_operation_permission_parameters(client, start, user):
    operation = start()
    for parameters, code, words in (
            ({"permission": "write"}, 1, '"read" and "manage", found "write"'), ({"permission": None}, 1, '"permission"'),
            ({"user": None}, 1, '"user"'), ({"user": 5}, 1, '"user" must be string, found int64'),
            ({"user": "nobody"}, 500, 'No such user "nobody"')):
        with refused(code, words):
            formatted(client, "check_operation_permission", **{"operation_id": operation, "user": user, "permission": "read", **parameters})
    refuses_strange_operations(lambda **named: formatted(client, "check_operation_permission", user=user, permission="read", **named))
