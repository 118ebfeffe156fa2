"""Jobs whose rooms an OCI runtime makes (jobs-and-nodes.md 4.1, 4.7): what they see, how they end, and that nothing of the
runtime's is left, whoever dies. All that holds for isolated jobs is tried on this environment by
`MILLPOND_TEST_ENVIRONMENT=oci pytest tests/cluster/test_isolation.py`.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess

import pytest
from harness import BINARY, UID_OFFSET, cluster as make_cluster, error_text, find_error, wait_for
from test_aborts import TOO_LONG
from test_isolation import base, output  # noqa: F401

STATE = pathlib.Path("/run/millpond-oci")
FIRST_USER = 1_700_000 + UID_OFFSET


def why_not():
    """Some runtimes refuse some hosts: asked without anything of ours."""
    if os.geteuid() != 0:
        return "not root: a runtime needs it"
    if not shutil.which("runc") or not shutil.which("busybox"):
        return "there is no runc or no busybox (tests/setup.sh oci)"
    script = """
        set -e; cd $(mktemp -d /tmp/millpond-runc-XXXXXX); trap 'rm -rf "$PWD"' EXIT
        mkdir -p rootfs/bin; cp "$(command -v busybox)" rootfs/bin/busybox; runc spec
        sed -i 's/"terminal": true/"terminal": false/; s|"sh"|"/bin/busybox", "true"|' config.json
        runc --root "$PWD/state" run millpond-test-$$"""
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=180)
    return done.returncode and f"runc does not work here: {done.stderr}"


@pytest.fixture(scope="module", autouse=True)
def runtime():
    """Looked for when it is needed: every worker imports this file."""
    if reason := why_not():
        pytest.skip(reason)


@pytest.fixture(scope="module")
def cluster(runtime):
    with make_cluster(environment="oci", resources="cpu=8,memory=8GiB,user_slots=16", server_config=f'job_uids = "{FIRST_USER}-{FIRST_USER + 999}"\n') as c:
        yield c
    assert not containers(c), "the end of a node is the end of its containers"


@pytest.fixture(autouse=True)
def nothing_left(cluster):
    yield
    wait_for(lambda: not cluster.job_cgroups() + cluster.mounts() + containers(cluster),
             what="groups, mounts and containers to be gone")


def containers(cluster):
    """What the runtime knows, and what was written for it."""
    [node] = cluster.nodes
    return [str(p) for p in STATE.glob(f"*{node.name}-*/*/*")]


def test_the_runtime_makes_the_room(cluster, pool):
    address = cluster.online()[0]
    assert cluster.get(f"//sys/cluster_nodes/{address}/orchid/exec_node/job_environment/type") == "oci"
    script = "id -u; cat /proc/1/comm; hostname; umask; grep -c ' / / ro' /proc/self/mountinfo; echo x >/tmp/x; exec sleep 2000.75"
    operation = cluster.start_vanilla(script, pool=pool)
    [job] = cluster.wait_jobs(operation)
    wait_for(lambda: cluster.find_process("sleep", "2000.75"), what="the job")
    [place] = [path for path in map(pathlib.Path, containers(cluster)) if path.parts[-2:] == ("containers", job)]
    told = subprocess.run(["runc", "--root", place.parent, "state", job], capture_output=True, text=True)
    assert told.returncode == 0 and '"status": "running"' in told.stdout, told
    # What it has said before comes by another way than its process.
    user, first, host, umask, *_ = wait_for(lambda: len(said := cluster.stderr(operation, job).decode().split()) >= 4 and said,
                                     what="what it says")
    assert int(user) == FIRST_USER and first == "mp-init" and host.startswith("slot_")
    # S9: what it writes is closed to other users.
    assert umask == "0077"
    cluster.command("abort_operation", operation_id=operation)


def test_s2_what_the_runtime_notes_is_closed(cluster, pool):
    """S2: descriptions of containers have the environments of jobs, with their vaults."""
    operation = cluster.start_vanilla("exec sleep 2000.8125", pool=pool)
    cluster.wait_jobs(operation)
    wait_for(lambda: cluster.find_process("sleep", "2000.8125"), what="the job")
    [node] = cluster.nodes
    own = [path for path in STATE.glob(f"*{node.name}-*")]
    assert len(own) == 1 and {path.name for path in own[0].iterdir()} == {"bundles", "containers"}, own
    found = {str(path): oct(path.stat().st_mode) for path in [STATE, *own, *own[0].iterdir()] if path.stat().st_mode & 0o077}
    assert not found
    assert not [path for path in own[0].rglob("config.json") if path.is_file() and "bundles" in path.parts], "removed at the start"
    cluster.command("abort_operation", operation_id=operation)


def test_a_root_of_its_own(cluster, pool, base):  # noqa: F811
    script = "cat /etc/base; ls /; pwd; touch /new || echo ro"
    words = output(cluster, script, pool, layer_paths=[base]).split()
    assert words[0] == "base" and "home" not in words and "/slot/sandbox" in words and words[-1] == "ro", words
    words = output(cluster, script, pool, layer_paths=[base], make_rootfs_writable=True).split()
    assert words[-1] == "/slot/sandbox", words


def test_a_root_without_the_program(cluster, pool):
    from test_isolation import layer
    operation = cluster.run_vanilla("true", pool=pool, state="failed", spec={"max_failed_job_count": 1},
                                    layer_paths=[layer(cluster, "no_shell.tar", {"etc": None})])
    text = error_text(cluster.result(operation))
    assert "/bin/bash" in text and "layers" in text, text


@pytest.mark.parametrize("what", ["one variable", "the command"])
def test_s4_a_command_or_environment_that_is_too_long_fails_the_job(cluster, pool, what):
    """S4: the runtime executes the command, and would tell no more than that it has ended."""
    task = {"command": "true", **TOO_LONG[what]}
    operation = cluster.start_vanilla(pool=pool, spec={"max_failed_job_count": 1}, **task)
    cluster.wait_state(operation, "failed")
    counters = cluster.counters(operation)
    assert (counters["failed"], counters["aborted"]) == (1, 0), counters
    assert "too long for the system" in error_text(cluster.result(operation)), cluster.result(operation)


def test_s4_an_environment_that_is_too_long_in_all_fails_the_job(cluster, pool):
    """S4: no single variable is too long. How many fit is known to the kernel only, when the runtime executes the command."""
    operation = cluster.start_vanilla(pool=pool, spec={"max_failed_job_count": 1}, **TOO_LONG["all variables"])
    cluster.wait_state(operation, "failed")
    counters = cluster.counters(operation)
    assert (counters["failed"], counters["aborted"]) == (1, 0), counters


def test_limits_and_signals(cluster, pool):
    """The groups are the job's, not the runtime's."""
    operation = cluster.run_vanilla("python3 -c 'x = bytearray(1 << 30)'", pool=pool, state="failed",
                                    memory_limit=64 << 20, spec={"max_failed_job_count": 1})
    assert find_error(cluster.result(operation), 1200)["message"] == "Memory limit exceeded"
    operation = cluster.start_vanilla("trap 'echo told >&2; exit 0' USR1; echo ready >&2; while :; do sleep 0.05; done",
                                      pool=pool, interruption_signal="SIGUSR1", restart_exit_code=5)
    [job] = cluster.wait_jobs(operation)
    wait_for(lambda: b"ready" in cluster.stderr(operation, job), what="the trap")
    cluster.command("abort_job", job_id=job, interrupt_timeout=120_000)
    cluster.wait_state(operation, "completed")
    assert b"told" in cluster.stderr(operation, job)
    operation = cluster.run_vanilla("kill -SEGV $$", pool=pool, state="failed", spec={"max_failed_job_count": 1})
    assert find_error(cluster.result(operation), 10001)["attributes"]["signal"] == 11


def test_it_dies_with_its_proxy(cluster, pool):
    operation = cluster.start_vanilla("setsid sleep 2000.875 & exec sleep 2000.875", pool=pool, spec={"max_failed_job_count": 1})
    cluster.wait_jobs(operation)
    wait_for(lambda: cluster.find_process("sleep", "2000.875"), what="the job")
    # Those of the jobs before may be on their way out.
    [proxy] = wait_for(lambda: len(found := cluster.proxies()) == 1 and found, what="one proxy")
    os.kill(proxy, signal.SIGKILL)
    cluster.wait_state(operation, "failed")
    wait_for(lambda: not cluster.find_process("sleep", "2000.875"), what="both to be dead")


def test_the_agent_may_die(cluster, pool):
    """Alone: the job goes on. With its proxies: what the runtime knows is taken apart by the next agent."""
    operation = cluster.start_vanilla("until [ -e go ]; do sleep 0.05; done; echo went", pool=pool)
    [job] = cluster.wait_jobs(operation)
    [node] = cluster.nodes
    node.kill()
    cluster.restart()
    for sandbox in cluster.directory.glob("node-0/slots/*/sandbox"):
        (sandbox / "go").touch()
    cluster.wait_state(operation, "completed")
    assert [j["id"] for j in cluster.jobs(operation)] == [job] and cluster.stderr(operation, job) == b"went\n"

    operation = cluster.start_vanilla("exec sleep 2000.9375", pool=pool)
    [job] = cluster.wait_jobs(operation)
    pid = wait_for(lambda: cluster.find_process("sleep", "2000.9375"), what="the job")
    for victim in [node.popen.pid, *cluster.spawners(), *cluster.proxies()]:
        # The proxy of an earlier job may be on its way out.
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
    node.popen.wait()
    cluster.restart()
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), what="the orphan to be dead")
    wait_for(lambda: not [path for path in containers(cluster) if job in path], what="its container to be forgotten")
    cluster.command("abort_operation", operation_id=operation)


def test_without_a_runtime(cluster, tmp_path):
    """A host that has none says so, and offers nothing."""
    runtime = shutil.which("runc")
    node = [BINARY, "node", "--server", cluster.address, "--name", "no-runtime", "--data", tmp_path, "--job-environment", "oci"]
    script = f"mount --bind /dev/null {runtime} && exec \"$@\""
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", *node], capture_output=True, text=True, timeout=180)
    assert done.returncode == 1 and "no OCI runtime" in done.stderr and "runc" in done.stderr, done
