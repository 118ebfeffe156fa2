"""Who else on the host can read what a cluster keeps on disk."""

import contextlib
import os
import pathlib
import resource
import stat
import subprocess

import pytest
from harness import BINARY, cluster as make_cluster, wait_for
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
    with make_cluster(nodes=1, start=False) as cluster:
        before = os.umask(0)
        try:
            cluster.start()
        finally:
            os.umask(before)
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


@pytest.mark.parametrize("kind", ["server", "node"])
def test_s2_tokens_that_others_can_read_are_refused(kind, tmp_path):
    """S2: another user who has read a token acts as its owner."""
    token, config = tmp_path / "token", tmp_path / "config.toml"
    token.write_text("robot abc\n")
    token.chmod(0o644)
    config.write_text(f'[server]\ntokens_file = "{token}"\n[node]\njoin_token_file = "{token}"\n')
    arguments = {"server": ["--listen", "127.0.0.1:0", "--auth"], "node": ["--server", "127.0.0.1:1", "--name", f"modes-{os.getpid()}"]}
    done = subprocess.run([str(a) for a in (BINARY, kind, *arguments[kind], "--data", tmp_path / "data", "--config", config)],
                          capture_output=True, text=True, timeout=180, stdin=subprocess.DEVNULL)
    assert done.returncode != 0 and f"{token} has mode 0644" in done.stderr, done.stderr


def core_limits(pid):
    """Soft and hard limit of the size of core files."""
    line = next(line for line in pathlib.Path(f"/proc/{pid}/limits").read_text().splitlines() if line.startswith("Max core file size"))
    return line.split()[4:6]


def children(pid):
    """Pids of all processes below a process. Threads and processes may end meanwhile."""
    found = []
    with contextlib.suppress(OSError):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                for child in (task / "children").read_text().split():
                    found += [int(child), *children(child)]
    return found


def test_core_dumps_are_off():
    """Server, agent, spawner, job proxy, and the job: a dump would have tokens and vaults in it. The supervisor of the
    test allows core files, as a shell of a developer does."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    if before[1] != resource.RLIM_INFINITY:
        pytest.skip("the test itself may not have core files")
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    try:
        with make_cluster(nodes=1) as cluster:
            cluster.create_pool("p")
            operation = cluster.start_vanilla("ulimit -c >&2; exec sleep 1000", pool="p")
            job = cluster.wait_jobs(operation)[0]
            agent = cluster.nodes[0].popen.pid
            # What a job got before, and still gets. It has its last processes when it has said so.
            stderr = wait_for(lambda: cluster.stderr(operation, job), what="the limit of the job")
            assert stderr.strip() in ("0", b"0"), stderr
            below = wait_for(lambda: (lambda found: found if len(found) >= 3 else None)(children(agent)), what="spawner, proxy and job",
                             seen=lambda: children(agent))
            assert core_limits(cluster.server.popen.pid) == core_limits(agent) == ["0", "0"]
            assert {pid: core_limits(pid) for pid in below} == dict.fromkeys(below, ["0", "0"])
            cluster.command("abort_operation", operation_id=operation)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)
