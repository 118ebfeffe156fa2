"""`discover_proxies` through the real client."""

from calls import formatted


def test_discover_proxies(cluster, client):
    assert formatted(client, "discover_proxies", type="http")["proxies"] == [cluster.address]
