"""`alter_table` through the real client."""

def test_alter_table(client, home):
    client.create("table", f"{home}/t")
    client.alter_table(f"{home}/t", schema=[{"name": "a", "type": "int64"}])
    assert client.get(f"{home}/t/@schema")[0]["name"] == "a"
