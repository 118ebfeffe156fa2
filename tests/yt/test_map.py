"""Map operations with the real Python client: rows of tables go through the standard input of commands, and what these
write becomes rows of tables (jobs-and-nodes.md 5, 8.4; http-api.md 13)."""

import json
import threading
import time

import pytest
import yt.wrapper
from harness import ServerError, cluster as make_cluster, error_codes, wait_for

ROWS = [{"id": n, "name": f"row {n}", "half": n / 2} for n in range(100)]
# Small, so that some fit at a time.
SMALL = {"cpu_limit": 0.1, "memory_limit": 64 << 20}
TEXT = {"$attributes": {"format": "text"}, "$value": "yson"}


def read(client, path, **options):
    return list(client.read_table(path, **options))


def run(cluster, command, inputs, outputs, mapper=None, state="completed", timeout=180, create=True, **spec):
    """A map by plain HTTP; gives its id when it is over. Outputs are made as the client makes them."""
    for path in outputs if create else []:
        cluster.command("create", type="table", path=path.rpartition(">")[2], ignore_existing=True)
    spec = {"input_table_paths": inputs, "output_table_paths": outputs,
            "mapper": {**SMALL, "command": command, **(mapper or {})}, **spec}
    operation = cluster.command("start_operation", operation_type="map", spec=spec)["operation_id"]
    cluster.wait_state(operation, state, timeout=timeout)
    return operation


def totals(cluster, operation, path):
    """Sum of a statistic over completed jobs."""
    value = cluster.operation(operation, "progress")["progress"]["job_statistics_v2"]
    for name in path.split("/"):
        value = value.get(name, {})
    return sum(leaf["summary"]["sum"] for leaf in value or [] if leaf["tags"]["job_state"] == "completed")


@pytest.mark.parametrize("format", ["yson", "<format=text>yson", "json"])
def test_rows_go_through_a_command(client, home, format):
    client.write_table(f"{home}/a", ROWS)
    operation = client.run_map("cat", f"{home}/a", f"{home}/b", format=format, spec={"job_count": 3, "mapper": SMALL})
    assert operation.get_state() == "completed"
    assert read(client, f"{home}/b") == ROWS
    attributes = client.get_operation(operation.id)
    assert attributes["type"] == "map" and attributes["unrecognized_spec"] == {}
    assert attributes["brief_progress"]["jobs"]["completed"] == 3
    assert attributes["full_spec"]["mapper"]["input_format"] == attributes["spec"]["mapper"]["input_format"]
    jobs = client.list_jobs(operation.id)["jobs"]
    assert {job["type"] for job in jobs} == {"map"} and {job["task_name"] for job in jobs} == {"map"}


def test_text_formats(cluster, client, home):
    client.write_table(f"{home}/a", [{"k": "x", "v": "1"}, {"k": "y", "v": "2"}])
    run(cluster, "sed s/x/z/", [f"{home}/a"], [f"{home}/b"], mapper={"format": "dsv"})
    assert read(client, f"{home}/b") == [{"k": "z", "v": "1"}, {"k": "y", "v": "2"}]
    # In with one format, out with another.
    command = "while IFS= read -r line; do echo '{\"line\": \"'${line//$'\\t'/ }'\"}'; done"
    run(cluster, command, [f"{home}/a"], [f"{home}/b"], mapper={"input_format": "dsv", "output_format": "json"})
    assert [row["line"].split()[0] for row in read(client, f"{home}/b")] == ["k=x", "k=y"]


