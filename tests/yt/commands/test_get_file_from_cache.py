"""`get_file_from_cache` through the real client."""

import pytest
from calls import cached, closed, denied, formatted, refused


def test_get_file_from_cache(client, home):
    md5, path = cached(client, home)
    assert str(client.get_file_from_cache(md5, cache_path=f"{home}/cache")) == str(path)
    assert not client.get_file_from_cache("0" * 32, cache_path=f"{home}/cache")


def test_get_file_from_cache_a_cache_that_is_none_has_nothing(client, home):
    for kind in ("document", "table", "file"):
        client.create(kind, f"{home}/{kind}")
    for name in ("document", "table", "file", "nothing"):
        assert formatted(client, "get_file_from_cache", md5="0" * 32, cache_path=f"{home}/{name}") == "", name


@pytest.mark.parametrize("spoil", [
    lambda client, path: client.write_file(path, b"other", compute_md5=True),
    lambda client, path: client.write_file(path, b"unsummed"),
    lambda client, path: client.remove(path),
    lambda client, path: client.create("table", path, force=True),
], ids=["another", "unsummed", "removed", "table"])
def test_get_file_from_cache_what_is_not_that_file_any_more_is_a_miss(client, home, spoil):
    md5, path = cached(client, home)
    spoil(client, path)
    assert client.get_file_from_cache(md5, cache_path=f"{home}/cache") == ""


def test_get_file_from_cache_behind_a_link(client, home):
    md5, _ = cached(client, home)
    client.link(f"{home}/cache", f"{home}/link")
    assert client.get_file_from_cache(md5, cache_path=f"{home}/link") == f"{home}/link/{md5[-2:]}/{md5}"


def test_get_file_from_cache_parameters(client, home):
    for odd in ("x", "A" * 32, "../" + "0" * 29):
        with refused(1, '"md5".*32 lower-case hex digits'):
            client.get_file_from_cache(odd, cache_path=home)
    for parameters, word in (({"md5": "0" * 32}, "cache_path"), ({"cache_path": home}, "md5"), ({"md5": 5, "cache_path": home}, "md5"),
                             ({"md5": "0" * 32, "cache_path": "cache"}, "cache_path")):
        with refused(1, f'"{word}"'):
            formatted(client, "get_file_from_cache", **parameters)
    with refused(11000):
        formatted(client, "get_file_from_cache", md5="0" * 32, cache_path=home, transaction_id="1-2-10001-4")


def test_get_file_from_cache_who_may(guarded):
    path, reader, stranger = closed(guarded, "map_node")
    md5 = "0" * 32
    assert reader.get_file_from_cache(md5, cache_path=path) == ""
    with denied(stranger, "read"):
        stranger.get_file_from_cache(md5, cache_path=path)
