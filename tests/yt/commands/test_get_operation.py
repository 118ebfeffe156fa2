"""`get_operation` through the real client."""

from calls import formatted, fresh, refused, refuses_strange_operations, vanilla
from harness import find_error

# What every operation has (http-api.md 9.1), and what one has that is over.
ALWAYS = set("""id type operation_type state authenticated_user start_time suspended spec provided_spec full_spec unrecognized_spec
    brief_spec runtime_parameters brief_progress progress alerts alert_events events slot_index_per_pool_tree
    scheduling_attributes_per_pool_tree task_names has_failed_jobs memory_usage controller_features experiment_assignments
    experiment_assignment_names""".split())
OVER = {"finish_time", "result"}
COUNTERS = set("total running completed pending failed aborted lost suspended invalidated uncategorized blocked".split())


def test_get_operation(client, operation):
    assert client.get_operation(operation[0])["type"] == "vanilla"


def test_everything_there_is(client, operation):
    shown = client.get_operation(operation[0])
    assert ALWAYS <= set(shown) and not OVER & set(shown)
    assert (shown["id"], shown["state"], shown["authenticated_user"]) == (operation[0], "running", "root")
    assert shown["type"] == shown["operation_type"] == "vanilla" and shown["spec"] == shown["provided_spec"]
    assert (shown["suspended"], shown["has_failed_jobs"], shown["task_names"]) == (False, False, ["t"])
    assert (shown["alerts"], shown["unrecognized_spec"], shown["experiment_assignments"]) == ({}, {}, [])
    assert set(shown["slot_index_per_pool_tree"]) == set(shown["scheduling_attributes_per_pool_tree"]) == {"physical"}
    client.abort_operation(operation[0])
    assert ALWAYS | OVER <= set(client.get_operation(operation[0]))


def test_just_what_is_asked_for(client, operation):
    names = ["state", "finish_time", "result", "suspended"]
    assert client.get_operation(operation[0], attributes=names) == {"state": "running", "suspended": False}
    client.abort_operation(operation[0])
    assert set(client.get_operation(operation[0], attributes=names)) == set(names)
    assert set(client.get_operation(operation[0], attributes=[])) > set(names)


def test_names_that_nobody_knows(client, operation):
    for over in (False, True):
        for names in (["colour"], ["state", "colour"]):
            with refused(1920, "colour") as error:
                client.get_operation(operation[0], attributes=names)
            assert error.value.error["attributes"]["attribute_name"] == "colour"
        if not over:
            client.abort_operation(operation[0])
    with refused(1, "attributes.*list of strings"):
        client.get_operation(operation[0], attributes="state")


def test_by_alias(client, pool):
    alias = f"*{fresh('get')}"
    id = vanilla(client, pool, alias=alias)
    for over in (False, True):
        for named in ({"operation_alias": alias}, {"operation_id": alias}, {"operation_alias": alias, "include_runtime": True}):
            assert client.get_operation(**named, attributes=["id"]) == {"id": id}
        orchid = f"//sys/scheduler/orchid/scheduler/operations/\\{alias}"
        assert client.exists(orchid) != over
        if not over:
            assert client.get(f"{orchid}/id") == id
            client.abort_operation(id)


def test_what_is_ignored(client, operation):
    answer = formatted(client, "get_operation", operation_id=operation[0], attributes=["state"], include_scheduler=False,
                       maximum_cypress_progress_age=0, include_runtime=False)
    assert answer == {"state": "running"}


def test_the_same_in_the_tree(client, operation):
    id = operation[0]
    assert len(client.list("//sys/operations")) == 256
    shard, = [name for name in client.list("//sys/operations") if client.exists(f"//sys/operations/{name}/{id}")]
    path = f"//sys/operations/{shard}/{id}"
    for over in (False, True):
        shown = client.get_operation(id)
        for name in ("state", "spec", "brief_spec", "start_time", "runtime_parameters", "events", "task_names"):
            assert client.get(f"{path}/@{name}") == shown[name], name
        if not over:
            client.abort_operation(id)
    with refused(500, "colour"):
        client.get(f"{path}/@colour")
    assert client.get(f"{path}/@result/error/message") == "Operation aborted by user request"


def test_progress(client, operation):
    shown = client.get_operation(operation[0])
    brief, whole = shown["brief_progress"], shown["progress"]
    assert set(brief["jobs"]) == COUNTERS and brief["state"] == "running" and brief["build_time"] > shown["start_time"]
    assert {name: n for name, n in brief["jobs"].items() if n} == {"total": 1, "running": 1}
    assert whole["jobs"]["running"] == 1
    assert set(whole["jobs"]["completed"]) == {"total", "interrupted", "non-interrupted"}
    assert set(whole["jobs"]["aborted"]) == {"total", "scheduled", "non_scheduled"}
    task, = whole["tasks"]
    assert (task["task_name"], task["job_type"], task["job_counter"]["running"], task["has_user_job"]) == ("t", "vanilla", 1, True)
    assert whole["scheduling_info_per_pool_tree"]["physical"]["user"] == "root"


