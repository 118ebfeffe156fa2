"""What Millpond has left on this machine: processes, also those of users of jobs, mounts, groups, users, containers.

    leftovers.py list              prints them, one per line
    leftovers.py compare FILE      fails if there are others than those listed in FILE

The comparison is with the state before the tests: somebody may have a cluster of his own running.
"""

import contextlib
import os
import pathlib
import sys
import time


def processes():
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # The executable, not the name: a test or an editor may have "millpond" in its arguments.
                program = os.path.basename(os.readlink(entry / "exe")).removesuffix(" (deleted)")
                if program == "millpond":
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    yield f"process {entry.name}: {command.strip()}"


def mounts():
    for line in open("/proc/self/mountinfo"):
        if "millpond" in line:
            yield f"mount {line.split()[4]}"


# Users that jobs get: those of the default ranges of clusters, and of `job_uids` in tests.
JOB_USERS = range(1_000_000, 0x7FFF0000)


def users():
    """Processes of such users, and files that they left in directories where everybody may write."""
    names = {int(line.split(":")[2]) for line in open("/etc/passwd")}
    ours = lambda status: status.st_uid in JOB_USERS and status.st_uid not in names  # noqa: E731
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if ours(entry.stat()):
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    yield f"process of user {entry.stat().st_uid} {entry.name}: {command.strip()}"
    for directory in ("/tmp", "/var/tmp", "/dev/shm"):
        with contextlib.suppress(OSError):
            for entry in os.scandir(directory):
                with contextlib.suppress(OSError):
                    if ours(entry.stat(follow_symlinks=False)):
                        yield f"file of a job's user {entry.path}"


def groups():
    """Those that all nodes share as well: the last node removes them."""
    for base, directories, _ in os.walk("/sys/fs/cgroup"):
        if os.path.basename(base) == "millpond":
            yield f"group {base}"
            yield from (f"group {os.path.join(base, d)}" for d in directories)


def containers():
    """And the directory of their notes."""
    notes = pathlib.Path("/run/millpond-oci")
    if notes.exists():
        yield f"directory {notes}"
    for entry in notes.glob("*/*/*"):
        yield f"container {entry}"


def everything():
    return sorted([*processes(), *users(), *mounts(), *groups(), *containers()])


def main():
    if sys.argv[1:] == ["list"]:
        print("\n".join(everything()))
        return 0
    before = set(pathlib.Path(sys.argv[2]).read_text().splitlines())
    deadline = time.monotonic() + 180
    while new := [x for x in everything() if x not in before]:
        if time.monotonic() > deadline:
            print("left behind:", *new, sep="\n  ")
            return 1
        time.sleep(0.2)
    print("no process, no mount, no group and no user of Millpond is left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
