"""`remove_member` through the real client."""

from calls import acting, denied, formatted, fresh, group, refused


def test_remove_member(client, user):
    name = group(client, user)
    client.remove_member(user, name)
    assert client.get(f"//sys/groups/{name}/@members") == []


def test_remove_member_who_is_no_member(client, user):
    name, outer = group(client, user), fresh("group")
    client.create("group", attributes={"name": outer})
    client.add_member(name, outer)
    # Not directly is not at all.
    for member, out_of in ((user, outer), ("root", name), (name, name)):
        with refused(1, f'"{member}" is not a member of group "{out_of}"'):
            client.remove_member(member, out_of)
    for out_of in ("everyone", "users"):
        with refused(1, f'"{out_of}" cannot be changed'):
            client.remove_member(user, out_of)
    with refused(500, 'No such group "nothing"'):
        client.remove_member(user, "nothing")
    client.remove_member(name, outer)
    assert (client.get(f"//sys/groups/{outer}/@members"), client.get(f"//sys/groups/{name}/@members")) == ([], [user])


def test_remove_member_who_is_not_there(client, user):
    with refused(500, "nobody"):
        client.remove_member("nobody", group(client, user))


def test_remove_member_parameters(client, user):
    for parameters, word in (({"group": "admins"}, "member"), ({"member": user}, "group"), ({"group": 5, "member": user}, "group")):
        with refused(1, f'"{word}"'):
            formatted(client, "remove_member", **parameters)


def test_remove_member_a_repeated_mutation(client, user):
    parameters = {"group": group(client, user), "member": user, "mutation_id": "1-2-8402-1"}
    assert formatted(client, "remove_member", **parameters) == formatted(client, "remove_member", **parameters, retry=True) == {}
    with refused(1):
        formatted(client, "remove_member", **{**parameters, "mutation_id": "1-2-8402-2"})


def test_remove_member_who_may(guarded):
    root = guarded.client()
    name, user = fresh("group"), fresh("user")
    root.create("user", attributes={"name": user})
    root.create("group", attributes={"name": name})
    root.add_member(user, name)
    own = acting(guarded, user)
    with denied(own, "write"):
        own.remove_member(user, name)
    assert root.get(f"//sys/groups/{name}/@members") == [user]
    root.set(f"//sys/groups/{name}/@acl", [{"action": "allow", "subjects": [name], "permissions": ["write"]}])
    own.remove_member(user, name)
    with denied(own, "write"):
        own.add_member(user, name)
