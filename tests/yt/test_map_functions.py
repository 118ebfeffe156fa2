"""Python functions as jobs, through the SDK as it is (http-api.md 13): the function and its modules are pickled,
uploaded into the file cache, and run by the SDK's own runner inside the job."""

import collections
import json
import os
import pathlib
import subprocess
import sys

import pytest
import yt.wrapper
from map_functions import evens_and_odds, halves, in_json, to_the_seventh, words

# Every job imports the whole SDK from source: seconds of processor time.
pytestmark = pytest.mark.timeout(900)

ROWS = [{"id": n, "text": f"some words of row {n}"} for n in range(50)]
SMALL = {"cpu_limit": 0.5, "memory_limit": 256 << 20}


# What jobs see of the host's programs.
PYTHON = "/usr/bin/python3"


@pytest.fixture
def client(cluster):
    """Pickled functions are understood by the version that pickled them."""
    version = "%d.%d" % sys.version_info[:2]
    try:
        said = subprocess.run([PYTHON, "--version"], capture_output=True, text=True).stdout
    except OSError as error:
        said = str(error)
    if f"Python {version}." not in said:
        pytest.skip(f"jobs need {PYTHON} of version {version} to run functions of these tests, found: {said.strip()}")
    client = cluster.client()
    # Megabytes of modules are packed for each operation; `test_the_example` packs them as usual.
    client.config["pickling"].update(python_binary=PYTHON, modules_archive_compression_level=1)
    return client


def read(client, path):
    return list(client.read_table(path))


def test_a_function_of_rows(client, home):
    client.write_table(f"{home}/a", ROWS)
    operation = client.run_map(words, f"{home}/a", f"{home}/b", spec={"job_count": 2, "mapper": SMALL})
    assert operation.get_state() == "completed"
    assert read(client, f"{home}/b") == [{"word": w, "id": row["id"]} for row in ROWS for w in row["text"].split()]
    assert client.exists("//tmp/yt_wrapper/file_storage")


def test_a_function_chooses_among_tables(client, home):
    client.write_table(f"{home}/a", ROWS)
    outputs = [f"{home}/even", f"{home}/odd"]
    run = lambda function, **options: client.run_map(function, f"{home}/a", outputs, spec={"mapper": SMALL, "max_failed_job_count": 1, **options.pop("spec", {})}, **options)  # noqa: E731
    run(evens_and_odds, spec={"job_count": 3})
    assert [read(client, path) for path in outputs] == [ROWS[0::2], ROWS[1::2]]
    run(halves, format=yt.wrapper.YsonFormat(control_attributes_mode="row_fields"))
    others = [{"id": row["id"], "text": "goes to the first"} for row in ROWS]
    first, second = (read(client, path) for path in outputs)
    assert second == ROWS[1::2] and sorted(first, key=str) == sorted([*others, *ROWS[0::2]], key=str)
    assert [row["id"] for row in first] == sorted(row["id"] for row in first)
    run(in_json, format=yt.wrapper.JsonFormat())
    assert [read(client, path) for path in outputs] == [ROWS[:1], ROWS[1:]]
    with pytest.raises(yt.wrapper.YtOperationFailedError) as failed:
        run(to_the_seventh)
    said = "in front of row 0 must be the number of an output table, an integer from 0 to 1, found 7"
    assert said in json.dumps(failed.value.attributes, default=str), failed.value.attributes
    assert [read(client, path) for path in outputs] == [ROWS[:1], ROWS[1:]]


def test_the_example(cluster, client):
    """`examples/map/slowdown.py`: real jobs go through a function, none is lost and none is there twice."""
    root = pathlib.Path(__file__).parents[2]
    environment = {**os.environ, "YT_PROXY": f"http://{cluster.address}", "MAP_PYTHON": PYTHON, "YT_LOG_LEVEL": "WARNING"}
    done = subprocess.run([sys.executable, root / "examples/map/slowdown.py"], capture_output=True, text=True, timeout=600,
                          env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    log = (root / "examples/demo/metacentrum-window.swf").read_text().splitlines()
    jobs = [line.split() for line in log if line and not line.startswith(";")]
    users = collections.Counter(job[11] for job in jobs)
    said = done.stdout.splitlines()
    assert said[0] == f"{len(jobs)} jobs of {len(users)} users"
    shown = [line.split() for line in said[2:]]
    assert len(shown) == min(10, len(users))
    assert all(int(count) == users[user] for user, count, _, _ in shown), shown
    assert not [name for name in client.list("//tmp") if name.startswith("slowdown")]
