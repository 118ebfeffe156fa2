"""Output tables of vanilla tasks with the real Python client: what jobs write to descriptors 1, 4, 7... becomes rows
when the operation completes (jobs-and-nodes.md 8.3; http-api.md 13)."""

import pytest
import yt.wrapper
from harness import ServerError, cluster as make_cluster, error_codes, wait_for

# Small, so that some fit at a time.
SMALL = {"cpu_limit": 0.1, "memory_limit": 64 << 20}
TEXT = {"$attributes": {"format": "text"}, "$value": "yson"}


def read(client, path):
    return list(client.read_table(path))


def start(cluster, outputs, command, spec=None, create=True, **task):
    """One task `t` that writes there; gives the operation."""
    for path in outputs if create else []:
        cluster.command("create", type="table", path=path.rpartition(">")[2], ignore_existing=True)
    task = {"job_count": 1, **SMALL, "command": command, "output_table_paths": outputs, **task}
    spec = {"tasks": {"t": task}, **(spec or {})}
    return cluster.command("start_operation", operation_type="vanilla", spec=spec)["operation_id"]


def run(cluster, outputs, command, state="completed", **options):
    operation = start(cluster, outputs, command, **options)
    cluster.wait_state(operation, state, timeout=240)
    return operation


def test_tasks_write_tables(cluster, client, home):
    """Each task has its own tables, and one that is both's."""
    for name in ("both", "first", "second"):
        client.create("table", f"{home}/{name}")
    spec = yt.wrapper.VanillaSpecBuilder().spec({"max_failed_job_count": 1})
    rows = 'echo "{task=$YT_TASK_NAME; cookie=$YT_JOB_COOKIE};"'
    spec.begin_task("a").command(f"{rows} >&1; {rows} >&4; {rows} >&4").job_count(3).format(yt.wrapper.YsonFormat(format="text")) \
        .output_table_paths([f"{home}/both", f"{home}/first"]).cpu_limit(0.1).memory_limit(64 << 20).end_task()
    spec.begin_task("b").command("echo '{\"task\": \"b\"}' >&4; echo said >&2").job_count(2).format("json") \
        .output_table_paths([f"{home}/second", f"{home}/both"]).cpu_limit(0.1).memory_limit(64 << 20).end_task()
    spec.begin_task("c").command("echo no table").job_count(1).cpu_limit(0.1).memory_limit(64 << 20).end_task()
    operation = client.run_operation(spec)
    # By task and cookie, whichever came first.
    first = [{"task": "a", "cookie": cookie} for cookie in range(3)]
    assert read(client, f"{home}/both") == [*first, {"task": "b"}, {"task": "b"}]
    assert read(client, f"{home}/first") == [row for row in first for _ in range(2)]
    assert read(client, f"{home}/second") == []
    attributes = client.get_operation(operation.id)
    assert attributes["unrecognized_spec"] == {}
    written = attributes["progress"]["job_statistics_v2"]["data"]["output"]
    sums = {number: sum(leaf["summary"]["sum"] for leaf in figures["row_count"]) for number, figures in written.items()}
    assert sums == {"0": 3, "1": 6 + 2}, "by the number among the tables of the task"


def test_a_task_chooses_among_its_tables(cluster, client, home):
    paths = [f"{home}/a", f"{home}/b"]
    run(cluster, paths, "echo '{n=1};<table_index=1>#;{n=2};<table_index=0>#;{n=3}'")
    assert [read(client, path) for path in paths] == [[{"n": 1}, {"n": 3}], [{"n": 2}]]


def test_append_and_overwrite(cluster, client, home):
    path = f"{home}/out"
    run(cluster, [path], "echo '{n=1}'")
    run(cluster, [f"<append=%true>{path}"], "echo '{n=2}'")
    assert read(client, path) == [{"n": 1}, {"n": 2}]
    run(cluster, [path], "echo '{n=3}'")
    assert read(client, path) == [{"n": 3}]
    run(cluster, [path], "true")
    assert read(client, path) == []


def test_operations_that_append_to_one_table_run_at_once(cluster, client, home, shared):
    """Each waits until both of them run: neither is in the other's way, but who would replace the rows is."""
    client.create("table", f"{home}/out")
    command = f"until [ -e {shared}/go ]; do sleep 0.1; done; echo {{n=$YT_JOB_COOKIE}}"
    operations = [start(cluster, [f"<append=%true>{home}/out"], command, create=False, job_count=2) for _ in range(2)]
    for operation in operations:
        cluster.wait_jobs(operation, 2)
    alone = start(cluster, [f"{home}/out"], "true", create=False)
    cluster.wait_state(alone, "failed")
    assert {216, 402} <= error_codes(cluster.result(alone))
    (shared / "go").touch()
    for operation in operations:
        cluster.wait_state(operation, "completed", timeout=240)
    assert [row["n"] for row in read(client, f"{home}/out")] == [0, 1, 0, 1], "the rows of each lie together"


