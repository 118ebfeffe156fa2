"""`concatenate` through the real client."""

def test_concatenate(client, home):
    for name in "cd":
        client.write_file(f"{home}/{name}", name.encode())
    client.concatenate([f"{home}/c", f"{home}/d"], f"{home}/files")
    assert client.read_file(f"{home}/files").read() == b"cd"
    for name in "ab":
        client.write_table(f"{home}/{name}", [{"from": name}])
    client.create("table", f"{home}/all")
    client.concatenate([f"{home}/a", f"{home}/b"], f"{home}/all")
    assert list(client.read_table(f"{home}/all")) == [{"from": "a"}, {"from": "b"}]
