"""What a job finds, what is kept of it, and how it ends (jobs-and-nodes.md 5 to 7)."""

import datetime
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest
from harness import find_error, wait_for


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def only_job(cluster, operation, **filters):
    jobs = cluster.jobs(operation, **filters)
    assert len(jobs) == 1, jobs
    return cluster.command("get_job", operation_id=operation, job_id=jobs[0]["id"])


def output(cluster, pool, command, **options):
    """What the only job of an operation prints."""
    operation = cluster.run_vanilla(command, pool=pool, **options)
    return cluster.stderr(operation, cluster.jobs(operation)[0]["id"]).decode()


def upload(cluster, path, data, **attributes):
    cluster.command("create", type="file", path=path, recursive=True, force=True, attributes=attributes)
    connection = http.client.HTTPConnection(cluster.address, timeout=180)
    connection.request("PUT", "/api/v4/write_file", body=data, headers={
        "X-YT-Parameters": json.dumps({"path": path}), "Content-Type": "application/octet-stream"})
    reply = connection.getresponse()
    assert reply.status == 200, reply.read()


# --- what the job finds

def test_environment(cluster, pool):
    operation = cluster.run_vanilla(
        "env | sort >&2", pool=pool, job_count=1, environment={"GREETING": "hello", "SUB": "$(SandboxPath)/x"},
        spec={"secure_vault": {"password": "hidden", "nested": {"a": 1}}})
    job = cluster.jobs(operation)[0]
    environment = dict(line.split("=", 1) for line in cluster.stderr(operation, job["id"]).decode().splitlines())
    wanted = {
        "YT_JOB_ID": job["id"], "YT_OPERATION_ID": operation, "YT_JOB_INDEX": "0", "YT_TASK_JOB_INDEX": "0",
        "YT_JOB_COOKIE": "0", "YT_TASK_NAME": "t", "YT_TASK_JOB_COUNT": "1", "YT_POOL_TREE": "physical",
        "YT_FIRST_OUTPUT_TABLE_FD": "1", "GREETING": "hello", "YT_SECURE_VAULT_password": "hidden",
    }
    assert {k: environment.get(k) for k in wanted} == wanted
    assert environment["HOME"] == environment["TMPDIR"] == environment["PYTHONPATH"] == environment["PWD"]
    assert environment["SUB"] == environment["HOME"] + "/x"
    assert "password" in environment["YT_SECURE_VAULT"]
    assert job["address"].startswith(environment["YT_NODE_HOST"])
    assert not any(name.startswith("MILLPOND") for name in environment), "the node's environment is not inherited"
    attributes = json.dumps(cluster.command("get_operation", operation_id=operation))
    assert "hidden" not in attributes, "a secret is never shown"


def test_cookie_and_index(cluster, pool):
    """The cookie is stable across runs of a unit, the index is new for each (http-api.md 13)."""
    text = "echo $YT_JOB_COOKIE $YT_JOB_INDEX >&2; [ $YT_JOB_INDEX -gt 0 ]"
    operation = cluster.run_vanilla(text, pool=pool)
    lines = sorted(cluster.stderr(operation, j["id"]).decode().strip() for j in cluster.jobs(operation))
    assert lines == ["0 0", "0 1"]
    counters = cluster.counters(operation)
    assert (counters["completed"], counters["failed"]) == (1, 1)


def test_sandbox_is_fresh(cluster, pool):
    command = "pwd >&2; ls -A >&2; echo x > left-behind; mkdir -p d/e; chmod 500 d"
    for _ in range(3):
        text = output(cluster, pool, command)
        assert len(text.splitlines()) == 1, f"the sandbox is not empty: {text}"


def test_descriptors(cluster, pool):
    """0 is empty, 1 goes where 2 goes, 5 takes statistics (jobs-and-nodes.md 5.2)."""
    text = output(cluster, pool, "wc -c; echo to stdout; echo to stderr >&2; ls /proc/self/fd | tr '\\n' ' '")
    assert text.splitlines()[:3] == ["0", "to stdout", "to stderr"]
    descriptors = set(text.splitlines()[3].split())
    assert {"0", "1", "2", "5"} <= descriptors


