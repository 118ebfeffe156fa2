"""`add_member` through the real client."""

import pytest
from calls import acting, denied, formatted, fresh, group, refused


@pytest.fixture
def groups(client):
    """The first is in the second, and that in the third."""
    names = [fresh("group") for _ in range(3)]
    for name in names:
        client.create("group", attributes={"name": name})
    for inner, outer in zip(names, names[1:]):
        client.add_member(inner, outer)
    return names


def members(client, name):
    return list(client.get(f"//sys/groups/{name}/@members"))


def test_add_member(client, user):
    assert client.get(f"//sys/groups/{group(client, user)}/@members") == [user]


def test_add_member_what_it_makes_of_the_user(client, user, groups):
    assert formatted(client, "add_member", group=groups[0], member=user) == {}
    assert sorted(client.get(f"//sys/users/{user}/@member_of")) == sorted([groups[0], "users"])
    assert sorted(client.get(f"//sys/users/{user}/@member_of_closure")) == sorted([*groups, "users", "everyone"])
    assert sorted(client.get(f"//sys/groups/{groups[0]}/@member_of")) == [groups[1]]


def test_add_member_cycles(client, groups):
    first, second, third = groups
    for member, into in ((first, first), (third, first), (second, first), (third, second)):
        with refused(1, f'"{member}" cannot become a member of "{into}"'):
            client.add_member(member, into)
    assert [members(client, name) for name in groups] == [[], [first], [second]]
    client.add_member(first, third)  # by two ways, but not in a circle


def test_add_member_who_is_not_there(client, user, groups):
    for member, into, words in ((user, "nothing", 'No such group "nothing"'), ("nobody", groups[0], 'No such user "nobody"'),
                                (user, user, f'No such group "{user}"')):
        with refused(500, words):
            client.add_member(member, into)
    assert members(client, groups[0]) == []


def test_add_member_twice(client, user, groups):
    client.add_member(user, groups[0])
    for member, into in ((user, groups[0]), (groups[0], groups[1])):
        with refused(908, f'"{member}" is already a member of group "{into}"'):
            client.add_member(member, into)


def test_add_member_groups_of_all(client, user, groups):
    for into in ("everyone", "users"):
        for member in (user, groups[0]):
            with refused(1, f'"{into}" cannot be changed'):
                client.add_member(member, into)
    with refused(1, '"everyone" cannot become a member'):
        client.add_member("everyone", groups[0])
    client.add_member("users", groups[0])
    assert groups[2] in client.get(f"//sys/users/{user}/@member_of_closure")
    client.remove_member("users", groups[0])


def test_add_member_parameters(client, user, groups):
    for parameters, words in (({"group": groups[0]}, '"member"'), ({"member": user}, '"group"'),
                              ({"group": groups[0], "member": 5}, '"member" must be string, found int64 5'),
                              ({"group": [], "member": user}, '"group"')):
        with refused(1, words):
            formatted(client, "add_member", **parameters)


def test_add_member_transactions_do_not_matter(client, user, groups, transaction):
    id, inside = transaction
    inside.add_member(user, groups[0])
    assert members(client, groups[0]) == [user]
    client.abort_transaction(id)
    assert members(client, groups[0]) == [user]


def test_add_member_a_repeated_mutation(client, user, groups):
    parameters = {"group": groups[0], "member": user, "mutation_id": "1-2-8401-1"}
    for retry in (False, True, False):
        assert formatted(client, "add_member", **parameters, retry=retry) == {}
    with refused(908):
        formatted(client, "add_member", **{**parameters, "mutation_id": "1-2-8401-2"}, retry=True)
    # What failed has failed.
    name = fresh("group")
    late = {"group": name, "member": user, "mutation_id": "1-2-8401-3"}
    with refused(500):
        formatted(client, "add_member", **late)
    client.create("group", attributes={"name": name})
    with refused(500):
        formatted(client, "add_member", **late, retry=True)
    assert members(client, name) == []


def test_add_member_a_mutation_is_of_its_user(cluster, client, user):
    """Another one has the same id: that is another mutation (http-api.md 2.8)."""
    names = [fresh("group") for _ in range(2)]
    made = []
    for who, name in zip(("root", user), names):
        client.create("group", attributes={"name": name})
        made.append(formatted(acting(cluster, who), "add_member", group=name, member=user, mutation_id="1-2-8401-4", retry=True))
    assert [members(client, name) for name in names] == [[user], [user]]


def test_add_member_a_group_that_is_removed_is_no_member(client, groups):
    client.remove(f"//sys/groups/{groups[0]}")
    assert members(client, groups[1]) == []
    client.create("group", attributes={"name": groups[0]})
    assert members(client, groups[1]) == []


def test_add_member_who_may(guarded):
    root = guarded.client()
    name, user = fresh("group"), fresh("user")
    root.create("user", attributes={"name": user})
    root.create("group", attributes={"name": name})
    own = acting(guarded, user)
    for into in (name, "admins"):
        with denied(own, "write"):
            own.add_member(user, into)
    root.set(f"//sys/groups/{name}/@acl", [{"action": "allow", "subjects": [user], "permissions": ["write"]}])
    own.add_member(user, name)
    # Whoever may write to a group does not make himself one who may do everything.
    inner = fresh("group")
    root.create("group", attributes={"name": inner, "acl": [{"action": "allow", "subjects": [user], "permissions": ["write"]}]})
    root.add_member(inner, "superusers")
    try:
        with denied(own, "administer"):
            own.add_member(user, inner)
        assert members(root, inner) == []
    finally:
        root.remove_member(inner, "superusers")
