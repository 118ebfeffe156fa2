"""What jobs can do to each other, to the node and to its host: nothing (jobs-and-nodes.md 4.6-4.9).

Users, namespaces and memory file systems need root; skipped with a reason otherwise.
"""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import time
import urllib.request

import pytest
from harness import MOST_PROCESSES, UID_OFFSET, Bomb, cluster as make_cluster, error_text, find_error, wait_for
from test_cgroups import KIND, hierarchy

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not root: jobs cannot be isolated")


# Not the default: processes of these users are looked for. Every worker has its own.
FIRST_USER = 1_500_000 + UID_OFFSET
USERS = f'job_uids = "{FIRST_USER}-{FIRST_USER + 999}"\n'


@pytest.fixture(scope="module")
def cluster():
    with make_cluster(resources="cpu=8,memory=8GiB,user_slots=16", server_config=USERS) as c:
        yield c


@pytest.fixture(autouse=True)
def nothing_left(cluster):
    """After each test: no mount, no group of a job, no process of a user of jobs."""
    yield
    wait_for(lambda: not [j for p in cluster.command("list_operations")["operations"]
                          if p["state"] not in ("completed", "failed", "aborted") for j in cluster.jobs(p["id"])],
             what="all jobs to end")
    deadline = time.monotonic() + 180
    while left := cluster.mounts() + cluster.job_cgroups() + users():
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.05)


def upload(cluster, name, data):
    """Writes a file; gives its path."""
    path = f"//tmp/{name}"
    cluster.command("create", type="file", path=path, ignore_existing=True)
    request = urllib.request.Request(
        f"http://{cluster.address}/api/v4/write_file", data=data, method="PUT",
        headers={"X-YT-Parameters": json.dumps({"path": path}), "Content-Type": "application/octet-stream"})
    urllib.request.urlopen(request, timeout=180).read()
    return path


