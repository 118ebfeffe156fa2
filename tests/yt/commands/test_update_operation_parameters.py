"""`update_operation_parameters` through the real client."""

import pytest
import yt.yson
from calls import fresh, raw, refused, refuses_finished_operations, refuses_strange_operations, vanilla
from harness import wait_for

ORCHID = "//sys/scheduler/orchid/scheduler"


def parameters(client, id):
    return client.get_operation(id, attributes=["runtime_parameters"])["runtime_parameters"]


def in_tree(client, id):
    return parameters(client, id)["scheduling_options_per_pool_tree"]["physical"]


def test_update_operation_parameters(client, operation):
    client.update_operation_parameters(operation[0], {"weight": 3.0})
    told = client.get_operation(operation[0], attributes=["runtime_parameters"])["runtime_parameters"]
    assert told["scheduling_options_per_pool_tree"]["physical"]["weight"] == yt.yson.YsonDouble(3.0)


def test_all_of_them(client, pool):
    alias = f"*{fresh('update')}"
    id = vanilla(client, pool, alias=alias)
    acl = [{"action": "allow", "subjects": ["root"], "permissions": ["read"]}]
    client.update_operation_parameters(operation_alias=alias, parameters={
        "weight": 2, "acl": acl, "owners": ["root"], "annotations": {"why": "because"},
        "scheduling_options_per_pool_tree": {"physical": {"resource_limits": {"cpu": 2.5, "user_slots": 3}, "enable_detailed_logs": True}}})
    told = parameters(client, id)
    assert all(told["acl"][-1][key] == value for key, value in acl[0].items())
    assert (told["owners"], told["annotations"]) == (["root"], {"why": "because"})
    tree = in_tree(client, id)
    assert (tree["pool"], tree["weight"], tree["resource_limits"]) == (pool, 2.0, {"cpu": 2.5, "user_slots": 3})
    # What was not named stays.
    client.update_operation_parameters(id, {"annotations": {}})
    assert in_tree(client, id) == tree and parameters(client, id)["owners"] == ["root"]


def test_the_orchid_knows(cluster, client, pool):
    other = fresh("other")
    cluster.create_pool(other)
    id = vanilla(client, pool)
    client.update_operation_parameters(id, {"weight": 7.0, "pool": other})
    assert client.get(f"{ORCHID}/operations/{id}/runtime_parameters") == parameters(client, id)
    # What the tree shows is of the last update of the shares: it may be older than the operation.
    shown = f"{ORCHID}/pool_trees/physical/operations/{id}"
    wait_for(lambda: client.exists(shown) and (client.get(f"{shown}/weight"), client.get(f"{shown}/pool")) == (7.0, other),
             what="the next update")
    assert [o["id"] for o in client.list_operations(pool=other)["operations"]] == [id]
    assert client.list_operations(pool=pool)["operations"] == []
    client.abort_operation(id)


def test_what_is_said_of_a_tree_counts_more(client, pool):
    id = vanilla(client, pool)
    client.update_operation_parameters(id, {"weight": 2.0, "scheduling_options_per_pool_tree": {"physical": {"weight": 5.0}}})
    assert in_tree(client, id)["weight"] == 5.0


def test_the_number_of_jobs(cluster, client, pool):
    id = vanilla(client, pool)
    client.update_operation_parameters(id, {"tasks": {"t": {"job_count": 3}}})
    cluster.wait_jobs(id, 3)


