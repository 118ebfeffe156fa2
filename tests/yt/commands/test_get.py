"""`get` through the real client."""

import pytest
import yt.yson
from calls import formatted, fresh, inside, known_by, raw, told
from harness import wait_for

NOTHING = yt.yson.YsonEntity()


@pytest.fixture
def tree(client, home):
    """A node of each kind."""
    client.set(f"{home}/map", {"int": -1, "double": 2.0, "bool": True, "string": "s", "list": [1, {"k": 2}],
                               "uint": yt.yson.YsonUint64(2**64 - 1)})
    client.create("document", f"{home}/document", attributes={"value": {"a": {"b": [1, 2, {"c": 3}]}}})
    for kind in ("table", "file"):
        client.create(kind, f"{home}/{kind}")
    client.link(f"{home}/map", f"{home}/link")
    return home


def test_get(client, home):
    client.set(f"{home}/a", {"b": 1})
    assert client.get(home) == {"a": {"b": 1}} and client.get(f"{home}/a/@count") == 1


def test_get_all_that_is_below(client, tree):
    """Documents, tables, files and links are opaque from above."""
    whole = client.get(tree)
    assert {key for key, value in whole.items() if isinstance(value, yt.yson.YsonEntity)} == {"document", "file", "link", "table"}
    assert whole["map"] == {"int": -1, "uint": 2**64 - 1, "double": 2.0, "bool": True, "string": "s", "list": [1, {"k": 2}]}
    assert isinstance(client.get(f"{tree}/table"), yt.yson.YsonEntity)


def test_get_wrapped_unless_it_is_asked_for_bare(client, tree):
    assert formatted(client, "get", path=f"{tree}/map/int") == {"value": -1}
    assert formatted(client, "get", path=f"{tree}/map/int", return_only_value=True) == -1


def test_get_inside_values(client, tree):
    client.set(f"{tree}/@x", {"a": [1, {"b": 2}]})
    for path, value in (("document", {"a": {"b": [1, 2, {"c": 3}]}}), ("document/a/b/2/c", 3), ("document/a/b/-3", 1),
                        ("document/@value/a/b/0", 1), ("map/list/-1/k", 2), ("@x/a/1/b", 2), ("@x/a/-2", 1)):
        assert client.get(f"{tree}/{path}") == value, path


@pytest.mark.parametrize("path, words", [
    ("nothing/below", ['has no child with key "nothing"']),
    ("map/list/2", ["has no child with index 2", "2 items"]),
    ("map/list/-3", ["has no child with index -3"]),
    ("map/list/word", ["has no child with index word"]),
    ("map/int/below", ["map/int cannot have children", "int64_node"]),
    ("table/below", ["table cannot have children"]),
    ("document/a/nothing", ["document/a has no child", '"nothing"']),
    ("document/a/b/3", ["document/a/b has no child with index 3"]),
    ("document/a/b/0/below", ["cannot have children", "int64"]),
    ("@nothing", ['Attribute "nothing"', "is not found"]),
    ("@type/below", ["cannot have children"]),
    ("map/nothing/@id", ['"nothing"']),
])
def test_get_what_is_missing(client, tree, path, words):
    """The nearest that there is, and what it has not (5.2)."""
    with told(500, *words) as error:
        client.get(f"{tree}/{path}")
    assert error.value.is_resolve_error() and error.value.error["attributes"]["path"].startswith(tree)


@pytest.mark.parametrize("path", ["//tmp//x", "//tmp/", "//", "//tmp/a@b", "//tmp/a*b", "#1-2-3", "#1-2-3-4-5", "//tmp/\\q", "//tmp/[#x]"])
def test_get_what_is_no_path(client, path):
    with told(1, "path", "offset"):
        formatted(client, "get", path=path)


def test_get_all_children_are_for_remove_alone(client, home):
    with told(1, "/*", "no meaning"):
        client.get(f"{home}/*")


def test_get_all_user_attributes_are_for_remove_alone(client, home):
    with told(1, "/@*", "no meaning"):
        client.get(f"{home}/@*")


@pytest.mark.parametrize("parameters, words", [
    ({}, ['"path"', "Missing"]),
    ({"path": 5}, ['"path"', "string", "int64"]),
    ({"path": "//tmp", "attributes": "type"}, ['"attributes"', "list of strings", "string"]),
    ({"path": "//tmp", "attributes": [1]}, ['"attributes"', "list of strings", "int64"]),
    ({"path": "//tmp", "max_size": -1}, ['"max_size"', "-1"]),
    ({"path": "//tmp", "max_size": "5"}, ['"max_size"', "integer", "string"]),
    ({"path": "//tmp", "max_size": 5.0}, ['"max_size"', "integer", "double"]),
    ({"path": "//tmp", "transaction_id": "x"}, ['"transaction_id"', '"x"']),
])
def test_get_bad_parameters(client, parameters, words):
    with told(1, *words):
        formatted(client, "get", **parameters)


