"""Finds slow-downs by counting: `make bench-check`, or `python -m bench.check`.

    python -m bench.check                            compares with bench/baseline.toml; exit code 1 if something grew
    python -m bench.check --update --reason "..."    stores today's figures, with the reason for those that grew
    python -m bench.check --base REV                 builds commit REV too and compares with it
    python -m bench.check --only pieces|paths        one of the two kinds below
    python -m bench.check NAME...                    these benchmarks only, or all whose names begin with NAME

Two kinds of figures do not depend on the day. *Pieces* are fixed work of single crates (bench/counts); callgrind
counts their instructions, the program itself its allocations. *Paths* are real jobs on a real cluster
(bench/paths.py); the kernel counts their system calls and page faults, and their processor time is compared with
that of a bare spawn loop, run in turns with them.

Counts fail above 5 %, processor time above 15 %. Figures hold for one compiler, libc and target only: with another
one nothing is compared, which is said and counted as a skip.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import platform
import subprocess
import sys
import tomllib

from bench import baseline, callgrind, paths

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
BASELINE = ROOT / "bench" / "baseline.toml"
COUNT_LIMIT = 1.05
PROCESSOR_LIMIT = 1.15
# Crates that are not measured are compiled as for tests, which is faster.
UNMEASURED = ("millpond", "millpond-calc", "millpond-cli", "millpond-client", "millpond-demo", "millpond-sim")
COUNTS = ("instructions", "allocations", "system_calls", "page_faults")


def environment():
    """What stored figures depend on."""
    rustc = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    fields = dict(line.split(": ", 1) for line in rustc.splitlines() if ": " in line)
    return {
        "compiler": f"rustc {fields['release']} ({fields['commit-hash'][:9]})",
        "target": fields["host"],
        "libc": " ".join(platform.libc_ver()),
        # The allocator is written in C.
        "c_compiler": first_line("cc", "--version"),
        "valgrind": first_line("valgrind", "--version"),
    }


def first_line(*command):
    """The first line that a command prints, or "none" if there is no such command."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.partition("\n")[0]
    except (OSError, subprocess.CalledProcessError):
        return "none"


def build(root, target):
    """Builds the binaries as in a release and gives the folder that they are in.

    The test build has compiled other people's crates with the same settings already: the shared build directory
    keeps cargo from doing that twice (with cargo before 1.91 it does).
    """
    metadata = json.loads(subprocess.run(
        ["cargo", "metadata", "--no-deps", "--format-version", "1"], cwd=root, capture_output=True, text=True, check=True).stdout)
    settings = ["profile.dev.debug-assertions=false", "profile.dev.overflow-checks=false"]
    for name in (package["name"] for package in metadata["packages"]):
        if name not in UNMEASURED:
            # One part for each crate: which functions are inlined must not depend on how a crate is divided.
            settings += [f"profile.dev.package.{name}.opt-level=3", f"profile.dev.package.{name}.codegen-units=1"]
    command = ["cargo", "build", "--locked", "-p", "millpond", "-p", "millpond-bench-counts", "--target-dir", target]
    for setting in settings:
        command += ["--config", setting]
    variables = {**os.environ, "CARGO_BUILD_BUILD_DIR": str(pathlib.Path(root) / "target"), "CARGO_INCREMENTAL": "0"}
    subprocess.run(command, cwd=root, env=variables, check=True)
    return pathlib.Path(target) / "debug"


def cannot_count_pieces():
    """Why instructions cannot be counted here, or None.

    Under valgrind a program sees one fixed processor with AVX2, whatever the host has, as long as the host has that.
    """
    if platform.machine() != "x86_64":
        return f"instructions are counted on x86_64 only, this is {platform.machine()}"
    if " avx2 " not in pathlib.Path("/proc/cpuinfo").read_text().replace("\n", " "):
        return "this processor has no AVX2, so other code would be counted"
    if subprocess.run(["which", "valgrind"], capture_output=True).returncode:
        return "valgrind is not installed"
    return None


