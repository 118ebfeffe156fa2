"""What a job of a map was given to read, and what it was reading when it failed, with the real Python client
(http-api.md 8.6; jobs-and-nodes.md 5.5)."""

import json

import pytest
import yt.wrapper
from yt.packages.requests.exceptions import ChunkedEncodingError
import yt.yson
from yt.wrapper import job_commands
from harness import ServerError, cluster as make_cluster, wait_for

ROWS = [{"id": n, "name": f"row {n}"} for n in range(30)]
SMALL = {"cpu_limit": 0.1, "memory_limit": 64 << 20}
TEXT = {"$attributes": {"format": "text"}, "$value": "yson"}
MOST = 10 << 20  # bytes of a fail context


def start(cluster, command, inputs, mapper=None, **spec):
    """A map into nothing; gives its id."""
    spec = {"input_table_paths": inputs, "output_table_paths": [], "max_failed_job_count": 1,
            "mapper": {**SMALL, "format": TEXT, "command": command, **(mapper or {})}, **spec}
    return cluster.command("start_operation", operation_type="map", spec=spec)["operation_id"]


def run(cluster, command, inputs, state="failed", timeout=180, **options):
    operation = start(cluster, command, inputs, **options)
    cluster.wait_state(operation, state, timeout=timeout)
    return operation


def the_failed_one(cluster, operation):
    job, = cluster.jobs(operation, state="failed")
    return job


def parsed(rows):
    return list(yt.yson.loads(rows, yson_type="list_fragment"))


def fail_context(client, operation, job):
    """The client's class has it not; its command line tools call the function."""
    return job_commands.get_job_fail_context(operation, job, client=client)


def refusal(ask, *arguments, **named):
    with pytest.raises(yt.wrapper.YtResponseError) as refused:
        ask(*arguments, **named).read()
    return refused.value


# --- what it was reading when it failed

def test_rows_before_a_failure(cluster, client, home):
    client.write_table(f"{home}/a", ROWS)
    operation = run(cluster, "head -c 1 > /dev/null; [ $YT_JOB_COOKIE = 1 ] || cat > /dev/null; exit $YT_JOB_COOKIE",
                    [f"{home}/a"], job_count=3, max_failed_job_count=5)
    jobs = {job["id"]: job for job in cluster.jobs(operation)}
    failed = [id for id, job in jobs.items() if job["state"] == "failed"]
    assert failed
    for id in failed:
        context = fail_context(client, operation, id).read()
        assert jobs[id]["fail_context_size"] == len(context)
        assert client.get_job(operation, id)["fail_context_size"] == len(context)
        rows = parsed(context)
        assert rows and rows[0] in ROWS and rows == ROWS[ROWS.index(rows[0]):][:len(rows)]
        assert 5 < len(rows) < 15
    others = [id for id in jobs if id not in failed]
    for id in others:
        assert "fail_context_size" not in jobs[id]
        assert refusal(fail_context, client, operation, id).contains_code(203)
    with_one = lambda wanted: {job["id"] for job in client.list_jobs(operation, with_fail_context=wanted)["jobs"]}  # noqa: E731
    assert with_one(True) == set(failed) and with_one(False) == set(others)


def test_the_format_and_the_marks_are_those_of_the_job(cluster, client, home):
    client.write_table(f"{home}/a", ROWS)
    inputs = [f"{home}/a[#3:#5]", f"{home}/a{{id}}[#7]"]
    operation = run(cluster, "cat >&2; exit 1", inputs, job_io={"control_attributes": {"enable_row_index": True}})
    job = the_failed_one(cluster, operation)["id"]
    context = fail_context(client, operation, job).read()
    assert context == client.get_job_stderr(operation, job).read() and context.count(b"row_index") == 2
    operation = run(cluster, "cat >&2; exit 1", inputs, mapper={"format": "dsv"})
    job = the_failed_one(cluster, operation)["id"]
    context = fail_context(client, operation, job).read()
    assert context == client.get_job_stderr(operation, job).read() and context.endswith(b"\nid=7\n")


def test_of_much_input_the_end_is_kept(cluster, client, home):
    rows = [{"n": n, "text": "x" * 10_000} for n in range(2000)]
    client.write_table(f"{home}/a", rows)
    operation = run(cluster, "cat > /dev/null; exit 1", [f"{home}/a"])
    job = the_failed_one(cluster, operation)
    context = fail_context(client, operation, job["id"]).read()
    assert MOST - (1 << 20) < job["fail_context_size"] == len(context) <= MOST
    kept = parsed(context)
    assert kept == rows[-len(kept):]


def test_who_has_none(cluster, client, pool):
    operation = cluster.run_vanilla("exit 1", pool=pool, state="failed", spec={"max_failed_job_count": 1})
    job = the_failed_one(cluster, operation)
    assert "fail_context_size" not in job
    refused = refusal(fail_context, client, operation, job["id"])
    assert refused.contains_code(203) and "has no fail context" in str(refused)
    assert refusal(fail_context, client, operation, "1-2-384-3").contains_code(203)
    assert refusal(fail_context, client, "1-2-103e8-3", job["id"]).contains_code(1915)


