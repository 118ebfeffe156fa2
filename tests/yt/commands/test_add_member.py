"""`add_member` through the real client."""

from calls import group


def test_add_member(client, user):
    assert client.get(f"//sys/groups/{group(client, user)}/@members") == [user]