def test_get_parameters_of_the_client_change_nothing(client, tree):
    """`read_from`, and what nobody knows (2.4)."""
    for parameters in ({"read_from": "cache"}, {"read_from": "follower"}, {"ping_ancestor_transactions": True},
                       {"transaction_id": "0-0-0-0"}, {"disable_per_user_cache": True}, {"of_nobody": [1]}):
        assert formatted(client, "get", path=f"{tree}/map/int", **parameters) == {"value": -1}


def test_get_links(client, tree):
    assert client.get(f"{tree}/link/list/1/k") == 2 and client.get(f"{tree}/link") == client.get(f"{tree}/map")
    assert client.get(f"{tree}/link/@type") == "map_node"
    assert client.get(f"{tree}/link&/@type") == "link" and client.get(f"{tree}/link&/@target_path") == f"{tree}/map"
    assert isinstance(client.get(f"{tree}/link&"), yt.yson.YsonEntity)
    client.remove(f"{tree}/map", recursive=True)
    assert client.get(f"{tree}/link&/@broken")
    with told(500, '"map"'):
        client.get(f"{tree}/link")


def test_get_more_than_max_size_is_cut(client, home):
    client.set(f"{home}/m", {"a": 1, "b": 2, "c": [1, 2, 3]})
    cut = client.get(f"{home}/m", max_size=2)
    assert cut == yt.yson.to_yson_type({"a": 1, "b": 2}, attributes={"incomplete": True})
    assert client.get(f"{home}/m/c", max_size=2).attributes == {"incomplete": True}
    whole = client.get(f"{home}/m", max_size=3)
    assert len(whole) == 3 and not whole.attributes and whole["c"] == [1, 2, 3]
    deep = client.get(home, max_size=2)["m"]
    assert deep.attributes == {"incomplete": True}, "of each node"
    assert client.get(home, max_size=0).attributes == {"incomplete": True}


def test_get_attributes_of_each_node(client, tree):
    client.set(f"{tree}/map/int/@mark", "m")
    whole = client.get(tree, attributes=["type", "mark", "nothing"])
    assert whole.attributes == {"type": "map_node"}
    assert whole["map"]["int"].attributes == {"type": "int64_node", "mark": "m"}
    assert whole["map"]["list"][1]["k"].attributes == {"type": "int64_node"}
    for kind in ("document", "file", "link", "table"):
        assert whole[kind].attributes == {"type": kind}
    assert not client.get(tree, attributes=["nothing"]).attributes
    keys = formatted(client, "get", path=f"{tree}/map/int", attributes={"keys": ["mark"]})["value"]
    assert keys.attributes == {"mark": "m"}


def test_get_more_names_of_attributes_than_there_are(client, home):
    """100 KiB of parameters in headers (2.10)."""
    client.set(f"{home}/@a9999", 1)
    assert client.get(home, attributes=[f"a{n}" for n in range(15000)]).attributes == {"a9999": 1}


def test_get_value_of_documents_by_attribute(client, tree):
    """As the client reads `//sys/client_config` (7.2)."""
    document = client.get(tree, attributes=["value"], read_from="cache")["document"]
    assert isinstance(document, yt.yson.YsonEntity) and document.attributes == {"value": {"a": {"b": [1, 2, {"c": 3}]}}}
    assert client.get("//sys/client_config", attributes=["value"], read_from="cache")["default"].attributes.keys() == {"value"}


COMMON = """id type key path parent_id creation_time modification_time access_time revision attribute_revision content_revision
    owner account acl inherit_acl effective_acl opaque ref_counter lock_count lock_mode locks resource_usage
    recursive_resource_usage user_attribute_keys user_attributes builtin"""
OF_KINDS = {
    "map_node": "count", "list_node": "count", "document": "value", "double_node": "value", "uint64_node": "value",
    "link": "target_path broken",
    "file": "uncompressed_data_size compressed_data_size chunk_count compression_codec content_revision",
    "table": "row_count chunk_count data_weight compressed_data_size uncompressed_data_size compression_ratio replication_factor "
             "dynamic sorted key_columns schema schema_mode erasure_codec compression_codec optimize_for",
}


