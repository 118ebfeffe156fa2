"""The figures of docs/benchmarks.md: `make bench`, or `python -m bench.run [--quick] [parts...]`.

Parts: throughput, latency, start, operations, memory, nodes, idle, reclaim, tables, get, submit. Prints a table and writes build/bench.json. Compare
figures of one run with each other, never with those of another machine or another day: the ceiling
of the same run is printed beside.
"""

import argparse
import concurrent.futures
import contextlib
import datetime
import http.client
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from harness import BUILD, Cluster, wait_for  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
PARTS = ["throughput", "latency", "start", "operations", "memory", "nodes", "idle", "reclaim", "tables", "get", "submit"]


# --- tools

def compiled(name, *flags):
    """A small C program of this folder."""
    BUILD.mkdir(exist_ok=True)
    program = BUILD / f"bench-{name}"
    source = ROOT / "bench" / f"{name}.c"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["cc", "-O2", *flags, "-o", program, source], check=True)
    return program


class Connection:
    """One connection that is kept open, as a client in a long-running process has."""

    def __init__(self, cluster):
        self.http = http.client.HTTPConnection(cluster.address, timeout=120)

    def post(self, command, **parameters):
        self.http.request("POST", f"/api/v4/{command}", json.dumps(parameters), {"Content-Type": "application/json"})
        reply = self.http.getresponse()
        data = reply.read()
        if reply.status != 200:
            raise RuntimeError(data.decode())
        return json.loads(data)

    def start(self, spec):
        return self.post("start_operation", operation_type="vanilla", spec=spec)["operation_id"]

    def state(self, operation):
        return self.post("get_operation", operation_id=operation, attributes=["state"])["state"]

    def wait_completed(self, operation, period):
        while (state := self.state(operation)) != "completed":
            if state in ("failed", "aborted"):
                raise RuntimeError(f"{operation} is {state}: " + json.dumps(
                    self.post("get_operation", operation_id=operation, attributes=["result"])))
            time.sleep(period)


def spec(pool, command, job_count=1, memory=32 << 20, cpu=1.0, **options):
    return {"pool": pool, "tasks": {"t": {"command": command, "job_count": job_count, "cpu_limit": cpu,
                                          "memory_limit": memory}}, **options}


def cpu_seconds(pid, with_children=False):
    """User and system time of a process; of what it has waited for, too, if asked."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    # Fields 14 to 17 of the whole line.
    return sum(map(int, fields[11:15 if with_children else 13])) / TICKS


def cpu_of(cluster):
    """CPU seconds so far: server, nodes, and the spawners with all proxies and jobs that ended."""
    return {
        "server": cpu_seconds(cluster.server.popen.pid),
        "node": sum(cpu_seconds(n.popen.pid) for n in cluster.nodes),
        "proxies and jobs": sum(cpu_seconds(p, with_children=True) for p in cluster.spawners()),
    }


def memory_of(pid):
    """{VmRSS, VmHWM} in bytes."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return {line.split()[0].rstrip(":"): int(line.split()[1]) << 10
            for line in text.splitlines() if line.startswith(("VmRSS", "VmHWM"))}


@contextlib.contextmanager
def running(**options):
    cluster = Cluster(**options)
    try:
        cluster.start()
        cluster.create_pool("bench", max_operation_count=50000, max_running_operation_count=10000)
        yield cluster
        cluster.stop()
    except BaseException:
        sys.stderr.write(cluster.logs())
        cluster.clean_up()
        raise


