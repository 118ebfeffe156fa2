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

from harness import BINARY, BUILD, ServerError, cluster as make_cluster  # noqa: E402

_numbers = itertools.count()

# A shell ignores Ctrl-C in what it runs in the background, and children inherit that: tests of
# Ctrl-C would test nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config):
    if not BINARY.exists():
        pytest.exit(f"there is no {BINARY}: build it first (make build) or set MILLPOND_BINARY", returncode=2)


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


# --- how many tests of each kind ran, for tests/run.sh

_counts = collections.defaultdict(collections.Counter)
_skips = []


def pytest_runtest_logreport(report):
    kind = pathlib.PurePath(report.nodeid.split("::")[0]).parts
    # Node ids are relative to the root directory, which may or may not include "tests".
    kind = [part for part in kind if part != "tests"][0]
    if report.skipped:
        _counts[kind]["skipped"] += 1
        _skips.append(f"{report.nodeid}: {report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr}")
    elif report.failed:
        _counts[kind]["failed"] += 1
    elif report.when == "call":
        _counts[kind]["passed"] += 1


def pytest_sessionfinish():
    BUILD.mkdir(exist_ok=True)
    (BUILD / "pytest-counts.json").write_text(json.dumps({"kinds": _counts, "skips": _skips}, indent=1) + "\n")
