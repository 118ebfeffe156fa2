"""`rotate_token`: a command of Millpond's own, so the real client sends it by its name."""

from calls import acting, denied, digest, formatted, fresh, known_by, refused, tokens


def test_rotate_token(guarded):
    root = guarded.client()
    name = fresh("user")
    root.create("user", attributes={"name": name})
    first = root.issue_token(name)
    own = known_by(guarded, first)
    second = formatted(own, "rotate_token", user=name, token_sha256=digest(first), grace=3_600_000)
    assert isinstance(second, str) and second != first
    assert own.get_current_user()["user"] == known_by(guarded, second).get_current_user()["user"] == name
    third = formatted(own, "rotate_token", user=name, token_sha256=digest(second))
    assert sorted(tokens(root, name)) == sorted(map(digest, (first, third)))


def test_rotate_token_parameters(client, user):
    token = client.issue_token(user)
    for parameters, code, words in (({"user": user}, 1, '"token_sha256"'), ({"token_sha256": digest(token)}, 1, '"user"'),
                                    ({"user": user, "token_sha256": "x"}, 1, '"token_sha256"'),
                                    ({"user": user, "token_sha256": "0" * 64}, 500, "has no such token"),
                                    ({"user": "root", "token_sha256": digest(token)}, 500, "has no such token"),
                                    ({"user": user, "token_sha256": digest(token), "ttl": 0}, 1, "ttl: expected"),
                                    ({"user": user, "token_sha256": digest(token), "grace": 10**18}, 1, "grace: expected")):
        with refused(code, words):
            formatted(client, "rotate_token", **parameters)
    assert tokens(client, user) == [digest(token)], "nothing half done"


def test_rotate_token_a_repeated_mutation(client, user):
    parameters = {"user": user, "token_sha256": digest(client.issue_token(user)), "mutation_id": "1-2-8404-2"}
    token = formatted(client, "rotate_token", **parameters)
    assert formatted(client, "rotate_token", **parameters, retry=True) == token
    assert tokens(client, user) == [digest(token)]


def test_rotate_token_who_may(guarded):
    root = guarded.client()
    names = [fresh("user") for _ in range(2)]
    for name in names:
        root.create("user", attributes={"name": name})
    token = root.issue_token(names[0])
    with denied(acting(guarded, names[1]), "administer"):
        formatted(acting(guarded, names[1]), "rotate_token", user=names[0], token_sha256=digest(token))