def test_ranges_columns_and_marks(cluster, client, home):
    client.write_table(f"{home}/a", ROWS)
    client.write_table(f"{home}/b", ROWS[:4])
    client.write_table(f"<append=%true>{home}/b", ROWS[4:8])
    inputs = [f"{home}/a{{id}}[#10:#12,#50]", f"{home}/b[#3:#6]"]
    control = {"enable_row_index": True, "enable_range_index": True}
    output = {"mapper": {"format": TEXT}, "job_io": {"control_attributes": control}}
    # What the command sees, as it is.
    run(cluster, "while IFS= read -r line; do echo \"{line=\\\"${line//\\\"/}\\\"};\"; done", inputs, [f"{home}/seen"], **output)
    seen = [row["line"] for row in read(client, f"{home}/seen")]
    marks = lambda table, range, row: [f"<table_index={table};>#;", f"<range_index={range};>#;", f"<row_index={row};>#;"]  # noqa: E731
    rows = lambda of: [line for line in of if not line.startswith("<")]  # noqa: E731
    assert seen[:3] == marks(0, 0, 10) and seen[5:8] == marks(0, 1, 50) and seen[9:12] == marks(1, 0, 3), seen
    assert rows(seen)[:3] == ["{id=10;};", "{id=11;};", "{id=50;};"] and len(rows(seen)) == 6


def test_several_outputs_and_none(cluster, client, home):
    client.write_table(f"{home}/a", ROWS)
    outputs = [f"{home}/one", f"{home}/two", f"{home}/three", f"{home}/four"]
    operation = run(cluster, "echo '{n=1}' >&1; echo '{n=4}' >&4; echo '{n=10}' >&10; cat > /dev/null",
                    [f"{home}/a"], outputs, job_count=2)
    assert [read(client, path) for path in outputs] == [[{"n": 1}] * 2, [{"n": 4}] * 2, [], [{"n": 10}] * 2]
    assert totals(cluster, operation, "data/input/row_count") == 100
    assert [totals(cluster, operation, f"data/output/{k}/row_count") for k in range(4)] == [2, 2, 0, 2]
    written = [totals(cluster, operation, f"user_job/pipes/output/{k}/bytes") for k in range(4)]
    assert written == [2 * len("{n=1}\n"), 2 * len("{n=4}\n"), 0, 2 * len("{n=10}\n")]
    assert totals(cluster, operation, "user_job/pipes/output/total/bytes") == sum(written)
    assert totals(cluster, operation, "user_job/pipes/input/bytes") > 100 * len("{id=1}")
    pipes = cluster.operation(operation, "progress")["progress"]["job_statistics_v2"]["user_job"]["pipes"]
    assert set(pipes["output"]) == {"0", "1", "2", "3", "total"}
    for pipe in (pipes["input"], *pipes["output"].values()):
        assert set(pipe) == {"bytes", "idle_time", "busy_time"}
    run(cluster, "cat > /dev/null", [f"{home}/a"], [])


def test_commands_choose_among_tables(cluster, client, home):
    """Rows of two inputs, with the marks that say so, become those of two outputs by `cat`; with one more input they
    are too many."""
    client.write_table(f"{home}/a", ROWS[:3])
    client.write_table(f"{home}/b", ROWS[3:7])
    outputs = [f"{home}/one", f"{home}/two"]
    for format in (TEXT, "yson", "json"):
        run(cluster, "cat", [f"{home}/a", f"{home}/b"], outputs, mapper={"format": format})
        assert [read(client, path) for path in outputs] == [ROWS[:3], ROWS[3:7]], format
    # Through any descriptor, and only up to its end.
    command = "cat >/dev/null; echo '{n=1};<table_index=1>#;{n=2}'; echo '<table_index=0>#;{n=3};<table_index=1>#;{n=4}' >&4"
    run(cluster, command, [f"{home}/a"], outputs)
    assert [sorted(row["n"] for row in read(client, path)) for path in outputs] == [[1, 3], [2, 4]]
    for index, found in (("2", "2"), ("-1", "-1"), ("x", '"x"'), ("0.5", "0.5")):
        operation = run(cluster, f"echo '<table_index={index}>#;{{n=1}}'", [f"{home}/a"], outputs, state="failed")
        assert f"an integer from 0 to 1, found {found}" in json.dumps(cluster.result(operation)).replace("\\", "")
    operation = run(cluster, "cat", [f"{home}/a", f"{home}/b", f"{home}/a"], outputs, state="failed")
    assert "integer from 0 to 1, found 2" in json.dumps(cluster.result(operation))
    # Other marks are no rows.
    operation = run(cluster, "cat", [f"{home}/a"], outputs, state="failed", job_io={"control_attributes": {"enable_row_index": True}})
    assert "Row 0 must be a map, found entity" in json.dumps(cluster.result(operation))
    with pytest.raises(yt.wrapper.YtError, match="Row 0 must be a map, found entity"):
        client.write_table(outputs[0], b"<table_index=0>#;{n=1};", format="yson", raw=True)


