"""Counts of all tests and minutes of all steps, from what a run of tests/run.py has left in build/.

The last line is "N passed, N failed, N skipped"; the exit code is 1 if anything failed, was not reached, or if a test
of the repository ran in none of the steps (tests/inventory.py).
"""

import collections
import json
import pathlib
import re
import sys
import xml.etree.ElementTree

import inventory

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
LOGS = BUILD / "logs"
JUNIT = [ROOT / "target/nextest" / profile / "junit.xml" for profile in ("default", "alone")]
# Steps whose tests are counted one by one; every other step counts as one check.
COUNTED = ("rust", "rust alone", "clusters", "clusters alone", "virtual machine", "page", "browser",
           "bench pieces", "bench paths")
PYTHON_KINDS = {
    "yt": "the real yt client",
    "cluster": "clusters of real processes, cgroups",
    "cli": "command line",
    "faults": "faults, kill -9, bad input",
    "release": "data of earlier releases",
}
# Printed by a test that could not compare processor times.
STARVED = re.compile(r"SKIPPED for lack of processor: .*")


class Summary:
    def __init__(self):
        self.total = collections.Counter()
        self.rows, self.notes = [], []

    def row(self, name, count):
        self.rows.append((name, count["passed"], count["failed"], count["skipped"]))
        self.total += count

    def fail(self, note):
        self.total["failed"] += 1
        self.notes.append(note)


def log(step):
    path = LOGS / f"{step.replace(' ', '-')}.log"
    return path.read_text(errors="replace") if path.exists() else ""


def rust_cases():
    """(crate, program, test, passed, output) of every Rust test that ran."""
    for path in JUNIT:
        if path.exists():
            for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
                crate, _, program = case.get("classname").partition("::")
                failed = case.find("failure") is not None or case.find("error") is not None
                output = "".join(part.text or "" for part in case.iter() if part.tag in ("system-out", "system-err"))
                yield crate, program, case.get("name"), not failed, output


def rust(summary):
    counts = collections.defaultdict(collections.Counter)
    for crate, program, _, passed, output in rust_cases():
        kind = "integration" if program else "units and properties"
        counts[crate, kind]["passed" if passed else "failed"] += 1
        summary.notes += [f"skipped: {crate}: {line}" for line in STARVED.findall(output)]
    for (crate, kind), count in sorted(counts.items()):
        summary.row(f"Rust: {crate} ({kind})", count)
    if not counts:
        summary.fail("no Rust test ran: see build/logs/build.log")


def python(summary):
    path = BUILD / "pytest-counts.json"
    if not path.exists():
        summary.fail("the tests in tests/ did not run: there is no binary to test, or the run was broken off")
        return
    data = json.loads(path.read_text())
    for kind, count in data["kinds"].items():
        summary.row(f"Python: {PYTHON_KINDS.get(kind, kind)}", collections.Counter(count))
    summary.notes += [f"skipped: {skip}" for skip in data["skips"]]
    if starved := data.get("without_processor"):
        summary.notes.append(f"{len(starved)} Python tests were skipped for lack of processor")


def virtual_machine(summary):
    count, text = collections.Counter(), log("vm-console")
    for numbers in re.findall(r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", text):
        count += collections.Counter(dict(zip(("passed", "failed", "skipped"), map(int, numbers), strict=True)))
    skips = re.findall(r"^SKIPPED (?:cgroup v2 in a virtual machine|quotas of xfs).*", text, re.M)
    count["skipped"] += len(skips)
    summary.row("virtual machine: cage on cgroup v2 alone", count)
    summary.notes += skips


def page(summary):
    for step, name in (("page", "the web page: units"), ("browser", "the web page in a browser")):
        count, text = collections.Counter(), log(step)
        for line in re.findall(r"^\s+Tests\s.*", text, re.M):
            for number, what in re.findall(r"(\d+) (passed|failed|skipped)", line):
                count[what] += int(number)
        skips = [line for line in text.splitlines() if line.startswith("SKIPPED")]
        count["skipped"] += len(skips)
        summary.row(name, count)
        summary.notes += skips


def benchmarks(summary):
    for kind, name in (("pieces", "counted pieces of work"), ("paths", "counted paths of real jobs")):
        path = BUILD / f"bench-{kind}.json"
        if path.exists():
            data = json.loads(path.read_text())
            summary.row(f"benchmarks: {name}", collections.Counter({what: data[what] for what in ("passed", "failed", "skipped")}))
            summary.notes += [f"skipped: {skip}" for skip in data["skips"]]


def dependencies(summary):
    """The step counts as one check; what it could not look at is a skip."""
    skips = [line for line in log("dependencies").splitlines() if line.startswith("SKIPPED")]
    summary.total["skipped"] += len(skips)
    summary.notes += skips


def main():
    summary = Summary()
    for part in (rust, python, virtual_machine, page, benchmarks, dependencies):
        part(summary)
    steps = [line.split("\t") for line in (BUILD / "steps.txt").read_text().splitlines()]
    for name, status, *_ in steps:
        if name not in COUNTED:
            summary.total["passed" if status == "0" else "failed"] += 1
        elif status != "0" and not any(row[2] for row in summary.rows):
            summary.fail(f"the step {name} failed without a failed test: see build/logs/{name.replace(' ', '-')}.log")
    for problem in inventory.problems({(crate, test) for crate, _, test, _, _ in rust_cases()}):
        summary.fail(problem)

    width = max(len(row[0]) for row in summary.rows)
    print(f"{'':{width}}  {'passed':>7} {'failed':>7} {'skipped':>7}")
    for name, *numbers in summary.rows:
        print(f"{name:{width}}  " + " ".join(f"{n:>7}" for n in numbers))
    print(f"\n{'step':30} {'result':>8} {'min:s':>7} {'processor':>9}")
    for name, status, *times in steps:
        result = {"0": "passed", "not run": "not run"}.get(status, "FAILED")
        minutes, processor = (f"{int(time) // 60}:{int(time) % 60:02}" for time in times)
        print(f"{name:30} {result:>8} {minutes:>7} {processor:>9}")
    print(*summary.notes, sep="\n")
    total = summary.total
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
