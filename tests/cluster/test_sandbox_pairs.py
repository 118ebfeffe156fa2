"""Sandboxes of all kinds: every pair of options that change one, each in a slot that was never used and in a used one."""

import contextlib
import io
import itertools
import os
import pathlib
import random
import shutil
import subprocess
import tarfile

import pytest
import yt.wrapper
from harness import cluster as make_cluster, wait_for
from test_jobs import upload

SEED = 12
ROWS = [{"n": n, "text": "a row " * 20} for n in range(100)]

MIB = 1 << 20
# All that changes a sandbox. The first value of each is the default.
OPTIONS = {
    "copy_files": [False, True],
    "files": ["none", "plain", "executable in a directory", "bypass", "plain and bypass", "in memory"],
    # "sandbox": all of it is in memory, as the real client asks for with `mount_sandbox_in_tmpfs`.
    "tmpfs": ["none", "path", "volumes", "sandbox"],
    "disk": ["none", "space", "space and inodes"],
    "root": ["host", "layers", "writable layers"],
    "ports": [0, 2],
    "redirect_stdout_to_stderr": [False, True],
    # Rows of a table lie beside the sandbox before the job starts.
    "rows": [False, True],
}


def pairs_of(row):
    return {((a, row[a]), (b, row[b])) for a, b in itertools.combinations(OPTIONS, 2)}


def allowed(row):
    return row["files"] != "in memory" or row["tmpfs"] != "none"


def draw(options, seed):
    """Rows of which some has each pair of values that may come together."""
    generator = random.Random(seed)
    rows = [dict(zip(options, values, strict=True)) for values in itertools.product(*options.values())]
    rows = [row for row in rows if allowed(row)]
    missing = set().union(*map(pairs_of, rows))
    drawn = []
    while missing:
        # The best of a few dozen is close to the best of all.
        best = max((generator.choice(rows) for _ in range(60)), key=lambda row: len(pairs_of(row) & missing))
        if pairs_of(best) & missing:
            drawn.append(best)
            missing -= pairs_of(best)
    return drawn


def test_every_pair_of_options_is_drawn():
    rows = draw(OPTIONS, SEED)
    assert len(rows) <= 70, len(rows)
    assert rows == draw(OPTIONS, SEED), "the same rows in every run"
    for (a, first), (b, second) in itertools.combinations(OPTIONS.items(), 2):
        for x, y in itertools.product(first, second):
            if (x, y) != ("in memory", "none") and (y, x) != ("in memory", "none"):
                assert any(row[a] == x and row[b] == y for row in rows), (a, x, b, y)


def script_of(row, name):
    """Options of a task, its command, and what it prints. `name` marks the sandbox of the job."""
    task, expected = {"copy_files": row["copy_files"]}, ""
    paths = {
        "none": [],
        "plain": ["//tmp/pairs/plain"],
        "executable in a directory": ['<file_name="d/e/tool";executable=%true>//tmp/pairs/tool'],
        "bypass": ['<file_name=own;bypass_artifact_cache=%true>//tmp/pairs/own'],
        "plain and bypass": ["//tmp/pairs/plain", '<file_name="d/own";bypass_artifact_cache=%true>//tmp/pairs/own'],
        "in memory": ["//tmp/pairs/plain", '<file_name="v/f">//tmp/pairs/own'],
    }[row["files"]]
    shown = {"none": [], "plain": ["plain"], "executable in a directory": [], "bypass": ["own"],
             "plain and bypass": ["plain", "d/own"], "in memory": ["plain", "v/f"]}[row["files"]]
    commands = [f"cat {name}" for name in shown]
    expected += "".join("plain\n" if name == "plain" else "own\n" for name in shown)
    if row["files"] == "executable in a directory":
        commands.append("./d/e/tool")
        expected += "tool\n"
    if paths:
        task["file_paths"] = paths
    volumes = {"none": [], "path": ["v"], "volumes": ["v", "w/x"], "sandbox": []}[row["tmpfs"]]
    if row["tmpfs"] == "path":
        task |= {"tmpfs_path": "v", "tmpfs_size": 4 * MIB}
    elif row["tmpfs"] == "sandbox":
        task |= {"tmpfs_path": ".", "tmpfs_size": 4 * MIB}
        commands.append("[ $(stat -f -c %T .) = tmpfs ]")
    elif row["tmpfs"] == "volumes":
        task["tmpfs_volumes"] = [{"path": volume, "size": 4 * MIB} for volume in volumes]
    commands += [f"echo x > {volume}/written" for volume in volumes]
    if row["disk"] != "none":
        task["disk_request"] = {"disk_space": 16 * MIB}
    if row["disk"] == "space and inodes":
        task["disk_request"]["inode_count"] = 1000
    if row["root"] == "writable layers":
        task["make_rootfs_writable"] = True
        commands.append("touch /new")
    if row["ports"]:
        task["port_count"] = row["ports"]
        commands.append("echo ${YT_PORT_1:+port}")
        expected += "port\n"
    commands.append("echo mine > mine; mkdir -p left/behind; touch left/behind/file")
    task["redirect_stdout_to_stderr"] = row["redirect_stdout_to_stderr"]
    if row["redirect_stdout_to_stderr"]:
        commands.append("echo out")
        expected += "out\n"
    if row["rows"]:
        # The first output table is the standard output, unless that is taken.
        commands.append("cat >&4" if row["redirect_stdout_to_stderr"] else "cat")
    # It holds its slot until the test has seen all jobs.
    sleep = "sleep" if row["root"] == "host" else "/bin/busybox sleep"
    hold = f"echo {name} > .up; until [ -e .go ]; do {sleep} 0.05; done"
    to_stderr = [f"{command} >&2" if command.startswith(("cat ", "./", "echo $")) and ">" not in command else command
                 for command in commands]
    return task, "; ".join([hold, "set -e", *to_stderr]), expected


