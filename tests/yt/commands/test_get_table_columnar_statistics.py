"""`get_table_columnar_statistics` through the real client."""

import pytest
import yt.wrapper


def test_get_table_columnar_statistics(client, home):
    client.write_table(f"{home}/t", [{"a": "x" * 9}] * 4)
    whole, half = client.get_table_columnar_statistics([f"{home}/t", f"{home}/t[#0:#2]"])
    assert whole == {"column_data_weights": {}, "legacy_chunks_data_weight": 40, "chunk_row_count": 0, "legacy_chunk_row_count": 4}
    assert (half["legacy_chunks_data_weight"], half["legacy_chunk_row_count"]) == (20, 2)
    with pytest.raises(yt.wrapper.YtResponseError) as missing:
        client.get_table_columnar_statistics([f"{home}/t", f"{home}/nothing"])
    assert missing.value.contains_code(500)
