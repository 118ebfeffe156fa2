"""`get_version` through the real client."""

from calls import formatted


def test_get_version(cluster, client):
    assert cluster.millpond("--version")[1].split() == ["millpond", formatted(client, "get_version")["version"]]