def test_maps_that_append_to_one_table_run_at_once(cluster, client, home):
    """Each waits for a file that the test makes when both of them run: neither is in the other's way."""
    for n in range(2):
        client.write_table(f"{home}/in{n}", [{"n": n}])
    client.create("table", f"{home}/out")
    gate = cluster.shared / home.rpartition("/")[2]
    command = f"until [ -e '{gate}' ]; do sleep 0.1; done; cat"
    maps = [cluster.command("start_operation", operation_type="map", spec={
        "input_table_paths": [f"{home}/in{n}"], "output_table_paths": [f"<append=%true>{home}/out"],
        "mapper": {**SMALL, "command": command}})["operation_id"] for n in range(2)]
    for operation in maps:
        cluster.wait_jobs(operation)
    alone = cluster.command("start_operation", operation_type="map", spec={
        "input_table_paths": [f"{home}/in0"], "output_table_paths": [f"{home}/out"],
        "mapper": {**SMALL, "command": "cat"}})["operation_id"]
    cluster.wait_state(alone, "failed")
    assert 402 in error_codes(cluster.result(alone)), "it would replace what the others extend"
    gate.touch()
    for operation in maps:
        cluster.wait_state(operation, "completed")
    assert sorted(row["n"] for row in read(client, f"{home}/out")) == [0, 1]


def test_append_and_overwrite(cluster, client, home):
    client.write_table(f"{home}/a", ROWS[:2])
    run(cluster, "cat", [f"{home}/a"], [f"<append=%true>{home}/a"])
    assert read(client, f"{home}/a") == ROWS[:2] * 2
    run(cluster, "cat", [f"{home}/a[#1:#3]"], [f"{home}/a"])
    assert read(client, f"{home}/a") == [ROWS[1], ROWS[0]]
    # Nothing to read: nothing is written, and the table is empty then.
    run(cluster, "cat", [f"{home}/a[#1:#1]"], [f"{home}/a"])
    assert read(client, f"{home}/a") == []


def test_order_is_kept(cluster, client, home):
    client.write_table(f"{home}/a", ROWS)
    operation = run(cluster, "cat", [f"{home}/a"], [f"{home}/b"], ordered=True, job_count=7)
    assert read(client, f"{home}/b") == ROWS
    assert cluster.counters(operation)["completed"] == 7
    # Each says where it begins, and how many rows it has.
    command = "echo \"{start=$YT_START_ROW_INDEX; rows=$(wc -l)}\""
    run(cluster, command, [f"{home}/a"], [f"{home}/b"], job_count=4, mapper={"format": TEXT})
    next_row = 0
    for row in read(client, f"{home}/b"):
        assert row["start"] == next_row and 20 < row["rows"] < 30, row
        next_row += row["rows"]
    assert next_row == 100


