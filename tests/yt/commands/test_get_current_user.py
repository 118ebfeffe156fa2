"""`get_current_user` through the real client."""

def test_get_current_user(client):
    assert client.get_current_user()["user"] == "root"
