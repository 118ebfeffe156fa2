"""`run_job_shell_command` through the real client."""

import pytest
import yt.wrapper
from yt.wrapper.driver import make_request
from calls import NO_JOB, refused, vanilla, without_shells


def run(client, command, **parameters):
    try:
        return make_request("run_job_shell_command", {"command": command, **parameters}, client=client)
    except yt.wrapper.YtResponseError as refused:
        if "isolation" in str(refused):
            without_shells(refused)
        raise


def test_run_job_shell_command(client, operation):
    try:
        said = make_request("run_job_shell_command", {"job_id": operation[1], "command": "echo $((6 * 7))"}, client=client)
    except yt.wrapper.YtResponseError as refused:
        without_shells(refused)
    assert said.strip() == b"42"


@pytest.mark.parametrize("command, said", [
    ("echo out; echo err >&2; exit 3", b"out\nerr\n"),
    ("false", b""),
    ("kill -9 $$", b""),
    (r"printf '\0\377'", b"\0\xff"),
    ("echo $0; [[ a == a ]] && echo bash", b"bash\nbash\n"),
    ("wc -c", b"0\n"),
    ("no-such-command 2> /dev/null; echo $?", b"127\n"),
])
def test_what_it_prints(client, operation, command, said):
    """Both streams in their order; how it ends is no error."""
    assert run(client, command, job_id=operation[1]) == said


def test_beside_the_job(client, operation):
    said = run(client, "echo $YT_JOB_ID $YT_OPERATION_ID; ps -eo args=; pwd", job_id=operation[1]).decode()
    assert said.startswith(f"{operation[1]} {operation[0]}\n") and "sleep 1000" in said and "/slots/" in said
    assert client.run_job_shell_command(operation[1], "echo by the client").read() == b"by the client\n"
    assert client.get_job(*operation)["state"] == "running"


def test_what_is_refused(cluster, client, operation, pool):
    done = vanilla(client, pool, "true")
    cluster.wait_state(done, "completed")
    for job in (NO_JOB, client.list_jobs(done)["jobs"][0]["id"]):
        with refused(203, f"No such job {job}"):
            run(client, "true", job_id=job)
    for parameters, words in (({}, "job_id"), ({"job_id": "xyz"}, "job_id"), ({"job_id": operation[1], "command": None}, "command"),
                              ({"job_id": operation[1], "command": 5}, "command.*int64"),
                              ({"job_id": operation[1], "shell_name": "other"}, 'No such job shell "other"')):
        with refused(1, words):
            make_request("run_job_shell_command", {"command": "true", **parameters}, client=client)
