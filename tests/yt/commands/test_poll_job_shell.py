"""`poll_job_shell` through the real client."""

import pytest
import yt.wrapper
import yt.yson
from calls import NO_JOB, formatted, raw, refused, without_shells
from harness import wait_for


@pytest.fixture
def shell(client, operation):
    """Asks one thing of the shells beside a job."""
    def shell(operation, **parameters):
        answer = formatted(client, "poll_job_shell", job_id=job, parameters={"operation": operation, **parameters})
        assert set(answer) == {"result"}
        return answer["result"]
    job = operation[1]
    return shell


@pytest.fixture
def spawn(shell):
    """Opens one, and gives its id."""
    def spawn(**parameters):
        try:
            return shell("spawn", **{"term": "xterm", "height": 24, "width": 80, **parameters})["shell_id"]
        except yt.wrapper.YtResponseError as refused:
            without_shells(refused)
    return spawn


def until(shell, id, words):
    """All that it has printed, when these words are there."""
    seen = ""
    while words not in seen:
        seen += shell("poll", shell_id=id)["output"]
    return seen


def to_its_end(shell, id):
    seen = ""
    with refused(1800, "Shell exited"):
        while True:
            seen += shell("poll", shell_id=id)["output"]
    return seen


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


def test_where_a_command_is(shell, spawn, operation):
    """In the sandbox, with the environment of the job and what was given, at a terminal of the size that was given."""
    seen = to_its_end(shell, spawn(command="echo [$YT_JOB_ID] [$GIVEN] [$TERM]; stty size; pwd; ps -eo args=", term="vt100", height=33, width=77,
                                   environment=["GIVEN=a=b"]))
    assert f"[{operation[1]}] [a=b] [vt100]\r\n33 77\r\n" in seen and "/slots/" in seen and "sleep 1000" in seen


def test_what_is_typed_twice_is_taken_once(shell, spawn):
    id = spawn()

    def type(keys, offset):
        return shell("update", shell_id=id, keys=keys.encode().hex(), input_offset=offset, height=0, width=0)["consumed_offset"]
    assert type("echo on", 0) == 7
    assert type("echo on", 0) == 7, "the same once more"
    assert type("on", 5) == 7 and type("one-$((6*7))\n", 5) == 18, "what overlaps"
    assert "one-42" in until(shell, id, "one-42")
    assert shell("update", shell_id=id, keys="", input_offset=18)["consumed_offset"] == 18
    shell("terminate", shell_id=id)


def test_what_is_typed_with_a_gap_is_not_taken(shell, spawn):
    """What should be in between may come still."""
    id = spawn()
    assert shell("update", shell_id=id, keys=b"exit\n".hex(), input_offset=3)["consumed_offset"] == 0
    shell("terminate", shell_id=id)


def test_a_new_size(shell, spawn):
    id = spawn()
    shell("update", shell_id=id, keys="", input_offset=0, height=41, width=99)
    shell("update", shell_id=id, keys=b"stty size\n".hex(), input_offset=0, height=0, width=0)
    until(shell, id, "41 99")
    shell("terminate", shell_id=id)


def test_output_is_bytes(shell, spawn):
    output, id = b"", spawn(command=r"printf '\377\200'; sleep 1000")
    while len(output) < 2:
        piece = shell("poll", shell_id=id)["output"]
        output += yt.yson.get_bytes(piece) if not isinstance(piece, bytes) else piece
    assert output == b"\xff\x80"
    shell("terminate", shell_id=id)


def test_several_at_once(shell, spawn):
    first, second = spawn(command="echo one; sleep 1000"), spawn(command="echo two; sleep 1000")
    assert "one" in until(shell, first, "one") and "two" in until(shell, second, "two")
    shell("terminate", shell_id=first)
    with refused(1800):
        while True:
            shell("poll", shell_id=first)
    assert shell("update", shell_id=second, keys="", input_offset=0)["shell_id"] == second
    shell("terminate", shell_id=second)


def test_a_shell_ends(shell, spawn):
    id = spawn()
    shell("update", shell_id=id, keys=b"exit 5\n".hex(), input_offset=0)
    to_its_end(shell, id)


def test_whoever_is_not_asked_for_a_while_ends(shell, spawn):
    id = spawn(inactivity_timeout=300)

    def gone():
        try:
            return not shell("update", shell_id=id, keys="", input_offset=0)["shell_id"]
        except yt.wrapper.YtResponseError as error:
            return error.contains_code(1800) or "No such shell" in str(error)
    # Each question is one: it must be longer between two than the shell waits.
    wait_for(gone, what="its end", period=1)


def test_a_shell_goes_with_its_job(client, operation, shell, spawn):
    id = spawn()
    client.abort_operation(operation[0])
    with pytest.raises(yt.wrapper.YtResponseError) as error:
        while True:
            shell("poll", shell_id=id)
    assert any(error.value.contains_code(code) for code in (203, 1800, 1801)), error.value
    with refused(203, "No such job"):
        shell("spawn")


@pytest.mark.parametrize("parameters, words", [
    (None, "parameters"),
    ([], "parameters.*map"),
    ({}, "operation"),
    ({"operation": "dance"}, 'operation.*spawn.*"dance"'),
    ({"operation": 5}, "operation.*int64"),
    ({"operation": "poll"}, "shell_id"),
    ({"operation": "update", "keys": ""}, "shell_id"),
    ({"operation": "terminate"}, "shell_id"),
    ({"operation": "poll", "shell_id": "xyz"}, "shell_id"),
    ({"operation": "poll", "shell_id": "1-2-3-4"}, "No such shell"),
    ({"operation": "update", "shell_id": "1-2-3-4", "keys": "abc"}, "keys.*hexadecimal"),
    ({"operation": "update", "shell_id": "1-2-3-4", "keys": "xx"}, "keys.*hexadecimal"),
    ({"operation": "update", "shell_id": "1-2-3-4", "keys": "", "input_offset": -1}, "input_offset.*-1"),
    ({"operation": "spawn", "environment": ["NO_VALUE"]}, "environment.*NAME=value"),
    ({"operation": "spawn", "environment": "A=b"}, "environment.*list"),
    ({"operation": "spawn", "height": "tall"}, "height.*tall"),
    ({"operation": "spawn", "inactivity_timeout": -1}, "inactivity_timeout.*-1"),
])
def test_what_is_refused(client, operation, parameters, words):
    # There are no shells to speak of where jobs have none.
    words = f"{words}|isolation"
    with refused(1, words):
        raw(client, "poll_job_shell", job_id=operation[1], parameters=parameters)


def test_whom_it_is_not_for(client, operation):
    spawn = {"parameters": {"operation": "spawn", "command": "true"}}
    with refused(203, NO_JOB):
        raw(client, "poll_job_shell", job_id=NO_JOB, **spawn)
    with refused(1, 'No such job shell "other".*none'):
        raw(client, "poll_job_shell", job_id=operation[1], shell_name="other", **spawn)
    for job in ({}, {"job_id": "xyz"}):
        with refused(1, "job_id"):
            raw(client, "poll_job_shell", **job, **spawn)