def users():
    """Processes of users of jobs."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if FIRST_USER <= os.stat(entry.path).st_uid < FIRST_USER + 1000 and os.readlink(entry.path + "/exe"):
                    command = open(entry.path + "/cmdline").read().replace("\0", " ")
                    found.append(f"process {entry.name}: {command}")
            except OSError:
                pass
    return found


def output(cluster, command, pool, state="completed", **options):
    operation = cluster.run_vanilla(command, pool=pool, state=state, **options)
    [job] = [j for j in cluster.jobs(operation) if j["state"] in (state, "completed")][-1:]
    return cluster.stderr(operation, job["id"]).decode()


def failure(cluster, command, pool, **options):
    options = {"spec": {"max_failed_job_count": 1}, **options}
    return cluster.result(cluster.run_vanilla(command, pool=pool, state="failed", **options))


def test_node_says_nothing_is_missing(cluster):
    address = cluster.online()[0]
    alerts = cluster.get(f"//sys/cluster_nodes/{address}/@alerts")
    assert not [a for a in alerts if "isolated" in a["message"]], alerts


def test_a_user_and_a_name_of_its_own(cluster, pool):
    lines = output(cluster, "id -u; id -G; hostname; echo $YT_JOB_ID; pwd; echo $HOME; stat -c %u .", pool).split()
    uid, groups, host, job, directory, home, owner = lines
    assert int(uid) == FIRST_USER and groups == uid == owner
    slot = pathlib.Path(directory).parent.name
    assert host == f"slot_{slot}-{job.split('-')[0]}" and int(slot) < 16
    assert directory == home and directory.endswith(f"/slots/{slot}/sandbox")


def test_other_jobs_are_invisible(cluster, pool):
    """Their processes, their sandboxes, the node's records."""
    other = cluster.start_vanilla("echo secret >file; exec sleep 2000.5", pool=pool)
    cluster.wait_jobs(other)
    wait_for(lambda: cluster.find_process("sleep", "2000.5"), what="the other job")
    out = output(cluster, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo; ls ../..; ls ../../..; ls /tmp", pool)
    processes, *names = out.splitlines()
    assert "2000.5" not in processes
    assert len([n for n in names if n.isdigit()]) == 1, names
    assert "shared" not in names or "node-0" in names, names
    cluster.command("abort_operation", operation_id=other)


def test_the_host_is_read_only(cluster, pool):
    script = "; ".join(
        f"(echo x >{path}) 2>/dev/null && echo {path}"
        for path in ["/etc/passwd", "/millpond-x", "/usr/x", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger",
                     "/sys/fs/cgroup/x", "../x", "/root/x", str(cluster.directory / "node-0/x")])
    assert output(cluster, script + "; true", pool) == ""


def test_cannot_write_what_its_node_and_proxy_write(cluster, pool, shared):
    """Records, results, kept output, sockets: everything of the node's but its own sandbox."""
    names = shared / "names"
    script = f"""
while [ ! -e {names} ]; do sleep 0.1; done
while read -r name; do
  (echo x >>"$name") 2>/dev/null && echo "wrote $name"
  [ ! -e "$name" ] || mv "$name" "$name.moved" 2>/dev/null && [ -e "$name.moved" ] && echo "moved $name"
done <{names}
echo tried"""
    operation = cluster.start_vanilla(script, pool=pool)
    [job] = cluster.wait_jobs(operation)

    def of_the_node():
        walk = [(place, names) for place, _, names in os.walk(cluster.directory / "node-0") if "/sandbox" not in place]
        files = [os.path.join(place, name) for place, names in walk for name in names]
        return {"record", "proxy.state"} <= {os.path.basename(f) for f in files if "/slots/" in f} and files
    files = wait_for(of_the_node, what="what is written down of a running job")
    (shared / "names.new").write_text("".join(f"{p}\n" for p in files))
    (shared / "names.new").rename(names)
    cluster.wait_state(operation, "completed")
    assert cluster.stderr(operation, job) == b"tried\n"
    assert cluster.exists("//sys") and output(cluster, "echo well", pool) == "well\n"


@pytest.mark.parametrize("base", ["", "memory", "pids", "unified", "freezer"])
def test_cannot_leave_its_groups(cluster, pool, base):
    script = (f"for f in $(find /sys/fs/cgroup/{base} -maxdepth 1 -name cgroup.procs -o -maxdepth 1 -name tasks); do "
              "(echo 0 >$f) 2>/dev/null && echo left by $f; done; true")
    assert output(cluster, script, pool) == ""


def test_sockets_with_abstract_names(cluster, pool):
    """They are in no directory that could be covered; a job reaches its own, from its shells too, and no other."""
    import ctypes
    import socket
    if ctypes.CDLL(None).syscall(444, None, 0, 1) < 6:
        pytest.skip("this kernel's Landlock knows no scopes (6.12)")
    name = f"millpond-test-{os.getpid()}"
    script = """
import socket, sys
def ask(name):
    with socket.socket(socket.AF_UNIX) as s:
        try: s.connect("\\0" + name)
        except OSError as e: return e.strerror
        return "reached"
own = socket.socket(socket.AF_UNIX)
own.bind("\\0" + sys.argv[1] + "-own"); own.listen()
print(ask(sys.argv[1]), ask(sys.argv[1] + "-own"), sep=",")
"""
    with socket.socket(socket.AF_UNIX) as host:
        host.bind("\0" + name)
        host.listen()
        assert output(cluster, f"python3 - {name} <<'END'\n{script}\nEND", pool) == "Operation not permitted,reached\n"


def test_private_directories_do_not_stay(cluster, pool):
    # The way to the sandbox, if that is in one of them, must be there.
    places, name = ["/tmp", "/var/tmp", "/dev/shm"], f"left-by-{cluster.directory.name}"
    script = f"for d in {' '.join(places)}; do ls -A $d | grep -vx {cluster.directory.name}; echo x >$d/{name}; done"
    for _ in range(2):
        assert output(cluster, script, pool) == ""
    assert not [place for place in places if os.path.exists(f"{place}/{name}")]


def test_no_privileges(cluster, pool):
    status = dict(line.split(":", 1) for line in output(cluster, "cat /proc/self/status", pool).splitlines())
    for name in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]:
        assert int(status[name], 16) == 0, name
    assert status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2"


