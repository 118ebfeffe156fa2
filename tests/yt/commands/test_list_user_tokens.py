"""`list_user_tokens` through the real client."""

from calls import digest, tokens


def test_list_user_tokens(client, user):
    token = client.issue_token(user)
    assert tokens(client, user) == [digest(token)]
