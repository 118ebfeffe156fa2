"""`revoke_join_token` through the real client."""

from calls import formatted, fresh, raw, refused


def test_revoke_join_token(client):
    """S7."""
    name = fresh("node")
    raw(client, "create_join_token", name=name)
    known = [token["token_sha256"] for token in formatted(client, "list_node_identities")["tokens"] if token.get("name") == name]
    assert len(known) == 1
    raw(client, "revoke_join_token", token_sha256=known[0])
    assert known[0] not in [token["token_sha256"] for token in formatted(client, "list_node_identities")["tokens"]]
    with refused(500, "No such join token"):
        raw(client, "revoke_join_token", token_sha256=known[0])
    with refused(1, '"token_sha256"'):
        raw(client, "revoke_join_token")
