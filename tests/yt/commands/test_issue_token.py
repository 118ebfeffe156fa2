"""`issue_token` through the real client."""

import pytest
import yt.wrapper
from calls import known_by


def test_issue_token(guarded):
    root = known_by(guarded, guarded.token)
    root.create("user", attributes={"name": "ann"})
    token = root.issue_token("ann")
    assert known_by(guarded, token).get_current_user()["user"] == "ann"
    with pytest.raises(yt.wrapper.YtTokenError):
        known_by(guarded, token[::-1]).list("/")
