"""`remove_member` through the real client."""

from calls import group


def test_remove_member(client, user):
    name = group(client, user)
    client.remove_member(user, name)
    assert client.get(f"//sys/groups/{name}/@members") == []
