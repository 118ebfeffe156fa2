"""`get_version` through the real client."""

import json
import urllib.request

from calls import formatted, plain


def test_get_version(cluster, client):
    assert cluster.millpond("--version")[1].split() == ["millpond", formatted(client, "get_version")["version"]]


def test_get_version_the_same_everywhere(cluster, client):
    version = formatted(client, "get_version")
    assert list(version) == ["version"]
    for method, body in (("GET", None), ("POST", b"{}")):
        assert json.loads(plain(cluster, method, "get_version", body=body)[2]) == version
    assert plain(cluster, "PUT", "get_version", body=b"")[0] == 405
    with urllib.request.urlopen(f"http://{cluster.address}/service", timeout=180) as reply:
        assert json.loads(reply.read())["version"] == version["version"]