def test_files(cluster, pool):
    upload(cluster, "//tmp/files/data.txt", b"some data\n")
    upload(cluster, "//tmp/files/tool", b"#!/bin/sh\necho tool says $1\n", executable=True)
    upload(cluster, "//tmp/files/named", b"by its attribute\n", file_name="other-name")
    text = output(
        cluster, pool, "cat data.txt; ./bin/tool hi; cat other-name; cat deep/er/copy; test -x data.txt || echo not executable",
        file_paths=["//tmp/files/data.txt", '<file_name="bin/tool">//tmp/files/tool', "//tmp/files/named",
                    '<file_name="deep/er/copy">//tmp/files/data.txt'])
    assert text == "some data\ntool says hi\nby its attribute\nsome data\nnot executable\n"


def test_executable_by_path_attribute(cluster, pool):
    upload(cluster, "//tmp/files/script", b"#!/bin/sh\necho ran\n")
    text = output(cluster, pool, "./script", file_paths=["<executable=%true>//tmp/files/script"])
    assert text == "ran\n"


def test_changed_file_is_seen(cluster, pool):
    """The cache of files knows that the content has changed."""
    for content in [b"one\n", b"two\n", b"two\n", b"three\n"]:
        upload(cluster, "//tmp/files/changing", content)
        assert output(cluster, pool, "cat changing", file_paths=["//tmp/files/changing"]) == content.decode()


# --- what is kept

def test_events_and_times(cluster, pool):
    before = time.time()
    operation = cluster.run_vanilla("sleep 0.3", pool=pool)
    job = only_job(cluster, operation)
    start, finish = moment(job["start_time"]), moment(job["finish_time"])
    assert before - 1 <= start <= finish <= time.time() + 1
    assert finish - start >= 0.3
    states = [e["state"] for e in job["events"] if "state" in e]
    assert states[-1] == "completed" and "running" in states, job["events"]
    times = [moment(e["time"]) for e in job["events"]]
    assert times == sorted(times)

    events = cluster.operation(operation, "events")["events"]
    order = [e["state"] for e in events]
    assert order == ["starting", "waiting_for_agent", "initializing", "preparing", "pending", "materializing",
                     "running", "completing", "completed"], order
    assert [moment(e["time"]) for e in events] == sorted(moment(e["time"]) for e in events)


def statistics(job, path):
    value = job["statistics"]
    for key in path.split("/"):
        value = value[key]
    return value


def test_statistics(cluster, pool):
    """A job that burns CPU for about half a second and holds 50 MB."""
    program = ("import time\nx = bytearray(50 << 20)\nx[::4096] = b'1' * len(x[::4096])\n"
               "end = time.process_time() + 0.5\nwhile time.process_time() < end: pass\ntime.sleep(0.2)")
    begin = time.monotonic()
    operation = cluster.run_vanilla(f"python3 -c \"{program}\"; echo '{{rows=7}};' >&5", pool=pool,
                                    memory_limit=200 << 20)
    most = 1000 * (time.monotonic() - begin)
    job = only_job(cluster, operation)
    exec_time = statistics(job, "time/exec")["sum"]
    total = statistics(job, "time/total")["sum"]
    assert 700 <= exec_time <= total <= most + 1000, (exec_time, total, most)
    cpu = statistics(job, "user_job/cpu/user")["sum"] + statistics(job, "user_job/cpu/system")["sum"]
    assert 450 <= cpu <= exec_time + 100, (cpu, exec_time)
    memory = statistics(job, "user_job/max_memory")["sum"]
    assert 50 << 20 <= memory <= 120 << 20, memory
    assert statistics(job, "user_job/memory_limit")["sum"] == 200 << 20
    assert statistics(job, "custom/rows")["sum"] == 7

    progress = cluster.operation(operation, "progress")["progress"]
    leaves = progress["job_statistics_v2"]["user_job"]["max_memory"]
    assert [leaf["summary"]["sum"] for leaf in leaves if leaf["tags"]["job_state"] == "completed"] == [memory]
    assert leaves[0]["tags"] == {"job_state": "completed", "job_type": "t", "pool_tree": "physical"}


