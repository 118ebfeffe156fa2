"""`issue_token` through the real client."""

import pytest
import yt.wrapper
from calls import acting, denied, digest, formatted, fresh, known_by, refused, tokens


def test_issue_token(guarded):
    root = known_by(guarded, guarded.token)
    root.create("user", attributes={"name": "ann"})
    token = root.issue_token("ann")
    assert known_by(guarded, token).get_current_user()["user"] == "ann"
    with pytest.raises(yt.wrapper.YtTokenError):
        known_by(guarded, token[::-1]).list("/")


def test_issue_token_tokens_are_their_own(client, user):
    first, second = client.issue_token(user), formatted(client, "issue_token", user=user, description="laptop", password_sha256="0" * 64)
    assert isinstance(first, str) and len(first) >= 32 and first != second
    assert sorted(tokens(client, user)) == sorted(map(digest, (first, second)))


def test_issue_token_parameters(client, user):
    for parameters, code, words in (({}, 1, '"user"'), ({"user": 5}, 1, '"user" must be string, found int64 5'),
                                    ({"user": "nobody"}, 500, 'No such user "nobody"'),
                                    ({"user": "admins"}, 500, 'No such user "admins"'), ({"user": user, "description": 5}, 1, '"description"')):
        with refused(code, words):
            formatted(client, "issue_token", **parameters)
    assert tokens(client, user) == []


def test_issue_token_who_may(guarded):
    root = guarded.client()
    names = [fresh("user") for _ in range(2)]
    for name in names:
        root.create("user", attributes={"name": name})
    one, other = (acting(guarded, name) for name in names)
    assert known_by(guarded, one.issue_token(names[0])).get_current_user()["user"] == names[0]
    for name in (names[0], "root", "nobody"):
        with denied(other, "administer"):
            formatted(other, "issue_token", user=name)
    assert tokens(root, names[0]) and not tokens(root, names[1])
    # Who may administer a user may not thereby become one who may do everything.
    root.set(f"//sys/users/{names[0]}/@acl", [{"action": "allow", "subjects": [names[1]], "permissions": ["administer"]}])
    assert other.issue_token(names[0])
    root.add_member(names[0], "superusers")
    with denied(other, "administer"):
        formatted(other, "issue_token", user=names[0])
    root.remove_member(names[0], "superusers")


def test_issue_token_a_repeated_mutation(client, user):
    first, again = (formatted(client, "issue_token", user=user, mutation_id="1-2-8403-1", retry=retry) for retry in (False, True))
    assert first == again and tokens(client, user) == [digest(first)]
