"""Options in the brackets of a query string have the types of the options (http-api.md 2.4): the string itself has none."""

import json
import urllib.error
import urllib.parse
import urllib.request

import pytest
from harness import ServerError, cluster as make_cluster


def ask(cluster, command, query, token=None, method="POST", body=None):
    """Asks by a query string, whose names are as they are in it, and perhaps by a body of JSON."""
    query = urllib.parse.urlencode(query, doseq=True)
    headers = {"Content-Type": "application/json", **({"Authorization": f"OAuth {token}"} if token else {})}
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(f"http://{cluster.address}/api/v4/{command}?{query}", data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=180) as reply:
            return json.loads(reply.read())
    except urllib.error.HTTPError as refused:
        raise ServerError(json.loads(refused.read())) from None


def test_options_of_pools(cluster, client):
    cluster.command("create", type="scheduler_pool", attributes={
        "name": "123", "pool_tree": "physical", "strong_guarantee_resources": {"cpu": 2}})
    ask(cluster, "create", query={
        "type": "scheduler_pool", "attributes[name]": "77", "attributes[pool_tree]": "physical", "attributes[parent_name]": "123",
        "attributes[weight]": "2.5", "attributes[forbid_immediate_operations]": "true", "attributes[max_operation_count]": "7",
        "attributes[strong-guarantee-resources][cpu]": "0.5", "attributes[inherit_acl]": "false", "attributes[mine]": "true"})
    assert client.get("//sys/pools/123/77/@weight") == 2.5
    assert client.get("//sys/pools/123/77/@strong_guarantee_resources") == {"cpu": 0.5}
    assert client.get("//sys/pools/123/77/@max_operation_count") == 7
    assert client.get("//sys/pools/123/77/@forbid_immediate_operations") == True  # noqa: E712
    assert client.get("//sys/pools/123/77/@inherit_acl") == False  # noqa: E712
    assert client.get("//sys/pools/123/77/@mine") == "true", "nobody knows what it is"
    with pytest.raises(ServerError, match="weight.*found double -2.5"):
        ask(cluster, "create", query={"type": "scheduler_pool", "attributes[name]": "odd", "attributes[pool_tree]": "physical",
                                      "attributes[weight]": "-2.5"})
    assert not client.exists("//sys/pools/odd")


def test_what_is_given_from_pool_to_pool(cluster, client):
    for name in ("giver", "taker"):
        cluster.create_pool(name, strong_guarantee_resources={"cpu": 2})
    ask(cluster, "transfer_pool_resources", query={"source_pool": "giver", "destination_pool": "taker", "pool_tree": "physical",
                                                   "resource_delta[strong_guarantee_resources][cpu]": "0.5"})
    assert client.get("//sys/pools/taker/@strong_guarantee_resources/cpu") == 2.5


def test_options_of_pool_trees(cluster, client):
    ask(cluster, "create", query={"type": "scheduler_pool_tree", "attributes[name]": "9", "attributes[config][nodes_filter]": "nobody",
                                  "attributes[config][fair_share_starvation_tolerance]": "0.25",
                                  "attributes[config][enable_pool_starvation]": "false"})
    config = client.get("//sys/pool_trees/9/@config")
    assert config["fair_share_starvation_tolerance"] == 0.25 and config["enable_pool_starvation"] == False  # noqa: E712


