"""`get_file_from_cache` through the real client."""

from calls import cached


def test_get_file_from_cache(client, home):
    md5, path = cached(client, home)
    assert str(client.get_file_from_cache(md5, cache_path=f"{home}/cache")) == str(path)
    assert not client.get_file_from_cache("0" * 32, cache_path=f"{home}/cache")
