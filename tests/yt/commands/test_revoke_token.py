"""`revoke_token` through the real client."""

import pytest
import yt.wrapper
from calls import acting, denied, digest, formatted, fresh, known_by, refused, tokens


def test_revoke_token(client, user):
    token = client.issue_token(user)
    client.revoke_token(user, token_sha256=digest(token))
    assert tokens(client, user) == []


def test_revoke_token_one_of_several(client, user):
    first, second = client.issue_token(user), client.issue_token(user)
    client.revoke_token(user, token=first)
    assert tokens(client, user) == [digest(second)]
    for gone in (first, "never-was"):
        with refused(500, f'User "{user}" has no such token'):
            client.revoke_token(user, token=gone)
    assert formatted(client, "revoke_token", user=user, token_sha256=digest(second)) == {}


def test_revoke_token_of_another(client, user):
    token = client.issue_token(user)
    for name in ("root", "nobody"):
        with refused(500, f'User "{name}" has no such token'):
            client.revoke_token(name, token=token)
    assert tokens(client, user) == [digest(token)]


def test_revoke_token_parameters(client, user):
    for odd in ("x", "0" * 63, "G" * 64, "", "../passwords"):
        with refused(1, '"token_sha256"'):
            formatted(client, "revoke_token", user=user, token_sha256=odd)
    for parameters, word in (({"user": user}, "token_sha256"), ({"token_sha256": "0" * 64}, "user"),
                             ({"user": user, "token_sha256": 5}, "token_sha256")):
        with refused(1, f'"{word}"'):
            formatted(client, "revoke_token", **parameters)


def test_revoke_token_a_repeated_mutation(client, user):
    parameters = {"user": user, "token_sha256": digest(client.issue_token(user)), "mutation_id": "1-2-8404-1"}
    assert formatted(client, "revoke_token", **parameters) == formatted(client, "revoke_token", **parameters, retry=True) == {}


def test_revoke_token_who_may(guarded):
    root = guarded.client()
    names = [fresh("user") for _ in range(2)]
    for name in names:
        root.create("user", attributes={"name": name})
    token = root.issue_token(names[0])
    own, other = known_by(guarded, token), acting(guarded, names[1])
    with denied(other, "administer"):
        other.revoke_token(names[0], token=token)
    # Under his own name it is not his.
    with refused(500, "has no such token"):
        other.revoke_token(names[1], token=token)
    assert own.get_current_user()["user"] == names[0]
    own.revoke_token(names[0], token=token)
    with pytest.raises(yt.wrapper.YtTokenError):
        formatted(own, "get_current_user")
