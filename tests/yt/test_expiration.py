"""Nodes that are removed by themselves, through the real SDK (http-api.md 6.3)."""

import pytest
import yt.wrapper as yt_wrapper
from harness import wait_for


def test_what_lies_unused_goes_with_all_that_is_below(client, home):
    path, table = f"{home}/map", f"{home}/table"
    client.create("map_node", path, attributes={"expiration_timeout": 3_600_000})
    assert client.get(f"{path}/@expiration_timeout") == 3_600_000
    client.create("table", f"{path}/inside/table", recursive=True)
    client.set(f"{path}/@expiration_timeout", 1000)
    client.create("table", table, attributes={"expiration_timeout": 1000})
    client.create("table", f"{home}/beside")
    wait_for(lambda: not client.exists(path) and not client.exists(table), what="both to expire")
    assert client.exists(f"{home}/beside")


def test_temporary_tables(client, home):
    short = client.create_temp_table(home, "short", expiration_timeout=1000)
    long = client.create_temp_table(home, "long")
    assert client.get(f"{long}/@expiration_time") > client.get(f"{long}/@creation_time")
    wait_for(lambda: not client.exists(short), what="the table to expire")
    assert client.exists(long)
    kept = client.copy(long, f"{home}/kept")
    assert kept and not client.exists(f"{home}/kept/@expiration_time")
    client.copy(long, f"{home}/too", preserve_expiration_time=True)
    assert client.get(f"{home}/too/@expiration_time") == client.get(f"{long}/@expiration_time")
    client.remove(f"{long}/@expiration_time")
    assert not client.exists(f"{long}/@expiration_time")


def test_bad_values_are_refused(client, home):
    with pytest.raises(yt_wrapper.YtResponseError) as info:
        client.create("table", f"{home}/bad", attributes={"expiration_timeout": -5})
    assert "expiration_timeout" in str(info.value) and "-5" in str(info.value)
    assert not client.exists(f"{home}/bad")
