"""Logs of the processes (docs/operator-guide.md): what people read, and what machines do."""

import json
import pathlib

from harness import cluster as make_cluster


def test_lines_for_machines():
    with make_cluster(nodes=0) as cluster:
        assert "the server is ready" in cluster.server.tail() and "DEBUG" not in cluster.server.tail()
        cluster.server.terminate()
        before = len(pathlib.Path(cluster.server.log).read_text().splitlines())
        cluster.server.arguments = [*cluster.server.arguments, "--json"]
        cluster.server.env = {**(cluster.server.env or {}), "MILLPOND_LOG": "debug"}
        cluster.server.start()
        cluster.wait_server()
        cluster.get("//sys/@cluster_name")
        lines = [json.loads(line) for line in pathlib.Path(cluster.server.log).read_text().splitlines()[before:]]
        assert all({"timestamp", "level", "fields", "target"} <= set(line) for line in lines)
        ready = next(line for line in lines if line["fields"]["message"] == "the server is ready")
        assert ready["level"] == "INFO" and ready["fields"]["address"] == cluster.address
        request = next(line for line in lines if line["fields"].get("command") == "get")
        assert request["level"] == "DEBUG" and request["fields"]["user"] == "root"
