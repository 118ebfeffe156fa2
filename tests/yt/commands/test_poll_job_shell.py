"""`poll_job_shell` through the real client."""

import yt.wrapper
from calls import formatted, without_shells


def test_poll_job_shell(client, operation):
    def shell(**parameters):
        answer = formatted(client, "poll_job_shell", job_id=operation[1], parameters=parameters)
        return answer.get("result", answer)
    try:
        opened = shell(operation="spawn", term="xterm", height=24, width=80)
    except yt.wrapper.YtResponseError as refused:
        without_shells(refused)
    assert opened["shell_id"]
    shell(operation="terminate", shell_id=opened["shell_id"])
