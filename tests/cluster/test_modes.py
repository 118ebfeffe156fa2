"""Who else on the host can read what a cluster keeps on disk."""

import contextlib
import json
import os
import pathlib
import re
import resource
import stat
import subprocess
import urllib.request

import pytest
from harness import BINARY, cluster as make_cluster, free_port, wait_for
from test_sandbox_pairs import base_of, busybox_for_layers


def upload(cluster, path, data):
    cluster.command("create", type="file", path=path)
    headers = {"X-YT-Parameters": json.dumps({"path": path}), "Content-Type": "application/octet-stream"}
    if cluster.token:
        headers["Authorization"] = f"OAuth {cluster.token}"
    request = urllib.request.Request(f"http://{cluster.address}/api/v4/write_file", data=data, method="PUT", headers=headers)
    urllib.request.urlopen(request, timeout=60).read()


# What of a node's data others than its owner have permissions for, by the path in the data directory: all of it is shown to
# jobs of all users by mounts, and lies behind directories with mode 0700.
SHOWN_TO_JOBS = [
    # Cached files, and their other names in the slot of a job that has them.
    (re.compile(r"cache/[0-9a-f-]+\.\d+(-x)?(\.[0-9a-f-]+)?"), 0o055),
    (re.compile(r"slots/\d+/files"), 0o011),
    (re.compile(r"slots/\d+/files/[^/]+"), 0o055),
    # Root file systems of layers keep the modes of their archives.
    (re.compile(r"layers/[0-9a-f-]+\.\d+(-x)?(/.*)?"), 0o077),
    (re.compile(r"skeleton(/.*)?"), 0o055),
]


def permitted(path):
    return next((mode for pattern, mode in SHOWN_TO_JOBS if pattern.fullmatch(path)), 0)


def open_to_others(directory, permitted=lambda path: 0):
    """What lies in a directory and has more permissions for its group or for others than `permitted` says."""
    found = []
    for folder, folders, files in os.walk(directory):
        for name in [".", *files, *folders]:
            path = pathlib.Path(folder, name)
            # A job that runs may remove it.
            with contextlib.suppress(FileNotFoundError):
                status = path.lstat()
                excess = status.st_mode & 0o077 & ~permitted(str(path.relative_to(directory)))
                if not stat.S_ISLNK(status.st_mode) and excess:
                    found.append((str(path), oct(status.st_mode)))
    return found


def runtime_directories():
    places = [f"/tmp/millpond-{os.geteuid()}", "/run/millpond" if os.geteuid() == 0 else f"/run/user/{os.geteuid()}/millpond"]
    found = [pathlib.Path(place) for place in places if os.path.isdir(place)]
    assert found, places
    return found


def data_directories(cluster):
    server = cluster.directory / "server"
    nodes = [path for path in cluster.directory.iterdir() if path.name.startswith("node") and path.is_dir()]
    assert server.is_dir() and len(nodes) == len(cluster.nodes), sorted(cluster.directory.iterdir())
    return server, nodes


def test_s2_s3_everything_on_disk_is_closed_to_others():
    """S2, S3: the store, blobs, tokens and the event log were readable by everybody on the host, and so were records of
    jobs, with their vaults, and what jobs wrote. All that a running cluster has on disk is looked at, while one job runs and
    after others."""
    with make_cluster(nodes=1, start=False, auth=True) as cluster:
        before = os.umask(0)
        try:
            cluster.start()
        finally:
            os.umask(before)
        cluster.create_pool("p")
        for name in ("file", "script"):
            upload(cluster, f"//tmp/{name}", b"x" * 100_000)
        cluster.set("//tmp/script/@executable", True)
        options = {"pool": "p", "spec": {"secure_vault": {"key": "secret"}}}
        command = "cat file >&2; mkdir -p made/deep; echo x >made/deep/file"
        cluster.run_vanilla(command, file_paths=["//tmp/file", "//tmp/script"], **options)
        cluster.run_vanilla(command, file_paths=["//tmp/file"], copy_files=True, **options)
        begun = cluster.shared / "begun"
        running = cluster.start_vanilla(f"{command}; touch {begun}; exec sleep 1000", file_paths=["//tmp/file", "//tmp/script"],
                                        tmpfs_volumes=[{"path": "volume", "size": 1 << 20}], **options)
        wait_for(begun.exists, what="the job that runs")
        busybox = busybox_for_layers()
        if busybox:
            # Below the writable root there are a directory of changes and one of the kernel's own.
            upload(cluster, "//tmp/base.tar.gz", base_of(busybox))
            layered = cluster.start_vanilla("echo x >/of_the_root; echo x >of_the_job; exec /bin/busybox sleep 1000",
                                            layer_paths=["//tmp/base.tar.gz"], make_rootfs_writable=True, **options)
            cluster.wait_jobs(layered)
            seen = lambda: [path for node in data_directories(cluster)[1] for path in node.rglob("slots/*/sandbox/of_the_job")]  # noqa: E731
            wait_for(seen, what="the job with layers", seen=seen)
        server, nodes = data_directories(cluster)
        assert open_to_others(server) == []
        for node in nodes:
            assert any(path.name == "record" for path in node.rglob("slots/*/job/*")), "the walk sees the record of the job"
            assert any(path.name == "file" for path in node.rglob("slots/*/sandbox/made/deep/*")), "and what it wrote"
            assert not busybox or any(path.name == "busybox" for path in node.glob("layers/*/bin/*")), "and the layers"
            assert not busybox or [*node.rglob("of_the_root")], "and what it wrote into its root"
            assert open_to_others(node, permitted) == []
        for runtime in runtime_directories():
            # Other clusters of this host have files there, too.
            own = [path for path in runtime.rglob("*") if path.is_file() and str(cluster.directory).encode() in path.read_bytes()]
            assert len(own) >= 3, "the directories of server and node are announced, and the names of the node are claimed"
            found = [(str(path), oct(path.stat().st_mode)) for path in [runtime, runtime / "data", *own] if path.stat().st_mode & 0o077]
            assert not found
        # What a job writes into a directory that it shares with others is closed as well.
        if os.geteuid() == 0:
            assert begun.stat().st_mode & 0o077 == 0
        for operation in [running, *([layered] if busybox else [])]:
            cluster.command("abort_operation", operation_id=operation)