def test_shared_directory(cluster, pool, shared):
    assert output(cluster, f"echo hi >{shared}/file; cat {shared}/file", pool) == "hi\n"
    assert FIRST_USER <= (shared / "file").stat().st_uid < FIRST_USER + 1000


def test_files_are_there(cluster, pool):
    upload(cluster, "isolated", "content\n".encode())
    assert output(cluster, "cat isolated; ls -A", pool, file_paths=["//tmp/isolated"]) == "content\nisolated\n"
    assert output(cluster, "echo more >>isolated; cat isolated", pool, file_paths=["//tmp/isolated"],
                  copy_files=True) == "content\nmore\n"


# --- jobs that mean no good


@pytest.mark.serial
def test_fork_bomb(cluster, pool):
    bomb = Bomb()
    operation = cluster.start_vanilla(bomb.script, pool=pool, memory_limit=1 << 30)
    cluster.wait_jobs(operation)
    assert bomb.most(MOST_PROCESSES // 4) <= MOST_PROCESSES
    cluster.command("abort_operation", operation_id=operation)
    wait_for(lambda: not users(), what="the bomb to be gone")
    assert output(cluster, "echo well", pool) == "well\n"


def test_ignores_signals(cluster, pool):
    operation = cluster.start_vanilla(
        "trap '' TERM INT HUP USR1; echo ready >&2; while :; do sleep 1; done", pool=pool, interruption_signal="SIGTERM")
    [job] = cluster.wait_jobs(operation)
    wait_for(lambda: b"ready" in cluster.stderr(operation, job), what="the trap")
    cluster.command("abort_job", job_id=job, interrupt_timeout=500)
    wait_for(lambda: cluster.counters(operation)["aborted"] == 1, what="the abort")
    cluster.command("abort_operation", operation_id=operation)


def test_daemons(cluster, pool):
    """They left session, environment and descriptors behind; they do not leave the job."""
    daemon = "setsid env -i sh -c 'exec </dev/null >/dev/null 2>&1 5>&-; sleep 2000.25 & sleep 2000.25'"
    output(cluster, f"{daemon} & while ! pgrep -f '^sleep 2000.25' >/dev/null; do sleep 0.02; done", pool)
    wait_for(lambda: not cluster.find_process("sleep", "2000.25"), what="the daemons to be gone")


def test_proxies_are_bounded_and_their_death_is_told(cluster, pool):
    """One that leaks is killed by the kernel, and its job with it; the slot is as good as before."""
    groups = [os.path.join(g, "proxies") for g in cluster.cgroups()]
    limits = [open(os.path.join(g, name)).read().strip() for g in groups for name in ("memory.limit_in_bytes", "memory.max")
              if os.path.exists(os.path.join(g, name))]
    assert len(limits) == 1 and 128 << 20 < int(limits[0]) <= 2 << 30, (groups, limits)
    operation = cluster.start_vanilla("exec sleep 2000.625", pool=pool, spec={"max_failed_job_count": 1})
    cluster.wait_jobs(operation)
    wait_for(lambda: cluster.find_process("sleep", "2000.625"), what="the job")
    # Those of the jobs before may be on their way out.
    [proxy] = wait_for(lambda: len(found := cluster.proxies()) == 1 and found, what="one proxy")
    os.kill(proxy, 9)
    cluster.wait_state(operation, "failed")
    error = cluster.result(operation)
    assert "Job proxy failed" in error_text(error) and "signal 9" in error_text(error), error_text(error)
    wait_for(lambda: not cluster.find_process("sleep", "2000.625"), what="the job to be gone with its proxy")
    assert output(cluster, "echo well", pool) == "well\n"


# In the group `argv[1]`: fills it with pages that belong to no process, one by one at the end, until the kernel has killed
# somebody there; then they are given back.
FILLS_A_GROUP = """
import os, pathlib, sys
group = pathlib.Path(sys.argv[1])
v2 = (group / "memory.max").exists()
limit, current, events = [group / name for name in (
    ("memory.max", "memory.current", "memory.events") if v2 else
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.oom_control"))]
def kills():
    return int(dict(line.split() for line in events.read_text().splitlines())["oom_kill"])
before, size, page = kills(), int(limit.read_text()), bytes(4096)
memory = os.memfd_create("filler")
(group / "cgroup.procs").write_text("0")
while os.fstat(memory).st_size < 2 * size and kills() == before:
    for _ in range(max(1, (size - int(current.read_text()) - (16 << 20)) // len(page))):
        os.write(memory, page)
print(kills() - before)
"""


@pytest.mark.skipif(" " in KIND, reason=KIND)
def test_the_kernel_takes_a_proxy_when_memory_runs_out(cluster, pool):
    """In the group of the proxies, which is full: all of its job goes with it, and the node is as well as before."""
    operation = cluster.start_vanilla("setsid sleep 2000.626 & exec sleep 2000.625", pool=pool, spec={"max_failed_job_count": 1})
    cluster.wait_jobs(operation)
    wait_for(lambda: cluster.find_process("sleep", "2000.625") and cluster.find_process("sleep", "2000.626"), what="the job")
    # Those of the jobs before may be on their way out.
    [proxy] = wait_for(lambda: len(found := cluster.proxies()) == 1 and found, what="one proxy")
    [spawner] = cluster.spawners()
    # As if it were the one that has grown; whoever forks them is not to be chosen.
    pathlib.Path(f"/proc/{proxy}/oom_score_adj").write_text("1000")
    [group] = (hierarchy("memory") / "millpond").glob(f"*{cluster.nodes[0].name}*/proxies")
    done = subprocess.run([sys.executable, "-c", FILLS_A_GROUP, group], capture_output=True, text=True, timeout=600)
    assert done.stdout == "1\n", done
    cluster.wait_state(operation, "failed")
    error = cluster.result(operation)
    assert "Job proxy failed" in error_text(error) and "signal 9" in error_text(error), error_text(error)
    [job] = cluster.jobs(operation)
    assert job["state"] == "failed", job
    wait_for(lambda: not cluster.find_process("sleep", "2000.625") and not cluster.find_process("sleep", "2000.626"),
             what="all of the job to be gone with its proxy")
    wait_for(lambda: not cluster.job_cgroups(), what="the groups of the job to be gone")
    assert cluster.spawners() == [spawner], "it was not the one to be killed"
    assert output(cluster, "echo well", pool) == "well\n"


def test_a_tree_deeper_than_any_path(cluster, pool):
    """It is removed, and the slot is used again; it is found by the bound on disk, too."""
    dig = ("d=$(printf %0200d 0); for i in $(seq 150); do mkdir $d && cd -P $d 2>/dev/null || exit 1; done; "
           "head -c 300000 /dev/zero >file")
    output(cluster, dig, pool)
    error = failure(cluster, dig, pool, disk_request={"disk_space": 200_000})
    assert "Disk usage overdraft occurred" in error_text(error)
    slots = cluster.directory / "node-0" / "slots"
    wait_for(lambda: not [e for s in slots.iterdir() for e in (s / "sandbox").iterdir()], what="empty sandboxes")
    assert output(cluster, "ls | wc -l", pool).strip() == "0"


def test_only_its_own_files(cluster, pool):
    """The cache has files of others; a job sees those that it was given."""
    for name in ("mine", "theirs"):
        upload(cluster, f"file_of_{name}", name.encode())
        output(cluster, "true", pool, file_paths=[f"//tmp/file_of_{name}"])
    cached = [path.name for path in (cluster.directory / "node-0/cache").iterdir()]
    assert len(cached) >= 2
    script = (f"cat file_of_mine; echo; ls {cluster.directory}/node-0/cache 2>/dev/null; directory=$(dirname $(readlink file_of_mine)); "
              f"for name in {' '.join(cached)}; do [ ! -e $directory/$name ] || echo there; done; ls $directory 2>/dev/null || true")
    assert output(cluster, script, pool, file_paths=["//tmp/file_of_mine"]).split() == ["mine", "there"]


def test_sockets_of_the_host_are_out_of_reach(cluster, pool):
    visible = f"/run/millpond-test-{os.getpid()}"
    os.makedirs(visible, exist_ok=True)
    try:
        assert output(cluster, "ls -A /run; ls -A /var/run/ | head -3; touch /run/x 2>/dev/null; true", pool) == ""
        assert "nameserver" in output(cluster, "cat /etc/resolv.conf", pool) or not os.path.exists("/etc/resolv.conf") \
            or "nameserver" not in open("/etc/resolv.conf").read()
    finally:
        os.rmdir(visible)


def test_a_volume_of_another_job_is_not_pinned(cluster, pool):
    """A job that started beside one with a memory file system does not keep it."""
    volume = cluster.start_vanilla("exec sleep 2000.1875", pool=pool, memory_limit=64 << 20, tmpfs_path="ram", tmpfs_size=1 << 20)
    cluster.wait_jobs(volume)
    wait_for(cluster.mounts, what="the mount")
    other = cluster.start_vanilla("exec sleep 2000.3125", pool=pool)
    cluster.wait_jobs(other)
    pid = wait_for(lambda: cluster.find_process("sleep", "2000.3125"), what="the other job")
    table = open(f"/proc/{pid}/mountinfo").read()
    assert "/ram " not in table, table
    for operation in (volume, other):
        cluster.command("abort_operation", operation_id=operation)


def test_fills_its_stderr(cluster, pool):
    out = output(cluster, "head -c 300000000 /dev/zero | tr '\\0' x >&2", pool, max_stderr_size=1000)
    assert len(out) < 1100 and "...skipped..." in out


def test_kills_everything_in_sight(cluster, pool):
    """Init, node and proxy are out of its sight: it kills itself, and that is reported."""
    error = failure(cluster, "kill -9 1 $PPID; kill -9 -1; sleep 1; kill -9 $$", pool)
    assert find_error(error, 10001)["attributes"]["signal"] == 9
    assert output(cluster, "echo well", pool) == "well\n"


# --- memory file systems


def test_a_volume_moved_away_is_unmounted_and_nothing_else(cluster, pool, tmp_path):
    """The directory above the volume becomes a link to one of the host's: what is mounted there stays."""
    host = tmp_path / "volume"
    host.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(host)], check=True)
    try:
        volumes = [{"path": "a/volume", "size": 1 << 20}]
        command = f"mv a x && ln -s {tmp_path} a && echo moved >&2"
        assert output(cluster, command, pool, tmpfs_volumes=volumes) == "moved\n"
        wait_for(lambda: not cluster.mounts(), what="the volume to be unmounted")
        assert os.path.ismount(host)
    finally:
        subprocess.run(["umount", str(host)], check=False)
    assert output(cluster, "echo well", pool) == "well\n"