# Every path of jobs-and-nodes.md 7.2 that a vanilla job without tables and devices has, by its unit, and what is
# known of the value when the job is: 200 MiB of memory, half of it reserved, a tenth of a core, a volume of 8 MiB.
MIB = 1 << 20
TIMES = ["time/total", "time/wait_for_resources", "time/prepare", "time/artifacts_download", "time/exec",
         "time/prepare_root_fs", "time/gpu_check",
         *(f"{who}/cpu/{kind}" for who in ("user_job", "job_proxy") for kind in ("user", "system")),
         *(f"{who}/cpu/{kind}" for who in ("user_job", "job_proxy") for kind in ("wait", "throttled", "cfs_throttled")),
         "user_job/cpu/burst"]
BYTES = {"job_proxy/max_memory": None, "job_proxy/estimated_memory": 128 * MIB, "job_proxy/memory_reserve": 128 * MIB,
         "user_job/max_memory": None, "user_job/current_memory/rss": None, "user_job/current_memory/mapped_file": None,
         "user_job/memory_limit": 200 * MIB, "user_job/memory_reserve": 100 * MIB, "user_job/tmpfs_size": 3 * MIB,
         "user_job/max_tmpfs_size": 3 * MIB, "user_job/tmpfs_volumes/0/size": 3 * MIB,
         "user_job/tmpfs_volumes/0/max_size": 3 * MIB, "user_job/block_io/bytes_read": None,
         "user_job/block_io/bytes_written": None, "user_job/disk/usage": None, "user_job/disk/max_usage": None,
         "user_job/disk/limit": 100 * MIB, "job_proxy/block_io/bytes_read": None,
         "job_proxy/block_io/bytes_written": None,
         **{f"exec_agent/artifacts/cache_{how}_artifacts_size": 0 for how in ("hit", "miss", "bypassed")}}
# value * time/total
BYTE_SECONDS = {f"{who}/cumulative_{what}": f"{who}/{what}" for who, what in [
    ("user_job", "max_memory"), ("user_job", "memory_reserve"), ("job_proxy", "max_memory"),
    ("job_proxy", "memory_reserve"), ("job_proxy", "estimated_memory")]}
COUNTS = {"user_job/cpu/context_switches": None, "job_proxy/cpu/context_switches": None,
          "user_job/current_memory/major_page_faults": None, "user_job/cpu_reserve_millicores": 100,
          "user_job/vcpu_reserve_millicores": 100, "user_job/gpu_reserve": 0,
          "user_job/memory_reserve_factor_x10000": 5_000, "job_proxy/memory_reserve_factor_x10000": 10_000,
          "user_job/cumulative_memory_mb_sec": None, "custom/n": 1}
# Once the monitor has measured twice (1.6), hundredths of a core or of core-seconds.
MONITOR = {"job_proxy/smoothed_cpu_usage_x100": None, "job_proxy/preemptible_cpu_x100": 0,
           "job_proxy/preemptable_cpu_x100": 0, "job_proxy/aggregated_smoothed_cpu_usage_x100": None,
           "job_proxy/aggregated_max_cpu_usage_x100": None, "job_proxy/aggregated_preemptible_cpu_x100": 0,
           "job_proxy/aggregated_preemptable_cpu_x100": 0, "job_proxy/aggregated_preempted_cpu_x100": 0}


# Where the host has a controller that counts.
REQUESTS = [f"user_job/block_io/{kind}" for kind in ("io_read", "io_write", "io_total")]


def counts_requests():
    groups = pathlib.Path("/sys/fs/cgroup")
    controllers, requests = groups / "cgroup.controllers", groups / "blkio" / "blkio.throttle.io_serviced_recursive"
    if controllers.exists():
        return "io" in controllers.read_text().split()
    # Newer kernels count for v1 only what they throttle.
    return requests.exists() and ":" in requests.read_text()


def leaves(tree, path=()):
    if not isinstance(tree.get("sum"), dict) and "sum" in tree:
        return {"/".join(path): tree}
    return {k: v for name, child in tree.items() for k, v in leaves(child, (*path, name)).items()}


