"""`write_file` through the real client."""

import hashlib


def test_write_file(client, home):
    client.write_file(f"{home}/f", b"abc", compute_md5=True)
    assert client.get(f"{home}/f/@md5") == hashlib.md5(b"abc").hexdigest()