def test_schemas_are_demanded_of_jobs(cluster, client, home):
    client.write_table(f"{home}/a", ROWS)
    schema = [{"name": "id", "type": "int64", "sort_order": "ascending"}, {"name": "name", "type": "string"}]
    client.create("table", f"{home}/b", attributes={"schema": schema})
    operation = run(cluster, "cat", [f"{home}/a"], [f"{home}/b"], state="failed")
    result = json.dumps(cluster.result(operation))
    assert "half" in result and "is not in the schema" in result, result
    # No other run would do better: the first failure was the last.
    assert cluster.counters(operation)["failed"] == 1
    run(cluster, "cat", [f"{home}/a{{id,name}}"], [f"{home}/b"], job_count=5)
    assert [row["id"] for row in read(client, f"{home}/b")] == list(range(100))
    assert client.get(f"{home}/b/@sorted_by") == ["id"]
    operation = run(cluster, "echo '{id=5};{id=4}'", [f"{home}/a"], [f"{home}/b"], state="failed")
    assert "sorted" in json.dumps(cluster.result(operation))
    assert len(read(client, f"{home}/b")) == 100


def test_failing_commands(cluster, client, home):
    client.write_table(f"{home}/a", ROWS)
    client.write_table(f"{home}/b", ROWS[:1])
    operation = run(cluster, "cat; echo why >&2; exit 3", [f"{home}/a"], [f"{home}/b"], state="failed", max_failed_job_count=2)
    assert {215, 1205, 10000} <= error_codes(cluster.result(operation))
    assert read(client, f"{home}/b") == ROWS[:1]
    # It is unlocked again.
    client.write_table(f"{home}/b", ROWS[:2])
    operation = run(cluster, "echo nonsense}", [f"{home}/a"], [f"{home}/b"], state="failed")
    assert "Output table 0" in json.dumps(cluster.result(operation))
    # A unit that fails at first is run again, and its rows are there once.
    command = "if [ $YT_JOB_INDEX -lt 2 ]; then cat; exit 1; fi; cat"
    operation = run(cluster, command, [f"{home}/a"], [f"{home}/b"], job_count=3)
    assert read(client, f"{home}/b") == ROWS and cluster.counters(operation)["failed"] == 2


def test_input_need_not_be_read(cluster, client, home):
    rows = [{"text": "x" * 1000, "n": n} for n in range(2000)]
    client.write_table(f"{home}/a", rows)
    # Not at all, closed, and in part: more than a pipe holds is left.
    for command in ("true", "exec 0<&-; echo '{n=1}'", "head -c 100 > /dev/null; echo '{n=1}'"):
        operation = run(cluster, command, [f"{home}/a"], [f"{home}/b"])
        assert totals(cluster, operation, "data/input/not_fully_consumed") == 1, command
    assert read(client, f"{home}/b") == [{"n": 1}]
    operation = run(cluster, "true", [f"{home}/a"], [f"{home}/b"], mapper={"check_input_fully_consumed": True},
                    state="failed", max_failed_job_count=1)
    assert "not fully consumed" in json.dumps(cluster.result(operation))
    operation = run(cluster, "cat > /dev/null", [f"{home}/a"], [f"{home}/b"], mapper={"check_input_fully_consumed": True})
    assert totals(cluster, operation, "data/input/not_fully_consumed") == 0


@pytest.mark.timeout(1500)
def test_a_hundred_megabytes(cluster, client, home):
    client.write_table(f"{home}/a", [{"n": n} for n in range(4)])
    # Four jobs write 25,000 rows of a kilobyte each.
    command = "cat > /dev/null; yes '{t=\"'$(printf %01000d 7)'\"};' | head -n 25000"
    operation = run(cluster, command, [f"{home}/a"], [f"{home}/b"], job_count=4, timeout=600)
    assert client.get(f"{home}/b/@row_count") == 100_000
    assert client.get(f"{home}/b/@data_weight") > 100_000_000
    assert totals(cluster, operation, "data/output/0/data_weight") == client.get(f"{home}/b/@data_weight")
    assert read(client, f"{home}/b[#99999]") == [{"t": "7".zfill(1000)}]
    # And through the input of others, into nothing.
    operation = run(cluster, "wc -c >&2", [f"{home}/b"], [], job_count=2, timeout=600)
    assert totals(cluster, operation, "data/input/row_count") == 100_000


