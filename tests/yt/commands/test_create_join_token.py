"""`create_join_token` through the real client. What nodes do with them: tests/faults/test_node_identities.py."""

from calls import formatted, fresh, known_by, raw, refused


def listed(client, name):
    return [token for token in formatted(client, "list_node_identities")["tokens"] if token.get("name") == name]


def test_create_join_token(client):
    """S7."""
    name = fresh("node")
    first, second = raw(client, "create_join_token", name=name), raw(client, "create_join_token", name=name, ttl=1000, replace=True)
    form, authority, secret = first.split(".")
    assert form == "millpond-join-1" and len(authority) == len(secret) == 64 and first != second
    assert second.split(".")[1] == authority, "one server has one authority"
    assert sorted((token["replace"], token["used"]) for token in listed(client, name)) == [(False, False), (True, False)]


def test_create_join_token_parameters(client):
    for parameters, words in (({"name": ""}, "Name of a node: expected 1 to 253 letters"), ({"name": "a;b"}, 'found "a;b"'),
                              ({"name": "x" * 254}, "254 bytes"), ({"name": 5}, '"name"'), ({"ttl": 0}, "ttl: expected a time from 1 ms"),
                              ({"ttl": 10**15}, "to 365 d"), ({"replace": True}, "replace: expected a token with a name")):
        with refused(1, words):
            raw(client, "create_join_token", **parameters)


def test_create_join_token_a_repeated_mutation(client):
    name = fresh("node")
    first, again = (raw(client, "create_join_token", name=name, mutation_id="1-2-8403-7", retry=retry) for retry in (False, True))
    assert first == again and len(listed(client, name)) == 1


def test_create_join_token_who_may(guarded):
    root = known_by(guarded, guarded.token)
    name = fresh("user")
    root.create("user", attributes={"name": name})
    with refused(901, "administer"):
        raw(known_by(guarded, root.issue_token(name)), "create_join_token")