def test_tmpfs_bound(cluster, pool):
    operation = cluster.run_vanilla(
        "head -c 20000000 /dev/zero >ram/file; wc -c <ram/file; stat -f -c %T ram; stat -c %u ram", pool=pool,
        memory_limit=256 << 20, tmpfs_path="ram", tmpfs_size=8 << 20)
    [job] = cluster.jobs(operation)
    out = cluster.stderr(operation, job["id"]).decode()
    assert "No space left" in out
    size, kind, owner = out.split()[-3:]
    assert (size, kind) == (str(8 << 20), "tmpfs") and FIRST_USER <= int(owner) < FIRST_USER + 1000


def test_tmpfs_volumes(cluster, pool):
    upload(cluster, "for_ram", "12345".encode())
    operation = cluster.start_vanilla(
        "cat a/b/in; [ -h a/b/in ] && echo a link; head -c 3000000 /dev/zero >a/b/x; head -c 1000000 /dev/zero >c/x; "
        "echo done >&2; sleep 1000", pool=pool, memory_limit=256 << 20,
        file_paths=['<file_name="a/b/in">//tmp/for_ram'],
        tmpfs_volumes=[{"path": "a/b", "size": 4 << 20}, {"path": "./c", "size": 2 << 20}])
    [job] = cluster.wait_jobs(operation)
    wait_for(lambda: b"done" in cluster.stderr(operation, job), what="the files")
    assert cluster.stderr(operation, job) == b"12345done\n"
    assert len(cluster.mounts()) == 2

    def figures():
        found = cluster.command("get_job", operation_id=operation, job_id=job).get("statistics", {})
        user = found.get("user_job", {})
        return user if user.get("tmpfs_size", {}).get("max", 0) > 3_900_000 else None
    user = wait_for(figures, what="the statistics of the file systems")
    assert 4_000_000 <= user["max_tmpfs_size"]["max"] < 4_200_000
    assert 3_000_000 <= user["tmpfs_volumes"]["0"]["max_size"]["max"] < 3_100_000
    assert 1_000_000 <= user["tmpfs_volumes"]["1"]["max_size"]["max"] < 1_100_000
    # A restarted node finds them and takes them away at the end.
    cluster.nodes[0].kill()
    cluster.restart()
    assert len(cluster.mounts()) == 2
    cluster.command("abort_operation", operation_id=operation)
    wait_for(lambda: not cluster.mounts(), what="the mounts to be gone")


