"""`revoke_token` through the real client."""

from calls import digest, tokens


def test_revoke_token(client, user):
    token = client.issue_token(user)
    client.revoke_token(user, token_sha256=digest(token))
    assert tokens(client, user) == []