def test_tables_that_are_not_there(cluster, client, home):
    client.write_table(f"{home}/a", ROWS)
    client.create("table", f"{home}/b")
    for inputs, outputs, error in (([f"{home}/x"], [f"{home}/b"], 500), ([f"{home}/a"], [f"{home}/x"], 500),
                                   ([home], [f"{home}/b"], 1), ([f"{home}/a"], [home], 1)):
        operation = run(cluster, "cat", inputs, outputs, state="failed", create=False)
        assert {216, error} <= error_codes(cluster.result(operation))
    # What another has locked.
    with client.Transaction():
        client.lock(f"{home}/b")
        operation = run(cluster, "cat", [f"{home}/a"], [f"{home}/b"], state="failed")
        assert {216, 402} <= error_codes(cluster.result(operation))
    run(cluster, "cat", [f"{home}/a"], [f"{home}/b"])


def test_what_a_path_says_is_refused_with_it(cluster, client, home):
    for name in "ab":
        client.write_table(f"{home}/{name}", ROWS[:1])
    a, b = f"{home}/a", f"{home}/b"
    for inputs, output, error in (([a, f"{b}[zz:]"], a, f'{b}: Attribute "lower_limit" of a range must be {{row_index=...}}: limits by "key" are not supported, found {{"key"=["zz";];}}'),
                                  ([f"<columns=5>{b}"], a, f'{b}: Attribute "columns" of the path must be'),
                                  ([a], f"<append=5>{b}", f'{b}: Attribute "append" must be boolean, found int64'),
                                  ([a], f"<schema=5>{b}", f"{b}: Bad table schema")):
        operation = run(cluster, "cat", inputs, [output], state="failed", create=False)
        assert error in json.dumps(cluster.result(operation)).replace("\\", ""), cluster.result(operation)


def test_bad_specs(cluster, client, home):
    client.write_table(f"{home}/a", ROWS)
    good = {"input_table_paths": [f"{home}/a"], "output_table_paths": [f"{home}/a"], "mapper": {"command": "cat"}}
    for change, error in (({"input_table_paths": []}, "/input_table_paths"), ({"mapper": None}, "/mapper"),
                          ({"mapper": {}}, "/mapper/command"), ({"job_count": 0}, "/job_count"),
                          ({"mapper": {"command": "cat", "format": "csv"}}, "/mapper/input_format"),
                          ({"mapper": {"command": "cat", "output_format": 5}}, "/mapper/output_format"),
                          ({"output_table_paths": [f"{home}/a", f"{home}/a"]}, "Duplicate"),
                          ({"schema_inference_mode": "from_input"}, "/schema_inference_mode"),
                          ({"output_table_paths": None}, "/output_table_paths")):
        with pytest.raises(ServerError) as refused:
            cluster.command("start_operation", operation_type="map", spec={**good, **change})
        assert error in refused.value.text(), change


def test_a_map_belongs_to_its_transaction(cluster, client, home):
    client.write_table(f"{home}/a", ROWS[:3])
    client.create("table", f"{home}/b")
    with pytest.raises(ZeroDivisionError), client.Transaction():
        client.write_table(f"{home}/a", ROWS[:5])
        client.run_map("cat", f"{home}/a", f"{home}/b", format="yson", spec={"mapper": SMALL})
        assert read(client, f"{home}/b") == ROWS[:5]
        assert read(cluster.client(), f"{home}/b") == []
        1 / 0
    assert read(client, f"{home}/b") == [] and read(client, f"{home}/a") == ROWS[:3]


