"""`remove_node` through the real client (S19). A node that is lost: tests/faults/test_partition.py."""

import re

from calls import raw, refused


def test_a_connected_node_is_not_removed(client):
    node = str(client.list("//sys/cluster_nodes")[0])
    with refused(1, f"{re.escape(node)}.*is connected"):
        raw(client, "remove_node", address=node, lost=True)


def test_a_node_that_is_not_known(client):
    with refused(500, "nobody:1"):
        raw(client, "remove_node", address="nobody:1")


def test_the_address_is_required(client):
    with refused(1, "address"):
        raw(client, "remove_node")
