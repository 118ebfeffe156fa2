"""Fixtures for all tests: one cluster per module, a pool of its own per test; and the count by kind.

A test that must wreck a cluster makes one of its own with `harness.cluster()`.
"""

import collections
import contextlib
import itertools
import json
import pathlib
import re
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from harness import BINARY, BUILD, TOO_LITTLE_PROCESSOR, ServerError, cluster as make_cluster  # noqa: E402

_numbers = itertools.count()

# A shell ignores Ctrl-C in what it runs in the background, and children inherit that: tests of
# Ctrl-C would test nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config):
    if not BINARY.exists():
        pytest.exit(f"there is no {BINARY}: build it first (make build) or set MILLPOND_BINARY", returncode=2)
    # The scheduler of pytest-xdist would begin with the files that have most tests; LONG_MODULES knows better.
    config.option.loadscopereorder = False


@pytest.fixture(scope="module")
def cluster():
    with make_cluster() as c:
        yield c


@pytest.fixture
def pool(cluster):
    """A pool of its own, with nothing in it. What a test leaves running there is aborted."""
    name = f"pool-{next(_numbers)}"
    cluster.create_pool(name)
    yield name
    for operation in cluster.command("list_operations", pool=name, limit=1000)["operations"]:
        if operation["state"] not in ("completed", "failed", "aborted"):
            # It may come to its end in this moment.
            with contextlib.suppress(ServerError):
                cluster.command("abort_operation", operation_id=operation["id"])


@pytest.fixture
def client(cluster):
    """The real Python client."""
    return cluster.client()


@pytest.fixture
def home(client, request):
    """A folder of its own in the metadata tree."""
    path = "//tmp/" + re.sub(r"[^\w-]", "-", request.node.name)
    client.create("map_node", path, recursive=True)
    return path


@pytest.fixture
def shared(cluster):
    """A directory of its own that jobs see and may write to."""
    directory = cluster.shared / f"test-{next(_numbers)}"
    directory.mkdir()
    directory.chmod(0o777)
    return directory


# --- which tests run together

def pytest_addoption(parser):
    parser.addoption("--add-counts", action="store_true",
                     help="add to the counts in build/pytest-counts.json instead of replacing them")


# Modules that take more than ten seconds, longest first: a worker that begins such a module last would run alone at the
# end. Measured with `pytest --durations=0`; an entry that is missing costs time only.
LONG_MODULES = """
    yt/test_calls.py yt/test_preemption.py faults/test_volumes.py yt/test_map_functions.py cluster/test_integral.py
    yt/test_rows.py yt/test_rewrites.py yt/test_map.py yt/test_pools.py yt/test_tables.py faults/test_clock.py
    cluster/test_isolation.py yt/test_hostile.py cluster/test_scheduling.py yt/test_access.py faults/test_node_restarts.py
    yt/test_transactions.py yt/test_slow_clients.py faults/test_kill_matrix.py cli/test_cli.py yt/test_archive.py
    yt/test_common_attributes.py yt/test_uploads.py yt/test_job_input.py yt/test_tls.py yt/test_vanilla_tables.py
    cluster/test_jobs.py cluster/test_oci.py cluster/test_reserves.py cluster/test_cgroups.py cluster/test_shells.py
""".split()


def pytest_collection_modifyitems(items):
    """Puts the long modules first."""
    ranks = {name: rank for rank, name in enumerate(LONG_MODULES)}
    items.sort(key=lambda item: ranks.get(item.nodeid.split("::")[0].removeprefix("tests/"), len(ranks)))


# --- how many tests of each kind ran, for tests/run.sh

_counts = collections.defaultdict(collections.Counter)
_skips = []
_without_processor = []
_files = set()


def pytest_runtest_logreport(report):
    # Node ids are relative to the root directory, which may or may not include "tests".
    file = report.nodeid.split("::")[0].removeprefix("tests/")
    kind = file.split("/")[0]
    _files.add(f"tests/{file}")
    if report.skipped:
        _counts[kind]["skipped"] += 1
        if hasattr(report, "wasxfail"):
            reason = f"expected failure: {report.wasxfail}"
        else:
            # A tuple (path, line, reason).
            reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        _skips.append(f"{report.nodeid}: {reason}")
        if reason.startswith(TOO_LITTLE_PROCESSOR):
            _without_processor.append(report.nodeid)
    elif report.failed:
        _counts[kind]["failed"] += 1
    elif report.when == "call":
        _counts[kind]["passed"] += 1


def pytest_sessionfinish(session):
    # The controller of pytest-xdist receives the reports of all workers.
    if hasattr(session.config, "workerinput") or session.config.option.collectonly:
        return
    BUILD.mkdir(exist_ok=True)
    file = BUILD / "pytest-counts.json"
    if session.config.getoption("--add-counts") and file.exists():
        earlier = json.loads(file.read_text())
        for kind, counts in earlier["kinds"].items():
            _counts[kind].update(counts)
        _skips[:0] = earlier["skips"]
        _without_processor[:0] = earlier["without_processor"]
        _files.update(earlier["files"])
    # Written in one step: a run that is broken off leaves the whole file of the earlier pass, or none.
    written = file.with_suffix(".new")
    counts = {"kinds": _counts, "skips": _skips, "without_processor": _without_processor, "files": sorted(_files)}
    written.write_text(json.dumps(counts, indent=1) + "\n")
    written.replace(file)