@pytest.mark.parametrize("victim", ["server", "node", "both"])
def test_it_is_there_whoever_dies(victim):
    """kill -9 while the job works, which then fails; and again when the operation is over."""
    with make_cluster() as cluster:
        client = cluster.client()
        client.write_table("//tmp/a", ROWS)
        begun, go = cluster.shared / "begun", cluster.shared / "go"
        command = f"umask 0; touch {begun}; while [ ! -e {go} ]; do sleep 0.05; done; exit 1"
        operation = start(cluster, command, ["//tmp/a"])
        wait_for(begun.exists, what="the job to begin")
        processes = {"server": [cluster.server], "node": cluster.nodes, "both": [cluster.server, *cluster.nodes]}
        for process in processes[victim]:
            process.kill()
        go.touch()
        cluster.restart()
        cluster.wait_state(operation, "failed", timeout=240)
        job = the_failed_one(cluster, operation)["id"]
        assert parsed(fail_context(cluster.client(), operation, job).read()) == ROWS
        cluster.server.kill()
        cluster.restart()
        assert parsed(fail_context(cluster.client(), operation, job).read()) == ROWS


def test_it_goes_with_its_operation():
    with make_cluster(server_config="archive_operations = 1\n") as cluster:
        client = cluster.client()
        client.write_table("//tmp/a", ROWS)
        first = run(cluster, "exit 1", ["//tmp/a"])
        job = the_failed_one(cluster, first)["id"]
        assert parsed(fail_context(client, first, job).read()) == ROWS
        second = run(cluster, "exit 1", ["//tmp/a"])

        def is_forgotten():
            try:
                fail_context(client, first, job).read()
                return False
            except yt.wrapper.YtResponseError as refused:
                return refused.contains_code(1915)
            except ChunkedEncodingError:
                # It was forgotten while it was being read.
                return False
        wait_for(is_forgotten, what="the first operation to be forgotten")
        assert parsed(fail_context(client, second, the_failed_one(cluster, second)["id"]).read()) == ROWS


def test_it_is_for_those_who_may_read_the_operation():
    with make_cluster(auth=True) as cluster:
        tokens = {}
        for name in ("ann", "bob"):
            cluster.command("create", type="user", attributes={"name": name})
            tokens[name] = cluster.command("issue_token", user=name)
        cluster.yt("create", "table", "//tmp/a")
        cluster.yt("write-table", "//tmp/a", "--format", "json", stdin="".join(json.dumps(row) + "\n" for row in ROWS))
        allow = [{"action": "allow", "subjects": ["ann"], "permissions": ["read"]}]
        operation = run(cluster, "exit 1", ["//tmp/a"], acl=allow)
        job = the_failed_one(cluster, operation)["id"]

        def read(name, what, **named):
            return cluster.command(what, job_id=job, token=tokens[name], **named)
        # Found by the id of the job alone, it is as closed.
        for named in ({"operation_id": operation}, {}):
            for what in ("get_job_fail_context", "get_job_input"):
                assert parsed(read("ann", what, **named)) == ROWS
            assert read("ann", "get_job_input_paths", **named)[0]["$value"] == "//tmp/a"
            for what in ("get_job_fail_context", "get_job_input", "get_job_input_paths"):
                with pytest.raises(ServerError) as refused:
                    read("bob", what, **named)
                assert 901 in refused.value.codes(), what


def test_our_own_command(cluster, client, home):
    client.write_table(f"{home}/a", ROWS)
    operation = run(cluster, "exit 1", [f"{home}/a"])
    job = the_failed_one(cluster, operation)["id"]
    _, printed, _ = cluster.millpond("job", "fail-context", operation, job)
    assert parsed(printed.encode()) == ROWS
    code, _, errors = cluster.millpond("job", "fail-context", operation, "1-2-384-3", check=False)
    assert code == 1 and "No such job" in errors, errors


# --- all that it was given

def ranges(path):
    return [(part["lower_limit"]["row_index"], part["upper_limit"]["row_index"]) for part in path.attributes["ranges"]]


