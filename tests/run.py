"""Runs every test of the project: `make test`.

Steps run side by side where they do not disturb each other; each writes a log of its own to build/logs/, which is shown
when it fails. A failed step does not stop the others unless they need it, so one run shows all that is wrong. At the
end the counts of all tests and the minutes of every step are printed; the exit code is 0 only if everything passed,
every test of the repository ran, and nothing is left on the machine.
"""

import os
import pathlib
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
LOGS = BUILD / "logs"
PYTHON = ".venv/bin/python"
NEXTEST = "cargo nextest run --workspace --locked --lib --bins --tests"
PYTEST = f"{PYTHON} -m pytest -q -c tests/pytest.ini --rootdir tests tests"
BINARY = ROOT / "target/debug/millpond"
FILL = "nice -n 5"


class Step:
    """One command, run by bash.

    `needs` are names of steps that must have passed, `after` names of steps that must have ended.
    """

    def __init__(self, name, command, needs=(), after=()):
        self.name, self.command, self.needs, self.after = name, command, needs, after
        self.log = LOGS / f"{name.replace(' ', '-')}.log"
        self.status, self.seconds, self.processor_seconds = None, 0.0, 0.0

    def run(self):
        began = time.monotonic()
        with open(self.log, "wb") as log:
            started = subprocess.Popen(["bash", "-c", self.command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            _, status, usage = os.wait4(started.pid, 0)
        started.returncode = self.status = os.waitstatus_to_exitcode(status)
        self.seconds, self.processor_seconds = time.monotonic() - began, usage.ru_utime + usage.ru_stime


def wait_for(word, in_log_of, seconds=300):
    """A shell command that waits until the log of a step has a word, or for so long."""
    log = LOGS.relative_to(ROOT) / f"{in_log_of}.log"
    return f"for _ in $(seq {seconds}); do grep -qs {word} {log} && break; sleep 1; done"


def simulated_faults(first, count):
    """A shell command that plays so many seeds, on one core."""
    return f"{FILL} target/bench/debug/millpond sim faults --seed {first} --count {count}"


# Cargo commands wait for each other's lock anyway, so they form a chain: what others need comes first. Clusters and
# browsers wait more than they compute; what computes fills the gaps that they leave.
STEPS = [
    Step("formatting", "cargo fmt --all --check"),
    Step("build", f"{NEXTEST} --no-run"),
    Step("dependencies", "bash tests/dependencies.sh", needs=["build"]),
    Step("page", "bash tests/steps.sh page"),
    Step("clusters", f'{PYTEST} -n 4 --dist loadfile -m "not serial"', needs=["build"]),
    Step("browser", "bash tests/steps.sh browser", needs=["build", "page"]),
    Step("virtual machine", "bash tests/vm/run.sh build/logs/vm-console.log", needs=["build"]),
    Step("rust", NEXTEST, needs=["build"]),
    # It shares the lock of compiled crates with the Rust tests, which let go of it when the first of them runs.
    Step("benchmark build", f"{wait_for('Starting', in_log_of='rust')}; {FILL} {PYTHON} -m bench.check --build", after=["build"]),
    Step("lints", f"{FILL} cargo clippy --workspace --all-targets --locked -- -D warnings", after=["benchmark build"]),
    Step("simulated faults", f"{simulated_faults(0, 1500)} & {simulated_faults(1500, 1500)}; s=$?; wait $! && exit $s",
         needs=["benchmark build"]),
    Step("bench pieces", f"{FILL} {PYTHON} -m bench.check --only pieces", needs=["benchmark build"], after=["lints"]),
    Step("documentation examples", f"{FILL} cargo test --workspace --locked --doc", after=["bench pieces"]),
    # What measures processor time runs alone.
    Step("rust alone", f"{NEXTEST} --profile alone", needs=["build"], after=["everything before"]),
    Step("clusters alone", f"{PYTEST} -n 0 -m serial --add-counts", needs=["build"], after=["rust alone"]),
    Step("bench paths", f"{PYTHON} -m bench.check --only paths", needs=["benchmark build"], after=["clusters alone"]),
    Step("nothing left behind", f"{PYTHON} tests/leftovers.py compare build/before.txt", after=["bench paths"]),
]


class Run:
    """Starts steps as soon as they may start and waits for all of them."""

    def __init__(self, steps):
        self.steps = {step.name: step for step in steps}
        self.began = time.monotonic()
        self.changed = threading.Condition()
        self.ended = set()

    def say(self, text):
        print(f"[{time.monotonic() - self.began:5.0f} s] {text}", flush=True)

    def waits_for(self, step):
        names = [*step.needs, *step.after]
        if "everything before" in names:
            order = list(self.steps)
            names = [*order[:order.index(step.name)], *step.needs]
        return [name for name in names if name not in self.ended]

    def execute(self, step):
        if broken := [name for name in step.needs if self.steps[name].status != 0]:
            self.say(f"not run   {step.name}: it needs {', '.join(broken)}")
            step.log.write_text("")
        else:
            step.run()
            ok = step.status == 0
            self.say(f"{'passed' if ok else 'FAILED'}    {step.name} ({step.seconds:.0f} s)")
            if not ok:
                lines = step.log.read_text(errors="replace").splitlines()
                print("\n".join(f"    {line}" for line in lines[-150:]), flush=True)
        with self.changed:
            self.ended.add(step.name)
            self.changed.notify_all()

    def all(self):
        waiting = list(self.steps.values())
        with self.changed:
            while waiting:
                ready = [step for step in waiting if not self.waits_for(step)]
                for step in ready:
                    waiting.remove(step)
                    threading.Thread(target=self.execute, args=(step,), daemon=True).start()
                if waiting and not ready:
                    self.changed.wait()
            self.changed.wait_for(lambda: len(self.ended) == len(self.steps))


def main():
    LOGS.mkdir(parents=True, exist_ok=True)
    # Results of an earlier run must not be taken for those of this one.
    results = [BUILD / "pytest-counts.json", *BUILD.glob("bench-*.json"), *(ROOT / "target/nextest").glob("*/junit.xml")]
    for old in [*LOGS.glob("*"), *results]:
        old.unlink(missing_ok=True)
    # The same random cases each time: whether a change is good must not depend on the day it is tested.
    os.environ.setdefault("PROPTEST_RNG_SEED", "1")
    os.environ["MILLPOND_BINARY"] = str(BINARY)
    # What cargo keeps to compile the next change faster costs more than it brings in a whole run.
    os.environ.setdefault("CARGO_INCREMENTAL", "0")
    # Otherwise every worker compiles all Python tests again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    before = subprocess.run([PYTHON, "tests/leftovers.py", "list"], cwd=ROOT, capture_output=True, text=True, check=True)
    (BUILD / "before.txt").write_text(before.stdout)
    run = Run(STEPS)
    run.all()
    (BUILD / "steps.txt").write_text("".join(
        f"{step.name}\t{'not run' if step.status is None else step.status}\t{step.seconds:.0f}\t{step.processor_seconds:.0f}\n"
        for step in STEPS))
    run.say("summary")
    return subprocess.run([PYTHON, "tests/summary.py"], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
