"""`write_table` through the real client."""

def test_write_table(client, home):
    client.write_table(f"{home}/t", [{"a": 1}])
    client.write_table(f"<append=%true>{home}/t", [{"a": 2}])
    assert client.get(f"{home}/t/@row_count") == 2
