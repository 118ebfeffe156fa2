"""The clock of the host is set, forward and back, under a running cluster: no node is taken for lost, no job is aborted,
nothing stands still (the bad inputs and faults of jobs-and-nodes.md; `vocab::SteadyClock` says why).

The processes see another time of day through a library that is loaded before all others; a host's clock is nobody's toy.
"""

import pathlib
import shutil
import struct
import subprocess

import pytest
from harness import Cluster, wait_for

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
HOURS = 3600
# After each jump: those of six seconds.
HEARTBEATS = 20


@pytest.fixture
def clock(tmp_path):
    """A function that sets the clocks of the cluster's processes."""
    shim, offset = tmp_path / "shim.so", tmp_path / "offset"
    source = pathlib.Path(__file__).with_name("clock_shim.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, source], check=True)
    offset.write_bytes(struct.pack("q", 0))

    def set_by(seconds):
        with open(offset, "r+b") as file:
            file.write(struct.pack("q", seconds))
    set_by.environment = {"LD_PRELOAD": str(shim), "CLOCK_SHIM": str(offset)}
    return set_by


def test_jumps(clock):
    cluster = Cluster(nodes=2, resources="cpu=4,memory=4GiB,user_slots=8",
                      server_config='heartbeat_period = "300ms"\n')
    cluster.mark.update(clock.environment)
    try:
        cluster.start()
        # Much less than a jump, and more than a late machine needs for a heartbeat.
        cluster.set("//sys/scheduler/config", {"node_heartbeat_timeout": 60_000})
        cluster.create_pool("p")
        steady = cluster.start_vanilla("sleep 1000", pool="p", job_count=4, cpu_limit=0.1)
        jobs = set(cluster.wait_jobs(steady, 4))
        for jump in (2 * HOURS, 0, -2 * HOURS, 0):
            clock(jump)
            heard = {}

            def are_heard():
                """Both nodes go on with their heartbeats, and none is lost meanwhile."""
                nodes = cluster.get("//sys/scheduler/orchid/scheduler/nodes")
                online = {a: n["last_heartbeat_time"] for a, n in nodes.items() if n["scheduler_state"] == "online"}
                assert len(online) == 2, f"a node is lost after a jump to {jump} s: {nodes}"
                for address, at in online.items():
                    heard.setdefault(address, set()).add(at)
                return all(len(times) > HEARTBEATS for times in heard.values())
            wait_for(are_heard, what=f"{HEARTBEATS} heartbeats of both nodes after a jump to {jump} s", period=0.1, seen=lambda: heard)
            done = cluster.run_vanilla("true", pool="p", job_count=3, cpu_limit=0.1)
            assert cluster.counters(done)["completed"] == 3
            assert set(cluster.wait_jobs(steady, 4)) == jobs
            assert cluster.counters(steady)["aborted"] == 0
        cluster.command("abort_operation", operation_id=steady)
        wait_for(lambda: cluster.state(steady) == "aborted", what="the end")
    finally:
        cluster.stop()
