"""`approve_node` through the real client. Nodes that wait: tests/faults/test_node_identities.py."""

from calls import raw, refused


def test_approve_node_nobody_waits(client):
    """S7."""
    with refused(500, 'No node "nobody" waits for an approval'):
        raw(client, "approve_node", name="nobody")
    with refused(500, "with the key abc"):
        raw(client, "approve_node", name="nobody", key_sha256="abc")
    with refused(1, '"name"'):
        raw(client, "approve_node")