def measure_pieces(folder, wanted):
    """{name: figures} of the pieces, two at a time."""
    program = folder / "bench-counts"
    names = subprocess.run([program, "list"], capture_output=True, text=True, check=True).stdout.split()
    names = [name for name in names if wanted(name)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as executor:
        return dict(zip(names, executor.map(lambda name: callgrind.count(program, name, BUILD), names), strict=True))


def differences(name, before, after):
    """Lines about one benchmark, and whether it grew too much."""
    lines, failed = [], False
    for what in (*COUNTS, "processor"):
        if what not in after or what not in before:
            continue
        limit = PROCESSOR_LIMIT if what == "processor" else COUNT_LIMIT
        old, new = before[what], after[what]
        ratio = new / old if old else (1.0 if new == old else float("inf"))
        grew = ratio > limit
        failed |= grew
        if grew or ratio < 2 - limit:
            verdict = "SLOWER" if grew else "better"
            lines.append(f"{verdict} {name}: {what} {number(old)} -> {number(new)} ({100 * (ratio - 1):+.1f} %)")
            if what == "instructions":
                lines += [f"           {line}" for line in callgrind.growth(before, after)]
    return lines, failed


def number(value):
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


def compare(stored, measured):
    """Prints the differences; gives the names that fail."""
    failed = []
    for name, figures in measured.items():
        if name not in stored:
            print(f"NEW    {name}: not in bench/baseline.toml; store it with --update")
            failed.append(name)
            continue
        lines, grew = differences(name, stored[name], figures)
        print("\n".join(lines) if lines else f"same   {name}: {summary(figures)}")
        if grew:
            failed.append(name)
    return failed


def summary(figures):
    parts = [f"{what.replace('_', ' ')} {number(figures[what])}" for what in COUNTS if what in figures]
    if "processor" in figures:
        parts.append(f"processor {figures['processor']:.2f} times that of the spawn loop")
    return ", ".join(parts)


def checked_out(revision):
    """A work tree of another commit, beside the build."""
    tree = BUILD / "bench-base"
    if tree.exists():
        subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=False, capture_output=True)
    subprocess.run(["git", "worktree", "add", "--detach", "--force", tree, revision], cwd=ROOT, check=True, capture_output=True)
    if not (tree / "bench/counts").exists():
        sys.exit(f"bench-check: {revision} has no bench/counts, so there is nothing to compare with")
    return tree


def measure(root, target, wanted, kinds, skips):
    folder = build(root, target)
    measured = {}
    if "pieces" in kinds:
        if why := cannot_count_pieces():
            skips.append(f"bench-check, instructions and allocations: {why}")
        else:
            measured |= measure_pieces(folder, wanted)
    if "paths" in kinds:
        figures, why = paths.measure(folder / "millpond", wanted)
        skips += [f"bench-check, {line}" for line in why]
        measured |= figures
    return measured


def keep_least_processor(before, measured, program):
    """Measures processor time that seems to have grown up to two times more, and keeps the least.

    What else happens on the host, also in other virtual machines, makes the same work more expensive and never cheaper:
    the same program took 12.6 to 14.7 times the spawn loop within an hour.
    """
    for _ in range(2):
        grown = [name for name, figures in measured.items()
                 if figures.get("processor", 0) > PROCESSOR_LIMIT * before.get(name, {}).get("processor", float("inf"))]
        for name, figures in (paths.measure(program, grown.__contains__)[0] if grown else {}).items():
            if "processor" in figures:
                measured[name]["processor"] = min(measured[name]["processor"], figures["processor"])


def main():
    parser = argparse.ArgumentParser(prog="bench.check", description=__doc__.split("\n")[0])
    parser.add_argument("--build", action="store_true", help="build only")
    parser.add_argument("names", nargs="*", help="benchmarks, or beginnings of their names [default: all]")
    parser.add_argument("--only", choices=("pieces", "paths"), help="one kind of benchmarks")
    parser.add_argument("--update", action="store_true", help="store today's figures in bench/baseline.toml")
    parser.add_argument("--reason", help="why figures grew; needed with --update if some did")
    parser.add_argument("--base", metavar="REV", help="compare with this commit, built here, instead of the stored figures")
    arguments = parser.parse_args()
    BUILD.mkdir(exist_ok=True)
    if arguments.build:
        build(ROOT, ROOT / "target/bench")
        return 0

    def wanted(name):
        return not arguments.names or any(name.startswith(beginning) for beginning in arguments.names)

    kinds = (arguments.only,) if arguments.only else ("pieces", "paths")
    skips, here, program = [], environment(), ROOT / "target/bench/debug/millpond"
    measured = measure(ROOT, ROOT / "target/bench", wanted, kinds, skips)
    if arguments.base:
        tree = checked_out(arguments.base)
        before = measure(tree, tree / "target/bench", wanted, kinds, [])
        keep_least_processor(before, measured, program)
        failed = compare(before, measured)
    else:
        stored = tomllib.loads(BASELINE.read_text()) if BASELINE.exists() else {"environment": here, "benchmarks": {}}
        if arguments.update:
            return baseline.update(BASELINE, stored, here, measured, arguments.reason, differences)
        if stored["environment"] != here:
            skips.append(f"bench-check: figures are stored for {stored['environment']}, this is {here}; "
                         "`make bench-check BASE=REV` compares with a commit built here")
            failed = []
        else:
            keep_least_processor(stored["benchmarks"], measured, program)
            failed = compare(stored["benchmarks"], measured)
    for line in skips:
        print(f"SKIPPED {line}")
    result = {"passed": len(measured) - len(failed), "failed": len(failed), "skipped": len(skips), "skips": skips}
    name = f"bench-{arguments.only or 'check'}.json"
    (BUILD / name).write_text(json.dumps({**result, "figures": measured}, indent=1) + "\n")
    if failed:
        print(f"\n{len(failed)} benchmarks are slower than stored. If that is wanted, store the new figures in the same commit:\n"
              f"    make bench-check UPDATE=\"why it is slower\"")
    print(f"{result['passed']} passed, {result['failed']} failed, {result['skipped']} skipped")
    return 1 if failed or not (measured or skips) else 0


if __name__ == "__main__":
    sys.exit(main())
