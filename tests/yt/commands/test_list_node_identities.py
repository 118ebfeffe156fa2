"""`list_node_identities` through the real client."""

from calls import formatted


def test_list_node_identities(cluster, client):
    """S7: every node that is online has an identity."""
    found = formatted(client, "list_node_identities")
    assert sorted(found) == ["identities", "pending", "tokens"]
    names = {identity["name"]: identity for identity in found["identities"]}
    for node in cluster.nodes:
        identity = names[node.name]
        assert identity["state"] == "valid" and len(identity["key_sha256"]) == 64
        assert identity["creation_time"] < identity["valid_until"]