def percentile(values, p):
    """Nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-len(ordered) * p // 100) - 1))]


# --- parts

def ceiling(count):
    program = compiled("ceiling")
    return float(subprocess.run([program, str(count)], capture_output=True, text=True, check=True).stdout)


def throughput(driver, count):
    """Jobs of /bin/true of one operation on one node with two slots."""
    with running(resources="cpu=2,memory=4GiB,user_slots=2", environment=driver) as cluster:
        connection = Connection(cluster)
        # Warm: the first jobs load what all others share.
        connection.wait_completed(connection.start(spec("bench", "/bin/true", 20)), 0.01)
        before, begin = cpu_of(cluster), time.monotonic()
        operation = connection.start(spec("bench", "/bin/true", count))
        connection.wait_completed(operation, 0.02)
        seconds = time.monotonic() - begin
        used = {k: v - before[k] for k, v in cpu_of(cluster).items()}
        counters = cluster.counters(operation)
        assert counters["completed"] == count and counters["failed"] == 0, counters
        return {"jobs_per_second": count / seconds, "seconds": seconds, "cpu_seconds": used,
                "server_share_of_cpu": used["server"] / sum(used.values()),
                "cpu_ms_per_job": 1000 * sum(used.values()) / count}


def latency(driver, count):
    """From the moment before the request is sent to the first instruction of the job, idle node."""
    stamp = compiled("stamp", "-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector")
    with running(resources="cpu=2,memory=4GiB,user_slots=2", environment=driver) as cluster:
        connection = Connection(cluster)
        stamps = cluster.shared / "stamps"
        stamps.mkdir()
        stamps.chmod(0o777)
        stamp = shutil.copy(stamp, cluster.shared)
        values = []
        for i in range(count + 10):
            file = stamps / str(i)
            wanted = spec("bench", f"{stamp} {file}")
            begin = time.clock_gettime_ns(time.CLOCK_REALTIME)
            operation = connection.start(wanted)
            # Asking at once would take the processor from what is measured.
            time.sleep(0.01)
            connection.wait_completed(operation, 0.005)
            values.append((int(file.read_text()) - begin) / 1e6)
            # What the server does after the end (archive, garbage) must not disturb the next one.
            time.sleep(0.02)
        values = values[10:]
        return {"p50_ms": percentile(values, 50), "p99_ms": percentile(values, 99), "max_ms": max(values),
                "mean_ms": statistics.fmean(values), "submits": count}


def start(jobs):
    """What the start of one job costs above a bare spawn, through spawner and proxy: group, mounts, exec."""
    command = ["cargo", "bench", "-q", "-p", "millpond-jobproxy", "--bench", "jobs", "--", "start", str(jobs)]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return dict(line.split(", 100 jobs/s: ", 1) for line in out.splitlines() if ", 100 jobs/s: " in line)


def submit_many(cluster, count, wanted, threads=8):
    def some(n):
        connection = Connection(cluster)
        return [connection.start(wanted) for _ in range(n)]
    with concurrent.futures.ThreadPoolExecutor(threads) as executor:
        shares = [count // threads + (i < count % threads) for i in range(threads)]
        return [o for part in executor.map(some, shares) for o in part]


def operations_of(cluster, pool="bench"):
    return cluster.get(f"//sys/scheduler/orchid/scheduler/pool_trees/physical/pools/{pool}/operation_count")


def operations(driver, count):
    """Operations of one job each, from the first submit to the last end."""
    with running(resources="cpu=16,memory=16GiB,user_slots=16", environment=driver) as cluster:
        begin = time.monotonic()
        ids = submit_many(cluster, count, spec("bench", "/bin/true", cpu=0.1))
        submitted = time.monotonic() - begin
        wait_for(lambda: operations_of(cluster) == 0, timeout=600, what="all operations to end", period=0.05)
        seconds = time.monotonic() - begin
        connection = Connection(cluster)
        assert all(connection.state(o) == "completed" for o in ids[::97])
        return {"operations_per_second": count / seconds, "submits_per_second": count / submitted, "seconds": seconds}


def memory(driver, finished, active):
    """Memory of the server with many finished and many running operations, each with its process."""
    with running(resources=f"cpu={active},memory=1TiB,user_slots={active}", environment=driver) as cluster:
        pid = cluster.server.popen.pid
        empty = memory_of(pid)["VmRSS"]
        done = 0
        while done < finished:
            batch = min(1000, finished - done)
            submit_many(cluster, batch, spec("bench", "/bin/true", cpu=0.1))
            wait_for(lambda: operations_of(cluster) == 0, timeout=600, what="all operations to end", period=0.1)
            done += batch
        after_finished = memory_of(pid)["VmRSS"]
        cluster.create_pool("active", max_operation_count=50000, max_running_operation_count=10000)
        ids = submit_many(cluster, active, spec("active", "sleep 1000", cpu=0.1))
        root = "//sys/scheduler/orchid/scheduler/pool_trees/physical/pools/active/resource_usage/user_slots"
        wait_for(lambda: cluster.get(root) == active, timeout=300, what="all jobs to run", period=0.2)
        time.sleep(3)
        figures = memory_of(pid)
        with concurrent.futures.ThreadPoolExecutor(8) as executor:
            list(executor.map(lambda o: cluster.command("abort_operation", operation_id=o), ids))
        return {"empty_bytes": empty, "finished_bytes": after_finished, "rss_bytes": figures["VmRSS"],
                "peak_bytes": figures["VmHWM"], "finished": finished, "running": active}


def pretend():
    """The agent that only pretends to run jobs, built beside the binary of the product."""
    subprocess.run(["cargo", "build", "--release", "-q", "-p", "millpond-node", "--example", "pretend"],
                   cwd=ROOT, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "examples" / "pretend"


def nodes(count, jobs_per_node, seconds):
    """The server's CPU with many nodes that report every second: without jobs, full, and full with an
    operation that waits (what a starving team costs)."""
    program = pretend()
    with tempfile.TemporaryDirectory() as directory:
        config = pathlib.Path(directory) / "millpond.toml"
        config.write_text('[server]\nheartbeat_period = "1s"\n')
        with running(nodes=0, server_arguments=["--config", config]) as cluster:
            pid = cluster.server.popen.pid
            cluster.set("//sys/scheduler/config/min_spare_allocation_resources_on_node",
                        {"user_slots": 1, "cpu": 0.1, "memory": 1 << 20})
            agents = subprocess.Popen([program, cluster.address, str(count), f"cpu={jobs_per_node}", "100000"],
                                      stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                wait_for(lambda: len(cluster.get("//sys/cluster_nodes")) == count, timeout=120, what="all nodes to be there",
                         period=0.5)

                def share_of_a_core():
                    time.sleep(3)
                    begin, before = time.monotonic(), cpu_seconds(pid)
                    time.sleep(seconds)
                    return (cpu_seconds(pid) - before) / (time.monotonic() - begin)

                idle = share_of_a_core()
                connection = Connection(cluster)
                jobs = count * jobs_per_node
                begin = time.monotonic()
                # Ten operations, as one task has at most 100,000 jobs.
                for _ in range(10):
                    connection.start(spec("bench", "true", jobs // 10, memory=1 << 20))
                root = "//sys/scheduler/orchid/scheduler/pool_trees/physical/pools/bench/resource_usage/user_slots"
                wait_for(lambda: cluster.get(root) >= jobs // 10 * 10, timeout=600, what="all jobs to run", period=0.1)
                filled = time.monotonic() - begin
                full = share_of_a_core()
                connection.start(spec("bench", "true", 100, memory=1 << 20))
                waiting = share_of_a_core()
                return {"nodes": count, "jobs": jobs, "idle_cores": idle, "full_cores": full, "waiting_cores": waiting,
                        "starts_per_second": jobs / filled, "rss_bytes": memory_of(pid)["VmRSS"]}
            finally:
                agents.kill()
                agents.wait()


def private_memory(pid):
    """Bytes that nobody shares with the process."""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("Private_"))


def idle(driver, jobs, seconds):
    """What watching costs: jobs that do nothing, with the CPU monitor on, on one node agent."""
    with running(resources=f"cpu={jobs},memory=1TiB,user_slots={jobs}", environment=driver) as cluster:
        connection = Connection(cluster)
        monitored = spec("bench", "sleep 10000", jobs, cpu=1.0, job_cpu_monitor={"enable_cpu_reclaim": True})
        operation = connection.start(monitored)
        wait_for(lambda: cluster.counters(operation)["running"] == jobs, timeout=300, what="all jobs to run", period=0.5)
        # Past the starts, and past the first report of each proxy.
        time.sleep(10)
        agent, proxies = cluster.nodes[0].popen.pid, cluster.proxies()
        assert len(proxies) == jobs, len(proxies)

        def used():
            return cpu_seconds(agent), sum(cpu_seconds(p) for p in proxies)
        begin, before = time.monotonic(), used()
        time.sleep(seconds)
        after, lasted = used(), time.monotonic() - begin
        private = [private_memory(p) for p in proxies[:: max(1, jobs // 50)]]
        figures = {"jobs": jobs, "agent_cores": (after[0] - before[0]) / lasted,
                   "proxy_cores_per_job": (after[1] - before[1]) / lasted / jobs,
                   "proxy_private_bytes": max(private)}
        cluster.command("abort_operation", operation_id=operation)
        wait_for(lambda: not cluster.proxies(), timeout=120, what="all jobs to end", period=0.5)
        return figures


def reclaim(driver, rounds):
    """From the moment when the CPU monitor gives back a core of an idle job to the first instruction of another
    operation's job on that core. Heartbeats come once a second and take no part in it."""
    stamp = compiled("stamp", "-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector")
    # One decision, from two cores to the floor of one.
    monitor = {"enable_cpu_reclaim": True, "check_period": 100, "smoothing_factor": 1.0, "decrease_coefficient": 0.5,
               "vote_window_size": 2, "vote_decision_threshold": 1, "start_delay": 300}
    with running(resources="cpu=2,memory=4GiB,user_slots=4", environment=driver, server_config='heartbeat_period = "1s"\n',
                 node_config='running_job_statistics_sending_backoff = "100ms"\n') as cluster:
        connection = Connection(cluster)
        cluster.create_pool("other")
        stamp = shutil.copy(stamp, cluster.shared)
        values = []
        for i in range(rounds):
            file = cluster.shared / f"reclaim-{i}"
            idle = connection.start(spec("bench", "sleep 1000", cpu=2.0, job_cpu_monitor=monitor))
            [job] = cluster.wait_jobs(idle)
            other = connection.start(spec("other", f"{stamp} {file}"))
            connection.wait_completed(other, 0.05)

            def change():
                explained = json.loads(cluster.millpond("job", "explain", job, "--json")[1])
                return (explained["cpu"].get("monitor") or {}).get("last_change")
            moved = wait_for(change, what="the monitor's change to be reported", period=0.1)
            assert moved["applied"] and (moved["from"], moved["to"]) == (2, 1), moved
            freed = datetime.datetime.fromisoformat(moved["time"]).timestamp()
            values.append((int(file.read_text()) / 1e9 - freed) * 1000)
            connection.post("abort_operation", operation_id=idle)
            wait_for(lambda: operations_of(cluster) == 0, what="the idle job to be gone", period=0.05)
        return {"p50_ms": percentile(values, 50), "max_ms": max(values), "rounds": rounds}