@pytest.mark.parametrize("format", ["yson", "dsv", "json"])
def test_the_whole_input(cluster, client, home, shared, format):
    """Of jobs that run and of jobs that are over, what they have really been given."""
    client.write_table(f"{home}/a", ROWS)
    client.write_table(f"<append=%true>{home}/a", ROWS)
    client.write_table(f"{home}/b", ROWS)
    go = shared / "go"
    command = f"umask 0; cat > {shared}/$YT_JOB_ID.part; mv {shared}/$YT_JOB_ID.part {shared}/$YT_JOB_ID; while [ ! -e {go} ]; do sleep 0.05; done"
    operation = start(cluster, command, [f"{home}/a{{id}}[#20:#50,#3]", f"{home}/b"], job_count=3, mapper={"format": format},
                      job_io={"control_attributes": {"enable_row_index": True, "enable_range_index": True}})
    jobs = cluster.wait_jobs(operation, 3)
    wait_for(lambda: all((shared / job).exists() for job in jobs), what="the jobs to read")

    def check(over):
        told = cluster.client()
        for job in jobs:
            assert told.get_job_input(job).read() == (shared / job).read_bytes(), (job, over)
        paths = {str(path): ranges(path) for job in jobs for path in told.get_job_input_paths(job)}
        assert set(paths) == {f"{home}/a", f"{home}/b"}
        rows = {f"{home}/a": [], f"{home}/b": []}
        for job in jobs:
            for path in told.get_job_input_paths(job):
                assert path.attributes.get("columns") == (["id"] if str(path) == f"{home}/a" else None)
                for first, end in ranges(path):
                    rows[str(path)] += range(first, end)
        assert sorted(rows[f"{home}/a"]) == [3, *range(20, 50)] and sorted(rows[f"{home}/b"]) == list(range(30))
    check(over=False)
    go.touch()
    cluster.wait_state(operation, "completed")
    check(over=True)


def test_jobs_that_are_over_while_others_run(cluster, client, home, shared):
    """The table is gone, but the operation keeps its rows until it is over."""
    client.write_table(f"{home}/a", ROWS)
    go = shared / "go"
    command = f"[ $YT_JOB_COOKIE = 0 ] || while [ ! -e {go} ]; do sleep 0.05; done; cat > /dev/null"
    operation = start(cluster, command, [f"{home}/a"], job_count=2)
    wait_for(lambda: cluster.counters(operation)["completed"] == 1, what="a job to complete")
    job, = cluster.jobs(operation, state="completed")
    client.remove(f"{home}/a")
    rows = parsed(client.get_job_input(job["id"]).read())
    assert rows and rows == ROWS[:len(rows)]
    go.touch()
    cluster.wait_state(operation, "completed")

    def lost():
        try:
            client.get_job_input(job["id"]).read()
            return False
        except yt.wrapper.YtResponseError as refused:
            return "not there any more" in str(refused) and f"{home}/a" in str(refused)
        except ChunkedEncodingError:
            # They went while they were being read.
            return False
    wait_for(lost, what="the rows to be gone")
    path, = client.get_job_input_paths(job["id"])
    assert str(path) == f"{home}/a" and ranges(path) == [(0, len(rows))]


def test_jobs_without_input(cluster, client, home, pool):
    operation = cluster.start_vanilla("sleep 1000", pool=pool)
    job = cluster.wait_jobs(operation)[0]
    for ask in (client.get_job_input, client.get_job_input_paths):
        with pytest.raises(yt.wrapper.YtResponseError) as refused:
            answer = ask(job)
            answer.read()
        assert "has no input: it reads no tables" in str(refused.value)
        with pytest.raises(yt.wrapper.YtResponseError) as refused:
            ask("1-2-384-3").read()
        assert refused.value.contains_code(203)
    cluster.command("abort_operation", operation_id=operation)
    with pytest.raises(ServerError) as refused:
        cluster.command("get_job_input", operation_id=operation, job_id=job)
    assert "has no input" in refused.value.text()


def test_the_input_after_a_restart_and_by_commands():
    with make_cluster() as cluster:
        cluster.client().write_table("//tmp/a", ROWS)
        operation = run(cluster, "cat > /dev/null", ["//tmp/a"], state="completed", job_count=1)
        job, = cluster.jobs(operation)
        for _ in range(2):
            rows = cluster.yt("get-job-input", job["id"])[1]
            assert parsed(rows.encode()) == ROWS
            assert cluster.millpond("job", "input", operation, job["id"])[1] == rows
            # The `yt` command for these fails in the client when it prints them.
            path, = cluster.client().get_job_input_paths(job["id"])
            assert str(path) == "//tmp/a" and ranges(path) == [(0, 30)]
            cluster.server.kill()
            cluster.restart()


def test_a_job_prepared_by_the_job_tool(cluster, client, home, tmp_path):
    """`yt job-tool`: what a failed job was reading, and all that it was given, as files beside its command."""
    client.write_table(f"{home}/a", ROWS)
    (tmp_path / "words").write_text("of the job")
    operation = client.run_map("cat > /dev/null; exit 1", f"{home}/a", f"{home}/b", format="<format=text>yson", sync=False,
                               local_files=[str(tmp_path / "words")], spec={"mapper": SMALL, "max_failed_job_count": 1}).id
    cluster.wait_state(operation, "failed")
    job = the_failed_one(cluster, operation)["id"]
    for mode in ("context", "full"):
        place = tmp_path / mode
        cluster.yt("job-tool", "prepare-job-environment", operation, job, "--job-path", str(place), f"--{mode}")
        assert parsed((place / "input").read_bytes()) == ROWS
        assert (place / "sandbox" / "words").read_text() == "of the job"
