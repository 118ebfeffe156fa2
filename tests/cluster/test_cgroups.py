"""Real control groups, seen from outside: what the kernel says of the jobs of a running cluster.

Skipped with a reason where groups cannot be made. The checks are written for what the driver is:
`hybrid` and `cgroup_v1` keep limits in v1 controllers, `cgroup_v2` in the one tree.
"""

import contextlib
import os
import pathlib
import re
import subprocess
import time

import pytest
from harness import cluster as make_cluster, skip_without_processor, wait_for

ROOT = pathlib.Path("/sys/fs/cgroup")


def writable(hierarchy):
    probe = hierarchy / f"millpond-probe-{os.getpid()}"
    try:
        probe.mkdir()
        probe.rmdir()
        return True
    except OSError:
        return False


def kind_of_machine():
    """`v2`, `hybrid`, `v1`, or a reason (text with a blank) why there are no groups."""
    if os.geteuid() != 0:
        return "not root: groups cannot be made"
    if (ROOT / "cgroup.controllers").exists():
        controllers = set((ROOT / "cgroup.controllers").read_text().split())
        if not {"cpu", "memory", "pids"} <= controllers:
            return f"the v2 hierarchy has only these controllers: {sorted(controllers)}"
        return "v2" if writable(ROOT) else "the v2 hierarchy is read-only"
    if not (ROOT / "memory").is_dir() or not writable(ROOT / "memory"):
        return "no writable hierarchy of the memory controller"
    return "hybrid" if (ROOT / "unified").is_dir() and writable(ROOT / "unified") else "v1"


KIND = kind_of_machine()
pytestmark = pytest.mark.skipif(" " in KIND, reason=KIND)


def hierarchy(controller):
    """Directory of the hierarchy in which the jobs' limits for this controller are."""
    return ROOT if KIND == "v2" else ROOT / controller


def tracking():
    return {"v2": ROOT, "hybrid": ROOT / "unified", "v1": ROOT / "freezer"}[KIND]


@pytest.fixture(scope="module")
def cluster():
    with make_cluster(resources="cpu=8,memory=8GiB,user_slots=16") as c:
        yield c


def group(cluster, base, job):
    """The group of a job in the hierarchy `base`."""
    found = list((base / "millpond").glob(f"*{cluster.name}*/jobs/{job}"))
    return found[0] if found else None


def start(cluster, pool, command="sleep 1000", job_count=1, **options):
    """Starts an operation and gives it and its running jobs."""
    operation = cluster.start_vanilla(command, pool=pool, job_count=job_count, **options)
    return operation, cluster.wait_jobs(operation, job_count)


def pids(path):
    return {int(p) for p in (path / "cgroup.procs").read_text().split()}


def read_int(path):
    return int(path.read_text())


def test_driver_that_was_chosen(cluster):
    """`auto` takes the best that the machine has."""
    address = cluster.online()[0]
    environment = cluster.get(f"//sys/cluster_nodes/{address}/orchid/exec_node/job_environment/type")
    assert environment == {"v2": "cgroup_v2", "hybrid": "hybrid", "v1": "cgroup_v1"}[KIND]


def test_processes_are_in_their_groups(cluster, pool):
    """The job's process and its children, also those that left the session, in every hierarchy."""
    _, [job] = start(cluster, pool, "setsid sleep 2000.125 & sleep 1000")
    child = wait_for(lambda: cluster.find_process("sleep", "2000.125"), what="the child")
    bases = {tracking(), hierarchy("cpu"), hierarchy("memory"), hierarchy("pids")}
    for base in bases:
        def are_the_jobs():
            """No process of the cluster itself is in a job's group; who is about to become another program belongs to
            nobody for a moment."""
            inside = pids(group(cluster, base, job))
            inits = set(cluster._named(lambda comm, _: comm == "mp-init"))
            return child in inside and len(inside) >= 2 and inside - inits <= set(cluster.job_processes())
        wait_for(are_the_jobs, what=f"the job's processes in {base}")


def test_groups_of_jobs_are_apart(cluster, pool):
    _, jobs = start(cluster, pool, job_count=3)
    members = [pids(group(cluster, tracking(), j)) for j in jobs]
    assert all(members) and len(set.union(*members)) == sum(map(len, members))