ROWS = {"binary": b"{\x01\x04id=\x02%s;\x01\x08text=\x01\xc8\x01%s;};" % (b"\x92\x02", b"x" * 100),
        "text": b'{"id"=12345;"text"="%s";};\n' % (b"x" * 100)}

# Of the order of other clients' (curl sends 64 KiB at a time). For pieces of a megabyte Python gets new pages from the
# system again and again, which takes more of the processor than the server's look at the rows.
PIECE = 128 << 10


def copied(source, target):
    """Seconds of `cp` and of the `sync` that puts the copy on the disk."""
    begin = time.monotonic()
    subprocess.run(["cp", source, target], check=True)
    subprocess.run(["sync", target], check=True)
    seconds = time.monotonic() - begin
    target.unlink()
    return seconds


def table_there_and_back(cluster, style, source, size):
    """Seconds of writing the rows of a file to a table, piece by piece, and of reading them again."""
    path = f"//tmp/{style}"
    cluster.command("create", type="table", path=path)
    connection = http.client.HTTPConnection(cluster.address, timeout=600, blocksize=PIECE)

    def headers(**more):
        return {"X-YT-Parameters": json.dumps({"path": path, **more})}
    form = {"$attributes": {"format": style}, "$value": "yson"}
    begin = time.monotonic()
    with source.open("rb") as file:
        connection.request("PUT", "/api/v4/write_table", file, headers(input_format=form), encode_chunked=True)
        reply = connection.getresponse()
    assert reply.status == 200, reply.read()
    reply.read()
    write = time.monotonic() - begin
    begin = time.monotonic()
    connection.request("GET", "/api/v4/read_table", None, headers(output_format=form))
    reply, got = connection.getresponse(), 0
    while piece := reply.read(PIECE):
        got += len(piece)
    read = time.monotonic() - begin
    assert got == size, f"{got} bytes came back of {size}"
    connection.close()
    cluster.command("remove", path=path)
    return write, read


