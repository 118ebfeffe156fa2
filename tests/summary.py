"""Counts of all tests by kind, from the logs of a run: summary.py STEPS CARGO_LOG PYTEST_COUNTS VM_LOG
WEB_LOG.

The last line is "N passed, N failed, N skipped"; the exit code is 1 if anything failed, was not
reached, or if no test ran at all.
"""

import collections
import json
import pathlib
import re
import sys

# Steps without tests of their own count as one check each.
WITH_COUNTS = ("Rust tests", "the yt client", "cgroup v2 in a virtual machine", "the web page")
PYTHON_KINDS = {
    "yt": "the real yt client",
    "cluster": "clusters of real processes, cgroups",
    "cli": "command line",
    "faults": "faults, kill -9, bad input",
}


def rust(log):
    """{crate: Counter}, {reason: count of ignored}, and whether some program ended without a result."""
    counts, open_program, crate = collections.defaultdict(collections.Counter), None, "?"
    broken = []
    for line in log.splitlines():
        if m := re.match(r"\s*Running .*\((?:.*/)?deps/(.+)-[0-9a-f]+\)", line) or re.match(r"\s*Doc-tests (\S+)", line):
            if open_program:
                broken.append(open_program)
            open_program = m[1]
            # Programs of a crate follow each other, its units first; most are called "main".
            if "Doc-tests" in line:
                current = (m[1], "doc examples")
            elif "unittests" in line:
                crate = m[1]
                current = (crate, "units and properties")
            else:
                current = (crate, "integration")
        elif m := re.match(r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", line):
            if open_program:
                for name, number in zip(("passed", "failed", "skipped"), m.groups(), strict=True):
                    counts[current][name] += int(number)
            open_program = None
    if open_program:
        broken.append(open_program)
    return counts, broken


def virtual_machine(log):
    """(Counter, note) of the programs that ran in the virtual machine."""
    count = collections.Counter()
    for line in log.splitlines():
        if m := re.search(r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", line):
            for name, number in zip(("passed", "failed", "skipped"), m.groups(), strict=True):
                count[name] += int(number)
        elif line.startswith("SKIPPED cgroup v2"):
            return collections.Counter(skipped=1), line
    if not re.search(r"^MILLPOND-VM-EXIT 0", log, re.M) and not count["failed"]:
        count["failed"] += 1
        return count, "the virtual machine did not come to its end, or left groups behind"
    return count, None


def web_page(log):
    """Counter of the tests of the page, its units and those in a browser, and notes about what was left out."""
    count = collections.Counter()
    for line in log.splitlines():
        if line.startswith("SKIPPED"):
            count["skipped"] += 1
        elif re.match(r"\s+Tests\s", line):
            for number, name in re.findall(r"(\d+) (passed|failed|skipped)", line):
                count[name] += int(number)
    return count, [line for line in log.splitlines() if line.startswith("SKIPPED")]


def main():
    steps_path, cargo_path, pytest_path, vm_path, web_path = map(pathlib.Path, sys.argv[1:6])
    total = collections.Counter()
    rows, notes = [], []

    steps = [line.split("\t") for line in steps_path.read_text().splitlines()]
    for name, status, seconds in steps:
        ok = status == "0"
        if not name.startswith(WITH_COUNTS):
            total["passed" if ok else "failed"] += 1
        rows.append((f"step: {name}", "ok" if ok else "FAILED", "", "", f"{seconds} s"))

    failed_steps = {name for name, status, _ in steps if status != "0"}
    if cargo_path.exists():
        counts, broken = rust(cargo_path.read_text(errors="replace"))
        for (crate, kind), c in sorted(counts.items()):
            if sum(c.values()):
                rows.append((f"Rust: {crate} ({kind})", c["passed"], c["failed"], c["skipped"], ""))
                total += c
        for program in broken:
            total["failed"] += 1
            notes.append(f"the test program {program} ended without a result")
        if not counts:
            total["failed"] += 1
            notes.append("no Rust test ran: see the errors of the compiler above")
        elif any(s.startswith("Rust tests") for s in failed_steps) and not total["failed"]:
            total["failed"] += 1
            notes.append("cargo test failed without a failed test: see above")

    if vm_path.exists():
        count, note = virtual_machine(vm_path.read_text(errors="replace"))
        rows.append(("virtual machine: cage on cgroup v2 alone", count["passed"], count["failed"], count["skipped"], ""))
        total += count
        notes += [note] if note else []

    if web_path.exists():
        count, left_out = web_page(web_path.read_text(errors="replace"))
        # Types, lints and the build have no count: a step that failed without a failed test is one.
        if any(s.startswith("the web page") for s in failed_steps) and not count["failed"]:
            count["failed"] += 1
        rows.append(("the web page: units, and in a browser", count["passed"], count["failed"], count["skipped"], ""))
        total += count
        notes += left_out

    if pytest_path.exists():
        data = json.loads(pytest_path.read_text())
        for kind, c in data["kinds"].items():
            rows.append((f"Python: {PYTHON_KINDS.get(kind, kind)}", c.get("passed", 0), c.get("failed", 0),
                         c.get("skipped", 0), ""))
            total += collections.Counter(c)
        notes += [f"skipped: {s}" for s in data["skips"]]
    else:
        total["failed"] += 1
        notes.append("the tests in tests/ did not run: there is no program to test, or the run was broken off")

    width = max(len(r[0]) for r in rows)
    print(f"{'':{width}}  {'passed':>7} {'failed':>7} {'skipped':>7}")
    for name, *numbers, seconds in rows:
        print(f"{name:{width}}  " + " ".join(f"{n!s:>7}" for n in numbers) + f"  {seconds}")
    for note in notes:
        print(note)
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