@pytest.mark.parametrize(("cpu", "shares", "weight"), [(0.1, 102, 10), (1.0, 1024, 100), (2.5, 2560, 250)])
def test_cpu_guarantee(cluster, pool, cpu, shares, weight):
    """`cpu_limit` is a weight among jobs (jobs-and-nodes.md 4.5)."""
    _, [job] = start(cluster, pool, cpu_limit=cpu)
    place = group(cluster, hierarchy("cpu"), job)
    if KIND == "v2":
        assert read_int(place / "cpu.weight") == weight
        assert (place / "cpu.max").read_text().split()[0] == "max"
    else:
        assert read_int(place / "cpu.shares") == shares
        assert read_int(place / "cpu.cfs_quota_us") == -1


def test_cpu_cap(cluster, pool):
    """Only with `set_container_cpu_limit` is there a cap, and then exactly `cpu_limit`."""
    _, [job] = start(cluster, pool, cpu_limit=0.5, set_container_cpu_limit=True)
    place = group(cluster, hierarchy("cpu"), job)
    if KIND == "v2":
        assert (place / "cpu.max").read_text().split() == ["50000", "100000"]
    else:
        assert read_int(place / "cpu.cfs_quota_us") == 50000
        assert read_int(place / "cpu.cfs_period_us") == 100000


@pytest.mark.serial
def test_cap_binds(cluster, pool):
    """A busy job under a cap of 0.2 cores uses about that."""
    # For as long as a busy machine needs to give it so much.
    program = "import time\nwhile time.process_time() < 0.6: pass"
    operation = cluster.run_vanilla(f"python3 -c '{program}'", pool=pool, cpu_limit=0.2, set_container_cpu_limit=True)
    job = cluster.jobs(operation)[0]["id"]
    statistics = cluster.command("get_job", operation_id=operation, job_id=job)["statistics"]
    cpu, ran = statistics["user_job"]["cpu"], statistics["time"]["exec"]["sum"]
    used = cpu["user"]["sum"] + cpu["system"]["sum"]
    # A period's worth at each end is not the cap's.
    assert 500 <= used <= 0.2 * ran * 1.1 + 100, (used, ran)
    # Who got less than his cap was stopped by others.
    assert cpu["throttled"]["sum"] > 500 or used < 0.18 * ran, (cpu, ran)


@pytest.mark.serial
def test_shares_are_followed(cluster, pool):
    """Two busy jobs on one core: four times the guarantee, about four times the CPU."""
    core = min(os.sched_getaffinity(0))
    spin = f"exec taskset -c {core} python3 -c 'while True: pass'"
    if subprocess.run(["which", "taskset"], capture_output=True).returncode:
        pytest.skip("no taskset on this machine")
    jobs = {cpu: start(cluster, pool, spin, cpu_limit=cpu)[1][0] for cpu in (2.0, 0.5)}

    def usage(job):
        text = (group(cluster, tracking(), job) / "cpu.stat").read_text() if KIND != "v1" else None
        if text is None:
            return read_int(group(cluster, ROOT / "cpuacct", job) / "cpuacct.usage") / 1e9
        return int(re.search(r"usage_usec (\d+)", text)[1]) / 1e6
    # Both are busy.
    for cpu, job in jobs.items():
        wait_for(lambda job=job: usage(job) > 0.2, what=f"the job with {cpu} cores to be busy")

    def at_once():
        """Of both, with nothing between the two looks."""
        first, other, again = usage(jobs[2.0]), usage(jobs[0.5]), usage(jobs[2.0])
        return again - first < 0.05 and {2.0: first, 0.5: other}
    before = wait_for(at_once, what="both usages at one time")
    begin = time.monotonic()

    def enough():
        """However long that takes on a busy machine."""
        now = at_once()
        return now and now[0.5] - before[0.5] > 0.8 and {cpu: now[cpu] - before[cpu] for cpu in jobs}
    used = wait_for(enough, what="enough CPU to compare", period=0.1)
    wall = time.monotonic() - begin
    # Other processes on this core take their part from both jobs alike, unless they leave only short slices.
    if not 2.5 <= used[2.0] / used[0.5] <= 6:
        skip_without_processor(sum(used.values()), wall, least=0.5)
    assert 2.5 <= used[2.0] / used[0.5] <= 6, (used, wall)


