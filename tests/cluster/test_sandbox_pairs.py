"""Sandboxes of all kinds: every pair of options that change one, each in a slot that was never used and in a used one."""

import io
import itertools
import os
import random
import shutil
import subprocess
import tarfile

import pytest
from harness import cluster as make_cluster, wait_for
from test_jobs import upload

SEED = 12

MIB = 1 << 20
# All that changes a sandbox. The first value of each is the default.
OPTIONS = {
    "copy_files": [False, True],
    "files": ["none", "plain", "executable in a directory", "bypass", "plain and bypass", "in memory"],
    "tmpfs": ["none", "path", "volumes"],
    "disk": ["none", "space", "space and inodes"],
    "root": ["host", "layers", "writable layers"],
    "ports": [0, 2],
    "redirect_stdout_to_stderr": [False, True],
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
    assert len(rows) <= 60, len(rows)
    assert rows == draw(OPTIONS, SEED), "the same rows in every run"
    for (a, first), (b, second) in itertools.combinations(OPTIONS.items(), 2):
        for x, y in itertools.product(first, second):
            if (x, y) != ("in memory", "none") and (y, x) != ("in memory", "none"):
                assert any(row[a] == x and row[b] == y for row in rows), (a, x, b, y)


def script_of(row):
    """Options of a task, its command, and what it prints."""
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
    volumes = {"none": [], "path": ["v"], "volumes": ["v", "w/x"]}[row["tmpfs"]]
    if row["tmpfs"] == "path":
        task |= {"tmpfs_path": "v", "tmpfs_size": 4 * MIB}
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
    # It holds its slot until the test has seen all jobs.
    sleep = "sleep" if row["root"] == "host" else "/bin/busybox sleep"
    hold = f": > .up; until [ -e .go ]; do {sleep} 0.05; done"
    to_stderr = [f"{command} >&2" if command.startswith(("cat", "./", "echo $")) else command for command in commands]
    return task, "; ".join([hold, "set -e", *to_stderr]), expected


def run_round(cluster, rows):
    """Runs all rows at once, each in a slot of its own. Gives the slots that they had."""
    operations = []
    for row in rows:
        task, command, expected = script_of(row)
        if row["root"] != "host":
            task["layer_paths"] = ["//tmp/pairs/base.tar.gz"]
        operations.append((row, expected, cluster.start_vanilla(command, pool="p", memory_limit=32 * MIB, **task)))
    slots = cluster.directory / "node-0" / "slots"

    def up():
        bad = [(row, cluster.counters(operation)) for row, _, operation in operations
               if cluster.state(operation) == "failed" or cluster.counters(operation)["aborted"]]
        assert not bad, bad
        return sum(1 for _ in slots.glob("*/sandbox/.up")) == len(operations)
    wait_for(up, timeout=360, what=f"{len(operations)} jobs to hold their slots", period=0.3,
             seen=lambda: [str(path) for path in slots.glob("*/sandbox/.up")])
    holders = sorted(path.parent.parent.name for path in slots.glob("*/sandbox/.up"))
    for path in slots.glob("*/sandbox/.up"):
        (path.parent / ".go").touch()
    for row, expected, operation in operations:
        cluster.wait_state(operation, "completed")
        counters = cluster.counters(operation)
        assert (counters["aborted"], counters["failed"]) == (0, 0), (row, counters)
        printed = cluster.stderr(operation, cluster.jobs(operation)[0]["id"]).decode()
        assert printed == expected, row
    return holders


# Sixty jobs, twice.
@pytest.mark.timeout(1200)
def test_s12_every_pair_of_options_in_a_fresh_and_in_a_used_slot():
    """S12: copied files in a slot that never held linked ones were aborted without end. Any two options may meet in a slot
    that another combination has left."""
    busybox = shutil.which("busybox")
    has_layers = os.geteuid() == 0 and busybox is not None and \
        subprocess.run(["ldd", busybox], capture_output=True, check=False).returncode != 0
    options = OPTIONS if has_layers else {**OPTIONS, "root": ["host"]}
    if not has_layers:
        print("SKIPPED: layers need root and a static busybox")
    rows = draw(options, SEED)
    with make_cluster(nodes=1, resources=f"cpu=100,memory=64GiB,user_slots={len(rows)}") as cluster:
        cluster.create_pool("p")
        upload(cluster, "//tmp/pairs/plain", b"plain\n")
        upload(cluster, "//tmp/pairs/own", b"own\n")
        upload(cluster, "//tmp/pairs/tool", b"#!/bin/sh\necho tool\n")
        if has_layers:
            make_base(cluster, busybox)
        fresh = run_round(cluster, rows)
        assert len(set(fresh)) == len(rows), "each has a slot that no other has had"
        # Another row than before in most of the slots, all of which are used now.
        used = run_round(cluster, rows[1:] + rows[:1])
        assert set(used) <= set(fresh), (used, fresh)


def make_base(cluster, busybox):
    """Uploads a root file system with a shell and a few tools."""
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
        for tool in ("sh", "cat", "touch", "echo", "mkdir"):
            add(f"bin/{tool}", link="busybox")
    upload(cluster, "//tmp/pairs/base.tar.gz", buffer.getvalue())

