"""`check_permission` through the real client."""

import pytest
from calls import NO_OPERATION, acting, closed, formatted, fresh, group, refused, vanilla


def ace(subject, *permissions, action="allow", **more):
    return {"action": action, "subjects": [subject], "permissions": list(permissions), **more}


@pytest.fixture
def place(client, home):
    """A map in a map in a map, and its list, which nothing is inherited by."""
    client.create("map_node", f"{home}/a/b/c", recursive=True, attributes={})
    client.set(f"{home}/a/@inherit_acl", False)
    return f"{home}/a"


def test_check_permission(client, user):
    assert client.check_permission(user, "read", "//tmp")["action"] == "allow"


def test_check_permission_which_entry_it_was(client, user, place):
    assert client.check_permission(user, "write", place) == {"action": "deny"}, "no entry speaks of it"
    client.set(f"{place}/@acl", [ace(user, "write")])
    allowed = client.check_permission(user, "write", f"{place}/b/c")
    assert allowed == {"action": "allow", "object_id": client.get(f"{place}/@id"), "object_name": place,
                       "subject_id": client.get(f"//sys/users/{user}/@id"), "subject_name": user}
    team = group(client, user)
    client.set(f"{place}/b/@acl", [ace(team, "write", action="deny")])
    denied = client.check_permission(user, "write", f"{place}/b/c")
    assert denied == {"action": "deny", "object_id": client.get(f"{place}/b/@id"), "object_name": f"{place}/b",
                      "subject_id": client.get(f"//sys/groups/{team}/@id"), "subject_name": team}
    assert client.check_permission(user, "write", place)["action"] == "allow"
    assert client.check_permission(user, "read", f"{place}/b/c") == {"action": "deny"}


def test_check_permission_groups_in_groups(client, user, place):
    outer = fresh("group")
    client.create("group", attributes={"name": outer})
    client.add_member(group(client, user), outer)
    client.set(f"{place}/@acl", [ace(outer, "read")])
    assert client.check_permission(user, "read", place)["subject_name"] == outer
    client.remove_member(client.get(f"//sys/groups/{outer}/@members")[0], outer)
    assert client.check_permission(user, "read", place)["action"] == "deny"


def test_check_permission_built_in_groups(client, user, place):
    for subject, expected in (("everyone", ("allow", "allow")), ("users", ("allow", "deny")), ("superusers", ("deny", "deny"))):
        client.set(f"{place}/@acl", [ace(subject, "read")])
        assert tuple(client.check_permission(name, "read", place)["action"] for name in (user, "guest")) == expected, subject


def test_check_permission_who_passes_everything(client, user, place):
    client.set(f"{place}/@acl", [ace("everyone", "write", action="deny")])
    client.add_member(user, "superusers")
    for name in (user, "root"):
        assert client.check_permission(name, "write", place) == {"action": "allow"}
    client.remove_member(user, "superusers")
    assert client.check_permission(user, "write", place)["action"] == "deny"


@pytest.mark.parametrize("mode, expected", [
    ("object_and_descendants", "+++"), ("object_only", "+--"), ("descendants_only", "-++"), ("immediate_descendants_only", "-+-")])
def test_check_permission_inheritance(client, user, place, mode, expected):
    client.set(f"{place}/@acl", [ace(user, "write", inheritance_mode=mode)])
    found = [client.check_permission(user, "write", place + below)["action"] for below in ("", "/b", "/b/c")]
    assert "".join("+" if action == "allow" else "-" for action in found) == expected
    client.set(f"{place}/b/@inherit_acl", False)
    assert client.check_permission(user, "write", f"{place}/b/c")["action"] == "deny"


def test_check_permission_paths(client, user, place):
    client.set(f"{place}/@acl", [ace(user, "write")])
    client.link(place, f"{place}-link")
    for path, expected in ((f"{place}-link", "allow"), (f"{place}-link/b", "allow"), (f"#{client.get(f'{place}/b/@id')}", "allow"),
                           (f"{place}/@type", "allow"), ("//sys", "deny")):
        assert client.check_permission(user, "write", path)["action"] == expected, path
    assert client.check_permission(user, "write", f"{place}-link&").get("object_name") != place
    # A pool has the list of those above it.
    assert client.check_permission(user, "use", "//sys/pool_trees/physical")["object_name"] == "//sys/pool_trees"
    for path in (f"{place}/nothing", f"{place}/b/nothing/c", "#1-2-1012f-3"):
        with refused(500):
            client.check_permission(user, "read", path)


