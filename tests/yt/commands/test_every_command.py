"""No command is forgotten."""

import json
import pathlib
import urllib.request


def test_every_command_is_here(cluster):
    with urllib.request.urlopen(f"http://{cluster.address}/api/v4") as reply:
        names = {command["name"] for command in json.loads(reply.read())}
    here = {path.stem.removeprefix("test_") for path in pathlib.Path(__file__).parent.glob("test_*.py")}
    assert names <= here, f"without a file: {sorted(names - here)}"
