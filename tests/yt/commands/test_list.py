"""`list` through the real client."""

import datetime

import pytest
import yt.yson
from calls import formatted, fresh, inside, known_by, told


def test_list(client, home):
    client.set(f"{home}/b", 1)
    client.set(f"{home}/a", 1)
    assert client.list(home) == ["a", "b"]
    assert [child.attributes["type"] for child in client.list(home, attributes=["type"])] == ["int64_node"] * 2


def test_list_by_key_whatever_the_order_of_making(client, home):
    """The client sorts by itself unless told otherwise."""
    for name in ("b", "10", "B", "9", "a"):
        client.set(f"{home}/{name}", 1)
    assert formatted(client, "list", path=home) == {"value": ["10", "9", "B", "a", "b"]}
    assert formatted(client, "list", path=home, return_only_value=True) == ["10", "9", "B", "a", "b"]
    assert client.list(home, absolute=True)[0] == f"{home}/10"


def test_list_nothing_in_it(client, home):
    assert client.list(home) == []


def test_list_maps_inside_of_values(client, home):
    client.create("document", f"{home}/d", attributes={"value": {"a": {"y": 1, "x": 2}}})
    client.set(f"{home}/@m", {"k": {"l": 1}})
    for path, keys in (("d", ["a"]), ("d/a", ["x", "y"]), ("@m", ["k"]), ("@m/k", ["l"]), ("d/@value", ["a"])):
        assert client.list(f"{home}/{path}") == keys, path
    assert "pool_trees" in client.list("//sys/scheduler/orchid/scheduler")


def test_list_names_of_attributes(client, home):
    client.set(f"{home}/@mine", 1)
    names = client.list(f"{home}/@")
    assert {"id", "type", "acl", "mine"} <= set(names) and set(names) == client.get(f"{home}/@").keys()


@pytest.mark.parametrize("path", ["#{tx}/@", "//sys/transactions/{tx}/@", "#{lock}/@", "//sys/locks/{lock}/@"])
def test_list_names_of_attributes_of_objects(client, home, transaction, path):
    lock = transaction[1].lock(home)["lock_id"]
    path = path.format(tx=transaction[0], lock=lock)
    assert set(client.list(path)) == client.get(path).keys()


def test_list_pools_by_id(cluster, client, pool):
    cluster.create_pool(f"{pool}-below", parent_name=pool)
    assert client.list(f"#{client.get(f'//sys/pools/{pool}/@id')}") == [f"{pool}-below"]


@pytest.mark.parametrize("kind", ["list_node", "int64_node", "table", "file"])
def test_list_what_has_no_keys(client, home, kind):
    client.create(kind, f"{home}/n")
    with told(1, '"list" is not supported', kind, f"{home}/n"):
        client.list(f"{home}/n")


def test_list_values_that_have_no_keys(client, home):
    client.create("document", f"{home}/d", attributes={"value": {"l": [1], "s": "x"}})
    for path, kind in (("d/l", "list"), ("d/s", "string"), ("@type", "string"), ("d/l/0", "int64")):
        with told(1, '"list" is not supported', kind):
            client.list(f"{home}/{path}")


def test_list_what_is_missing(client, home):
    client.create("document", f"{home}/d", attributes={"value": {}})
    for path, words in (("x", ["no child", '"x"']), ("d/x", ["no child", '"x"']), ("@x", ['Attribute "x"'])):
        with told(500, *words):
            client.list(f"{home}/{path}")


def test_list_links(client, home):
    client.set(f"{home}/m", {"k": 1})
    client.link(f"{home}/m", f"{home}/l")
    assert client.list(f"{home}/l") == ["k"] and client.list(home) == ["l", "m"]
    with told(1, "not supported", "link"):
        client.list(f"{home}/l&")
    types = [child.attributes for child in client.list(home, attributes=["type", "target_path"])]
    assert types == [{"type": "link", "target_path": f"{home}/m"}, {"type": "map_node"}]


def test_list_long_form_of_the_command(cluster, client, home):
    client.write_file(f"{home}/f", b"12345")
    line = cluster.yt("list", "-l", home)[1].split()
    assert line[0] == "file" and line[-1] == "f" and "tmp" in line
    names = ["type", "target_path", "account", "resource_usage", "modification_time"]
    attributes = client.list(home, attributes=names)[0].attributes
    assert attributes["resource_usage"]["disk_space"] == 5 and "target_path" not in attributes
    datetime.datetime.strptime(attributes["modification_time"], "%Y-%m-%dT%H:%M:%S.%fZ")


def test_list_more_than_max_size_is_cut(client, home):
    client.set(f"{home}/m", {"a": 1, "b": 2, "c": 3})
    cut = client.list(f"{home}/m", max_size=2)
    assert cut == yt.yson.to_yson_type(["a", "b"], attributes={"incomplete": True})
    whole = client.list(f"{home}/m", max_size=3)
    assert whole == ["a", "b", "c"] and not whole.attributes
    for path in (f"{home}/@", "//sys/scheduler/orchid/scheduler"):
        assert client.list(path, max_size=1).attributes == {"incomplete": True}, path


def test_list_what_children_have_not_is_skipped(client, home):
    client.set(home, {"a": 1, "b": 2}, force=True)
    client.set(f"{home}/a/@mark", 1)
    assert [child.attributes for child in client.list(home, attributes=["mark"])] == [{"mark": 1}, {}]


def test_list_objects_of_the_system(client, user, home, transaction):
    assert user in client.list("//sys/users") and "everyone" in client.list("//sys/groups") and "tmp" in client.list("//sys/accounts")
    id, within = transaction
    lock = within.lock(home)["lock_id"]
    assert lock in client.list("//sys/locks")
    owners = {str(tx): tx.attributes for tx in client.list("//sys/transactions", attributes=["owner"])}
    assert owners[id] == {"owner": "root"}


def test_list_a_transaction_sees_what_it_did(client, home):
    client.set(home, {"a": 1, "b": 2}, force=True)
    _, within = inside(client)
    within.set(f"{home}/c", 1)
    within.remove(f"{home}/a")
    assert (within.list(home), client.list(home)) == (["b", "c"], ["a", "b"])


@pytest.mark.parametrize("parameters, words", [
    ({}, ['"path"', "Missing"]),
    ({"path": "//tmp", "max_size": "many"}, ['"max_size"', "integer", "many"]),
    ({"path": "//tmp", "attributes": {}}, ['"attributes"', "list of strings"]),
])
def test_list_bad_parameters(client, parameters, words):
    with told(1, *words):
        formatted(client, "list", **parameters)


def test_list_who_may_not_read(guarded):
    root, name = known_by(guarded, guarded.token), fresh("user")
    root.create("user", attributes={"name": name})
    root.create("map_node", f"//tmp/{name}", attributes={"inherit_acl": False, "acl": []})
    other = known_by(guarded, root.issue_token(name))
    with told(901, name, "read"):
        other.list(f"//tmp/{name}")
    assert name in other.list("//tmp")