def test_a_spec_and_parameters(cluster, client):
    cluster.command("create", type="scheduler_pool", attributes={"name": "55", "pool_tree": "physical"})
    query = {
        "operation_type": "vanilla", "spec[pool]": "55", "spec[title]": "2026", "spec[weight]": "1.5", "spec[alias]": "*of-a-query",
        "spec[fail_on_job_restart]": "true", "spec[max_failed_job_count]": "3", "spec[annotations][x]": "true",
        "spec[pool_trees][]": "physical", "spec[tasks][5][job_count]": "1", "spec[tasks][5][command]": "true",
        "spec[tasks][5][cpu_limit]": "0.1", "spec[tasks][5][memory_limit]": str(64 << 20), "spec[tasks][5][environment][A]": "5"}
    operation = ask(cluster, "start_operation", query=query)["operation_id"]
    spec = client.get_operation(operation, attributes=["spec", "provided_spec"])["provided_spec"]
    assert spec["pool"] == "55" and spec["title"] == "2026" and spec["weight"] == 1.5 and spec["max_failed_job_count"] == 3
    assert spec["fail_on_job_restart"] == True and spec["annotations"] == {"x": "true"}  # noqa: E712
    task = spec["tasks"]["5"]
    assert task["command"] == "true" and task["cpu_limit"] == 0.1 and task["environment"] == {"A": "5"}
    cluster.wait_state(operation, "completed")
    query["spec[alias]"] = "*of-a-query-1"
    for odd in ("my-t", "my_t", "a/b"):
        query |= {f"spec[tasks][{odd}][job_count]": "1", f"spec[tasks][{odd}][command]": "0"}
    operation = ask(cluster, "start_operation", query=query)["operation_id"]
    cluster.wait_state(operation, "failed")  # no such command
    assert client.get_operation(operation, attributes=["provided_spec"])["provided_spec"]["tasks"]["a/b"]["command"] == "0"
    for odd in ("my-t", "my_t", "a/b"):
        del query[f"spec[tasks][{odd}][job_count]"], query[f"spec[tasks][{odd}][command]"]

    query["spec[tasks][5][command]"] = "sleep 1000"
    query["spec[alias]"] = "*of-a-query-2"
    query["spec[fail_on_job_restart]"] = "false"
    operation = ask(cluster, "start_operation", query=query)["operation_id"]
    ask(cluster, "update_operation_parameters", query={"operation_id": operation, "parameters[weight]": "3.25"})
    parameters = client.get_operation(operation, attributes=["runtime_parameters"])["runtime_parameters"]
    assert parameters["scheduling_options_per_pool_tree"]["physical"]["weight"] == 3.25
    with pytest.raises(ServerError, match="weight"):
        ask(cluster, "update_operation_parameters", query={"operation_id": operation, "parameters[weight]": "heavy"})
    # What was converted is what is kept.
    cluster.server.kill()
    cluster.server.start()
    cluster.wait_server()
    cluster.wait_state(operation, "running")
    client.abort_operation(operation)


@pytest.mark.parametrize("option, value, wanted", [
    ("fail_on_job_restart", "yes", "expected boolean, found string"),
    ("weight", "-1.5", "found double -1.5"),
    ("max_failed_job_count", "many", "found string"),
])
def test_wrong_options_of_a_spec(cluster, option, value, wanted):
    with pytest.raises(ServerError, match=wanted):
        ask(cluster, "start_operation", query={"operation_type": "vanilla", f"spec[{option}]": value,
                                               "spec[tasks][t][job_count]": "1", "spec[tasks][t][command]": "true"})


def test_attributes_of_nodes(cluster, client):
    ask(cluster, "create", query={"type": "map_node", "path": "//tmp/of_a_query", "attributes[opaque]": "true", "attributes[number]": "5", "attributes[banned]": 1,
                                  "attributes[inherit_acl]": "0", "attributes[word]": "true", "attributes[account]": "tmp"})
    found = client.get("//tmp/of_a_query/@", attributes=None)
    assert found["opaque"] == True and found["inherit_acl"] == False  # noqa: E712
    assert found["number"] == 5 and found["word"] == "true" and found["banned"] == True  # noqa: E712
    ask(cluster, "create", query={"type": "group", "attributes[name]": "100"})
    assert client.exists("//sys/groups/100")
    # Names of attributes are names.
    client.set("//tmp/of_a_query/@5", "five")
    with urllib.request.urlopen(f"http://{cluster.address}/api/v4/get?path=//tmp/of_a_query&attributes[]=5&attributes[]=number") as reply:
        assert json.loads(reply.read())["value"]["$attributes"] == {"5": "five", "number": 5}


