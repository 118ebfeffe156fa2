"""`start_operation` through the real client."""

import pytest
import yt.wrapper
import yt.yson
from calls import formatted, fresh, raw, refused, vanilla
from harness import wait_for

TASK = {"command": "true", "job_count": 1, "cpu_limit": 0.1, "memory_limit": 64 << 20}


def start(client, type="vanilla", **spec):
    return formatted(client, "start_operation", operation_type=type, spec=spec)["operation_id"]


def test_start_operation(client, operation):
    assert client.get_operation_state(operation[0]).name == "running"


def test_the_answer_is_the_id(client, pool):
    answer = formatted(client, "start_operation", operation_type="vanilla", spec={"pool": pool, "tasks": {"t": TASK}})
    assert set(answer) == {"operation_id"} and client.get_operation(answer["operation_id"])["type"] == "vanilla"


@pytest.mark.parametrize("type", ["sort", "reduce", "map_reduce", "join_reduce", "remote_copy"])
def test_types_that_are_not_there(client, pool, type):
    with refused(1, "not supported"):
        start(client, type, pool=pool, tasks={"t": TASK})
    assert client.list_operations(pool=pool)["operations"] == []


@pytest.mark.parametrize("parameters, words", [
    ({"spec": {}}, "operation_type"),
    ({"operation_type": "vanilla"}, "spec"),
    ({"operation_type": "vanilla", "spec": []}, "spec.*map"),
    ({"operation_type": 5, "spec": {}}, "operation_type.*string"),
    ({"operation_type": "vanila", "spec": {}}, "operation_type.*vanilla"),
])
def test_parameters(client, parameters, words):
    with refused(1, words):
        raw(client, "start_operation", **parameters)


@pytest.mark.parametrize("change, path", [
    ({"tasks": None}, "/tasks"),
    ({"tasks": []}, "/tasks"),
    ({"tasks": {"t": {"job_count": 1}}}, "/tasks/t/command"),
    ({"tasks": {"t": {"command": "true"}}}, "/tasks/t/job_count"),
    ({"tasks": {"t": {**TASK, "command": 5}}}, "/tasks/t/command"),
    ({"tasks": {"t": {**TASK, "job_count": 1.5}}}, "/tasks/t/job_count"),
    ({"tasks": {"t": {**TASK, "job_count": -1}}}, "/tasks/t/job_count"),
    ({"tasks": {"t": {**TASK, "cpu_limit": -1.0}}}, "/tasks/t/cpu_limit"),
    ({"tasks": {"t": {**TASK, "cpu_limit": float("nan")}}}, "/tasks/t/cpu_limit"),
    ({"tasks": {"t": {**TASK, "environment": {"A": 1}}}}, "/tasks/t/environment"),
    ({"tasks": {"t": {**TASK, "file_paths": "//tmp/f"}}}, "/tasks/t/file_paths"),
    ({"pool": 5}, "/pool"),
    ({"weight": "heavy"}, "/weight"),
    ({"weight": -1.0}, "/weight"),
    ({"weight": float("inf")}, "/weight"),
    ({"resource_limits": {"cpu": -1.0}}, "/resource_limits: cpu.*-1"),
    ({"resource_limits": {"bananas": 1}}, "/resource_limits.*bananas.*user_slots"),
    ({"time_limit": -1}, "/time_limit"),
    ({"max_failed_job_count": "x"}, "/max_failed_job_count"),
    ({"annotations": []}, "/annotations"),
    ({"alias": 5}, "/alias"),
    ({"scheduling_options_per_pool_tree": {"physical": {"weight": 0.0}}}, "/scheduling_options_per_pool_tree/physical/weight"),
    ({"acl": "everybody"}, "acl"),
    ({"acl": [{"action": "allow", "subjects": ["root"], "permissions": ["write"]}]}, '"write".*"manage"'),
])
def test_bad_options_are_refused_by_their_path(client, pool, change, path):
    spec = {key: value for key, value in {"pool": pool, "tasks": {"t": TASK}, **change}.items() if value is not None}
    with refused(1, path):
        start(client, **spec)
    assert client.list_operations(pool=pool, filter=pool)["operations"] == []


def test_one_living_operation_has_an_alias(cluster, client, pool):
    alias = f"*{fresh('alias')}"
    first = vanilla(client, pool, alias=alias)
    with refused(1, first) as error:
        vanilla(client, pool, alias=alias)
    assert alias in str(error.value)
    assert [o["id"] for o in client.list_operations(pool=pool)["operations"]] == [first]
    client.abort_operation(first)
    assert client.get_operation(operation_alias=alias)["id"] == first, "nobody else has it yet"
    second = vanilla(client, pool, alias=alias)
    shown = client.get_operation(operation_alias=alias)
    assert shown["id"] == second and shown["brief_spec"]["alias"] == alias
    assert client.get_operation(first)["spec"]["alias"] == alias