def test_check_permission_parameters(client, user):
    for parameters, code, words in (
            ({"user": "nobody"}, 500, 'No such user "nobody"'), ({"user": "admins"}, 500, 'No such user "admins"'),
            ({"permission": "reed"}, 1, 'Unknown permission "reed": expected one of read, write, use'),
            ({"permission": 5}, 1, '"permission" must be string, found int64 5'), ({"path": "tmp"}, 1, '"path"'), ({"path": None}, 1, '"path"'),
            ({"user": None}, 1, '"user"'), ({"permission": None}, 1, '"permission"'), ({"columns": "a"}, 1, '"columns" must be list of strings')):
        with refused(code, words):
            formatted(client, "check_permission", **{"user": user, "permission": "read", "path": "//tmp", **parameters})


def test_check_permission_in_a_transaction(client, home, transaction):
    _, inside = transaction
    inside.create("map_node", f"{home}/m")
    assert inside.check_permission("root", "read", f"{home}/m") == {"action": "allow"}
    with refused(500):
        client.check_permission("root", "read", f"{home}/m")


def test_check_permission_columns_are_for_reading(client, home, user):
    acl = [ace(user, "read", "write"), ace("root", "read", columns=["pay"])]
    client.create("table", f"{home}/t", attributes={"acl": acl})
    assert client.check_permission(user, "read", f"{home}/t", columns=["pay"])["columns"][0]["action"] == "deny"
    assert client.check_permission(user, "write", f"{home}/t", columns=["pay"])["columns"][0]["action"] == "allow"


def test_check_permission_of_operations(cluster, client, pool, user):
    """Their own list counts, whatever the path: as `check_operation_permission` tells it."""
    other = fresh("other")
    client.create("user", attributes={"name": other})
    operation = vanilla(acting(cluster, user), pool, acl=[ace(other, "read")])
    place = client.get(f"#{operation}/@path")
    for over in (False, True):
        for path in (place, f"//sys/operations/{operation}", f"#{operation}", f"{place}/@state"):
            for name, expected in ((user, "rm"), (other, "r"), ("guest", ""), ("root", "rm")):
                told = {permission: client.check_permission(name, permission, path) for permission in ("read", "manage")}
                assert "".join(p[0] for p, answer in told.items() if answer["action"] == "allow") == expected, (name, path, over)
                for permission, answer in told.items():
                    whole = formatted(client, "check_operation_permission", operation_id=operation, user=name, permission=permission)
                    assert whole["action"] == answer["action"]
        if not over:
            client.abort_operation(operation)
    assert client.check_permission(other, "read", f"#{operation}") == {
        "action": "allow", "object_id": operation, "object_name": place,
        "subject_id": client.get(f"//sys/users/{other}/@id"), "subject_name": other}
    assert client.check_permission(other, "read", "//sys/operations")["action"] == "allow", "the map is for all to read"
    for nothing in (f"{place}/nothing", f"//sys/operations/{NO_OPERATION}"):
        with refused(500):
            client.check_permission(other, "read", nothing)


def test_check_permission_by_others(guarded):
    """Anybody may ask about anybody, but is not told of what he may not see."""
    path, reader, stranger = closed(guarded, "map_node")
    name = reader.config["impersonation_user"]
    assert reader.check_permission(name, "read", path)["object_name"] == path
    assert stranger.check_permission(name, "read", path) == {"action": "allow"}
    for asked in (path, f"{path}/nothing"):
        assert stranger.check_permission(stranger.config["impersonation_user"], "read", asked) == {"action": "deny"}
    with refused(500):
        reader.check_permission(name, "read", f"{path}/nothing")
    # What the client asks before it makes a token.
    for user, expected in ((name, "allow"), ("root", "deny")):
        assert reader.check_permission(name, "administer", f"//sys/users/{user}")["action"] == expected
    assert acting(guarded, "root").check_permission("root", "administer", f"//sys/users/{name}") == {"action": "allow"}
