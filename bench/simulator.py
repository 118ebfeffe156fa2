"""The simulator's figures of docs/benchmarks.md: `python -m bench.simulator [parts...]`.

Each run is `millpond sim run`; time is that of the wall and, as other work hardly distorts it, that of the processor.
Scenarios are those that the specification of the simulator comes with (../shared/scenarios) and three that are made
here: nodes without room, many starts, a long workload.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MILLPOND = os.environ.get("MILLPOND", str(ROOT / "target/release/millpond"))
SCENARIOS = ROOT.parent / "shared/scenarios"
GIB = 1 << 30
DAY = 86_400_000


def run(*arguments):
    """Seconds of the wall and of the processor, and the largest memory in MiB."""
    began = time.monotonic()
    process = subprocess.Popen([MILLPOND, "sim", *arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(process.args)}: exit code {process.returncode}")
    return time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def simulate(scenario, out, *arguments):
    spent = run("run", str(scenario), "--out", str(out), "--quiet", *arguments)
    return spent, json.loads((out / "summary.json").read_text())


def write(folder, nodes, cores, operations, **config):
    """A scenario of equal nodes; operations are tuples of jobs and their duration in ms."""
    limits = {"cpu": cores, "memory": 4 * cores * GIB, "user_slots": 2 * cores}
    scenario = {
        "format": "millpond-scenario/1", "name": "bench", "duration_ms": DAY,
        "cluster": {"node_groups": [{"name": "n", "count": nodes, "resource_limits": limits}]},
        "pool_trees": {"default_tree": "physical", "trees": {"physical": {
            "config": {"max_operation_count": 1_000_000, "max_running_operation_count": 1_000_000,
                       "max_operation_count_per_pool": 1_000_000, "max_running_operation_count_per_pool": 1_000_000},
            "pools": {f"p{i}": {} for i in range(20)}}}},
        "scheduler_config": config, "workload": ["workload.jsonl"], "models": {"memory": "off"},
        "output": {"allocations": False},
    }
    lines = [json.dumps({"at": 0, "user": "u", "pool": f"p{i % 20}",
                         "tasks": [{"name": "t", "job_count": jobs, "duration": duration}]})
             for i, (jobs, duration) in enumerate(operations)]
    (folder / "workload.jsonl").write_text("\n".join(lines) + "\n")
    path = folder / "scenario.json"
    path.write_text(json.dumps(scenario))
    return path





def heartbeats(folder, shortcuts):
    """10,000 nodes without room, and operations that wait for some: a second of the processor has how many?"""
    scenario = write(folder, 10_000, 1, [(10_000, DAY)] + [(100, DAY)] * 20,
                     fair_share_update_period=60_000, node_heartbeat_period=5000)
    options = [] if shortcuts else ["--no-shortcuts"]
    until = 3600 if shortcuts else 600
    (_, filling, _), _ = simulate(scenario, folder / "out", "--until", "60s", *options)
    (_, all_of_it, _), summary = simulate(scenario, folder / "out", "--until", f"{until}s", *options)
    count = 10_000 * (until - 60) / 5
    seen = summary["performance"]
    kinds = f"elided {seen['heartbeats_elided']:,}, processed {seen['heartbeats_processed']:,}"
    return f"{count / (all_of_it - filling):,.0f} per second ({kinds})"


def starts(folder):
    """2,000 operations of 50 jobs on 10,000 empty nodes, all at once."""
    scenario = write(folder, 10_000, 10, [(50, DAY)] * 2000)
    (_, without, _), _ = simulate(scenario, folder / "out", "--until", "0s")
    (_, seconds, _), summary = simulate(scenario, folder / "out", "--until", "20s")
    running = summary["performance"].get("allocations_started", 100_000)
    return f"{running / (seconds - without):,.0f} per second ({running:,} in {seconds - without:.1f} s)"


def reading(folder):
    scenario = write(folder, 10, 1, [(5, 1000)] * 200_000)
    wall, seconds, _ = run("validate", str(scenario))
    return f"{200_000 / seconds:,.0f} operations per second"


def scale(name):
    def measure(folder):
        (wall, seconds, memory), summary = simulate(SCENARIOS / name / "scenario.json", folder / "out")
        states = summary["cluster"]["operations"] if "operations" in summary.get("cluster", {}) else ""
        return f"{wall:.0f} s, {seconds:.0f} s of the processor, {memory:.0f} MiB {json.dumps(states)}"
    return measure


PARTS = {
    "elided": lambda folder: heartbeats(folder, True),
    "processed": lambda folder: heartbeats(folder, False),
    "starts": starts,
    "reading": reading,
    "scale-1k": scale("scale-1k"),
    "burst-and-relaxed": scale("burst-and-relaxed"),
    "scale-10k": scale("scale-10k"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; all without any")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"unknown parts {sorted(unknown)}; there are {', '.join(PARTS)}")
    for part in arguments.parts or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            print(f"{part}: {PARTS[part](pathlib.Path(folder))}", flush=True)


if __name__ == "__main__":
    main()
