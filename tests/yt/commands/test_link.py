"""`link` through the real client."""

import pytest
from calls import formatted, fresh, inside, told


def test_link(client, home):
    client.set(f"{home}/a", 1)
    client.link(f"{home}/a", f"{home}/b")
    assert client.get(f"{home}/b") == 1 and client.get(f"{home}/b&/@type") == "link"


def test_link_the_answer(client, home):
    client.set(f"{home}/a", 1)
    made = formatted(client, "link", target_path=f"{home}/a", link_path=f"{home}/l", attributes={"mine": 1})
    assert made == {"node_id": client.get(f"{home}/l&/@id")} and client.get(f"{home}/l&/@mine") == 1
    assert int(made["node_id"].split("-")[2], 16) & 0xffff == 417
    assert not client.get(f"{home}/l&/@broken") and client.get(f"{home}/l&/@target_path") == f"{home}/a"


def test_link_the_target_must_be_there(client, home):
    for target in (f"{home}/none", f"{home}/none/below"):
        with told(500, '"none"'):
            client.link(target, f"{home}/l")
    assert client.list(home) == []
    client.link(f"{home}/none", f"{home}/l", force=True)
    assert client.get(f"{home}/l&/@broken") and not client.exists(f"{home}/l") and client.exists(f"{home}/l&")
    client.set(f"{home}/none", 1)
    assert client.get(f"{home}/l") == 1 and not client.get(f"{home}/l&/@broken")


@pytest.mark.parametrize("target", ["#1-2-1012f-4", "//sys/pools/none-such", "//sys/scheduler/orchid/none-such"])
def test_link_other_targets_must_be_there_too(client, home, target):
    with told(500):
        client.link(target, f"{home}/l")
    assert client.list(home) == []


def test_link_where_something_is(client, home):
    client.set(home, {"a": 1, "b": 2}, force=True)
    client.link(f"{home}/a", f"{home}/l")
    id = client.get(f"{home}/l&/@id")
    with told(501, f"{home}/l", "already exists"):
        client.link(f"{home}/b", f"{home}/l")
    assert formatted(client, "link", target_path=f"{home}/b", link_path=f"{home}/l", ignore_existing=True) == {"node_id": id}
    assert client.get(f"{home}/l") == 1
    with told(501, f"{home}/b"):
        client.link(f"{home}/a", f"{home}/b", ignore_existing=True)
    client.link(f"{home}/b", f"{home}/l", force=True)
    client.link(f"{home}/a", f"{home}/b", force=True)
    assert client.get(f"{home}/b&/@type") == "link" and client.get(f"{home}/l") == 1


def test_link_missing_parents(client, home):
    client.set(f"{home}/a", 1)
    with told(500, '"x"'):
        client.link(f"{home}/a", f"{home}/x/y/l")
    client.link(f"{home}/a", f"{home}/x/y/l", recursive=True)
    assert client.get(f"{home}/x/y/l") == 1
    with told(500, "cannot have children"):
        client.link(f"{home}/a", f"{home}/a/l", recursive=True)


def test_link_to_links(client, home):
    client.set(f"{home}/m", {"k": 1})
    client.link(f"{home}/m", f"{home}/l0")
    for n in range(1, 10):
        client.link(f"{home}/l{n - 1}", f"{home}/l{n}")
    assert client.get(f"{home}/l9/k") == 1 and client.get(f"{home}/l9&/@target_path") == f"{home}/l8"
    client.set(f"{home}/l9/new", 2)
    assert client.get(f"{home}/m/new") == 2


def test_link_in_circles(client, home):
    with told(1, f"{home}/l", "more than 32 links"):
        client.link(f"{home}/l", f"{home}/l", force=True)
    client.link(f"{home}/b", f"{home}/a", force=True)
    with told(1, f"{home}/b", "more than 32 links"):
        client.link(f"{home}/a", f"{home}/b", force=True)
    assert client.list(home) == ["a"]
    client.create("map_node", f"{home}/m")
    client.link(f"{home}/m", f"{home}/m/up")
    client.set(f"{home}/m/up/up/up/k", 1)
    assert client.get(f"{home}/m/k") == 1 and client.get(f"{home}/m").keys() == {"k", "up"}


def test_link_to_ids_pools_and_transactions(client, home, pool, transaction):
    client.set(f"{home}/m", {"k": 1})
    for name, target, path, value in (("i", f"#{client.get(f'{home}/m/@id')}", "k", 1), ("p", f"//sys/pools/{pool}", "@name", pool),
                                      ("t", f"#{transaction[0]}", "@state", "active")):
        client.link(target, f"{home}/{name}")
        assert client.get(f"{home}/{name}/{path}") == value
    client.move(f"{home}/m", f"{home}/n")
    assert not client.exists(f"{home}/i"), "what is moved has another id"


def test_link_to_an_attribute(client, home):
    with told(500, '"id"'):
        client.link(f"{home}/@id", f"{home}/l")


@pytest.mark.parametrize("attributes, words", [({"id": "x"}, ['"id"', "cannot be changed"]), ({"broken": True}, ['"broken"']), ({"acl": 5}, ["acl"])],
                         ids=range(3))
def test_link_bad_attributes(client, home, attributes, words):
    client.set(f"{home}/a", 1)
    with told(1, *words):
        client.link(f"{home}/a", f"{home}/l", attributes=attributes)
    assert client.list(home) == ["a"]


@pytest.mark.parametrize("parameters, words", [
    ({"target_path": "//tmp"}, ['"link_path"', "Missing"]), ({"link_path": "//tmp/l"}, ['"target_path"', "Missing"]),
    ({"target_path": "tmp", "link_path": "//tmp/l"}, ['"target_path"', "`/` or `#`"]),
    ({"target_path": "//tmp", "link_path": "//tmp/l", "force": 1}, ['"force"', "boolean"])], ids=range(4))
def test_link_bad_parameters(client, parameters, words):
    with told(1, *words):
        formatted(client, "link", **parameters)
    assert not client.exists("//tmp/l&")


def test_link_in_a_transaction(client, home):
    id, within = inside(client)
    within.set(f"{home}/n", 1)
    within.link(f"{home}/n", f"{home}/l")
    assert within.get(f"{home}/l") == 1 and not client.exists(f"{home}/l&")
    with told(500, '"n"'):
        client.link(f"{home}/n", f"{home}/m")
    client.commit_transaction(id)
    assert client.get(f"{home}/l") == 1


def test_link_seen_from_a_transaction(client, home):
    """It leads to what the transaction sees."""
    client.link(f"{home}/n", f"{home}/l", force=True)
    _, within = inside(client)
    within.set(f"{home}/n", 1)
    assert within.get(f"{home}/l") == 1 and not within.get(f"{home}/l&/@broken")
    assert not client.exists(f"{home}/l") and client.get(f"{home}/l&/@broken")


def test_link_odd_names(client, home):
    client.set(f"{home}/a\\/b\\@\\&", 1)
    client.link(f"{home}/a\\/b\\@\\&", f"{home}/l")
    assert client.get(f"{home}/l") == 1 and client.exists(client.get(f"{home}/l&/@target_path"))


def test_link_what_it_leads_to_goes(client, home):
    name = fresh("n")
    client.set(f"{home}/{name}", 1)
    client.link(f"{home}/{name}", f"{home}/l")
    client.remove(f"{home}/{name}")
    with told(500, name):
        client.set(f"{home}/l/x", 1)
    client.remove(f"{home}/l")
    assert client.list(home) == []