def test_s2_s3_millpond_up_is_closed_to_others(tmp_path):
    """S2, S3: the supervisor has logs and the directories of its processes. A job runs, and has written something."""
    data, address = tmp_path / "data", f"127.0.0.1:{free_port()}"
    before = os.umask(0)
    try:
        up = subprocess.Popen([str(BINARY), "up", "--data", str(data), "--listen", address, "--no-auth"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    finally:
        os.umask(before)
    try:
        online = lambda: (data / "node-1" / "slots").is_dir() and (data / "node-1" / "group").exists() and (data / "logs").is_dir()  # noqa: E731
        wait_for(lambda: online() or up.poll() is not None, what="the node of up")
        assert up.poll() is None, up.stdout.read()
        task = {"command": "mkdir made; echo x >made/file; echo x >&2; exec sleep 1000", "job_count": 1, "memory_limit": 64 << 20}
        spec = {"spec": {"tasks": {"t": task}, "secure_vault": {"key": "secret"}}, "operation_type": "vanilla"}
        request = urllib.request.Request(f"http://{address}/api/v4/start_operation", data=json.dumps(spec).encode(), method="POST",
                                         headers={"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=60).read()
        wait_for(lambda: [*data.glob("node-1/slots/*/sandbox/made/file")], what="the job")
        parts = {path.name: (permitted if path.name.startswith("node-") else lambda path: 0) for path in data.iterdir() if path.is_dir()}
        assert {"server", "node-1", "logs"} <= set(parts), parts
        found = [entry for name, may in parts.items() for entry in open_to_others(data / name, may)]
        assert not found and data.stat().st_mode & 0o077 == 0, found
    finally:
        up.terminate()
        up.wait(120)


def test_s2_s3_data_that_was_open_is_closed_at_the_start():
    """S2, S3: data of an earlier release is taken over, with a warning."""
    with make_cluster(nodes=1) as cluster:
        cluster.create_pool("p")
        upload(cluster, "//tmp/file", b"x" * 100_000)
        cluster.run_vanilla("cat file", pool="p", file_paths=["//tmp/file"])
        server, nodes = data_directories(cluster)
        for process in [*cluster.nodes, cluster.server]:
            process.terminate()
        for directory in [server, *nodes]:
            for folder, _, files in os.walk(directory):
                os.chmod(folder, 0o755)
                # Keys are refused when others could read them; earlier releases had none.
                for name in set(files) - {"identity.pem", "node-authority.pem", "vault.key"}:
                    os.chmod(pathlib.Path(folder, name), 0o644)
        cluster.restart()
        assert open_to_others(server) == []
        for node in nodes:
            assert node.stat().st_mode & 0o7777 == 0o700
            assert open_to_others(node, permitted) == []
        for process in [cluster.server, *cluster.nodes]:
            assert "were open to other users of this host" in process.tail(1000), process.name


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
    test allows core files, as a shell of a developer does. The limit is 1 byte: a core_pattern that is a pipe to a
    program is not bound by 0."""
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
            assert core_limits(cluster.server.popen.pid) == core_limits(agent) == ["1", "1"]
            assert {pid: core_limits(pid) for pid in below} == dict.fromkeys(below, ["1", "1"])
            cluster.command("abort_operation", operation_id=operation)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)