@pytest.mark.skipif(os.geteuid() != 0, reason="not root: no memory file systems")
def test_every_statistic(cluster, pool, shared):
    command = ("dd if=/dev/zero of=v/x bs=1M count=3 2>/dev/null; dd if=/dev/zero of=on-disk bs=1M count=5 2>/dev/null; echo '{n=1};' >&5; "
               f"python3 -c 'import time; x = bytearray(60 << 20); time.sleep(3)'; while [ ! -e {shared}/go ]; do sleep 0.2; done")
    begin = time.monotonic()
    operation = cluster.start_vanilla(command, pool=pool, memory_limit=200 * MIB, cpu_limit=0.1,
                                      tmpfs_volumes=[{"path": "v", "size": 8 * MIB}],
                                      disk_request={"disk_space": 100 * MIB})

    def monitored():
        job = cluster.jobs(operation)[0]["id"] if cluster.jobs(operation) else None
        known = leaves(cluster.command("get_job", operation_id=operation, job_id=job).get("statistics", {})) if job else {}
        return known.get("job_proxy/aggregated_max_cpu_usage_x100", {"sum": 0})["sum"] >= 10
    wait_for(monitored, what="the monitor to have measured for a second", period=0.2)
    (shared / "go").touch()
    cluster.wait_state(operation, "completed")
    most = time.monotonic() - begin
    found = leaves(only_job(cluster, operation)["statistics"])
    known = {**dict.fromkeys(TIMES), **BYTES, **dict.fromkeys(BYTE_SECONDS), **COUNTS, **MONITOR}
    if counts_requests():
        known |= dict.fromkeys(REQUESTS)
    assert set(found) == set(known), "a statistic without a place in the list, or the other way round"
    for path, summary in found.items():
        assert summary["count"] == 1 and summary["min"] == summary["max"] == summary["last"] == summary["sum"] >= 0, path
    value = {path: summary["sum"] for path, summary in found.items()}
    assert {path: value[path] for path, expected in known.items() if expected is not None} == \
        {path: expected for path, expected in known.items() if expected is not None}
    seconds = value["time/total"] / 1000
    assert 3 <= value["time/exec"] / 1000 <= seconds <= most + 1, (value["time/exec"], seconds, most)
    for path, of in BYTE_SECONDS.items():
        assert value[path] == value[of] * value["time/total"] // 1000, path
    assert 60 * MIB <= value["user_job/max_memory"] < 100 * MIB, "without the volume"
    assert 60 <= value["user_job/cumulative_memory_mb_sec"] <= 100 * seconds
    assert 5 * MIB <= value["user_job/disk/usage"] == value["user_job/disk/max_usage"] < 6 * MIB, "without the volume"
    assert 0 < value["job_proxy/max_memory"] < 16 * MIB
    # A tenth of a core, for as long as the job ran.
    assert 10 <= value["job_proxy/aggregated_max_cpu_usage_x100"] <= 10 * seconds


def counts_bytes(directory):
    """Does the kernel count what a process writes there? Not in memory, and not in every virtual file system."""
    script = ("import os, sys\nf = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)\nos.write(f, bytes(1 << 20)); os.fsync(f)\n"
              "print(next(line.split()[1] for line in open('/proc/self/io') if line.startswith('write_bytes')))")
    file = directory / "counted"
    try:
        done = subprocess.run([sys.executable, "-c", script, file], capture_output=True, text=True, check=True)
        return int(done.stdout) >= 1 << 20
    finally:
        file.unlink()


# Both are on storage when the job ends: four mebibytes of its own, and two million bytes that its proxy keeps.
WRITES = "dd if=/dev/zero of=on-disk bs=1M count=4 conv=fsync 2>/dev/null; head -c 2000000 /dev/zero | tr '\\0' x >&2"


def test_bytes_of_storage(cluster, pool):
    if not counts_bytes(cluster.directory):
        pytest.skip(f"nothing is counted of what is written to {cluster.directory}: a tmpfs?")
    value = leaves(only_job(cluster, cluster.run_vanilla(WRITES, pool=pool))["statistics"])
    assert 4 * MIB <= value["user_job/block_io/bytes_written"]["sum"] < 64 * MIB
    assert 2_000_000 <= value["job_proxy/block_io/bytes_written"]["sum"] < 64 * MIB


@pytest.mark.skipif(not counts_requests(), reason="no controller io of cgroup v2, and this kernel counts nothing for blkio of v1")
def test_requests_to_storage(cluster, pool):
    if not counts_bytes(cluster.directory):
        pytest.skip(f"nothing is counted of what is written to {cluster.directory}: a tmpfs?")
    value = leaves(only_job(cluster, cluster.run_vanilla(WRITES, pool=pool))["statistics"])
    read, write, total = [value[path]["sum"] for path in REQUESTS]
    assert write >= 1 and total == read + write


