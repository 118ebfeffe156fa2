"""`read_table` through the real client."""

def test_read_table(client, home):
    client.write_table(f"{home}/t", [{"a": n} for n in range(5)])
    assert list(client.read_table(f"{home}/t[#1:#3]")) == [{"a": 1}, {"a": 2}]
