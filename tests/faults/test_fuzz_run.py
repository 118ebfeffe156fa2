"""fuzz/run.sh, with a compiler and targets that only note that they were called."""

import os
import subprocess

from harness import ROOT

CARGO = """#!/bin/sh
# Makes the program of each target.
mkdir -p "$CARGO_TARGET_DIR/here/release"
for target in $(sed -n 's/^name = "\\([a-z_]*\\)"$/\\1/p' Cargo.toml); do
    cp "$HOME/program" "$CARGO_TARGET_DIR/here/release/$target"
done
"""
# Uses more than a second of the processor: run.sh counts whole ones.
PROGRAM = """#!/usr/bin/env python3
import os
while os.times().user < 1.2:
    sum(range(100_000))
with open(os.environ["HOME"] + "/calls", "a") as calls:
    calls.write("x")
"""


def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)


def test_seconds_count_for_the_program_that_had_them(tmp_path):
    """A nightly run did nothing once each target had had its seconds, whatever had been changed since."""
    (tmp_path / ".cargo/bin").mkdir(parents=True)
    executable(tmp_path / ".cargo/bin/cargo", CARGO)
    executable(tmp_path / ".cargo/bin/rustc", "#!/bin/sh\necho 'host: here'\n")
    executable(tmp_path / "program", PROGRAM)

    def run(*arguments):
        environment = {**os.environ, "HOME": str(tmp_path), "CARGO_TARGET_DIR": str(tmp_path / "target"), "FUZZ_STATE": str(tmp_path / "state")}
        done = subprocess.run(["bash", str(ROOT / "fuzz/run.sh"), *arguments], env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return len((tmp_path / "calls").read_text())
    assert run("1", "yson") == 1
    assert run("1", "yson") == 1, "it has had its second"
    assert run("3", "yson") in (2, 3), "it goes on where it was"
    calls = run("1", "yson")
    executable(tmp_path / "program", PROGRAM + "# changed\n")
    assert run("1", "yson") == calls + 1, "the seconds were those of another program"
    assert run("--again", "1", "yson") == calls + 2
    # What earlier versions of the script have left: seconds of an unknown program.
    (tmp_path / "state/yson.seconds").write_text("3600\n")
    assert run("1", "yson") == calls + 3
