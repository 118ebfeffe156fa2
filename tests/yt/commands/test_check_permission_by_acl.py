"""`check_permission_by_acl` through the real client."""

from calls import formatted, group, refused


def test_check_permission_by_acl(client, user):
    acl = [{"action": "allow", "subjects": [user], "permissions": ["read"]}]
    assert formatted(client, "check_permission_by_acl", user=user, permission="read", acl=acl)["action"] == "allow"
    assert formatted(client, "check_permission_by_acl", user=user, permission="write", acl=acl)["action"] == "deny"


def asked(client, user, *acl, permission="read"):
    return formatted(client, "check_permission_by_acl", user=user, permission=permission, acl=list(acl))


def test_check_permission_by_acl_decisions(client, user):
    allow = {"action": "allow", "subjects": [user], "permissions": ["read", "use"]}
    team = group(client, user)
    for acl, expected in (([], "deny"), ([allow], "allow"), ([{**allow, "permissions": []}], "deny"), ([{**allow, "subjects": []}], "deny"),
                          ([allow, {**allow, "action": "deny", "subjects": [team]}], "deny"), ([{**allow, "subjects": [team]}], "allow"),
                          ([{**allow, "subjects": ["everyone"]}], "allow"), ([{**allow, "subjects": ["admins"]}], "deny"),
                          ([{**allow, "inheritance_mode": "object_only"}], "allow"), ([{**allow, "inheritance_mode": "descendants_only"}], "deny"),
                          ([{**allow, "inheritance_mode": "immediate_descendants_only"}], "deny"),
                          ([{**allow, "permissions": ["read"], "columns": ["a"]}], "deny")):
        assert asked(client, user, *acl) == {"action": expected, "missing_subjects": []}, acl
    assert asked(client, user, allow, permission="use")["action"] == "allow"
    assert asked(client, "root", {**allow, "action": "deny", "subjects": ["everyone"]}) == {"action": "allow", "missing_subjects": []}


def test_check_permission_by_acl_missing_subjects(client, user):
    acl = [{"action": "allow", "subjects": ["zed", user, "abe"], "permissions": ["read"]},
           {"action": "deny", "subjects": ["zed"], "permissions": ["use"]}]
    assert asked(client, user, *acl) == {"action": "allow", "missing_subjects": ["abe", "zed"]}


def test_check_permission_by_acl_parameters(client, user):
    ace = {"action": "allow", "subjects": [user], "permissions": ["read"]}
    for parameters, code, words in (
            ({"user": "nobody"}, 500, 'No such user "nobody"'), ({"user": None}, 1, '"user"'), ({"acl": None}, 1, '"acl"'),
            ({"permission": None}, 1, '"permission"'), ({"permission": "reed"}, 1, 'Unknown permission "reed": expected one of read'),
            ({"acl": {}}, 1, "expected list, found map"), ({"acl": [5]}, 1, "expected map, found int64"),
            ({"acl": [{**ace, "action": "permit"}]}, 1, '"permit": expected one of allow, deny'),
            ({"acl": [{**ace, "subject": user}]}, 1, '"subject"'),
            ({"acl": [{**ace, "permissions": ["reed"]}]}, 1, '"reed"'), ({"acl": [{**ace, "subjects": user}]}, 1, '"subjects"'),
            ({"acl": [{**ace, "inheritance_mode": "all"}]}, 1, '"all": expected one of object_and_descendants'),
            ({"acl": [{"action": "allow", "subjects": [user]}]}, 1, 'Missing key "permissions"'),
            ({"acl": [{**ace, "permissions": ["write"], "columns": ["a"]}]}, 1, '"columns"')):
        with refused(code, words):
            formatted(client, "check_permission_by_acl", **{"user": user, "permission": "read", "acl": [ace], **parameters})
