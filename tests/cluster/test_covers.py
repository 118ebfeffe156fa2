"""Data directories of the server and of other nodes in the view of a job (S3)."""

import os
import pathlib
import subprocess
import tempfile

import pytest
from harness import BINARY, PREFIX, Process, cluster as make_cluster, free_port, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not root: jobs have the user of the node")


def said(cluster, command):
    """What a job says on stderr."""
    operation = cluster.run_vanilla(command, pool="p")
    [job] = cluster.jobs(operation)
    return cluster.stderr(operation, job["id"]).decode()


@pytest.mark.parametrize("options", ["", "do_not_set_user_id = true\n"], ids=["own users", "user of the node"])
def test_s3_data_directories_are_covered_wherever_they_lie(options):
    """S3: for jobs with users of their own only modes kept the data of the server and of other nodes closed. Not in /tmp, which
    every job has of its own."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix=PREFIX, dir="/var/lib"))
    directory.chmod(0o755)
    with make_cluster(nodes=2, directory=directory, node_config=options) as cluster:
        cluster.create_pool("p")
        # With modes as an operator's mistake would make them.
        for name in ("server", "node-0", "node-1"):
            (directory / name).chmod(0o755)
        listed = said(cluster, f"set -e; cd {directory}; for name in server node-0 node-1; do ls -A $name >&2; done")
        assert listed.split() == ["slots"], "the way to the sandbox, and nothing else"


def test_s3_data_directories_in_a_shared_directory_are_hidden():
    """S3: shared directories are put over the covers, and a job with the user of the node read what lay in them."""
    with make_cluster(nodes=1, node_config="do_not_set_user_id = true\n") as cluster:
        cluster.create_pool("p")
        # Started after the node.
        data = cluster.shared / "deep" / "other"
        data.parent.mkdir()
        (cluster.shared / "deep" / "beside").write_text("seen")
        other = Process("other", [BINARY, "server", "--listen", f"127.0.0.1:{free_port()}", "--data", data, "--auth", "--supervised"],
                        cluster.directory / "other.log", cluster.mark)
        other.start()
        try:
            wait_for(lambda: (data / "root.token").exists() or not other.running(), what="the other server", seen=other.tail)
            assert other.running(), other.tail()
            told = said(cluster, f"cd {data.parent}; cat beside >&2; echo >&2; ls -A other >&2; cat other/root.token >&2; echo x >other/x || true")
        finally:
            other.terminate()
        assert told.startswith("seen\n") and "No such file or directory" in told and "Read-only file system" in told, told
        assert "store" not in told and not (data / "x").exists(), told


def test_s3_a_shared_directory_around_the_data_is_refused(tmp_path):
    """S3: it would show the records and sandboxes of all jobs of the node."""
    shared = tmp_path / "shared"
    shared.mkdir()
    config = tmp_path / "config.toml"
    config.write_text(f'[node]\nshared_directories = ["{shared}"]\n')
    done = subprocess.run([str(a) for a in (BINARY, "node", "--server", f"127.0.0.1:{free_port()}", "--name", f"covers-{os.getpid()}",
                                            "--data", shared / "data", "--config", config)],
                          capture_output=True, text=True, timeout=180, stdin=subprocess.DEVNULL)
    assert done.returncode != 0 and "shared_directories" in done.stderr and str(shared / "data") in done.stderr, done.stderr
