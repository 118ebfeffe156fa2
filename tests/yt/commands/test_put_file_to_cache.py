"""`put_file_to_cache` through the real client."""

from calls import cached


def test_put_file_to_cache(client, home):
    md5, path = cached(client, home)
    assert str(path) == f"{home}/cache/{md5[-2:]}/{md5}" and client.read_file(str(path)).read() == home.encode()
