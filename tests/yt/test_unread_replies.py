"""Replies that clients ask for and do not read."""

import contextlib
import json
import socket

import pytest
from harness import ServerError, cluster as make_cluster, wait_for


def memory(process):
    """Resident bytes."""
    with open(f"/proc/{process.popen.pid}/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS:"))


def ask_and_do_not_read(cluster, path):
    parameters = json.dumps({"path": path})
    connection = socket.create_connection(("127.0.0.1", cluster.port))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.sendall(f"GET /api/v4/get HTTP/1.1\r\nHost: {cluster.address}\r\nX-YT-Parameters: {parameters}\r\n\r\n".encode())
    return connection


def test_s14_replies_that_nobody_reads_are_bounded():
    """S14: thirty clients that asked for a large value and did not read cost three gigabytes."""
    parts = 200
    size = parts * 60_000
    with make_cluster(nodes=0, server_config='max_unread_bytes_per_user = "16MiB"') as cluster:
        cluster.command("create", type="document", path="//tmp/large")
        cluster.command("set", path="//tmp/large", value={f"part-{i}": "x" * 60_000 for i in range(parts)})
        before = memory(cluster.server)
        readers = [ask_and_do_not_read(cluster, "//tmp/large") for _ in range(30)]
        answers = [reader.recv(16) for reader in readers]
        accepted = [reader for reader, answer in zip(readers, answers) if answer.startswith(b"HTTP/1.1 200")]
        assert len(accepted) == 1, answers
        # The value, its written form, and what the allocator keeps; it gives back the rest when the server does something.
        def grown():
            cluster.get("//tmp/@type")
            return memory(cluster.server) - before
        wait_for(lambda: grown() < 8 * size, what="the memory of refused replies to be free", seen=lambda: f"{grown() >> 20} MiB more")
        with pytest.raises(ServerError) as refused:
            cluster.get("//tmp/large")
        assert refused.value.error["code"] == 904 and "not read yet" in refused.value.error["message"]
        assert cluster.get("//tmp/@type") == "map_node", "small replies go on"
        for reader in readers:
            reader.close()

        def is_read():
            with contextlib.suppress(ServerError):
                return len(cluster.get("//tmp/large")) == parts
        wait_for(is_read, what="room for the reply")


def peak(process):
    """The most resident bytes since `forget_peak`."""
    with open(f"/proc/{process.popen.pid}/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))


def forget_peak(process):
    with open(f"/proc/{process.popen.pid}/clear_refs", "w") as file:
        file.write("5")


def test_s14_values_are_not_copied_before_they_are_counted():
    """S14: of thirty questions that come at once each had a copy of its own before most of them were refused."""
    parts = 200
    size = parts * 60_000
    with make_cluster(nodes=0, server_config='max_unread_bytes_per_user = "16MiB"') as cluster:
        cluster.command("create", type="document", path="//tmp/large")
        cluster.command("set", path="//tmp/large", value={f"part-{i}": "x" * 60_000 for i in range(parts)})
        cluster.command("create", type="map_node", path="//tmp/other", attributes={"large": ["x" * 60_000] * parts})
        for path in ("//tmp/large", "//tmp/other/@large"):
            before = memory(cluster.server)
            forget_peak(cluster.server)
            question = {"command": "get", "parameters": {"path": path}}
            results = cluster.command("execute_batch", requests=[question] * 30)["results"]
            answered = [result["output"]["value"] for result in results if "output" in result]
            assert len(answered) == 1 and len(answered[0]) == parts
            assert {result["error"]["code"] for result in results if "error" in result} == {904}
            assert peak(cluster.server) - before < 8 * size, f"{(peak(cluster.server) - before) >> 20} MiB for {size >> 20} MiB"