def test_counters_of_attempts(cluster, client, operation):
    id, job = operation
    client.abort_job(job)
    cluster.wait_counters(id, aborted=1, running=1, timeout=120)
    shown = client.get_operation(id)
    assert {name: n for name, n in shown["brief_progress"]["jobs"].items() if n} == {"total": 1, "running": 1, "aborted": 1}
    aborted = shown["progress"]["jobs"]["aborted"]
    assert (aborted["total"], aborted["scheduled"]["user_request"], aborted["scheduled"]["total"]) == (1, 1, 1)
    assert aborted["non_scheduled"]["total"] == 0
    client.suspend_operation(id, abort_running_jobs=True)
    assert cluster.counters(id)["pending"] == 1 and cluster.counters(id)["total"] == 1


def test_of_one_that_has_failed(cluster, client, pool):
    id = vanilla(client, pool, "echo gone wrong >&2; exit 7", max_failed_job_count=2)
    cluster.wait_state(id, "failed", timeout=120)
    shown = client.get_operation(id)
    error = shown["result"]["error"]
    assert error["code"] == 215 and error["attributes"]["max_failed_job_count"] == 2
    assert [inner["code"] for inner in error["inner_errors"]] == [1205]
    assert find_error(error, 10000)["attributes"]["exit_code"] == 7
    of_job = find_error(error, 1205)["attributes"]
    assert of_job["job_id"] in [j["id"] for j in client.list_jobs(id)["jobs"]]
    assert of_job["host"]
    assert shown["has_failed_jobs"] and shown["brief_progress"]["jobs"]["failed"] == 2


def test_what_a_failed_job_has_said(cluster, client, pool):
    id = vanilla(client, pool, "echo gone wrong >&2; exit 7", max_failed_job_count=1)
    cluster.wait_state(id, "failed", timeout=120)
    assert "gone wrong" in find_error(client.get_operation(id)["result"]["error"], 1205)["attributes"]["stderr"]


def test_of_one_that_takes_too_long(cluster, client, pool):
    id = vanilla(client, pool, time_limit=200)
    cluster.wait_state(id, "failed", timeout=120)
    error = client.get_operation(id)["result"]["error"]
    assert error["code"] == 1 and "too long" in error["message"]


def test_of_one_that_is_done(cluster, client, pool):
    id = vanilla(client, pool, "true")
    cluster.wait_state(id, "completed", timeout=120)
    shown = client.get_operation(id)
    assert shown["result"]["error"]["code"] == 0 and shown["progress"]["state"] == "completed"
    assert {name: n for name, n in shown["brief_progress"]["jobs"].items() if n} == {"total": 1, "completed": 1}
    assert [event["state"] for event in shown["events"]][-3:] == ["running", "completing", "completed"]
    assert all(set(event) == {"time", "state", "attributes"} for event in shown["events"])


def test_specs(client, pool):
    id = vanilla(client, pool, title="what it is called", colour="red", task={"shape": "round"})
    shown = client.get_operation(id)
    assert shown["unrecognized_spec"] == {"colour": "red", "tasks": {"t": {"shape": "round"}}}
    assert shown["spec"]["title"] == "what it is called" and "max_failed_job_count" not in shown["spec"]
    full = shown["full_spec"]
    assert full["max_failed_job_count"] == 10 and full["tasks"]["t"]["max_stderr_size"] == 5 << 20
    assert shown["brief_spec"]["title"] == "what it is called" and shown["brief_spec"]["pool"] == pool
    assert shown["runtime_parameters"]["scheduling_options_per_pool_tree"]["physical"]["pool"] == pool


def test_paths_are_counted(cluster, client, home, pool):
    for name in "abc":
        client.write_table(f"{home}/{name}", [{"x": 1}])
    mapper = {"cpu_limit": 0.1, "memory_limit": 64 << 20}
    operation = client.run_map("cat > /dev/null", [f"{home}/a", f"{home}/b", f"{home}/c"], f"{home}/out", format="json", sync=False,
                               spec={"pool": pool, "mapper": mapper})
    brief = client.get_operation(operation.id)["brief_spec"]
    assert list(brief["input_table_paths"]) == [f"{home}/a"] and brief["input_table_paths"].attributes["count"] == 3
    assert list(brief["output_table_paths"]) == [f"{home}/out"] and brief["output_table_paths"].attributes["count"] == 1
    assert brief["mapper"]["command"] == "cat > /dev/null"
    cluster.wait_state(operation.id, "completed", timeout=120)


def test_what_is_refused(client):
    refuses_strange_operations(lambda **named: formatted(client, "get_operation", **named))