def test_what_a_map_reads_stays_as_it_was(cluster, client, home, shared):
    client.write_table(f"{home}/a", ROWS)
    client.create("table", f"{home}/b")
    go, begun = shared / "go", shared / "begun"
    command = f"umask 0; touch {begun}; while [ ! -e {go} ]; do sleep 0.05; done; cat"
    spec = {"input_table_paths": [f"{home}/a"], "output_table_paths": [f"{home}/b"],
            "mapper": {**SMALL, "command": command}, "job_count": 3}
    operation = cluster.command("start_operation", operation_type="map", spec=spec)["operation_id"]
    wait_for(begun.exists, what="a job to begin")
    client.remove(f"{home}/a")
    with pytest.raises(yt.wrapper.YtResponseError) as refused:
        client.remove(f"{home}/b")
    assert refused.value.contains_code(402)
    go.touch()
    cluster.wait_state(operation, "completed")
    assert read(client, f"{home}/b") == ROWS


def test_an_aborted_map_leaves_nothing(cluster, client, home, shared):
    client.write_table(f"{home}/a", ROWS)
    client.create("table", f"{home}/b")
    begun = shared / "begun"
    command = f"umask 0; cat; [ $YT_JOB_COOKIE = 0 ] || {{ touch {begun}; sleep 1000; }}"
    spec = {"input_table_paths": [f"{home}/a"], "output_table_paths": [f"{home}/b"],
            "mapper": {**SMALL, "command": command}, "job_count": 2}
    operation = cluster.command("start_operation", operation_type="map", spec=spec)["operation_id"]
    wait_for(begun.exists, what="a job to begin")
    wait_for(lambda: cluster.counters(operation)["completed"] == 1, what="the other one to complete")
    cluster.command("abort_operation", operation_id=operation)
    assert cluster.state(operation) == "aborted"
    assert read(client, f"{home}/b") == []
    client.remove(f"{home}/b")


def test_an_interrupted_job_has_done_what_it_has_read(cluster, client, home, shared):
    """It stops reading, and the rest is done by another."""
    rows = [{"n": n, "text": "x" * 10_000} for n in range(500)]
    client.write_table(f"{home}/a", rows)
    client.create("table", f"{home}/b")
    begun, go = shared / "begun", shared / "go"
    # The first run waits with the rest of its input until it is asked to stop.
    command = f"trap 'touch {go}' TERM; umask 0; for i in $(seq 20); do IFS= read -r line; printf '%s\\n' \"$line\"; done; touch {begun}; while [ ! -e {go} ]; do sleep 0.05; done; cat"
    mapper = {**SMALL, "command": command, "format": "json", "interruption_signal": "SIGTERM", "signal_root_process_only": True}
    spec = {"input_table_paths": [f"{home}/a"], "output_table_paths": [f"{home}/b"], "mapper": mapper, "job_count": 1}
    operation = cluster.command("start_operation", operation_type="map", spec=spec)["operation_id"]
    wait_for(begun.exists, what="the job to begin")
    wait_for(lambda: cluster.jobs(operation, state="running"), what="the job to be known as running")
    job, = cluster.jobs(operation, state="running")
    cluster.command("abort_job", job_id=job["id"], interrupt_timeout=120_000)
    cluster.wait_state(operation, "completed")
    assert sorted(row["n"] for row in read(client, f"{home}/b")) == list(range(500))
    counters = cluster.operation(operation, "progress")["progress"]["jobs"]
    assert counters["completed"]["total"] == 2 and counters["completed"]["interrupted"]["user_request"] == 1


