"""Logs of the processes (docs/operator-guide.md): what people read, and what machines do."""

import json
import pathlib

from harness import cluster as make_cluster, wait_for


def test_lines_for_machines():
    with make_cluster(nodes=0) as cluster:
        # The log is written beside the answers.
        wait_for(lambda: "the server is ready" in cluster.server.tail(), what="the line of a server that is ready", seen=cluster.server.tail)
        assert "DEBUG" not in cluster.server.tail()
        cluster.server.terminate()
        before = len(pathlib.Path(cluster.server.log).read_text().splitlines())
        cluster.server.arguments = [*cluster.server.arguments, "--json"]
        cluster.server.env = {**(cluster.server.env or {}), "MILLPOND_LOG": "debug"}
        cluster.server.start()
        cluster.wait_server()
        cluster.get("//sys/@cluster_name")

        def written():
            """Whole lines: the last one may be half written."""
            whole = pathlib.Path(cluster.server.log).read_text().rpartition("\n")[0]
            lines = [json.loads(line) for line in whole.splitlines()[before:]]
            assert all({"timestamp", "level", "fields", "target"} <= set(line) for line in lines)
            return lines

        def find(**fields):
            return next((line for line in written() if fields.items() <= line["fields"].items()), None)
        ready = wait_for(lambda: find(message="the server is ready"), what="the line of a server that is ready", seen=written)
        assert ready["level"] == "INFO" and ready["fields"]["address"] == cluster.address
        request = wait_for(lambda: find(command="get"), what="the line of the request", seen=written)
        assert request["level"] == "DEBUG" and request["fields"]["user"] == "root"
