"""`multiset_attributes` through the real client."""

import pytest
from calls import fresh, inside, known_by, raw, told


def test_multiset_attributes(client, home):
    raw(client, "multiset_attributes", data=b"{x=1;y=2}", path=f"{home}/@", input_format="yson")
    assert (client.get(f"{home}/@x"), client.get(f"{home}/@y")) == (1, 2)


def put(client, path, data, **parameters):
    return raw(client, "multiset_attributes", data=data.encode(), path=path, input_format="yson", **parameters)


def test_multiset_attributes_others_stay(client, home):
    client.set(f"{home}/@a", 1)
    assert put(client, home, "{b=2;opaque=%true}") == {} and put(client, home, "{}") == {}
    assert client.get(f"{home}/@user_attributes") == {"a": 1, "b": 2} and client.get(f"{home}/@opaque")


@pytest.mark.parametrize("data, code, words", [
    ("{a=2;b=1;id=x}", 1, ['"id"', "cannot be changed"]), ("{a=2;owner=nobody-here}", 907, ["nobody-here"]),
    ("{a=2;account=none-such}", 905, ["none-such"]), ("{a=2;inherit_acl=5}", 1, ["inherit_acl", "boolean", "int64"]),
    ('{a=2;""=1}', 1, ["empty"]), ("{a=2;zz=[", 1, ["offset"]), ("5", 1, ["map", "int64"]), ("[]", 1, ["map", "list"]), ("", 1, ["input"]),
], ids=range(9))
def test_multiset_attributes_all_or_none(client, home, data, code, words):
    client.set(f"{home}/@a", 1)
    for path in (home, f"{home}/@"):
        with told(code, *words):
            put(client, path, data)
    assert client.get(f"{home}/@user_attributes") == {"a": 1}


def test_multiset_attributes_of_nodes_alone(client, home):
    client.set(f"{home}/@a", {})
    with told(1, f"{home}/@a"):
        put(client, f"{home}/@a", "{x=1}")
    with told(500, '"none"'):
        put(client, f"{home}/none", "{x=1}")
    with told(1, '"path"'):
        raw(client, "multiset_attributes", data=b"{x=1}", input_format="yson")


def test_multiset_attributes_links(client, home):
    client.set(f"{home}/n", 1)
    client.link(f"{home}/n", f"{home}/l")
    put(client, f"{home}/l", "{of=target}")
    put(client, f"{home}/l&", "{of=link}")
    assert (client.get(f"{home}/n/@of"), client.get(f"{home}/l&/@of")) == ("target", "link")


def test_multiset_attributes_pools(client, pool):
    path = f"//sys/pools/{pool}"
    put(client, path, "{weight=2.;max-operation-count=7}")
    with told(1, "max_running_operation_count", "-1"):
        put(client, f"{path}/@", "{weight=3.;max_running_operation_count=-1}")
    assert client.get(f"{path}/@weight") == 2.0 and client.get(f"{path}/@max_operation_count") == 7


def test_multiset_attributes_in_a_transaction(client, home):
    id, within = inside(client)
    put(within, home, "{a=1;b=2}")
    assert within.get(f"{home}/@a") == 1 and not client.exists(f"{home}/@a")
    with told(402, id):
        put(client, home, "{c=1;b=3}")
    assert not client.exists(f"{home}/@c")
    client.commit_transaction(id)
    assert client.get(f"{home}/@user_attributes") == {"a": 1, "b": 2}


def test_multiset_attributes_who_may(guarded):
    root, name = known_by(guarded, guarded.token), fresh("user")
    root.create("user", attributes={"name": name})
    other = known_by(guarded, root.issue_token(name))
    root.create("map_node", f"//tmp/{name}")
    with told(901, name, "administer"):
        put(other, f"//tmp/{name}", "{a=1;acl=[]}")
    assert not root.exists(f"//tmp/{name}/@a")
    put(other, f"//tmp/{name}", "{a=1}")
    assert root.get(f"//tmp/{name}/@a") == 1
