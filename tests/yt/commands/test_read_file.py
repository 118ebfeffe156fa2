"""`read_file` through the real client."""

def test_read_file(client, home):
    client.write_file(f"{home}/f", b"abcdef")
    assert client.read_file(f"{home}/f", offset=1, length=3).read() == b"bcd"
