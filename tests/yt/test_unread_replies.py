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


def ask_and_do_not_read(cluster, path, command="get"):
    parameters = json.dumps({"path": path})
    connection = socket.socket()
    # The system on the way keeps little: of whom takes small packets it takes few bytes.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    connection.connect(("127.0.0.1", cluster.port))
    connection.sendall(f"GET /api/v4/{command} HTTP/1.1\r\nHost: {cluster.address}\r\nX-YT-Parameters: {parameters}\r\n\r\n".encode())
    return connection


def read_on(connection, size):
    """So many bytes and more, fast."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    left = size
    while left > 0:
        piece = connection.recv(1 << 20)
        assert piece, f"{left} bytes are missing"
        left -= len(piece)


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


def test_s14_keys_count_like_strings():
    """S14: a document of long keys weighed 32 kilobytes, so each of thirty clients had its own copy of all of it."""
    keys = {f"{i:04000}": None for i in range(3_500)}
    size = 3_500 * 4_000
    with make_cluster(nodes=0, server_config='max_unread_bytes_per_user = "16MiB"') as cluster:
        cluster.command("create", type="document", path="//tmp/large")
        cluster.command("set", path="//tmp/large", value={"keys": keys})
        for path in ("//tmp/large", "//tmp/large/keys"):
            before = memory(cluster.server)
            readers = [ask_and_do_not_read(cluster, path) for _ in range(30)]
            answers = [reader.recv(16) for reader in readers]
            assert sum(answer.startswith(b"HTTP/1.1 200") for answer in answers) == 1, answers

            def grown():
                cluster.get("//tmp/@type")
                return memory(cluster.server) - before
            wait_for(lambda: grown() < 8 * size, what="the memory of refused replies to be free", seen=lambda: f"{grown() >> 20} MiB more")
            for reader in readers:
                reader.close()

            def is_answered():
                with contextlib.suppress(ServerError):
                    return bool(cluster.get(path))
            wait_for(is_answered, what="room for the reply")


def test_s14_many_replies_of_less_than_a_mebibyte_are_bounded():
    """S14: replies of 900 kilobytes were not counted, however many of them nobody read."""
    size = 900_000
    with make_cluster(nodes=0, server_config='max_unread_bytes_per_user = "16MiB"') as cluster:
        cluster.command("create", type="map_node", path="//tmp/other", attributes={"value": ["x" * 60_000] * 15})
        before = memory(cluster.server)
        readers = [ask_and_do_not_read(cluster, "//tmp/other/@value") for _ in range(200)]
        answers = [reader.recv(16) for reader in readers]
        accepted = [reader for reader, answer in zip(readers, answers) if answer.startswith(b"HTTP/1.1 200")]
        assert len(accepted) == (16 << 20) // size, answers

        def grown():
            cluster.get("//tmp/@type")
            return memory(cluster.server) - before
        wait_for(lambda: grown() < 64 << 20, what="the memory of refused replies to be free", seen=lambda: f"{grown() >> 20} MiB more")
        # They are read to their ends, one by one, and each makes room for another one.
        for reader in accepted[:3]:
            read_on(reader, size)
        wait_for(lambda: ask_and_do_not_read(cluster, "//tmp/other/@value").recv(16).startswith(b"HTTP/1.1 200"), what="room for the reply")
        for reader in readers:
            reader.close()


def test_s14_files_that_nobody_reads_keep_little():
    """S14: of each file or table that was read without being taken two mebibytes lay in the server."""
    size = 8 << 20
    clients = 300
    with make_cluster(nodes=0) as cluster:
        cluster.command("create", type="file", path="//tmp/file")
        cluster.client().write_file("//tmp/file", b"x" * size)
        before = memory(cluster.server)
        readers = [ask_and_do_not_read(cluster, "//tmp/file", "read_file") for _ in range(clients)]
        for reader in readers:
            assert reader.recv(16).startswith(b"HTTP/1.1 200")
        # What all clients are sent at once lies in the server as soon as it is under way.
        peak_of_all = []

        def is_still():
            peak_of_all.append(memory(cluster.server) - before)
            return len(peak_of_all) > 3 and max(peak_of_all[-3:]) - min(peak_of_all[-3:]) < 1 << 20
        wait_for(is_still, what="the readers to have all that they get", period=0.5, seen=lambda: f"{peak_of_all[-3:]}")
        grown = peak_of_all[-1]
        assert grown < clients * (512 << 10) + (64 << 20), f"{grown >> 20} MiB for {clients} readers"
        # A reader that begins to read gets everything.
        read_on(readers[0], size)
        for reader in readers:
            reader.close()