def run_round(cluster, rows):
    """Runs all rows at once, each in a slot of its own. Gives the slots that they had."""
    operations = []
    for row in rows:
        task, command, expected = script_of(row, cluster.name)
        if row["root"] != "host":
            task["layer_paths"] = ["//tmp/pairs/base.tar.gz"]
        task |= {"memory_limit": 32 * MIB}
        if row["rows"]:
            output = f"//tmp/pairs/out-{len(operations)}"
            cluster.command("create", type="table", path=output, ignore_existing=True)
            spec = {"pool": "p", "input_table_paths": ["//tmp/pairs/rows"], "output_table_paths": [output],
                    "mapper": {"command": command, "format": "json", **task}}
            operation = cluster.command("start_operation", operation_type="map", spec=spec)["operation_id"]
        else:
            operation = cluster.start_vanilla(command, pool="p", **task)
        operations.append((row, expected, operation))

    def holders():
        """Working directories of the jobs that hold their slots. One in memory is seen through its processes only."""
        found = {}
        for directory in pathlib.Path("/proc").glob("[0-9]*/cwd"):
            with contextlib.suppress(OSError):
                if (directory / ".up").read_text().strip() == cluster.name:
                    status = directory.stat()
                    found[status.st_dev, status.st_ino] = directory
        return list(found.values())

    def up():
        bad = [(row, cluster.counters(operation)) for row, _, operation in operations
               if cluster.state(operation) == "failed" or cluster.counters(operation)["aborted"]]
        assert not bad, bad
        return len(holders()) == len(operations)

    def gone():
        left = holders()
        for directory in left:
            # Of the processes of a job some live for a moment.
            with contextlib.suppress(OSError):
                (directory / ".go").touch()
        return not left
    wait_for(up, timeout=360, what=f"{len(operations)} jobs to hold their slots", period=0.3, seen=lambda: len(holders()))
    wait_for(gone, timeout=360, what="the jobs to go on", period=0.3, seen=lambda: len(holders()))
    slots = []
    for number, (row, expected, operation) in enumerate(operations):
        cluster.wait_state(operation, "completed")
        if row["rows"]:
            assert cluster.get(f"//tmp/pairs/out-{number}/@row_count") == len(ROWS), row
        counters = cluster.counters(operation)
        assert (counters["aborted"], counters["failed"]) == (0, 0), (row, counters)
        [job] = cluster.jobs(operation)
        assert cluster.stderr(operation, job["id"]).decode() == expected, row
        slots.append(job["exec_attributes"]["slot_index"])
    return slots


