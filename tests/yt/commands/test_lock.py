"""`lock` through the real client."""

import pytest
import yt.wrapper


def test_lock(client, home, transaction):
    inside = transaction[1]
    lock = inside.lock(home, mode="exclusive")
    assert client.get(f"#{lock['lock_id']}/@state") == "acquired"
    with pytest.raises(yt.wrapper.YtResponseError) as refused:
        client.set(f"{home}/@x", 1)
    assert refused.value.contains_code(402)