def test_in_json_and_yson_a_string_is_a_string(cluster):
    for options in ({"weight": "2.5"}, {"forbid_immediate_operations": "true"}, {"max_operation_count": "7"}):
        with pytest.raises(ServerError, match="expected"):
            cluster.command("create", type="scheduler_pool", attributes={"name": "typed", "pool_tree": "physical", **options})
    # Also when a query string says something else.
    spec = {"fail_on_job_restart": "true", "tasks": {"t": {"job_count": 1, "command": "true"}}}
    for query in ({}, {"other[x]": 1}, {"attributes[x]": "true"}, {"spec[title]": "x"}):
        with pytest.raises(ServerError, match="found string"):
            ask(cluster, "start_operation", query=query, body={"operation_type": "vanilla", "spec": spec})


def test_questions(cluster, client):
    cluster.command("create", type="group", attributes={"name": "550"})
    listed = ask(cluster, "list_operations", method="GET", query={"access[subject]": "550", "access[permissions][]": "read"})
    assert listed["operations"] == []
    cluster.create_pool("asked")
    operation = cluster.start_vanilla("true", pool="asked")
    cluster.wait_state(operation, "completed")
    job = cluster.jobs(operation)[0]["id"]
    transaction = client.start_transaction(timeout=600_000)
    for query in ({"attributes[]": "state"}, {"attributes[keys][]": "state"}, {"transaction_id": transaction}):
        assert ask(cluster, "get_job", method="GET", query={"job_id": job, **query})["state"] == "completed"
    client.abort_transaction(transaction)


def test_rows(cluster, client):
    client.write_table("//tmp/asked", [{"5": 1, "a": 2}])
    address = f"http://{cluster.address}/api/v4/"
    query = "write_table?path[$value]=//tmp/asked&path[$attributes][append]=1"
    urllib.request.urlopen(urllib.request.Request(address + query, b'{"5":3,"a":4}', {"Content-Type": "application/json"}, method="PUT"))
    query = ("read_table?path[$value]=//tmp/asked&path[$attributes][columns][]=5&output_format=json"
             "&control_attributes[enable_row_index]=0&control_attributes[enable_table_index]=false")
    with urllib.request.urlopen(address + query) as reply:
        assert [json.loads(row) for row in reply.read().splitlines()] == [{"5": 1}, {"5": 3}]


@pytest.mark.parametrize("node, text, value", [
    ("boolean_node", "true", True), ("double_node", "1.5", 1.5), ("string_node", "15", "15"), ("int64_node", "15", 15)])
def test_values_of_nodes(cluster, client, node, text, value):
    ask(cluster, "create", query={"type": node, "path": f"//tmp/asked_{node}", "attributes[value]": text})
    assert client.get(f"//tmp/asked_{node}") == value


def test_who_may_is_asked_of_what_is_meant():
    """Names of digits are taken for integers first; permissions are looked at when they are names."""
    with make_cluster(nodes=0, auth=True) as guarded:
        guarded.command("create", type="user", attributes={"name": "ann"})
        token = guarded.command("issue_token", user="ann")
        guarded.create_pool("123", acl=[{"action": "allow", "subjects": ["ann"], "permissions": ["modify_children"]}])
        guarded.create_pool("456", acl=[{"action": "deny", "subjects": ["ann"], "permissions": ["modify_children", "write"]}])

        def create(name, parent):
            ask(guarded, "create", token=token, query={"type": "scheduler_pool", "attributes[name]": name,
                                                       "attributes[pool_tree]": "physical", "attributes[parent_name]": parent})
        create("7", "123")
        with pytest.raises(ServerError) as refused:
            create("8", "456")
        assert 901 in refused.value.codes()
        assert guarded.exists("//sys/pools/123/7") and not guarded.exists("//sys/pools/456/8")
