"""`unlock` through the real client."""

def test_unlock(client, home, transaction):
    inside = transaction[1]
    inside.lock(home)
    inside.unlock(home)
    client.set(f"{home}/@x", 1)