def tables(size, rounds=3):
    """Rows of binary and of text YSON in and out over HTTP, beside a copy of as many bytes by `cp` and `sync`. Disks
    are moody: each round does all three, and what is in the middle counts."""
    with running() as cluster, tempfile.TemporaryDirectory() as directory:
        figures = {"bytes": size}
        for style, row in ROWS.items():
            block = row * ((1 << 20) // len(row))
            count = size // len(block)
            source = pathlib.Path(directory) / style
            with source.open("wb") as file:
                for _ in range(count):
                    file.write(block)
            os.sync()
            times = []
            for _ in range(rounds):
                copy = copied(source, pathlib.Path(f"{source}.copy"))
                times.append((copy, *table_there_and_back(cluster, style, source, count * len(block))))
            copy, write, read = (statistics.median(some) for some in zip(*times))
            figures[style] = {"copy_seconds": copy, "write_seconds": write, "read_seconds": read, "rounds": times}
            source.unlink()
        return figures


def load_tool():
    """wrk, installed if it is not there."""
    if shutil.which("wrk") is None:
        subprocess.run(["bash", ROOT / "tests" / "setup.sh", "bench"], check=True)
    return "wrk"


UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}


def load(url, seconds, connections, *arguments):
    """What wrk says of so many connections that ask one thing again and again."""
    command = [load_tool(), "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", *arguments, url]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line.split() for line in said.stdout.splitlines() if line.split()]
    share = {line[0]: line[1] for line in lines if line[0] in ("50%", "99%")}

    def milliseconds(text):
        unit = text.lstrip("0123456789.")
        return float(text.removesuffix(unit)) * UNITS[unit]
    refused = [line for line in lines if line[0] in ("Non-2xx", "Socket")]
    assert not refused, said.stdout + said.stderr
    return {"per_second": next(float(line[1]) for line in lines if line[0] == "Requests/sec:"),
            "p50_ms": milliseconds(share["50%"]), "p99_ms": milliseconds(share["99%"])}