def test_who_may_not_read_or_write_is_refused():
    with make_cluster(auth=True) as cluster:
        cluster.command("create", type="user", attributes={"name": "ann"})
        token = cluster.command("issue_token", user="ann")
        readable = {"inherit_acl": False, "acl": [{"action": "allow", "subjects": ["users"], "permissions": ["read"]}]}
        for path, attributes in (("//tmp/mine", readable), ("//tmp/secret", {"inherit_acl": False}), ("//tmp/out", {})):
            cluster.command("create", type="table", path=path, attributes=attributes)

        def start(inputs, outputs):
            spec = {"input_table_paths": inputs, "output_table_paths": outputs, "mapper": {**SMALL, "command": "cat"}}
            return cluster.command("start_operation", operation_type="map", spec=spec, token=token)["operation_id"]
        for inputs, outputs in ((["//tmp/mine"], ["//tmp/mine"]), (["//tmp/secret"], ["//tmp/out"])):
            with pytest.raises(ServerError) as refused:
                start(inputs, outputs)
            assert 901 in refused.value.codes(), refused.value
        # Nothing to read, so that what it may do is all that is tried.
        cluster.wait_state(start(["//tmp/mine"], ["//tmp/out"]), "completed")


@pytest.mark.parametrize("victim", ["server", "node", "proxies", "all"])
@pytest.mark.parametrize("moment", ["preparing", "running", "ending"])
def test_every_row_is_there_once_whoever_dies(victim, moment):
    """kill -9 while jobs get their rows, while they work, and while their rows are brought back."""
    with make_cluster() as cluster:
        client = cluster.client()
        rows = [{"n": n, "text": "x" * 20_000} for n in range(400)]
        client.write_table("//tmp/a", rows)
        client.create("table", "//tmp/b")
        begun, go = cluster.shared / "begun", cluster.shared / "go"
        wait = "" if moment == "preparing" else f"touch {begun}; while [ ! -e {go} ]; do sleep 0.05; done;"
        mapper = {**SMALL, "command": f"umask 0; {wait} cat", "format": "json"}
        spec = {"input_table_paths": ["//tmp/a"], "output_table_paths": ["//tmp/b"], "mapper": mapper,
                "job_count": 6, "ordered": True, "max_failed_job_count": 100}
        operation = cluster.command("start_operation", operation_type="map", spec=spec)["operation_id"]
        if moment != "preparing":
            wait_for(begun.exists, what="a job to begin")
        if moment == "ending":
            go.touch()
            wait_for(lambda: cluster.counters(operation)["completed"] > 0, what="a job to end", period=0.001)
        processes = {"server": [cluster.server], "node": cluster.nodes, "all": [cluster.server, *cluster.nodes]}
        if victim in ("proxies", "all"):
            for pid in cluster.proxies():
                kill(pid)
        for process in processes.get(victim, []):
            process.kill()
        cluster.restart()
        go.touch()
        cluster.wait_state(operation, "completed", timeout=240)
        assert read(cluster.client(), "//tmp/b") == rows
        attributes = cluster.client().get("//tmp/b/@")
        assert attributes["row_count"] == 400
        cluster.client().write_table("<append=%true>//tmp/b", [{"n": 400}])


def kill(pid):
    import contextlib
    import os
    import signal
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def start_race(cluster, source, target):
    """A map of one unit whose first run is slow. Each run writes its rows, says so, and waits for a file with its own
    number; gives the operation when both have written everything."""
    shared = cluster.shared
    command = (f"umask 0; while IFS= read -r line; do echo \"{{run=$YT_JOB_INDEX}};\"; done; touch {shared}/wrote-$YT_JOB_INDEX; "
               f"while [ ! -e {shared}/go-$YT_JOB_INDEX ]; do sleep 0.1; done")
    cluster.command("create", type="table", path=target)
    spec = {"input_table_paths": [source], "output_table_paths": [target], "job_count": 1, "job_speculation_timeout": 1000,
            "mapper": {**SMALL, "command": command, "format": TEXT}}
    operation = cluster.command("start_operation", operation_type="map", spec=spec)["operation_id"]
    for run in range(2):
        wait_for((shared / f"wrote-{run}").exists, what=f"run {run} to write")
    return operation