def test_tmpfs_of_a_dead_job(cluster, pool):
    """Node and job proxy die together: the next node takes the mounts away."""
    operation = cluster.start_vanilla("sleep 2000.75", pool=pool, memory_limit=64 << 20, tmpfs_path=".", tmpfs_size=1 << 20)
    cluster.wait_jobs(operation)
    wait_for(cluster.mounts, what="the mount")
    proxies = cluster.proxies()
    cluster.nodes[0].kill()
    for pid in proxies:
        # That of an earlier job may be on its way out.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
    cluster.command("abort_operation", operation_id=operation)
    cluster.restart()
    wait_for(lambda: not cluster.mounts(), what="the mount to be gone")


def test_tmpfs_too_small_for_the_files(cluster, pool):
    upload(cluster, "big_for_ram", b"x" * 300_000)
    error = failure(cluster, "true", pool, memory_limit=64 << 20, file_paths=["//tmp/big_for_ram"], tmpfs_path=".",
                    tmpfs_size=100_000)
    assert "big_for_ram" in error_text(error) and "No space" in error_text(error)


# --- disk


def test_disk_bound(cluster, pool):
    error = failure(cluster, "head -c 3000000 /dev/zero >file", pool, disk_request={"disk_space": 1_000_000})
    found = next(e for e in [error, *_inner(error)] if "Disk usage overdraft occurred" in e["message"])
    # Where the kernel keeps the bound, it stops there.
    assert found["attributes"]["limit"] == 1_000_000 and found["attributes"]["usage"] >= 900_000
    output(cluster, "head -c 500000 /dev/zero >file", pool, disk_request={"disk_space": 1_000_000})