@pytest.mark.parametrize("kind", OF_KINDS)
def test_get_attributes_of_every_node(client, home, kind):
    """6.3; those that cost something are `#` until they are asked for by name."""
    client.create(kind, f"{home}/n", attributes={"mine": 1, **({"target_path": home} if kind == "link" else {})})
    whole = client.get(f"{home}/n&/@")
    wanted = set(f"{COMMON} {OF_KINDS[kind]} mine".split())
    assert wanted <= whole.keys(), wanted - whole.keys()
    for name in "resource_usage recursive_resource_usage effective_acl locks".split():
        assert isinstance(whole[name], yt.yson.YsonEntity)
        assert not isinstance(client.get(f"{home}/n&/@{name}"), yt.yson.YsonEntity)
    assert {"disk_space", "node_count", "chunk_count"} <= client.get(f"{home}/n&/@resource_usage").keys()
    assert whole["user_attribute_keys"] == ["mine"] and client.get(f"{home}/n&/@user_attributes") == {"mine": 1}
    assert (whole["type"], whole["key"], whole["path"]) == (kind, "n", f"{home}/n")
    assert whole["parent_id"] == client.get(f"{home}/@id") and not whole["builtin"]
    for name in ("revision", "attribute_revision", "content_revision"):
        assert isinstance(whole[name], yt.yson.YsonUint64)
    assert len(whole["creation_time"]) == len("2026-01-02T03:04:05.678901Z") and whole["creation_time"].endswith("Z")


def test_get_just_the_attributes_that_are_asked_for(client, home):
    chosen = client.get(f"{home}/@", attributes=["id", "resource_usage", "nothing"])
    assert chosen.keys() == {"id", "resource_usage"} and chosen["resource_usage"]["node_count"] == 1


def test_get_usage_is_of_the_node_or_of_all_below(client, home):
    client.write_file(f"{home}/f", b"12345")
    assert client.get(f"{home}/f/@resource_usage/disk_space") == 5 and client.get(f"{home}/@resource_usage/disk_space") == 0
    usage = client.get(f"{home}/@recursive_resource_usage")
    assert (usage["node_count"], usage["chunk_count"], usage["disk_space"]) == (2, 1, 5)


def test_get_revisions_and_times(client, home):
    def at(name):
        return client.get(f"{home}/n/@{name}")
    client.set(f"{home}/n", 1)
    first, content, changed = at("revision"), at("content_revision"), at("modification_time")
    client.get(f"{home}/n")
    assert at("modification_time") == changed and at("revision") == first
    client.set(f"{home}/n/@x", 1)
    assert at("revision") > first and at("attribute_revision") > first and at("content_revision") == content
    client.set(f"{home}/n", 2)
    assert at("content_revision") > content and at("modification_time") > changed


def test_get_opaque(client, home):
    client.set(f"{home}/m", {"a": {"b": 1}})
    client.set(f"{home}/m/a/@opaque", True)
    shown = client.get(home, attributes=["opaque"])["m"]
    assert isinstance(shown["a"], yt.yson.YsonEntity) and shown["a"].attributes == {"opaque": True}
    assert client.get(f"{home}/m/a") == {"b": 1}
    client.set(f"{home}/m/a/@opaque", False)
    assert client.get(home) == {"m": {"a": {"b": 1}}}
    for path in ("//sys/operations", "//sys/users", "//sys/scheduler/orchid"):
        assert client.get(f"{path}/@opaque"), path
    assert isinstance(client.get("//sys")["users"], yt.yson.YsonEntity)


def test_get_by_id(client, home):
    client.set(f"{home}/m", {"k": 1})
    id = client.get(f"{home}/m/@id")
    assert client.get(f"#{id}/k") == 1 and client.get(f"#{id}/@path") == f"{home}/m"
    parts = id.split("-")
    assert client.get("#" + "-".join(part.upper().zfill(8) for part in parts)) == {"k": 1}
    assert int(parts[2], 16) & 0xffff == 303 and not any(part.startswith("0") for part in parts)
    with told(500, "No such object"):
        client.get("#1-2-1012f-4")


@pytest.mark.parametrize("kind, code", [
    ("string_node", 300), ("int64_node", 301), ("double_node", 302), ("map_node", 303), ("list_node", 304),
    ("boolean_node", 305), ("uint64_node", 306), ("file", 400), ("table", 401), ("document", 421)])
def test_get_kinds_in_ids(client, home, kind, code):
    assert int(client.create(kind, f"{home}/n").split("-")[2], 16) & 0xffff == code