def test_where_files_came_from(cluster, pool):
    """The first job fetches the file into the cache, the second finds it there, the third goes past it."""
    path = "//tmp/where-files-come-from"
    upload(cluster, path, b"x" * 1000)
    before = None
    for given, how in [(path, "miss"), (path, "hit"), (f"<bypass_artifact_cache=%true>{path}", "bypassed")]:
        operation = cluster.run_vanilla("wc -c < where-files-come-from >&2; [ -L where-files-come-from ] || echo own >&2",
                                        pool=pool, file_paths=[given])
        job = only_job(cluster, operation)
        sizes = {k: v["sum"] for k, v in leaves(job["statistics"]["exec_agent"]["artifacts"]).items()}
        assert sizes == {f"cache_{name}_artifacts_size": 1000 * (name == how) for name in ("hit", "miss", "bypassed")}
        printed = cluster.stderr(operation, job["id"]).decode().split()
        assert printed == ["1000", *(["own"] if how == "bypassed" else [])], "only that one is no link into the cache"


def test_ports(cluster, pool, shared):
    """Three jobs at a time listen on two ports each, on all addresses; nobody has the port of another."""
    program = ("import os, socket, time; ports = [int(os.environ[f'YT_PORT_{i}']) for i in range(2)]; "
               "held = [socket.create_server(('', port)) for port in ports]; print(*ports); "
               "assert 'YT_PORT_2' not in os.environ; "
               # Until all three have theirs.
               f"open(f'{shared}/{{os.getpid()}}-{{ports[0]}}', 'w')\n"
               f"while len(os.listdir('{shared}')) < 3: time.sleep(0.05)")
    operation = cluster.run_vanilla(f'python3 -c "{program}"', pool=pool, job_count=3, port_count=2, cpu_limit=0.1,
                                    spec={"max_failed_job_count": 1})
    ports = [int(port) for job in cluster.jobs(operation) for port in cluster.stderr(operation, job["id"]).split()]
    assert len(set(ports)) == 6 and all(20_000 <= port < 30_000 for port in ports), ports


def test_statistics_of_many_jobs(cluster, pool):
    operation = cluster.run_vanilla("echo \"{n=$YT_JOB_COOKIE};\" >&5; [ $YT_JOB_INDEX != 3 ]", pool=pool, job_count=5)
    custom = cluster.operation(operation, "progress")["progress"]["job_statistics_v2"]["custom"]["n"]
    by_state = {leaf["tags"]["job_state"]: leaf["summary"] for leaf in custom}
    completed = by_state["completed"]
    assert (completed["sum"], completed["count"], completed["min"], completed["max"]) == (10, 5, 0, 4)
    assert by_state["failed"]["count"] == 1


def test_stderr_of_a_running_job(cluster, pool):
    operation = cluster.start_vanilla("echo first; sleep 1000", pool=pool)
    job = cluster.wait_jobs(operation)[0]
    wait_for(lambda: cluster.stderr(operation, job) == b"first\n", what="its stderr")


