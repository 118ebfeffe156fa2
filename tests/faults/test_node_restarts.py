"""The node agent is killed again and again under running jobs (jobs-and-nodes.md 9.2): none is lost, none runs
twice, none is miscounted, and what each of them holds stays what it was.

Kills: MILLPOND_NODE_KILLS, 50 without it.
"""

import os
import random
import time

import pytest
from harness import cluster as make_cluster, wait_for

KILLS = int(os.environ.get("MILLPOND_NODE_KILLS", 50))
JOBS = 40
# Every job is lowered from two cores to one before the first kill.
MONITOR = {
    "enable_cpu_reclaim": True, "check_period": 200, "smoothing_factor": 0.9, "vote_window_size": 2,
    "vote_decision_threshold": 1, "decrease_coefficient": 0.5, "relative_lower_bound": 0.3,
}
JOB = "echo begin >&2; while [ ! -e go ]; do sleep 1; done; echo end >&2"


def usage(cluster, pool):
    return cluster.pool_orchid(pool)["resource_usage"]


@pytest.mark.timeout(max(600, 12 * KILLS))
def test_fifty_kills():
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    with make_cluster(resources="cpu=80,memory=40GiB,user_slots=50",
                      server_config='heartbeat_period = "300ms"\n') as cluster:
        cluster.create_pool("p")
        operation = cluster.start_vanilla(
            JOB, job_count=JOBS, pool="p", cpu_limit=2, memory_limit=64 << 20, spec={"job_cpu_monitor": MONITOR})
        ids = set(cluster.wait_jobs(operation, JOBS))
        wait_for(lambda: usage(cluster, "p")["cpu"] == JOBS, what="the floors of all jobs")
        before = usage(cluster, "p")
        node = cluster.nodes[0]

        for kill in range(KILLS):
            node.kill()
            node.start()
            if kill % 5 == 4:
                # Once more in the middle of its start.
                time.sleep(dice.uniform(0, 0.15))
                continue
            cluster.wait_nodes()
            time.sleep(dice.uniform(0, 0.2))
            counters = cluster.counters(operation)
            found = (counters["running"], counters["pending"], counters["aborted"])
            assert found == (JOBS, 0, 0), (kill, counters)

        cluster.restart()
        assert {j["id"] for j in cluster.jobs(operation, state="running", limit=100)} == ids
        wait_for(lambda: usage(cluster, "p") == before, what="the same usage as before")
        for sandbox in cluster.directory.glob("node-0/slots/*/sandbox"):
            (sandbox / "go").touch()
        cluster.wait_state(operation, "completed")
        jobs = cluster.jobs(operation, limit=100)
        assert {j["id"] for j in jobs} == ids, "no other run"
        assert {j["state"] for j in jobs} == {"completed"}
        for job in jobs:
            assert cluster.stderr(operation, job["id"]) in (b"begin\nend\n", b""), job
        # Their statistics went on: the CPU of the whole life, not of the time since the last kill.
        progress = cluster.operation(operation, "progress")["progress"]
        [summary] = progress["job_statistics_v2"]["job_proxy"]["aggregated_preempted_cpu_x100"]
        assert summary["summary"]["count"] == JOBS and summary["summary"]["min"] > 0
