"""`discover_proxies` through the real client."""

import json
import urllib.request

from calls import formatted, plain


def test_discover_proxies(cluster, client):
    assert formatted(client, "discover_proxies", type="http")["proxies"] == [cluster.address]


def test_discover_proxies_the_same_as_hosts(cluster, client):
    """Under the name by which this client has come."""
    proxies = formatted(client, "discover_proxies")
    assert proxies == {"proxies": [cluster.address]}
    for host in (cluster.address, f"localhost:{cluster.port}"):
        told = plain(cluster, "GET", "discover_proxies", Host=host)[2]
        with urllib.request.urlopen(urllib.request.Request(f"http://{cluster.address}/hosts?role=data", headers={"Host": host}), timeout=180) as reply:
            assert json.loads(told)["proxies"] == json.loads(reply.read()) == [host]


def test_discover_proxies_a_client_that_asks(cluster, client, home):
    client.config["proxy"]["enable_proxy_discovery"] = True
    client.write_table(f"{home}/t", [{"a": 1}])
    assert list(client.read_table(f"{home}/t")) == [{"a": 1}]
