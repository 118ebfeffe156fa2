"""The soak of `make soak-kill`, for a moment."""

from soak_kill import Soak


def test_a_short_soak():
    print(Soak(seconds=20, seed=20261128).run())