@pytest.mark.parametrize("key, literal", [
    (b"a b", "a b"), (b"a/b", r"a\/b"), (b"@a", r"\@a"), (b"a&", r"a\&"), (b"[a", r"\[a"), (b"{a", r"\{a"), (b"*a", r"\*a"),
    (b"\\", r"\\"), (b"\0\n", r"\x00\x0a"), (b"\xff\xfe", r"\xff\xfe"), ("ключ".encode(), "ключ"), (b"-1", "-1"),
    (b"begin", "begin"), (b"before:1", "before:1"), (b"..", ".."), (b'"', '"'), (b"%true", "%true"), (b"<a=1>", "<a=1>"),
    (b"#1-2-3-4", "#1-2-3-4"), (b"x" * 4096, "x" * 4096)], ids=range(20))
def test_get_odd_names(client, home, key, literal):
    """Of nodes and of attributes: they come back as they were, and so does their path."""
    client.set(f"{home}/m", {})
    client.set(f"{home}/m/{literal}", 1)
    client.set(f"{home}/m/@{literal}", 2)
    assert client.get(f"{home}/m/{literal}") == 1 and client.get(f"{home}/m/@{literal}") == 2
    path = client.get(f"{home}/m/{literal}/@path")
    assert client.get(path) == 1
    shown = formatted(client, "list", path=f"{home}/m")["value"][0]
    assert yt.yson.get_bytes(shown) == key


def test_get_a_transaction_sees_what_it_did(client, home):
    client.set(f"{home}/m", {"a": 1, "b": 2})
    _, within = inside(client)
    within.set(f"{home}/m/a", 10)
    within.remove(f"{home}/m/b")
    within.set(f"{home}/m/@x", 1)
    assert within.get(f"{home}/m", attributes=["x"]) == yt.yson.to_yson_type({"a": 10}, attributes={"x": 1})
    assert client.get(f"{home}/m", attributes=["x"]) == {"a": 1, "b": 2}


def test_get_who_may_not_read(guarded):
    root, name = known_by(guarded, guarded.token), fresh("user")
    root.create("user", attributes={"name": name})
    root.create("map_node", f"//tmp/{name}", attributes={"inherit_acl": False, "acl": []})
    root.set(f"//tmp/{name}/x", 1)
    other = known_by(guarded, root.issue_token(name))
    for path in ("", "/x", "/@type", "/x/@", "/nothing"):
        with told(901, name, "read") as error:
            other.get(f"//tmp/{name}{path}")
        attributes = error.value.error["attributes"]
        assert (attributes["permission"], attributes["user"]) == ("read", name) and "object_name" in attributes


def test_get_when_an_id_was_made(client, home, operation):
    """It follows from the id alone, whatever bears it, also when nothing does any more."""
    def times(id):
        span = client.get(f"//sys/estimated_creation_time/{id}")
        assert set(span) == {"min", "max"} == set(client.list(f"//sys/estimated_creation_time/{id}"))
        assert span["min"] < span["max"] and client.get(f"//sys/estimated_creation_time/{id}/min") == span["min"]
        return span["min"], span["max"]
    node = client.create("table", f"{home}/t")
    made = client.get(f"#{node}/@creation_time")
    for id in (inside(client)[0], *operation):
        times(id)
    earliest, latest = times(node)
    assert earliest <= made <= latest
    client.remove(f"{home}/t")
    assert not client.exists(f"#{node}") and times(node)[0] == earliest


@pytest.mark.parametrize("id", ["1-2-3e8-4", "word", "1-2-3", "0-0-0-0"])
def test_get_when_nothing_was_made(client, id):
    assert not client.exists(f"//sys/estimated_creation_time/{id}")
    with told(500, f"//sys/estimated_creation_time has no child with key \"{id}\""):
        client.get(f"//sys/estimated_creation_time/{id}")


def test_get_times_of_ids_are_not_shown_from_above(client):
    assert client.get("//sys/estimated_creation_time") == {} == dict.fromkeys(client.list("//sys/estimated_creation_time"))
    assert client.get("//sys/estimated_creation_time/@type") == "estimated_creation_time_map"
    with told(1, "//sys/estimated_creation_time/x"):
        client.set("//sys/estimated_creation_time/x", 1)


MOUNTS = {"pool_trees": "scheduler_pool_tree_map", "operations": "map_node", "cluster_nodes": "cluster_node_map",
          "exec_nodes": "cluster_node_map", "scheduler/orchid": "orchid", "transactions": "transaction_map", "locks": "lock_map",
          "estimated_creation_time": "estimated_creation_time_map"}