def test_services_write_nothing(cluster, client, home, shared):
    """Whoever completes is run again, so nothing of it is done."""
    command = f"umask 0; echo {{n=1}}; echo run >> {shared}/runs"
    operation = start(cluster, [f"{home}/out"], command, restart_completed_jobs=True)
    wait_for(lambda: (shared / "runs").exists() and (shared / "runs").read_text().count("run") > 3, what="the service to be run again")
    cluster.command("complete_operation", operation_id=operation)
    cluster.wait_state(operation, "completed")
    assert read(client, f"{home}/out") == []


def test_descriptor_1_can_be_stderr(cluster, client, home):
    operation = run(cluster, [f"{home}/out"], "echo said; echo '{n=4}' >&4", redirect_stdout_to_stderr=True)
    assert read(client, f"{home}/out") == [{"n": 4}]
    [job] = cluster.jobs(operation)
    assert client.get_job_stderr(operation, job["id"]).read() == b"said\n"


def test_schemas_are_demanded(cluster, client, home):
    columns = [{"name": "n", "type": "int64", "sort_order": "ascending"}]
    client.create("table", f"{home}/out", attributes={"schema": columns})
    # Each is sorted; the parts are put in their order.
    run(cluster, [f"{home}/out"], "echo {n=$((9 - YT_JOB_COOKIE * 2))}", job_count=4)
    assert read(client, f"{home}/out") == [{"n": n} for n in (3, 5, 7, 9)]
    for command in ("echo '{n=x}'", "echo '{n=2};{n=1}'", "echo no row"):
        operation = run(cluster, [f"{home}/out"], command, state="failed")
        assert cluster.counters(operation)["failed"] == 1, "no other run would do better"
    assert read(client, f"{home}/out") == [{"n": n} for n in (3, 5, 7, 9)]


def test_only_the_run_that_did_its_work_counts(cluster, client, home, shared):
    """One fails after it has written, one is aborted, one asks to be run again."""
    command = (f"umask 0; if mkdir {shared}/$YT_JOB_COOKIE; then run=first; else run=second; fi; "
               f"echo \"{{cookie=$YT_JOB_COOKIE; run=$run}}\"; [ $run = first ] || exit 0; "
               f"case $YT_JOB_COOKIE in 0) exit 1;; 1) touch {shared}/begun; sleep 1000;; 2) exit 17;; esac")
    operation = start(cluster, [f"{home}/out"], command, job_count=4, restart_exit_code=17)
    wait_for((shared / "begun").exists, what="the job to write")
    wait_for(lambda: any(job["job_cookie"] == 1 for job in cluster.jobs(operation, state="running")), what="it to be known")
    [job] = [job for job in cluster.jobs(operation, state="running") if job["job_cookie"] == 1]
    cluster.command("abort_job", job_id=job["id"])
    cluster.wait_state(operation, "completed", timeout=240)
    rows = [(row["cookie"], row["run"]) for row in read(client, f"{home}/out")]
    assert rows == [(0, "second"), (1, "second"), (2, "second"), (3, "first")]
    counters = cluster.operation(operation, "progress")["progress"]["jobs"]
    assert (counters["failed"], counters["lost"]) == (1, 1)


@pytest.mark.parametrize("end", ["abort_operation", "complete_operation"])
def test_an_operation_that_is_ended_early(cluster, client, home, shared, end):
    begun = shared / f"begun-{end}"
    command = f"umask 0; echo {{n=$YT_JOB_COOKIE}}; [ $YT_JOB_COOKIE = 0 ] || {{ touch {begun}; sleep 1000; }}"
    operation = start(cluster, [f"{home}/out"], command, job_count=2)
    wait_for(begun.exists, what="a job to begin")
    wait_for(lambda: cluster.counters(operation)["completed"] == 1, what="the other one to complete")
    assert read(client, f"{home}/out") == []
    with pytest.raises(yt.wrapper.YtResponseError) as refused:
        client.remove(f"{home}/out")
    assert refused.value.contains_code(402)
    cluster.command(end, operation_id=operation)
    cluster.wait_state(operation, "aborted" if end == "abort_operation" else "completed")
    # Whoever calls it complete wants what is done.
    assert read(client, f"{home}/out") == ([] if end == "abort_operation" else [{"n": 0}])
    client.remove(f"{home}/out")