def test_memory_limit_file(cluster, pool):
    _, [job] = start(cluster, pool, memory_limit=96 << 20)
    place = group(cluster, hierarchy("memory"), job)
    name = "memory.max" if KIND == "v2" else "memory.limit_in_bytes"
    assert read_int(place / name) == 96 << 20


def test_memory_is_enforced_by_the_kernel(cluster, pool):
    """A hog that takes memory faster than anybody samples does not get beyond its limit."""
    operation = cluster.run_vanilla("python3 -c 'x = bytearray(2 << 30)'", pool=pool, state="failed",
                                    memory_limit=64 << 20, spec={"max_failed_job_count": 1})
    text = str(cluster.result(operation))
    assert "Memory limit exceeded" in text and "'limit': 67108864" in text


def test_pids_are_bounded(cluster, pool):
    _, [job] = start(cluster, pool)
    place = group(cluster, hierarchy("pids"), job)
    assert place is not None
    limit = (place / "pids.max").read_text().strip()
    assert limit != "max" and 10 < int(limit) < 1_000_000


def test_groups_are_gone_after_the_end(cluster, pool):
    operation, jobs = start(cluster, pool, job_count=4)
    places = {g for g in cluster.job_cgroups()}
    assert all(any(j in place for place in places) for j in jobs)
    cluster.command("abort_operation", operation_id=operation)
    wait_for(lambda: not any(j in place for j in jobs for place in cluster.job_cgroups()), what="the groups to go")
    cluster.run_vanilla("true", pool=pool, job_count=20)
    wait_for(lambda: not cluster.job_cgroups(), what="all groups of jobs to go")


def test_killed_by_group(cluster, pool):
    """Two hundred processes in one job end with it."""
    operation, [job] = start(cluster, pool, "for i in $(seq 200); do sleep 1000 & done; wait")
    place = group(cluster, tracking(), job)
    wait_for(lambda: len(pids(place)) >= 201, what="two hundred processes")
    members = pids(place)
    cluster.command("abort_operation", operation_id=operation)
    wait_for(lambda: not any(os.path.exists(f"/proc/{p}") for p in members), what="all of them to be gone")


def test_leftovers_of_a_dead_node_are_removed():
    """A node that was killed with its proxies finds its groups and kills what is in them."""
    import signal
    with make_cluster() as c:
        c.create_pool("p")
        operation = c.start_vanilla("sleep 1000", job_count=2)
        c.wait_jobs(operation, 2)
        orphans, groups = c.job_processes(), set(c.job_cgroups())
        assert orphans and groups, (orphans, groups)
        pids_to_kill = [c.nodes[0].popen.pid, *c.spawners(), *c.proxies()]
        for pid in pids_to_kill:
            # The spawner may notice the end of the agent before it is killed.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        c.nodes[0].popen.wait()
        # Jobs with namespaces of their own end with their proxies. Their groups stay for the next agent in any case.
        assert groups <= set(c.job_cgroups()), groups
        c.restart()
        wait_for(lambda: not any(p in c.job_processes() for p in orphans), what="the orphans to be killed")
        wait_for(lambda: not groups & set(c.job_cgroups()), what="the groups of the orphans to be removed", seen=c.job_cgroups)
        c.command("abort_operation", operation_id=operation)


@pytest.mark.skipif(KIND != "hybrid", reason="needs a machine with v1 controllers and a v2 hierarchy")
@pytest.mark.parametrize("driver", ["hybrid", "cgroup_v1"])
def test_each_driver_of_this_machine(driver):
    with make_cluster(environment=driver) as c:
        c.create_pool("p")
        c.run_vanilla("true", job_count=5)
        operation = c.run_vanilla("python3 -c 'x = bytearray(300 << 20)'", state="failed", memory_limit=64 << 20,
                                  spec={"max_failed_job_count": 1})
        assert "Memory limit exceeded" in str(c.result(operation))
        wait_for(lambda: not c.job_cgroups(), what="all groups of jobs to go")


def test_driver_that_is_not_there(tmp_path):
    """An explicit driver that this machine cannot offer is an error that says why."""
    from harness import BINARY
    missing = "cgroup_v2" if KIND != "v2" else "hybrid"
    done = subprocess.run(
        [str(BINARY), "node", "--server", "127.0.0.1:1", "--name", "x", "--data", str(tmp_path), "--resources",
         "cpu=1,memory=1GiB,user_slots=1", "--job-environment", missing],
        capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode != 0
    assert missing in done.stdout + done.stderr
