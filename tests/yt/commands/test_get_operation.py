"""`get_operation` through the real client."""

from calls import acting, formatted, fresh, refused, refuses_strange_operations, vanilla
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
    cluster.wait_counters(id, aborted=1, running=1)
    shown = client.get_operation(id)
    assert {name: n for name, n in shown["brief_progress"]["jobs"].items() if n} == {"total": 1, "running": 1, "aborted": 1}
    aborted = shown["progress"]["jobs"]["aborted"]
    assert (aborted["total"], aborted["scheduled"]["user_request"], aborted["scheduled"]["total"]) == (1, 1, 1)
    assert aborted["non_scheduled"]["total"] == 0
    client.suspend_operation(id, abort_running_jobs=True)
    assert cluster.counters(id)["pending"] == 1 and cluster.counters(id)["total"] == 1


def test_of_one_that_has_failed(cluster, client, pool):
    id = vanilla(client, pool, "echo gone wrong >&2; exit 7", max_failed_job_count=2)
    cluster.wait_state(id, "failed")
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
    cluster.wait_state(id, "failed")
    assert "gone wrong" in find_error(client.get_operation(id)["result"]["error"], 1205)["attributes"]["stderr"]


def test_of_one_that_takes_too_long(cluster, client, pool):
    id = vanilla(client, pool, time_limit=200)
    cluster.wait_state(id, "failed")
    error = client.get_operation(id)["result"]["error"]
    assert error["code"] == 1 and "too long" in error["message"]


def test_of_one_that_is_done(cluster, client, pool):
    id = vanilla(client, pool, "true")
    cluster.wait_state(id, "completed")
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


def test_defaults_are_filled_in(client, pool):
    full = client.get_operation(vanilla(client, pool), attributes=["full_spec"])["full_spec"]
    expected = {
        "weight": 1.0, "resource_limits": {}, "scheduling_tag_filter": "", "acl": [], "owners": [], "add_authenticated_user_to_acl": True,
        "require_specified_pools_existence": False, "allocation": {"enable_multiple_jobs": False},
        "non_preemptible_resource_usage_threshold": {},
        "tentative_tree_eligibility": {"sample_job_count": 10, "max_tentative_job_duration_ratio": 10.0, "min_job_duration": 30000,
                                       "ignore_missing_pool_trees": False}}
    assert {name: full.get(name) for name in expected} == expected
    assert not {"alias", "time_limit", "pool_trees", "waiting_job_timeout"} & set(full), "these have no value of their own"


def test_what_is_given_stays_in_the_full_spec(client, pool):
    given = {"weight": 2.5, "resource_limits": {"cpu": 3.0}, "owners": ["root"], "add_authenticated_user_to_acl": False,
             "require_specified_pools_existence": True, "allocation": {"enable_multiple_jobs": True}}
    shown = client.get_operation(vanilla(client, pool, max_unpreemptible_job_count=2, **given))
    assert shown["unrecognized_spec"] == {}
    assert {name: shown["full_spec"][name] for name in given} == given
    assert shown["full_spec"]["non_preemptible_resource_usage_threshold"] == {"user_slots": 2}
    for option, bad in (("add_authenticated_user_to_acl", "yes"), ("tentative_tree_eligibility", {"sample_job_count": 0})):
        with refused(1, option):
            vanilla(client, pool, **{option: bad})


def test_tasks_that_only_pass_rows_on(cluster, client, home, pool):
    client.write_table(f"{home}/a", [{"x": 1}, {"x": 2}])
    common = {"sync": False, "spec": {"pool": pool, "combine_chunks": True}}
    mapper = {"cpu_limit": 0.1, "memory_limit": 64 << 20}
    for run, user_job in (
            (lambda: client.run_merge(f"{home}/a", f"{home}/m", mode="ordered", **common), False),
            (lambda: client.run_erase(f"{home}/m[#0:#1]", **common), False),
            (lambda: client.run_map("cat", f"{home}/a", f"{home}/o", format="json", sync=False,
                                    spec={"pool": pool, "mapper": mapper}), True)):
        operation = run()
        cluster.wait_state(operation.id, "completed")
        task, = client.get_operation(operation.id)["progress"]["tasks"]
        assert (task["has_user_job"], "user_job_options" in task) == (user_job, user_job), task["job_type"]


def own_list(client, path):
    """Of an operation in the tree, without what is in the list of all operations: who may do what."""
    of_all, acl = client.get("//sys/operations/@acl"), client.get(f"{path}/@acl")
    assert of_all and acl[-len(of_all):] == of_all and client.get(f"{path}/@effective_acl") == acl
    return [(entry["action"], *entry["subjects"], *entry["permissions"]) for entry in acl[:-len(of_all)]]


def test_lists_in_the_tree(cluster, client, pool, user):
    """Those that count: who may do what is told by `@acl` alone."""
    entry = {"action": "allow", "subjects": ["users"], "permissions": ["read"]}
    starter, everybody = ("allow", user, "read", "manage"), ("allow", "users", "read")
    for spec, expected in (({}, [starter]), ({"acl": [entry]}, [starter, everybody]),
                           ({"acl": [entry], "add_authenticated_user_to_acl": False}, [everybody])):
        id = vanilla(acting(cluster, user), pool, **spec)
        for path in (f"//sys/operations/{id}", f"#{id}", client.get(f"#{id}/@path")):
            assert own_list(client, path) == expected, (spec, path)
        told = client.get_operation(id, attributes=["runtime_parameters"])["runtime_parameters"]["acl"]
        assert [(entry["action"], *entry["subjects"], *entry["permissions"]) for entry in told] == expected
        client.update_operation_parameters(id, {"acl": []})
        changed = [who for who in expected if who == starter]
        assert own_list(client, f"#{id}") == changed
        client.abort_operation(id)
        assert own_list(client, f"#{id}") == changed, "it keeps its list"


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
    cluster.wait_state(operation.id, "completed")


def test_what_is_refused(client):
    refuses_strange_operations(lambda **named: formatted(client, "get_operation", **named))