# Sixty jobs, twice.
@pytest.mark.timeout(1200)
def test_s12_every_pair_of_options_in_a_fresh_and_in_a_used_slot():
    """S12: copied files in a slot that never held linked ones were aborted without end. Any two options may meet in a slot
    that another combination has left."""
    busybox = busybox_for_layers()
    options = OPTIONS if busybox else {**OPTIONS, "root": ["host"]}
    rows = draw(options, SEED)
    with make_cluster(nodes=1, resources=f"cpu=100,memory=64GiB,user_slots={len(rows)}") as cluster:
        cluster.create_pool("p")
        upload(cluster, "//tmp/pairs/plain", b"plain\n")
        upload(cluster, "//tmp/pairs/own", b"own\n")
        upload(cluster, "//tmp/pairs/tool", b"#!/bin/sh\necho tool\n")
        cluster.client().write_table("//tmp/pairs/rows", ROWS)
        if busybox:
            upload(cluster, "//tmp/pairs/base.tar.gz", base_of(busybox))
        fresh = run_round(cluster, rows)
        assert len(set(fresh)) == len(rows), "each has a slot that no other has had"
        # Another row than before in most of the slots, all of which are used now.
        used = run_round(cluster, rows[1:] + rows[:1])
        assert set(used) <= set(fresh), (used, fresh)


def test_s12_the_real_client_mounts_the_sandbox_in_memory(tmp_path):
    """S12: the client copies files into a sandbox in memory. In a slot that had never held linked files every run was
    aborted. The same slot is fresh, used by such a job, and used by one with linked files."""
    with make_cluster(nodes=1, resources="cpu=4,memory=4GiB,user_slots=1") as cluster:
        cluster.create_pool("p")
        client = cluster.client()
        client.config["mount_sandbox_in_tmpfs"] = {"enable": True, "additional_tmpfs_size": MIB}
        client.write_file("//tmp/pairs", b"stored\n")
        local = tmp_path / "local"
        local.write_text("local\n")

        def run(client, command, slot):
            builder = yt.wrapper.VanillaSpecBuilder().pool("p")
            builder.begin_task("t").command(command).job_count(1).memory_limit(32 * MIB).cpu_limit(0.1) \
                .file_paths(["//tmp/pairs", yt.wrapper.LocalFile(str(local))]).end_task()
            operation = client.run_operation(builder)
            counters = cluster.counters(operation.id)
            assert (counters["aborted"], counters["failed"]) == (0, 0), (slot, counters)
            told = cluster.operation(operation.id, "spec")["spec"]["tasks"]["t"]
            [job] = cluster.jobs(operation.id)
            return told, cluster.stderr(operation.id, job["id"]).decode().split()

        in_memory = "stat -f -c %T . >&2; cat pairs local >&2; echo x > local; echo x > new"
        for slot in ("fresh", "used", "after linked files"):
            if slot == "after linked files":
                told, printed = run(cluster.client(), "cat pairs local >&2", slot)
                assert "tmpfs_path" not in told and printed == ["stored", "local"], (told, printed)
            told, printed = run(client, in_memory, slot)
            assert (told["tmpfs_path"], told["copy_files"]) == (".", True), told
            assert printed == ["tmpfs", "stored", "local"], (slot, printed)
        assert [path.name for path in (cluster.directory / "node-0" / "slots").iterdir() if path.name.isdigit()] == ["0"]


def busybox_for_layers():
    """Path of a program that is all a root file system needs; `None` where jobs cannot have layers."""
    busybox = shutil.which("busybox")
    if os.geteuid() == 0 and busybox and subprocess.run(["ldd", busybox], capture_output=True, check=False).returncode != 0:
        return busybox
    print("SKIPPED: layers need root and a static busybox")
    return None


def base_of(busybox):
    """Archive of a root file system with a shell and a few tools."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        def add(name, content=None, link=None):
            info = tarfile.TarInfo(name)
            info.mode = 0o755
            if link:
                info.type, info.linkname = tarfile.SYMTYPE, link
            elif content is None:
                info.type = tarfile.DIRTYPE
            else:
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content) if content is not None else None)
        add("bin")
        with open(busybox, "rb") as file:
            add("bin/busybox", file.read())
        add("bin/bash", b'#!/bin/busybox sh\nexec /bin/sh "$@"\n')
        for tool in ("sh", "cat", "touch", "echo", "mkdir", "stat"):
            add(f"bin/{tool}", link="busybox")
    return buffer.getvalue()