def test_inode_bound(cluster, pool):
    error = failure(cluster, "touch $(seq 100)", pool, disk_space_limit=1 << 30, inode_limit=50)
    assert "Disk usage overdraft occurred" in error_text(error)


def _inner(error):
    for inner in error["inner_errors"]:
        yield inner
        yield from _inner(inner)


def test_too_little_free_space(tmp_path):
    """A node whose disk is nearly full starts nothing, and says why."""
    with make_cluster(node_config='min_required_disk_space = "1PiB"') as c:
        c.create_pool("p")
        operation = c.start_vanilla("true")
        wait_for(lambda: c.counters(operation)["aborted"] >= 1, what="an aborted job")
        text = json.dumps(c.jobs(operation, state="aborted")[0])
        assert "Not enough disk space" in text, text
        c.command("abort_operation", operation_id=operation)


def test_a_passing_fault_at_the_start(tmp_path):
    """A node that could isolate jobs, and for the moment cannot, offers nothing instead of jobs that see
    everything; when it can again, it does."""
    (tmp_path / "node-0").mkdir()
    in_the_way = tmp_path / "node-0" / "probe"
    in_the_way.write_text("where the self-check wants a directory")
    with make_cluster(directory=tmp_path, server_config='heartbeat_period = "200ms"\n') as c:
        address = c.online()[0]
        alerts = lambda: [a["message"] for a in c.get(f"//sys/cluster_nodes/{address}/@alerts")]  # noqa: E731
        assert any("Job environment is disabled" in text for text in alerts()), alerts()
        c.create_pool("p")
        operation = c.start_vanilla("id -u >&2", pool="p")
        c.rounds()
        assert not c.jobs(operation)
        in_the_way.unlink()
        c.wait_state(operation, "completed")
        [job] = c.jobs(operation)
        assert int(c.stderr(operation, job["id"])) == c.get("//sys/users/root/@job_uid")
        wait_for(lambda: not any("disabled" in text for text in alerts()), what="the alert to go")


