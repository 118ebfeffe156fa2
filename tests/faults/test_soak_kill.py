"""The soak of `make soak-kill`, for a moment."""

import pytest
from soak_kill import Soak


# Its operations have ten minutes to come to their ends.
@pytest.mark.timeout(1200)
def test_a_short_soak():
    print(Soak(seconds=20, seed=20261128).run())