@pytest.mark.parametrize("change, words", [
    ({"colour": "red"}, "/colour.*expected one of.*weight"),
    ({"weight": 0}, "/weight.*0"),
    ({"weight": -1.0}, "/weight.*-1"),
    ({"weight": float("nan")}, "/weight"),
    ({"weight": float("inf")}, "/weight"),
    ({"weight": "heavy"}, "/weight.*heavy"),
    ({"pool": 5}, "/pool.*string"),
    ({"pool": ""}, "pool"),
    ({"pool": "not/a/name"}, "not/a/name"),
    ({"acl": "all"}, "/acl.*list"),
    ({"acl": [{"action": "allow", "subjects": ["root"], "permissions": ["write"]}]}, '"write".*"manage"'),
    ({"acl": [{"action": "perhaps", "subjects": ["root"], "permissions": ["read"]}]}, "perhaps"),
    ({"owners": "root"}, "/owners.*list"),
    ({"annotations": []}, "/annotations.*map"),
    ({"options_per_job_shell": []}, "/options_per_job_shell.*map"),
    ({"tasks": {"nobody": {"job_count": 1}}}, "nobody"),
    ({"tasks": {"t": {"job_count": -1}}}, "job_count"),
    ({"tasks": {"t": {"cpu_limit": 1.0}}}, "/tasks/t/cpu_limit"),
    ({"scheduling_options_per_pool_tree": {"nowhere": {"weight": 2.0}}}, "/scheduling_options_per_pool_tree/nowhere.*physical"),
    ({"scheduling_options_per_pool_tree": {"physical": {"colour": 1}}}, "/scheduling_options_per_pool_tree/physical/colour.*weight"),
    ({"scheduling_options_per_pool_tree": {"physical": {"weight": 0.0}}}, "/scheduling_options_per_pool_tree/physical/weight"),
    ({"scheduling_options_per_pool_tree": {"physical": {"resource_limits": {"bananas": 1}}}}, "/resource_limits/bananas.*user_slots"),
    ({"scheduling_options_per_pool_tree": {"physical": {"resource_limits": {"cpu": -1.0}}}}, "/resource_limits/cpu.*-1"),
    ({"scheduling_options_per_pool_tree": {"physical": {"resource_limits": {"user_slots": 1.5}}}}, "/resource_limits/user_slots.*1.5"),
])
def test_all_or_nothing(client, operation, pool, change, words):
    id = operation[0]
    before = parameters(client, id)
    good = {"owners": ["root"], "annotations": {"a": 1}, "resource_limits": {"cpu": 1.0}}
    with refused(1, words):
        client.update_operation_parameters(id, {**good, **change})
    assert parameters(client, id) == before
    assert client.get_operation(id, attributes=["brief_spec", "state"])["state"] == "running"


def test_annotations_are_as_short_as_at_the_start(client, pool):
    id = vanilla(client, pool)
    with refused(1, "annotations"):
        client.update_operation_parameters(id, {"annotations": {"long": "x" * 20000}})


def test_owners_are_names(client, pool):
    id = vanilla(client, pool)
    with refused(1, "owners"):
        client.update_operation_parameters(id, {"owners": [5]})


def test_options_of_job_shells_are_shown(client, pool):
    id = vanilla(client, pool, job_shells=[{"name": "s", "subcontainer": ""}])
    client.update_operation_parameters(id, {"options_per_job_shell": {"s": {"owners": ["root"]}}})
    assert parameters(client, id)["options_per_job_shell"] == {"s": {"owners": ["root"]}}


def test_a_pool_that_is_full_changes_nothing(cluster, client, pool):
    full = fresh("other")
    cluster.create_pool(full, max_operation_count=0, max_running_operation_count=0)
    id = vanilla(client, pool)
    before = parameters(client, id)
    with refused(202, full):
        client.update_operation_parameters(id, {"weight": 9.0, "annotations": {"a": 1}, "pool": full})
    assert parameters(client, id) == before


def test_what_is_refused(cluster, client, pool):
    def update(**named):
        raw(client, "update_operation_parameters", parameters={"weight": 2.0}, **named)
    refuses_strange_operations(update)
    refuses_finished_operations(cluster, pool, update)
    id = vanilla(client, pool)
    for more, words in (({}, "parameters"), ({"parameters": []}, "parameters.*map")):
        with refused(1, words):
            raw(client, "update_operation_parameters", operation_id=id, **more)