def test_a_full_disk(tmp_path):
    """A job fills the disk under the node's data: the node lives on, says why it starts nothing, and goes
    on when there is room again."""
    disk, directory = tmp_path / "disk", tmp_path / "cluster"
    disk.mkdir()
    directory.mkdir()
    (directory / "node-0").symlink_to(disk)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m,mode=0755", "millpond-test", str(disk)], check=True)
    try:
        with make_cluster(directory=directory, node_config='min_required_disk_space = "2MiB"') as c:
            c.create_pool("p")
            filler = c.start_vanilla("cat /dev/zero >file; sleep 1000", memory_limit=1 << 30)
            c.wait_jobs(filler)
            wait_for(lambda: os.statvfs(disk).f_bavail == 0, what="a full disk")
            refused = c.start_vanilla("true")
            wait_for(lambda: c.counters(refused)["aborted"] >= 1, what="an aborted job")
            # Nothing can even be written down about it.
            why = json.dumps(c.jobs(refused, state="aborted")[0])
            assert "No space left" in why or "Not enough disk space" in why, why
            assert c.nodes[0].running()
            # The sandbox is emptied, and then jobs run again, however many were refused before.
            c.command("abort_operation", operation_id=filler)
            wait_for(lambda: c.state(refused) == "completed", what="the refused operation to run", seen=lambda: {
                "free blocks": os.statvfs(disk).f_bavail, "files": [str(f) for f in disk.rglob("*")], "node": c.get("//sys/cluster_nodes"),
                "filler": c.jobs(filler), "refused": c.jobs(refused)[-3:], "alerts": c.get(f"//sys/cluster_nodes/{c.nodes[0].name}/@alerts")})
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


# --- root file systems


