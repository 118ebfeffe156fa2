"""`run_job_shell_command` through the real client."""

import yt.wrapper
from yt.wrapper.driver import make_request
from calls import without_shells


def test_run_job_shell_command(client, operation):
    try:
        said = make_request("run_job_shell_command", {"job_id": operation[1], "command": "echo $((6 * 7))"}, client=client)
    except yt.wrapper.YtResponseError as refused:
        without_shells(refused)
    assert said.strip() == b"42"