def test_secrets_are_not_shown(cluster, client, pool):
    id = vanilla(client, pool, "echo $YT_SECURE_VAULT_word >&2; sleep 1000", secure_vault={"word": "hidden-word"})
    job, = cluster.wait_jobs(id)
    places = (client.get_operation(id), client.list_operations(pool=pool), client.get(f"//sys/operations/{id[-2:].zfill(2)}/{id}/@"),
              client.get(f"//sys/scheduler/orchid/scheduler/operations/{id}"), client.list_jobs(id), client.get_job_spec(job))
    assert not [place for place in places if b"hidden-word" in yt.yson.dumps(place)]
    shown = client.get_operation(id)
    assert not {"secure_vault"} & {*shown["spec"], *shown["provided_spec"], *shown["full_spec"], *shown["unrecognized_spec"]}


def test_a_transaction_that_is_not_there(client, pool):
    with refused(11000):
        raw(client, "start_operation", operation_type="vanilla", spec={"pool": pool, "tasks": {"t": TASK}}, transaction_id="1-2-10001-4")
    assert client.list_operations(pool=pool)["operations"] == []


def test_suspended_as_soon_as_it_is_materialized(client, pool):
    id = vanilla(client, pool, suspend_operation_after_materialization=True)
    assert client.get_operation(id, attributes=["state", "suspended"]) == {"state": "running", "suspended": True}
    assert client.list_jobs(id)["jobs"] == []


@pytest.mark.parametrize("limit, rows", [(0, 2), (3, 4), (4, 4), (5, 6), (100, 10)])
def test_complete_with_enough_rows(client, pool, home, limit, rows):
    """`row_count_limit`: whole jobs count, what is left to do is not done."""
    client.write_table(f"{home}/in", [{"a": n} for n in range(10)])
    client.create("table", f"{home}/out")
    spec = {"pool": pool, "job_count": 5, "mapper": {"command": "cat", "format": "json", "cpu_limit": 0.1, "memory_limit": 64 << 20},
            "resource_limits": {"user_slots": 1}, "input_table_paths": [f"{home}/in"],
            "output_table_paths": [yt.yson.to_yson_type(f"{home}/out", attributes={"row_count_limit": limit})]}
    operation = start(client, "map", **spec)
    wait_for(lambda: client.get_operation_state(operation).is_finished(), what="the operation to end")
    assert client.get_operation_state(operation).name == "completed"
    assert client.get(f"{home}/out/@row_count") == rows


def test_jobs_that_fail_have_written_nothing(client, pool, home):
    """Not even the no rows that are enough."""
    client.write_table(f"{home}/in", [{"a": 1}])
    client.write_table(f"{home}/out", [{"old": 1}])
    operation = start(client, "map", pool=pool, input_table_paths=[f"{home}/in"], max_failed_job_count=2,
                      mapper={"command": "exit 1", "format": "json", "cpu_limit": 0.1, "memory_limit": 64 << 20},
                      output_table_paths=[yt.yson.to_yson_type(f"{home}/out", attributes={"row_count_limit": 0})])
    wait_for(lambda: client.get_operation_state(operation).is_finished(), what="the operation to end")
    assert client.get_operation_state(operation).name == "failed"
    assert list(client.read_table(f"{home}/out")) == [{"old": 1}]


@pytest.mark.parametrize("mode", ["ordered", "unordered", "sorted"])
@pytest.mark.parametrize("limit, rows", [(0, 3), (1, 3), (3, 3), (4, 6), (100, 9)])
def test_enough_rows_of_a_merge(client, home, mode, limit, rows):
    """Of one that takes the chunks as they are: whole chunks count."""
    for number in range(3):
        path = yt.yson.to_yson_type(f"{home}/in", attributes={"append": True, "sorted_by": ["a"]})
        if not number:
            client.create("table", f"{home}/in")
        client.write_table(path, [{"a": 3 * number + n} for n in range(3)])
    out = yt.wrapper.YPath(f"{home}/out", attributes={"row_count_limit": limit})
    client.run_merge(f"{home}/in", out, mode=mode, spec={"schema_inference_mode": "from_output"})
    assert [row["a"] for row in client.read_table(f"{home}/out")] == list(range(rows))
    wrong = yt.wrapper.YPath(f"{home}/out", attributes={"row_count_limit": "many"})
    with pytest.raises(yt.wrapper.YtOperationFailedError, match="row_count_limit"):
        client.run_merge(f"{home}/in", wrong, mode=mode)


def test_rows_that_are_enough_are_a_number(client, pool, home):
    client.write_table(f"{home}/in", [{"a": 1}])
    client.create("table", f"{home}/out")
    for wrong in (-1, "many"):
        operation = start(client, "map", pool=pool, input_table_paths=[f"{home}/in"], mapper={"command": "cat", "format": "json"},
                          output_table_paths=[yt.yson.to_yson_type(f"{home}/out", attributes={"row_count_limit": wrong})])
        wait_for(lambda: client.get_operation_state(operation).is_finished(), what="the operation to end")
        assert client.get_operation_state(operation).name == "failed"
        assert "row_count_limit" in str(client.get_operation(operation, attributes=["result"]))
