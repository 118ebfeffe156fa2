"""Who else on the host can read what a cluster keeps on disk."""

import os
import pathlib
import stat

from harness import cluster as make_cluster
from test_jobs import upload


def open_to_others(directory):
    """What lies in a directory and has permissions for its group or for others."""
    found = []
    for folder, folders, files in os.walk(directory):
        for name in [".", *files, *folders]:
            path = pathlib.Path(folder, name)
            status = path.lstat()
            if not stat.S_ISLNK(status.st_mode) and status.st_mode & 0o077:
                found.append((str(path), oct(status.st_mode)))
    return found


def data_directories(cluster):
    server = cluster.directory / "server"
    nodes = [path for path in cluster.directory.iterdir() if path.name.startswith("node") and path.is_dir()]
    assert server.is_dir() and len(nodes) == len(cluster.nodes), sorted(cluster.directory.iterdir())
    return server, nodes


def test_s2_s3_data_is_closed_to_others():
    """S2, S3: the store, blobs, tokens and the event log were readable by everybody on the host, and so were records of
    jobs, with their vaults. A node's data lies behind one closed door: what is inside belongs to the users of jobs."""
    with make_cluster(nodes=1) as cluster:
        cluster.create_pool("p")
        upload(cluster, "//tmp/file", b"x" * 100_000)
        cluster.run_vanilla("cat file >&2", pool="p", file_paths=["//tmp/file"], spec={"secure_vault": {"key": "secret"}})
        server, nodes = data_directories(cluster)
        assert open_to_others(server) == []
        assert [path.stat().st_mode & 0o7777 for path in nodes] == [0o700] * len(nodes)


def test_s2_data_that_was_open_is_closed_at_the_start():
    """S2: data of an earlier release is taken over, with a warning."""
    with make_cluster(nodes=1) as cluster:
        server, nodes = data_directories(cluster)
        for process in [*cluster.nodes, cluster.server]:
            process.terminate()
        for directory in [server, *nodes]:
            for folder, _, files in os.walk(directory):
                os.chmod(folder, 0o755)
                for name in files:
                    os.chmod(pathlib.Path(folder, name), 0o644)
        cluster.restart()
        assert open_to_others(server) == []
        assert [path.stat().st_mode & 0o7777 for path in nodes] == [0o700] * len(nodes)
        assert "were open to other users of this host" in cluster.server.tail(1000)