def test_it_belongs_to_its_transaction(cluster, client, home):
    client.create("table", f"{home}/out")
    with pytest.raises(ZeroDivisionError), client.Transaction():
        spec = yt.wrapper.VanillaSpecBuilder()
        spec.begin_task("t").command("echo '{n=1}'").job_count(1).output_table_paths([f"{home}/out"]) \
            .format("yson").cpu_limit(0.1).memory_limit(64 << 20).end_task()
        client.run_operation(spec)
        assert read(client, f"{home}/out") == [{"n": 1}]
        assert read(cluster.client(), f"{home}/out") == []
        1 / 0
    assert read(client, f"{home}/out") == []


def test_bad_specs(cluster, home):
    client = cluster.client()
    client.create("table", f"{home}/out")
    for outputs, task, named in (([f"{home}/out", f"{home}/out"], {}, "Duplicate"),
                                 ([7], {}, "/tasks/t/output_table_paths/0"),
                                 ([f"{home}/out"] * 101, {}, "at most 100"),
                                 ([f"{home}/out"], {"output_format": "xml"}, "/tasks/t/output_format"),
                                 ([f"{home}/out"], {"gang_options": {}}, "output_table_paths")):
        with pytest.raises(ServerError) as refused:
            start(cluster, outputs, "true", create=False, **task)
        assert named in refused.value.text(), refused.value.text()
    operation = start(cluster, [f"{home}/missing"], "true", create=False)
    cluster.wait_state(operation, "failed")
    assert 500 in error_codes(cluster.result(operation))


def test_who_may_not_write_is_refused():
    with make_cluster(auth=True) as cluster:
        cluster.command("create", type="user", attributes={"name": "ann"})
        token = cluster.command("issue_token", user="ann")
        cluster.command("create", type="table", path="//tmp/secret", attributes={"inherit_acl": False})
        spec = {"tasks": {"t": {**SMALL, "job_count": 1, "command": "true", "output_table_paths": ["//tmp/secret"]}}}
        with pytest.raises(ServerError) as refused:
            cluster.command("start_operation", operation_type="vanilla", spec=spec, token=token)
        assert 901 in refused.value.codes(), refused.value


@pytest.mark.parametrize("victim", ["server", "node", "proxies", "all"])
def test_every_row_is_there_once_whoever_dies(victim):
    """kill -9 when some jobs have done their work and others are at it."""
    with make_cluster() as cluster:
        go, shared = cluster.shared / "go", cluster.shared
        command = (f"umask 0; for i in $(seq 500); do echo \"{{task=$YT_TASK_NAME; cookie=$YT_JOB_COOKIE; i=$i}};\"; done; "
                   f"touch {shared}/$YT_TASK_NAME-$YT_JOB_COOKIE; [ $YT_JOB_COOKIE -lt 2 ] || while [ ! -e {go} ]; do sleep 0.05; done")
        cluster.command("create", type="table", path="//tmp/out")
        task = {**SMALL, "command": command, "job_count": 4, "output_table_paths": ["//tmp/out"], "output_format": TEXT}
        spec = {"tasks": {"a": task, "b": task}, "max_failed_job_count": 100}
        operation = cluster.command("start_operation", operation_type="vanilla", spec=spec)["operation_id"]
        wait_for(lambda: cluster.counters(operation)["completed"] == 4, what="half of them to complete")
        wait_for(lambda: all((shared / f"{task}-{cookie}").exists() for task in "ab" for cookie in (2, 3)), what="the others to write")
        if victim in ("proxies", "all"):
            for pid in cluster.proxies():
                kill(pid)
        for process in {"server": [cluster.server], "node": cluster.nodes, "all": [cluster.server, *cluster.nodes]}.get(victim, []):
            process.kill()
        cluster.restart()
        go.touch()
        cluster.wait_state(operation, "completed", timeout=240)
        rows = read(cluster.client(), "//tmp/out")
        assert rows == [{"task": task, "cookie": cookie, "i": i}
                        for task in "ab" for cookie in range(4) for i in range(1, 501)]


def kill(pid):
    import contextlib
    import os
    import signal
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_the_command(cluster, client, home):
    """The example of the user's guide, through the real command."""
    cluster.yt("create", "table", f"{home}/found")
    task = f'{{command="echo {{part=$YT_JOB_COOKIE}}"; job_count=3; cpu_limit=0.1; memory_limit={64 << 20}; ' \
           f'output_table_paths=["{home}/found"]; output_format=yson}}'
    cluster.yt("vanilla", "--tasks", f"{{search={task}}}")
    assert read(client, f"{home}/found") == [{"part": part} for part in range(3)]