@pytest.mark.parametrize("name", MOUNTS)
def test_get_attributes_of_what_is_no_map_of_nodes(client, operation, name):
    """Together with what is in it, as of any other node."""
    path = f"//sys/{name}"
    shown = client.get(path, attributes=["type", "opaque", "nothing"])
    attributes = {key: value for key, value in shown.attributes.items() if key != "incomplete"}
    assert attributes == {"type": MOUNTS[name], "opaque": client.get(f"{path}/@opaque")}

    def looks():
        return [set(client.get(path, attributes=["type", "opaque", "nothing"])), set(client.get(path))]
    # Transactions of earlier tests may end between the two looks.
    wait_for(lambda: (two := looks())[0] == two[1], what=f"the same children of {path}", seen=looks)


@pytest.mark.parametrize("name", ["operations", "pool_trees", "pool_trees/physical", "transactions", "cluster_nodes"])
def test_get_more_than_max_size_of_what_is_no_map_of_nodes(client, operation, pool, name):
    inside(client), inside(client)
    client.create("scheduler_pool", attributes={"name": fresh("one-more"), "pool_tree": "physical"})

    def is_cut():
        whole = client.get(f"//sys/{name}")
        for size in (0, 1, len(whole)):
            shown = client.get(f"//sys/{name}", max_size=size, attributes=["type"])
            if len(shown) != size or shown.attributes.get("incomplete", False) != (size < len(whole)):
                # Transactions of earlier tests may end between the looks.
                assert set(client.get(f"//sys/{name}")) != set(whole), (size, len(whole), len(shown), shown.attributes)
                return False
            assert shown.attributes["type"] == client.get(f"//sys/{name}/@type")
        return True
    wait_for(is_cut, what=f"children of //sys/{name} that stay the same")


def test_get_orchid_of_a_node(client, operation):
    node = client.list("//sys/cluster_nodes")[0]
    path = f"//sys/cluster_nodes/{node}/orchid"
    assert client.get(f"{path}/@type") == "orchid" and client.get(f"{path}/@")["opaque"]
    assert client.get(f"{path}/@path") == path and client.exists(f"{path}/@opaque")
    assert client.get(path, attributes=["type"]).attributes == {"type": "orchid"}
    assert client.get(f"//sys/cluster_nodes/{node}", attributes=["type"])["orchid"].attributes == {"type": "orchid"}
    assert operation[1] in client.get(f"{path}/exec_node/job_controller/active_jobs")


def test_get_values_inside_an_orchid_have_types(client):
    """Tools that walk the tree by types stumble over what has none."""
    service = client.get("//sys/scheduler/orchid/service", attributes=["type"])
    assert service.attributes == {"type": "map_node"} and service["version"].attributes == {"type": "string_node"}
    assert not client.get("//sys/scheduler/orchid/service", attributes=["key"]).attributes
    tree = "//sys/scheduler/orchid/scheduler"
    assert "fair_share_info" not in client.list(f"{tree}/pool_trees/physical")
    assert "fair_share_info" in client.list(f"{tree}/scheduling_info_per_pool_tree/physical")
    for name in client.list(f"{tree}/pool_trees/physical"):
        assert client.exists(f"{tree}/pool_trees/physical/{name}"), name


def test_get_what_is_no_node(client, home):
    client.create("table", f"{home}/t")
    with told(500, f'Attribute "row_count" of {home}/t is not a node'):
        raw(client, "read_table", path=f"{home}/t/@row_count", output_format="yson")
    client.link(f"{home}/t", f"{home}/l")
    with told(500, f"{home}/l cannot have children", "link"):
        client.get(f"{home}/l&/below")


@pytest.mark.parametrize("node", ["scheduler", "controller_agents"])
def test_get_alerts(client, node):
    path = f"//sys/{node}"
    assert isinstance(client.get(f"{path}/@alerts"), list) and client.exists(f"{path}/@alerts")
    assert "alerts" in client.list(f"{path}/@") and "alerts" in client.get(f"{path}/@")
    assert set(client.get(f"{path}/@", attributes=["alerts"])) == {"alerts"}
    assert set(client.get(path, attributes=["alerts"]).attributes) == {"alerts"}
    for change in (lambda: client.set(f"{path}/@alerts", []), lambda: client.remove(f"{path}/@alerts"),
                   lambda: client.set(f"{path}/@", {"alerts": []}),
                   lambda: raw(client, "multiset_attributes", data=b"{alerts=[]}", path=f"{path}/@", input_format="yson")):
        with told(1, '"alerts"', path):
            change()
