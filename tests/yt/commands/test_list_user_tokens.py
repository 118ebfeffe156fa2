"""`list_user_tokens` through the real client."""

import json

from calls import acting, denied, digest, formatted, fresh, plain, refused, tokens


def test_list_user_tokens(client, user):
    token = client.issue_token(user)
    assert tokens(client, user) == [digest(token)]


def test_list_user_tokens_the_answer_is_a_bare_list(cluster, client, user):
    assert tokens(client, user) == formatted(client, "list_user_tokens", user=user) == []
    digests = sorted(digest(client.issue_token(user)) for _ in range(3))
    assert sorted(formatted(client, "list_user_tokens", user=user)) == digests
    assert sorted(json.loads(plain(cluster, "GET", "list_user_tokens", {"user": user})[2])) == digests


def test_list_user_tokens_metadata(client, user):
    described, plain_one = formatted(client, "issue_token", user=user, description="laptop"), client.issue_token(user)
    told = formatted(client, "list_user_tokens", user=user, with_metadata=True)
    assert set(told) == {digest(described), digest(plain_one)}
    assert told[digest(described)]["description"] == "laptop" and told[digest(described)]["creation_time"].endswith("Z")
    assert "description" not in told[digest(plain_one)]
    assert "laptop" not in json.dumps(formatted(client, "list_user_tokens", user=user, with_metadata=False))


def test_list_user_tokens_parameters(client, user):
    for parameters, code, words in (({}, 1, '"user"'), ({"user": "nobody"}, 500, 'No such user "nobody"'), ({"user": 5}, 1, '"user"'),
                                    ({"user": user, "with_metadata": "yes"}, 1, '"with_metadata" must be boolean, found string')):
        with refused(code, words):
            formatted(client, "list_user_tokens", **parameters)


def test_list_user_tokens_tokens_of_who_was_removed(client, user):
    client.issue_token(user)
    client.remove(f"//sys/users/{user}")
    with refused(500, "No such user"):
        formatted(client, "list_user_tokens", user=user)
    client.create("user", attributes={"name": user})
    assert tokens(client, user) == [], "somebody else has the name now"


def test_list_user_tokens_who_may(guarded):
    root = guarded.client()
    names = [fresh("user") for _ in range(2)]
    for name in names:
        root.create("user", attributes={"name": name})
    token = root.issue_token(names[0])
    assert tokens(acting(guarded, names[0]), names[0]) == [digest(token)]
    for name in (names[0], "root", "nobody"):
        with denied(acting(guarded, names[1]), "administer"):
            formatted(acting(guarded, names[1]), "list_user_tokens", user=name)
    for path in ("//sys/tokens", f"//sys/tokens/{digest(token)}", f"//sys/tokens/{digest(token)}/@user"):
        with denied(acting(guarded, names[0]), "read"):
            acting(guarded, names[0]).get(path)