def layer(cluster, name, files, gzip=False):
    """Writes a layer with files {name: content}; `None` is a directory, a pair a symbolic link."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz" if gzip else "w") as tar:
        for path, content in files.items():
            info = tarfile.TarInfo(path)
            info.mode = 0o755
            if content is None:
                info.type = tarfile.DIRTYPE
            elif isinstance(content, tuple):
                info.type, info.linkname = tarfile.SYMTYPE, content[0]
            else:
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)
    return upload(cluster, name, buffer.getvalue())


@pytest.fixture(scope="module")
def base(cluster):
    """A root file system with a shell and nothing else."""
    import shutil
    busybox = shutil.which("busybox")
    linked = subprocess.run(["ldd", busybox], capture_output=True, text=True, check=False) if busybox else None
    if not busybox or linked.returncode == 0:
        pytest.skip("there is no static busybox to make a root file system of")
    tools = ["sh", "cat", "ls", "id", "touch", "echo", "mount"]
    # It has no "bash" by that name.
    files = {"bin": None, "bin/bash": b'#!/bin/busybox sh\nexec /bin/sh "$@"\n', "bin/busybox": open(busybox, "rb").read(), "etc": None, "etc/base": b"base\n",
             "etc/both": b"base\n", "etc/gone": b"base\n", "lib": None, "lib/old": b"old\n"}
    return layer(cluster, "base.tar.gz", {**files, **{f"bin/{t}": ("busybox",) for t in tools}}, gzip=True)


def test_layers(cluster, pool, base):
    top = layer(cluster, "top.tar", {"etc": None, "etc/both": b"top\n", "etc/.wh.gone": b"", "lib": None,
                                     "lib/.wh..wh..opq": b"", "lib/new": b"new\n"})
    upload(cluster, "in_root", "file\n".encode())
    out = output(cluster, "cat /etc/base /etc/both; ls /etc /lib /; pwd; cat in_root; touch mine; touch /etc/x || echo ro",
                 pool, layer_paths=[top, base], file_paths=["//tmp/in_root"])
    lines = out.split()
    assert lines[:2] == ["base", "top"], out
    assert "gone" not in lines and "old" not in lines and "new" in lines
    assert "/slot/sandbox" in lines and "file" in lines and lines[-1] == "ro", out
    assert "home" not in lines and "usr" not in lines, "the host is not there"


def test_a_shell_sees_the_root_of_its_job(cluster, pool, base):
    operation = cluster.start_vanilla("/bin/busybox sleep 1000", pool=pool, layer_paths=[base])
    job = cluster.wait_jobs(operation)[0]

    def ask(**parameters):
        return cluster.command("poll_job_shell", method="POST", job_id=job, parameters=parameters)["result"]
    shell = ask(operation="spawn", term="dumb", height=24, width=80)["shell_id"]
    ask(operation="update", shell_id=shell, input_offset=0, keys=b"cat /etc/base; pwd; /bin/busybox tty; id; echo do''ne\n".hex())
    seen = ""
    deadline = time.monotonic() + 180
    while "done" not in seen:
        assert time.monotonic() < deadline, seen
        seen += ask(operation="poll", shell_id=shell)["output"]
    assert "base\r\n/slot/sandbox\r\n/dev/pts/" in seen, seen
    assert "uid=" in seen and "uid=0" not in seen, seen
    cluster.command("abort_operation", operation_id=operation)


def test_writable_root(cluster, pool, base):
    for _ in range(2):
        out = output(cluster, "ls /; touch /new && echo written", pool, layer_paths=[base], make_rootfs_writable=True)
        assert out.split()[-1] == "written" and "new" not in out.split(), out


def test_bad_layers(cluster, pool):
    upload(cluster, "no_layer", "this is no archive, however long it may be".encode())
    error = failure(cluster, "true", pool, layer_paths=["//tmp/no_layer"])
    assert "no_layer" in error_text(error) and "tar archive" in error_text(error)
    error = failure(cluster, "true", pool, layer_paths=[layer(cluster, "empty.tar", {"etc": None})])
    assert "/bin/bash" in error_text(error) and "layers" in error_text(error)
    outside = layer(cluster, "outside.tar", {"../../outside": b"x"})
    error = failure(cluster, "true", pool, layer_paths=[outside])
    assert ".." in error_text(error)
    assert not list(cluster.directory.glob("**/outside")), "nothing was written outside"