@pytest.mark.parametrize("winner", [0, 1])
def test_of_a_slow_job_and_its_copy_one_has_written(winner):
    with make_cluster() as cluster:
        client = cluster.client()
        client.write_table("//tmp/a", ROWS)
        operation = start_race(cluster, "//tmp/a", "//tmp/b")
        original, copy = [job["id"] for job in sorted(cluster.jobs(operation), key=lambda job: job["start_time"])]
        (cluster.shared / f"go-{winner}").touch()
        cluster.wait_state(operation, "completed")
        assert read(client, "//tmp/b") == [{"run": winner}] * len(ROWS)
        ends = {job["id"]: (job["state"], job.get("abort_reason")) for job in cluster.jobs(operation)}
        assert ends == ({original: ("completed", None), copy: ("aborted", "speculative_run_lost")},
                        {original: ("aborted", "speculative_run_won"), copy: ("completed", None)})[winner]
        [task] = cluster.operation(operation, "progress")["progress"]["tasks"]
        assert task["speculative_job_counter"]["completed"]["total"] == winner
        wait_for(lambda: not cluster.job_processes(), what="the loser to be gone")


def test_a_slow_job_and_its_copy_that_end_together_write_once():
    """Both end while nobody is there to count it."""
    with make_cluster() as cluster:
        cluster.client().write_table("//tmp/a", ROWS)
        operation = start_race(cluster, "//tmp/a", "//tmp/b")
        cluster.server.kill()
        for run in range(2):
            (cluster.shared / f"go-{run}").touch()
        wait_for(lambda: not cluster.job_processes(), what="both to end")
        cluster.restart()
        cluster.wait_state(operation, "completed")
        rows = read(cluster.client(), "//tmp/b")
        assert len(rows) == len(ROWS) and len({row["run"] for row in rows}) == 1, rows[:3]
        counters = cluster.counters(operation)
        assert (counters["total"], counters["completed"]) == (1, 1)


def test_many_at_once(cluster, client, home):
    """Several operations over the same input."""
    client.write_table(f"{home}/a", ROWS)
    failures = []

    def one(number):
        try:
            run(cluster, f"cat; echo '{{id={number}}};'", [f"{home}/a"], [f"{home}/out-{number}"], job_count=2)
        except BaseException as error:
            failures.append(error)
    for number in range(4):
        client.create("table", f"{home}/out-{number}")
    threads = [threading.Thread(target=one, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    for number in range(4):
        rows = read(client, f"{home}/out-{number}")
        assert len(rows) == 102 and [row for row in rows if "name" in row] == ROWS


def test_enough_rows_while_the_server_is_down():
    """kill -9; meanwhile a job ends that has written as many rows as are wanted, and another one never does."""
    with make_cluster() as cluster:
        client = cluster.client()
        client.write_table("//tmp/in", [{"n": 0}, {"n": 1}])
        client.create("table", "//tmp/out")
        begun, go = cluster.shared / "begun", cluster.shared / "go"
        command = f"umask 0; touch {begun}-$YT_START_ROW_INDEX; if [ $YT_START_ROW_INDEX = 1 ]; then sleep 1000; fi; " \
                  f"while [ ! -e {go} ]; do sleep 0.05; done; cat; touch {cluster.shared / 'over'}"
        operation = cluster.command("start_operation", operation_type="map", spec={
            "mapper": {"command": command, "format": "json", "cpu_limit": 0.1, "memory_limit": 64 << 20}, "job_count": 2,
            "input_table_paths": ["//tmp/in"],
            "output_table_paths": [{"$value": "//tmp/out", "$attributes": {"row_count_limit": 1}}]})["operation_id"]
        wait_for(lambda: all((cluster.shared / f"begun-{n}").exists() for n in (0, 1)), what="both jobs to begin")
        cluster.server.kill()
        go.touch()
        wait_for(lambda: (cluster.shared / "over").exists(), what="the job to have written its row")
        cluster.restart()
        cluster.wait_state(operation, "completed")
        assert list(cluster.client().read_table("//tmp/out")) == [{"n": 0}]
