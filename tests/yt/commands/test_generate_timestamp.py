"""`generate_timestamp` through the real client."""

import time

import yt.yson
from calls import formatted


def test_generate_timestamp(client):
    first = client.generate_timestamp()
    assert client.generate_timestamp() >= first > 0


def test_generate_timestamp_what_it_is_made_of(client):
    """Seconds since 1970, and 30 bits below them."""
    before = int(time.time())
    told = formatted(client, "generate_timestamp")
    assert list(told) == ["timestamp"] and isinstance(told["timestamp"], yt.yson.YsonUint64)
    assert before <= told["timestamp"] >> 30 <= time.time()


def test_generate_timestamp_each_is_larger(client):
    requests = [{"command": "generate_timestamp", "parameters": {}}] * 100
    stamps = [result["output"]["timestamp"] for result in formatted(client, "execute_batch", requests=requests)["results"]]
    assert stamps == sorted(set(stamps))
