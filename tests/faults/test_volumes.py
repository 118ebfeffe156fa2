"""Accumulated volumes through `kill -9`, stops, moves and renames (fair-share.md 7.1).

After a crash a pool may have lost some seconds of accumulation; it never has more than it had.
"""

import random
import time

import pytest

from harness import cluster as make_cluster, wait_for

CORES = 4
FLOW, BURST = 0.25, 0.75
# A record is written every five seconds, and holds what may be spent until the next one.
WRITE_PERIOD = 5.0
# Until it is durable on a machine under load.
LATE = 4.0
# To be in time for a burst.
ATTEMPTS = 6


@pytest.fixture(scope="module")
def cluster():
    with make_cluster(resources=f"cpu={CORES},memory=4GiB,user_slots=100") as c:
        c.set("//sys/pool_trees/physical/@config/integral_guarantees/smooth_period", 2000)
        c.create_pool("b", integral_guarantees={
            "guarantee_type": "burst",
            "resource_flow": {"cpu": FLOW * CORES},
            "burst_guarantee_resources": {"cpu": BURST * CORES},
        })
        # What a pool inside has, its parent must have, too; without a type it does nothing there.
        c.create_pool("p", integral_guarantees={
            "resource_flow": {"cpu": FLOW * CORES},
            "burst_guarantee_resources": {"cpu": BURST * CORES},
        })
        yield c


def volume(cluster, pool="b"):
    """Cluster-seconds. (The ratio volume is 0 as long as no node is back.)"""
    return cluster.pool_orchid(pool)["accumulated_resource_volume"]["cpu"] / CORES


def granted(cluster, pool="b"):
    return cluster.pool_orchid(pool)["detailed_dominant_fair_share"]["integral_guarantee"]


def volume_now(cluster, pool="b"):
    """A volume, and a moment before the update that has made it: what the Orchid shows is of the last one."""
    begin, old = time.monotonic(), volume(cluster, pool)
    return wait_for(lambda: (new := volume(cluster, pool)) != old and new, what="an update"), begin


def first_volume_after(cluster, begin, restart, pool="b"):
    """The volume after a restart, and what at most can have flowed in since `begin`."""
    restart()
    cluster.wait_server()
    value = wait_for(lambda: cluster.exists(f"//sys/scheduler/orchid/scheduler/pool_trees/physical/pools/{pool}")
                     and [volume(cluster, pool)], what="the pool in the Orchid")[0]
    inflow = FLOW * (time.monotonic() - begin)
    cluster.restart()
    return value, inflow


def kill(cluster):
    cluster.server.kill()
    cluster.server.start()


def saved(cluster, pool, least):
    wait_for(lambda: volume(cluster, pool) >= least, what=f"a volume of {least}", period=0.1)


def test_accumulated_volume_survives_kill(cluster):
    saved(cluster, "b", 3)
    before, begin = volume_now(cluster)
    after, inflow = first_volume_after(cluster, begin, lambda: kill(cluster))
    assert before - FLOW * (WRITE_PERIOD + LATE) <= after <= before + inflow


def test_accumulated_volume_survives_a_stop(cluster):
    saved(cluster, "b", 3)
    before, begin = volume_now(cluster)

    def stop():
        cluster.server.terminate()
        cluster.server.start()

    after, inflow = first_volume_after(cluster, begin, stop)
    # Nothing is lost but what flowed in since the last update.
    assert before - 0.01 <= after <= before + inflow


# Each attempt saves up for twelve seconds.
@pytest.mark.timeout(900)
@pytest.mark.parametrize("moment", range(4))
def test_nothing_is_spent_twice(cluster, moment):
    """Killed at any moment of a burst: at its very beginning, too."""
    rng = random.Random(f"volumes {moment}")
    # The moment of the kill is what varies.
    pause = [0.0, 0.3, 1.0, 2.0][moment] + rng.uniform(0, 0.2)
    for _ in range(ATTEMPTS):
        saved(cluster, "b", 3)
        operation = cluster.start_vanilla("sleep 1000", job_count=40, pool="b", cpu_limit=0.1, memory_limit=16 << 20)
        wait_for(lambda: granted(cluster) > 0, what="a share for the demand", period=0.01)
        time.sleep(pause)
        before, begin = volume_now(cluster)
        spending = granted(cluster)
        if spending > 1.1 * FLOW:
            break
        # The volume lasts for a few seconds of spending: the test was too late.
        end(cluster, operation)
    else:
        raise AssertionError(f"{ATTEMPTS} times no burst: the pool spends {spending} with a volume of {before}")
    after, inflow = first_volume_after(cluster, begin, lambda: kill(cluster))
    assert after <= before + inflow, "a pool has more than before"
    assert after >= before - spending * (WRITE_PERIOD + LATE), "more than a write period was lost"
    end(cluster, operation)


def end(cluster, operation):
    cluster.command("abort_operation", operation_id=operation)
    cluster.wait_state(operation, "aborted")


def test_volume_follows_its_pool(cluster):
    saved(cluster, "b", 3)
    before, begin = volume_now(cluster)
    cluster.set("//sys/pools/b/@parent_name", "p")
    cluster.set("//sys/pools/p/b/@name", "c")
    assert wait_for(lambda: cluster.exists("//sys/scheduler/orchid/scheduler/pool_trees/physical/pools/c")
                    and volume(cluster, "c"), what="the renamed pool") >= before - 0.01
    after, inflow = first_volume_after(cluster, begin, lambda: kill(cluster), "c")
    assert before - FLOW * (WRITE_PERIOD + LATE) <= after <= before + inflow
    # Removed and created again: the new pool takes the volume over, through a crash in between, too.
    before, begin = volume_now(cluster, "c")
    options = cluster.get("//sys/pools/p/c/@integral_guarantees")
    cluster.remove("//sys/pools/p/c")
    kill(cluster)
    cluster.wait_server()
    cluster.create_pool("c", parent_name="p", integral_guarantees=options)
    cluster.restart()
    after, inflow = first_volume_after(cluster, begin, lambda: kill(cluster), "c")
    assert before - 0.1 - FLOW * (WRITE_PERIOD + LATE) <= after <= before + inflow
