"""`revoke_node` through the real client. What becomes of the node: tests/faults/test_node_identities.py."""

from calls import raw, refused


def test_revoke_node_nobody(client):
    """S7."""
    with refused(500, '"nobody" has no identity'):
        raw(client, "revoke_node", name="nobody")
    with refused(1, '"name"'):
        raw(client, "revoke_node")
