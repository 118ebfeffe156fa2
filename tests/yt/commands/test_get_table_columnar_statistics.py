"""`get_table_columnar_statistics` through the real client."""

import pytest
import yt.wrapper
from calls import closed, denied, formatted, raw, refused


def test_get_table_columnar_statistics(client, home):
    client.write_table(f"{home}/t", [{"a": "x" * 9}] * 4)
    whole, half = client.get_table_columnar_statistics([f"{home}/t", f"{home}/t[#0:#2]"])
    assert whole == {"column_data_weights": {}, "legacy_chunks_data_weight": 40, "chunk_row_count": 0, "legacy_chunk_row_count": 4}
    assert (half["legacy_chunks_data_weight"], half["legacy_chunk_row_count"]) == (20, 2)
    with pytest.raises(yt.wrapper.YtResponseError) as missing:
        client.get_table_columnar_statistics([f"{home}/t", f"{home}/nothing"])
    assert missing.value.contains_code(500)


def test_get_table_columnar_statistics_parts(client, home):
    for name in ("empty", "t"):
        client.create("table", f"{home}/{name}")
    raw(client, "write_table", path=f"{home}/t", data=b"{a=1;b=2};" * 4)
    ids = [f"{home}/empty", f"{home}/t[#1:#2,#3]", f"{home}/t[#4:]", f"{home}/t{{a}}", f"{home}/t"]
    assert [told["legacy_chunk_row_count"] for told in client.get_table_columnar_statistics(ids)] == [0, 2, 0, 4, 4]
    assert formatted(client, "get_table_columnar_statistics", paths=[]) == []
    assert [told["legacy_chunk_row_count"] for told in client.get_table_columnar_statistics([f"{home}/t"] * 1000)] == [4] * 1000


def test_get_table_columnar_statistics_parameters(client, home):
    client.create("file", f"{home}/f")
    for parameters, words in (({}, '"paths"'), ({"paths": home}, '"paths" must be a list'), ({"paths": [home] * 1001}, "at most 1000 paths"),
                              ({"paths": [5]}, '"paths"'), ({"paths": [f"{home}/f"]}, "expected a table"), ({"paths": [f"{home}/f[#1:"]}, "paths")):
        with refused(1, words):
            formatted(client, "get_table_columnar_statistics", **parameters)


def test_get_table_columnar_statistics_in_a_transaction(client, home, transaction):
    id, inside = transaction
    inside.create("table", f"{home}/t")
    assert len(inside.get_table_columnar_statistics([f"{home}/t"])) == 1
    with refused(500, "t"):
        client.get_table_columnar_statistics([f"{home}/t"])


def test_get_table_columnar_statistics_who_may(guarded):
    path, reader, stranger = closed(guarded, "table")
    with denied(stranger, "read"):
        stranger.get_table_columnar_statistics([path])
    assert len(reader.get_table_columnar_statistics([path])) == 1
    guarded.client().set(f"{path}/@acl/end", {"action": "allow", "subjects": ["root"], "permissions": ["read"], "columns": ["pay"]})
    with refused(901, 'column "pay"'):
        reader.get_table_columnar_statistics([path])
    assert len(reader.get_table_columnar_statistics([f"{path}{{name}}"])) == 1
