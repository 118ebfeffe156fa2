"""`extend_leases` through the real client (S19). What it does to jobs: tests/faults/test_partition.py."""

import json

import pytest
from calls import raw, refused
from yt.wrapper.driver import make_request
from harness import wait_for


def test_nodes_confirm_the_end_of_the_extension(client, cluster):
    reply = json.loads(make_request("extend_leases", {"period": 1000}, client=client))
    assert reply["node_count"] >= 1
    attributes = ["state", "leases_extended_until"]

    def confirmed():
        nodes = client.list("//sys/cluster_nodes", attributes=attributes)
        online = [n for n in nodes if n.attributes["state"] == "online"]
        return online and all(n.attributes.get("leases_extended_until", "") >= reply["until"] for n in online)
    wait_for(confirmed, what="all nodes to confirm the extension")


@pytest.mark.parametrize("period", [0, 8 * 86_400_000])
def test_periods_out_of_range_are_refused(client, period):
    with refused(1, "period.*7 days"):
        raw(client, "extend_leases", period=period)


def test_the_period_is_required(client):
    with refused(1, "period"):
        raw(client, "extend_leases")