def test_stderr_caps(cluster, pool):
    """Half of the head and half of the tail, with a mark between (jobs-and-nodes.md 5.4)."""
    limit = 1000
    text = output(cluster, pool, "for i in $(seq 1000); do echo line $i; done", max_stderr_size=limit)
    mark = "\n...skipped...\n"
    assert len(text) <= limit + len(mark)
    head, tail = text.split(mark)
    whole = "".join(f"line {i}\n" for i in range(1, 1001))
    assert head == whole[:limit // 2] and tail == whole[-limit // 2:]


def test_stderr_offset_and_limit(cluster, pool):
    operation = cluster.run_vanilla("printf 0123456789", pool=pool)
    job = cluster.jobs(operation)[0]["id"]
    assert cluster.command("get_job_stderr", operation_id=operation, job_id=job, limit=4) in (b"0123", b"6789")
    assert cluster.command("get_job_stderr", operation_id=operation, job_id=job, offset=4, limit=3) == b"456"


def test_stderr_count(cluster, pool):
    """Of many successful jobs only some keep their stderr, of failed ones more."""
    operation = cluster.run_vanilla("echo $YT_JOB_COOKIE", pool=pool, job_count=8, spec={"max_stderr_count": 3})
    sizes = [j.get("stderr_size", 0) for j in cluster.jobs(operation)]
    assert len(sizes) == 8 and sum(1 for s in sizes if s) == 3, sizes


# --- how it ends

def test_job_time_limit(cluster, pool):
    # It does not sleep to its end: nobody waits that long here.
    operation = cluster.run_vanilla("sleep 1000", pool=pool, state="failed", job_time_limit=1000,
                                    spec={"max_failed_job_count": 1})
    error = find_error(cluster.result(operation), 1202)
    assert error["message"] == "Job time limit exceeded" and error["attributes"]["limit"] == 1000


def test_max_failed_job_count(cluster, pool):
    operation = cluster.run_vanilla("exit 1", pool=pool, state="failed", job_count=10, spec={"max_failed_job_count": 4})
    error = find_error(cluster.result(operation), 215)
    assert error["message"] == "Failed jobs limit exceeded" and error["attributes"]["max_failed_job_count"] == 4
    counters = cluster.counters(operation)
    assert counters["failed"] == 4 and counters["completed"] == 0, counters


def test_failed_jobs_are_retried(cluster, pool, shared):
    command = f"umask 0; echo x >> {shared}/runs; [ $(wc -l < {shared}/runs) -ge 3 ]"
    operation = cluster.run_vanilla(command, pool=pool)
    counters = cluster.counters(operation)
    assert (counters["completed"], counters["failed"], counters["total"]) == (1, 2, 1)
    assert cluster.operation(operation, "has_failed_jobs")["has_failed_jobs"]


def test_restart_exit_code(cluster, pool, shared):
    """The code means: well done, run me again (jobs-and-nodes.md 5.6)."""
    command = f"umask 0; echo x >> {shared}/runs; [ $(wc -l < {shared}/runs) -ge 3 ] || exit 42"
    operation = cluster.run_vanilla(command, pool=pool, restart_exit_code=42)
    counters = cluster.counters(operation)
    assert (counters["completed"], counters["failed"], counters["lost"]) == (1, 0, 2), counters


def test_fail_on_job_restart(cluster, pool):
    operation = cluster.run_vanilla("exit 1", pool=pool, state="failed", spec={"fail_on_job_restart": True})
    find_error(cluster.result(operation), 210)


def test_everything_of_a_job_is_killed(cluster, pool, shared):
    """Children that left the session, too, when the job's own process has ended. They must have closed
    the job's output: as long as somebody holds it the job goes on (jobs-and-nodes.md 5.2)."""
    daemon = ("sleep", "1000.125")
    operation = cluster.start_vanilla(
        f"setsid nohup {' '.join(daemon)} </dev/null >/dev/null 2>&1 5>&- & "
        f"while [ ! -e {shared}/seen ]; do sleep 0.02; done", pool=pool)
    pid = wait_for(lambda: cluster.find_process(*daemon), what="the daemonised child")
    (shared / "seen").touch()
    cluster.wait_state(operation, "completed")
    wait_for(lambda: not alive(pid), what="the daemonised child to be gone")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def start_and_find(cluster, pool, command, **options):
    operation = cluster.start_vanilla(command, pool=pool, **options)
    return operation, cluster.wait_jobs(operation)[0]


def test_abort_job(cluster, pool):
    operation, job = start_and_find(cluster, pool, "sleep 1000")
    cluster.command("abort_job", job_id=job)
    again = wait_for(lambda: [j for j in cluster.jobs(operation, state="running") if j["id"] != job],
                     what="the unit to run again")[0]
    assert again["job_cookie"] == 0
    aborted = cluster.command("get_job", operation_id=operation, job_id=job)
    assert aborted["state"] == "aborted"
    assert "user_request" in json.dumps(aborted)
    assert cluster.counters(operation)["aborted"] == 1


def test_abandon_job(cluster, pool):
    operation, job = start_and_find(cluster, pool, "sleep 1000")
    cluster.command("abandon_job", job_id=job)
    cluster.wait_state(operation, "completed")
    assert cluster.counters(operation)["completed"] == 1


def test_interruption_signal(cluster, pool, shared):
    """abort_job with a time-out: the signal first; a job that leaves with 0 is not aborted."""
    command = f"trap 'echo interrupted >&2; touch {shared}/seen; exit 0' USR1; echo ready >&2; while :; do sleep 0.05; done"
    operation, job = start_and_find(cluster, pool, command, interruption_signal="SIGUSR1", restart_exit_code=5)
    wait_for(lambda: b"ready" in cluster.stderr(operation, job), what="the trap to be set")
    # However long a late machine needs to bring the signal to the job.
    cluster.command("abort_job", job_id=job, interrupt_timeout=120_000)
    wait_for(lambda: os.path.exists(shared / "seen"), what="the signal")
    # With restart_exit_code set, leaving with 0 means: done (jobs-and-nodes.md 6.8).
    cluster.wait_state(operation, "completed")
    assert b"interrupted" in cluster.stderr(operation, job)
    assert cluster.counters(operation)["aborted"] == 0


def test_interruption_timeout(cluster, pool):
    """A job that ignores the signal is aborted when the time is over."""
    operation, job = start_and_find(cluster, pool, "trap '' USR1; echo ready >&2; while :; do sleep 0.05; done",
                                    interruption_signal="SIGUSR1")
    wait_for(lambda: b"ready" in cluster.stderr(operation, job), what="the trap to be set")
    begin = time.monotonic()
    cluster.command("abort_job", job_id=job, interrupt_timeout=1000)
    wait_for(lambda: cluster.jobs(operation, state="aborted"), what="the job to be aborted")
    assert time.monotonic() - begin >= 0.8
    assert cluster.jobs(operation, state="aborted")[0]["id"] == job


def test_several_tasks(cluster, pool):
    operation = cluster.command("start_operation", operation_type="vanilla", spec={"pool": pool, "tasks": {
        "reader": {"command": "echo $YT_TASK_NAME $YT_TASK_JOB_INDEX/$YT_TASK_JOB_COUNT", "job_count": 2,
                   "cpu_limit": 0.1, "memory_limit": 64 << 20},
        "writer": {"command": "echo $YT_TASK_NAME", "job_count": 1, "cpu_limit": 0.1, "memory_limit": 64 << 20},
    }})["operation_id"]
    cluster.wait_state(operation, "completed")
    jobs = cluster.jobs(operation)
    text = sorted(cluster.stderr(operation, j["id"]).decode().strip() for j in jobs)
    assert text == ["reader 0/2", "reader 1/2", "writer"]
    assert len(cluster.jobs(operation, task_name="reader")) == 2
    assert cluster.operation(operation, "task_names")["task_names"] == ["reader", "writer"]


def test_list_jobs_pages(cluster, pool):
    operation = cluster.run_vanilla("true", pool=pool, job_count=7)
    first = cluster.command("list_jobs", operation_id=operation, limit=3, sort_field="start_time")["jobs"]
    rest = cluster.command("list_jobs", operation_id=operation, limit=10, offset=3, sort_field="start_time")["jobs"]
    assert (len(first), len(rest)) == (3, 4)
    assert len({j["id"] for j in first + rest}) == 7
    counts = cluster.command("list_jobs", operation_id=operation, limit=0)
    assert counts["jobs"] == [] and counts["state_counts"]["completed"] == 7


@pytest.mark.timeout(900)
def test_large_operation(cluster, pool):
    """Five hundred jobs: each counted, each with its own record."""
    operation = cluster.run_vanilla("true", pool=pool, job_count=500, timeout=600)
    assert cluster.counters(operation)["completed"] == 500
    listed = cluster.command("list_jobs", operation_id=operation, limit=1000)["jobs"]
    assert len(listed) == 500 and {j["job_cookie"] for j in listed} == set(range(500))


@pytest.mark.parametrize("name", ["simple", "auto"])
def test_drivers(name):
    """The same job under the driver without cgroups and under what this machine has."""
    from harness import cluster as make_cluster
    with make_cluster(environment=name) as c:
        c.create_pool("p")
        operation = c.run_vanilla("(sleep 1000 >/dev/null 2>&1 5>&- & ) ; echo done", job_count=3)
        assert all(re.match(rb"done\n", c.stderr(operation, j["id"])) for j in c.jobs(operation))
        wait_for(lambda: not c.job_processes(), what="background children to be gone")
