"""`put_file_to_cache` through the real client."""

import hashlib

import pytest
from calls import cached, closed, denied, formatted, refused


def summed(client, path, content=b"content"):
    client.write_file(path, content, compute_md5=True)
    return hashlib.md5(content).hexdigest()


def test_put_file_to_cache(client, home):
    md5, path = cached(client, home)
    assert str(path) == f"{home}/cache/{md5[-2:]}/{md5}" and client.read_file(str(path)).read() == home.encode()


def test_put_file_to_cache_maps_on_the_way_are_made(client, home):
    md5 = summed(client, f"{home}/f")
    path = client.put_file_to_cache(f"{home}/f", md5, cache_path=f"{home}/some/cache")
    assert path == f"{home}/some/cache/{md5[-2:]}/{md5}" and client.get(f"{path}/@md5") == md5
    assert client.get(f"{home}/some/cache/{md5[-2:]}/@type") == "map_node"


def test_put_file_to_cache_twice(client, home):
    md5, path = cached(client, home)
    first = client.get(f"{path}/@", attributes=["id", "touch_time"])
    assert client.put_file_to_cache(f"{home}/f", md5, cache_path=f"{home}/cache") == path
    again = client.get(f"{path}/@", attributes=["id", "touch_time"])
    assert again["id"] == first["id"] and again["touch_time"] > first["touch_time"]


def test_put_file_to_cache_what_is_there_and_is_not_the_file(client, home):
    md5 = summed(client, f"{home}/f")
    client.create("document", f"{home}/cache/{md5[-2:]}/{md5}", recursive=True)
    path = client.put_file_to_cache(f"{home}/f", md5, cache_path=f"{home}/cache")
    assert client.read_file(path).read() == b"content"


def test_put_file_to_cache_what_cannot_be_put(client, home):
    md5 = summed(client, f"{home}/f")
    client.write_file(f"{home}/unsummed", b"content")
    client.create("table", f"{home}/t")
    for path, code, word in ((f"{home}/unsummed", 1, "compute_md5"), (f"{home}/t", 1, "expected a file"), (home, 1, "expected a file"),
                             (f"{home}/nothing", 500, "nothing"), (f"{home}/f/x", 500, "cannot have children")):
        with refused(code, word):
            client.put_file_to_cache(path, md5, cache_path=f"{home}/cache")
    other = "0" * 32
    with refused(1, f"checksum {md5}, expected {other}"):
        client.put_file_to_cache(f"{home}/f", other, cache_path=f"{home}/cache")
    for odd in ("x", md5.upper(), md5[:-1], ""):
        with refused(1, '"md5"'):
            client.put_file_to_cache(f"{home}/f", odd, cache_path=f"{home}/cache")
    # The map itself is made by the client.
    assert client.list(f"{home}/cache") == []
    with refused(501):
        client.put_file_to_cache(f"{home}/f", md5, cache_path=f"{home}/t")


@pytest.mark.parametrize("missing", ["path", "md5", "cache_path"])
def test_put_file_to_cache_parameters(client, home, missing):
    parameters = {"path": f"{home}/f", "md5": "0" * 32, "cache_path": f"{home}/cache"}
    del parameters[missing]
    with refused(1, f'"{missing}"'):
        formatted(client, "put_file_to_cache", **parameters)


@pytest.mark.parametrize("preserve", [True, False])
def test_put_file_to_cache_expiration(client, home, preserve):
    md5 = summed(client, f"{home}/f")
    client.set(f"{home}/f/@expiration_timeout", 3_600_000)
    path = formatted(client, "put_file_to_cache", path=f"{home}/f", md5=md5, cache_path=f"{home}/cache", preserve_expiration_timeout=preserve)
    assert client.exists(f"{path}/@expiration_timeout") == preserve


@pytest.mark.parametrize("end", ["abort_transaction", "commit_transaction"])
def test_put_file_to_cache_in_a_transaction(client, home, transaction, end):
    id, inside = transaction
    md5 = summed(inside, f"{home}/f")
    inside.put_file_to_cache(f"{home}/f", md5, cache_path=f"{home}/cache")
    assert inside.get_file_from_cache(md5, cache_path=f"{home}/cache")
    assert not client.get_file_from_cache(md5, cache_path=f"{home}/cache")
    getattr(client, end)(id)
    assert bool(client.get_file_from_cache(md5, cache_path=f"{home}/cache")) == (end == "commit_transaction")


def test_put_file_to_cache_a_repeated_mutation(client, home):
    md5 = summed(client, f"{home}/f")
    parameters = {"path": f"{home}/f", "md5": md5, "cache_path": f"{home}/cache", "mutation_id": "1-2-8301-1"}
    path = formatted(client, "put_file_to_cache", **parameters)
    client.remove(f"{home}/f")
    assert formatted(client, "put_file_to_cache", **parameters, retry=True) == path


def test_put_file_to_cache_who_may(guarded):
    """What is put there and where: the one needs `read`, the other `write`."""
    root = guarded.client()
    path, reader, stranger = closed(guarded, "file")
    md5 = summed(root, path)
    cache = f"{path}-cache"
    root.create("map_node", cache)
    with denied(stranger, "read"):
        stranger.put_file_to_cache(path, md5, cache_path=cache)
    assert root.list(cache) == []
    assert reader.put_file_to_cache(path, md5, cache_path=cache).startswith(cache)
    root.set(f"{cache}/@inherit_acl", False)
    root.set(f"{cache}/@acl", root.get(f"{path}/@acl"))
    with denied(reader, "write"):
        reader.put_file_to_cache(path, md5, cache_path=cache)