def pin(pid, cores):
    """All threads of a process to some cores."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(task.name), cores)


def get(seconds):
    """One attribute over connections that stay open, the server on a core of its own."""
    cores = sorted(os.sched_getaffinity(0))
    with running(nodes=0) as cluster:
        pin(cluster.server.popen.pid, cores[:1])
        path = "//sys/pool_trees/@default_tree"
        os.sched_setaffinity(0, set(cores[1:] or cores))
        try:
            return load(f"http://{cluster.address}/api/v4/get?path={path}", seconds, 32)
        finally:
            os.sched_setaffinity(0, set(cores))


def submit(seconds):
    """Operations submitted over connections that stay open; no node runs them."""
    with running(nodes=0) as cluster:
        # The usual limits are far below.
        for path in ("//sys/scheduler/config/", "//sys/pool_trees/physical/@config/", "//sys/pools/bench/@"):
            cluster.set(f"{path}max_operation_count", 1_000_000)
        url = f"http://{cluster.address}/api/v4/start_operation"
        figures = load(url, seconds, 32, "-s", str(ROOT / "bench" / "start_operation.lua"))
        figures["operations"] = cluster.pool_orchid("bench")["operation_count"]
        assert figures["operations"] > 0
        return figures


# --- report

def driver_with_groups():
    return "hybrid" if pathlib.Path("/sys/fs/cgroup/unified").is_dir() else "cgroup_v2"


def table(title, rows):
    print(f"\n{title}")
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"  {name:{width}}  {value}")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"some of {PARTS}; all without any")
    parser.add_argument("--quick", action="store_true", help="a tenth of the numbers, to see that it works")
    parser.add_argument("--drivers", default=f"simple,{driver_with_groups()}")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"unknown parts {sorted(unknown)}; there are {PARTS}")
    parts = arguments.parts or PARTS
    scale = 10 if arguments.quick else 1
    drivers = arguments.drivers.split(",")
    # Clusters on the disk that people would use, not on a tmpfs.
    tempfile.tempdir = os.environ.get("MILLPOND_BENCH_DIRECTORY")

    results = {"machine": {"cpus": os.cpu_count(), "kernel": platform.release(), "load_before": os.getloadavg()[0],
                           "date": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())},
               "quick": arguments.quick}
    table("machine", list(results["machine"].items()))

    if "throughput" in parts:
        count = 10000 // scale
        results["throughput"] = {"jobs": count, "ceiling_per_second": ceiling(count)}
        top = results["throughput"]["ceiling_per_second"]
        rows = [("ceiling (bare spawn loop)", f"{top:8.0f} /s")]
        for driver in drivers:
            r = results["throughput"][driver] = throughput(driver, count)
            cpu = ", ".join(f"{k} {v:.2f} s" for k, v in r["cpu_seconds"].items())
            rows += [(f"{driver}", f"{r['jobs_per_second']:8.0f} /s = {r['jobs_per_second'] / top:.0%} of the ceiling"),
                     ("", f"  CPU: {cpu}; server {r['server_share_of_cpu']:.0%}")]
        again = results["throughput"]["ceiling_after_per_second"] = ceiling(count)
        rows.append(("ceiling, measured again", f"{again:8.0f} /s"))
        table(f"{count} jobs of /bin/true, one operation, two slots", rows)

    if "latency" in parts:
        count = 300 // scale
        results["latency"] = {d: latency(d, count) for d in drivers}
        table(f"submit over HTTP to first instruction, {count} submits, idle node", [
            (d, f"p50 {r['p50_ms']:.2f} ms   p99 {r['p99_ms']:.2f} ms   max {r['max_ms']:.2f} ms")
            for d, r in results["latency"].items()])

    if "start" in parts:
        r = results["start"] = start(500 // scale)
        table("start of one job at 100 jobs a second, idle machine (3 ms above a bare spawn at most)", list(r.items()))

    if "operations" in parts:
        count = 1000 // scale
        results["operations"] = {d: operations(d, count) for d in drivers}
        table(f"{count} operations of one job each, eight clients", [
            (d, f"{r['operations_per_second']:8.0f} /s end to end, {r['submits_per_second']:.0f} submits/s")
            for d, r in results["operations"].items()])

    if "memory" in parts:
        r = results["memory"] = memory(drivers[-1], 10000 // scale, 1000 // scale)
        table("memory of the server", [
            ("empty", f"{r['empty_bytes'] / 2**20:8.1f} MiB"),
            (f"{r['finished']} finished operations", f"{r['finished_bytes'] / 2**20:8.1f} MiB"),
            (f"and {r['running']} running", f"{r['rss_bytes'] / 2**20:8.1f} MiB (peak {r['peak_bytes'] / 2**20:.1f})")])

    if "nodes" in parts:
        r = results["nodes"] = nodes(2000 // scale, 10, 20)
        table(f"CPU of the server, {r['nodes']} nodes that report every second", [
            ("no jobs", f"{r['idle_cores']:.3f} cores"),
            (f"{r['jobs']} running jobs", f"{r['full_cores']:.3f} cores, started at {r['starts_per_second']:.0f} /s"),
            ("and an operation that waits", f"{r['waiting_cores']:.3f} cores"),
            ("resident memory", f"{r['rss_bytes'] / 2**20:.1f} MiB")])

    if "idle" in parts:
        r = results["idle"] = idle(drivers[-1], 1000 // scale, 60)
        table(f"{r['jobs']} idle jobs with the CPU monitor on one node agent, {drivers[-1]}", [
            ("node agent", f"{r['agent_cores']:.2%} of a core"),
            ("proxy of one job: monitor and all sampling", f"{r['proxy_cores_per_job']:.3%} of a core"),
            ("private memory of a proxy, the largest", f"{r['proxy_private_bytes'] / 2**20:.1f} MiB")])

    if "reclaim" in parts:
        r = results["reclaim"] = reclaim(drivers[-1], 50 // scale)
        table(f"a core given back by an idle job, to the first instruction of another's, {r['rounds']} times, {drivers[-1]}", [
            ("after the change of the guarantee", f"p50 {r['p50_ms']:.1f} ms   max {r['max_ms']:.1f} ms")])

    if "tables" in parts:
        r = results["tables"] = tables((1 << 30) // scale)
        rate = r["bytes"] / 2**20
        table(f"a table of {rate:.0f} MiB of rows of about 110 bytes", [
            (style, f"cp {rate / r[style]['copy_seconds']:.0f}, write_table {rate / r[style]['write_seconds']:.0f}, "
                    f"read_table {rate / r[style]['read_seconds']:.0f} MiB/s: {r[style]['copy_seconds'] / r[style]['write_seconds']:.2f} and "
                    f"{r[style]['copy_seconds'] / r[style]['read_seconds']:.2f} of a copy")
            for style in ("binary", "text")])

    for part, measure, what in (("get", get, "get of one attribute, 32 connections, the server on one core"),
                                ("submit", submit, "start_operation, 32 connections")):
        if part in parts:
            r = results[part] = measure(20 // scale)
            table(what, [("requests", f"{r['per_second']:.0f} /s"),
                         ("latency", f"p50 {r['p50_ms']:.2f} ms   p99 {r['p99_ms']:.2f} ms")])

    BUILD.mkdir(exist_ok=True)
    (BUILD / "bench.json").write_text(json.dumps(results, indent=1) + "\n")
    print(f"\nwritten to {BUILD / 'bench.json'}")


if __name__ == "__main__":
    main()
