"""Whether every test of the repository is run by some command.

A test can be lost without a sound: a file that no module names, an `#[ignore]`, a folder that pytest does not look
into, examples of a crate whose documentation is not tested. So the tests that the sources contain are compared with
those that have run. Tests that only other commands run are named in ELSEWHERE, with the command.
"""

import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
# (crate, function): what runs it.
ELSEWHERE = {
    ("millpond-cage", "helper"): "quota::a_job_cannot_leave_its_project, as a program inside of a container",
}


def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
                            cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if (ROOT / line).exists()]


def rust_functions():
    """(crate, function name) of every function with the attribute `#[test]`; those that macros name are left out."""
    for path in tracked("crates/*.rs"):
        crate = path.split("/")[1]
        crate = "millpond" if crate == "millpond" else f"millpond-{crate}"
        text = (ROOT / path).read_text()
        for name in re.findall(r"#\[(?:tokio::)?test(?:\([^)]*\))?\]\s*(?:#\[[^\]]*\]\s*)*(?:async )?fn (\w+)", text):
            yield crate, name


def rust_problems(ran):
    """`ran` holds (crate, path of the test)."""
    names = {(crate, test.split("::")[-1]) for crate, test in ran}
    for crate, name in sorted(set(rust_functions())):
        if (crate, name) not in names and (crate, name) not in ELSEWHERE:
            yield f"no command runs the Rust test {name} of {crate}"


def documentation_problems():
    """Examples in a crate without documentation tests must say that they are none."""
    for path in tracked("crates/*/Cargo.toml"):
        if "doctest = false" not in (ROOT / path).read_text():
            continue
        for source in tracked(f"{pathlib.PurePath(path).parent}/src/*.rs"):
            fences = re.findall(r"^\s*//[/!]\s*```(.*)$", (ROOT / source).read_text(), re.M)
            if any(fence.strip() in ("", "rust", "no_run", "should_panic") for fence in fences[::2]):
                yield f"no command runs the documentation example in {source}: the crate has doctest = false"


def python_problems():
    path = ROOT / "build/pytest-counts.json"
    files = set(json.loads(path.read_text()).get("files", [])) if path.exists() else set()
    for test in tracked("*test_*.py", "*_test.py"):
        if test not in files:
            yield f"no command runs the Python tests of {test}"


def page_problems():
    for test in tracked("web/*.test.ts", "web/*.test.tsx", "web/*.e2e.ts"):
        log = ROOT / "build/logs" / ("browser.log" if test.endswith(".e2e.ts") else "page.log")
        text = log.read_text(errors="replace") if log.exists() else ""
        if "SKIPPED" not in text and test.removeprefix("web/") not in text:
            yield f"no command runs the tests of {test}"


def problems(ran):
    yield from rust_problems(ran)
    yield from documentation_problems()
    yield from python_problems()
    yield from page_problems()
