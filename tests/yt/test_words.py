"""What is mistyped is refused: taken for something else it would find nothing, or everything."""

import pytest
from harness import ServerError


@pytest.mark.parametrize("command, parameters, allowed", [
    ("list_operations", {"state": "runing"}, "running"),
    ("list_operations", {"type": "vanila"}, "vanilla"),
    ("list_jobs", {"job_state": "runing"}, "running"),
    ("list_jobs", {"type": "vanila"}, "vanilla"),
    ("list_operation_events", {"event_type": "state"}, "state_changed"),
])
def test_filters(cluster, command, parameters, allowed):
    if command != "list_operations":
        spec = {"tasks": {"t": {"job_count": 1, "command": "true"}}}
        parameters["operation_id"] = cluster.command("start_operation", operation_type="vanilla", spec=spec)["operation_id"]
    with pytest.raises(ServerError) as refused:
        cluster.command(command, **parameters)
    error = refused.value.error
    assert allowed in error["message"] and error["attributes"]["parameter"] in parameters, error


def test_ranges(client):
    client.write_table("//tmp/ranged", [{"n": n} for n in range(6)])
    for attributes in ("ranges=[{lower={row_index=5}}]", "ranges=[{exact={row_index=1};lower_limit={row_index=0}}]"):
        with pytest.raises(Exception, match="range"):
            list(client.read_table(f"<{attributes}>//tmp/ranged"))
        with pytest.raises(Exception, match="range"):
            client.run_erase(f"<{attributes}>//tmp/ranged")
    assert client.row_count("//tmp/ranged") == 6
    for write in (lambda: client.write_table("//tmp/ranged[#1:#2]", [{"n": 7}]),
                  lambda: client.concatenate(["//tmp/ranged"], "//tmp/ranged[#1]")):
        with pytest.raises(Exception, match="rows replace the whole table"):
            write()
    assert client.row_count("//tmp/ranged") == 6


def test_columns_that_are_there_twice(cluster, client):
    client.create("table", "//tmp/twice")
    client.write_table("//tmp/twice", b'{k=1;"k"="x"};{k=2};', raw=True, format="yson")
    assert list(client.read_table("//tmp/twice")) == [{"k": "x"}, {"k": 2}]


def test_rows_in_a_batch(cluster, client):
    client.create("table", "//tmp/batched")
    batch = {"requests": [
        {"command": "write_table", "parameters": {"path": "//tmp/batched"}, "input": [{"a": 1}, {"a": 2}]},
        {"command": "write_table", "parameters": {"path": "<append=%true>//tmp/batched"}, "input": 5},
        {"command": "read_table", "parameters": {"path": "//tmp/batched"}},
    ]}
    results = cluster.command("execute_batch", **batch)["results"]
    assert results[0] == {"output": {}}, results
    assert "must be a list of rows, found int64" in results[1]["error"]["message"]
    assert "cannot be part of a batch" in results[2]["error"]["message"]
    assert list(client.read_table("//tmp/batched")) == [{"a": 1}, {"a": 2}]


def test_what_excludes_each_other(client):
    client.create("document", "//tmp/source", ignore_existing=True)
    with pytest.raises(Exception, match="cannot be given together"):
        client.copy("//tmp/source", "//tmp/target", ignore_existing=True, force=True)
    with pytest.raises(Exception, match="give one of them"):
        client.create("table", "//tmp/odd", attributes={"schema": [{"name": "a", "type": "int64", "type_v3": "string"}]})


def test_schemas_are_shown_whole(client):
    from yt.wrapper.schema import TableSchema
    client.create("table", "//tmp/shown", attributes={"schema": [
        {"name": "k", "type": "int64", "sort_order": "ascending", "required": True}, {"name": "v", "type": "any"}]})
    shown = client.get("//tmp/shown/@schema")
    assert shown.attributes == {"strict": True, "unique_keys": False}
    assert [(c["name"], c["type"], c["required"], c["type_v3"]) for c in shown] == [
        ("k", "int64", True, "int64"), ("v", "any", False, {"type_name": "optional", "item": "yson"})]
    schema = TableSchema.from_yson_type(shown)
    client.create("table", "//tmp/shown-too", attributes={"schema": schema})
    assert client.get("//tmp/shown-too/@schema") == shown


def test_the_configuration_in_force(client):
    config = client.get("//sys/scheduler/orchid/scheduler/config")
    tree = client.get("//sys/scheduler/orchid/scheduler/pool_trees/physical/config")
    assert config["fair_share_update_period"] > 0 and config["node_heartbeat_timeout"] > 0
    assert tree["preemption_satisfaction_threshold"] == 1.0 and tree["integral_guarantees"]["smooth_period"] > 0
    client.set("//sys/pool_trees/physical/@config/max_operation_count", 1234)
    path = "//sys/scheduler/orchid/scheduler/pool_trees/physical/config/max_operation_count"
    assert client.get(path) == 1234
    client.remove("//sys/pool_trees/physical/@config/max_operation_count")
