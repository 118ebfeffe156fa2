"""What stays of operations that are over: over restarts, within bounds, with stderrs."""

import os
import signal
import time

import pytest
from harness import ServerError, cluster as make_cluster, wait_for

KEPT = 3


@pytest.fixture(scope="module")
def small():
    """A cluster that keeps few operations."""
    with make_cluster(server_config=f"archive_operations = {KEPT}\n") as cluster:
        cluster.create_pool("p")
        yield cluster


def is_forgotten(cluster, operation):
    try:
        cluster.operation(operation, "state")
        return False
    except ServerError as error:
        assert 1915 in error.codes()
        return True


def test_the_oldest_go_and_the_others_stay_over_a_restart(small):
    done = [small.run_vanilla("echo output of $YT_JOB_COOKIE >&2", job_count=2) for _ in range(KEPT + 2)]
    wait_for(lambda: is_forgotten(small, done[1]), what="the second operation to be forgotten")
    assert is_forgotten(small, done[0])

    def everything():
        listed = small.command("list_operations", pool="p", include_archive=True)
        assert [o["id"] for o in listed["operations"]] == done[:1:-1]
        assert listed["state_counts"] == {"completed": KEPT} and not listed["incomplete"]
        seen = {}
        for operation in done[2:]:
            jobs = small.jobs(operation, sort_field="start_time")
            stderrs = {small.stderr(operation, job["id"]) for job in jobs}
            assert stderrs == {b"output of 0\n", b"output of 1\n"}
            job = small.command("get_job", operation_id=operation, job_id=jobs[0]["id"])
            assert job["state"] == "completed" and job["statistics"]
            events = small.command("list_operation_events", operation_id=operation)
            assert [e["state"] for e in events][-2:] == ["completing", "completed"]
            assert {e["event_type"] for e in events} == {"state_changed"}
            seen[operation] = (jobs, events, small.operation(operation))
        return seen

    before = everything()
    small.server.kill()
    small.restart()
    assert everything() == before
    with pytest.raises(ServerError) as refused:
        small.jobs(done[0])
    assert 1915 in refused.value.codes()


def test_pages_of_jobs_by_token(small):
    operation = small.run_vanilla("true", job_count=7)
    seen, token = [], None
    while True:
        page = small.command("list_jobs", operation_id=operation, limit=3, sort_field="id",
                             **({"continuation_token": token} if token else {}))
        seen += [job["id"] for job in page["jobs"]]
        token = page.get("continuation_token")
        if token is None:
            break
    assert len(seen) == 7 and seen == sorted(set(seen))
    with pytest.raises(ServerError) as refused:
        small.command("list_jobs", operation_id=operation, continuation_token="next")
    assert "continuation_token" in refused.value.text()


def test_events_by_the_client(small):
    operation = small.run_vanilla("true")
    client = small.client()
    events = client.list_operation_events(operation)
    assert [e["state"] for e in events][-1] == "completed"
    assert client.list_operation_events(operation, event_type="incarnation_started") == []


def test_when_alerts_came_and_went(small):
    """Over a kill -9 and into the archive, by the real client (http-api.md 9.1)."""
    spec = {"pool": "p", "tasks": {"t": {"command": "sleep 1000", "job_count": 1, "cpu_limit": 0.1}}}
    operation = small.command("start_operation", operation_type="vanilla", spec=spec)["operation_id"]
    small.wait_state(operation, "running")

    def story():
        shown = small.client().get_operation(operation, attributes=["alerts", "alert_events"])
        for event in shown["alert_events"]:
            assert set(event) == {"time", "alert_type", "error"}
            assert set(event["error"]) == {"code", "message", "attributes", "inner_errors"}
        times = [event["time"] for event in shown["alert_events"]]
        assert times == sorted(times)
        came = [(event["alert_type"], event["error"]["code"] != 0) for event in shown["alert_events"]]
        return set(shown["alerts"]), came, times

    assert story() == (set(), [], [])
    small.client().suspend_operation(operation, reason="lunch")
    before = story()
    assert before[:2] == ({"operation_suspended"}, [("operation_suspended", True)])
    small.server.kill()
    small.restart()
    small.wait_state(operation, "running")
    assert story() == before
    small.client().resume_operation(operation)
    small.client().complete_operation(operation)
    small.wait_state(operation, "completed")
    present, came, times = story()
    assert present == {"operation_completed_by_user_request"} and times[:1] == before[2]
    assert came == [
        ("operation_suspended", True),
        ("operation_suspended", False),
        ("operation_completed_by_user_request", True),
    ]
    small.server.kill()
    small.restart()
    assert story() == (present, came, times)


def test_who_may(small):
    operation = small.run_vanilla("true")
    for subject, permissions, expected in (("root", ["read", "manage"], True), ("nobody-there", ["read"], False)):
        listed = small.command("list_operations", access={"subject": subject, "permissions": permissions})
        assert (operation in [o["id"] for o in listed["operations"]]) == expected
    for access, word in (({"subject": "root"}, "permissions"), ({"subject": "root", "permissions": ["fly"]}, "fly"),
                         ({"subject": 1, "permissions": []}, "subject")):
        with pytest.raises(ServerError) as refused:
            small.command("list_operations", access=access)
        assert word in refused.value.text()


# --- what is left of jobs that the server ends

# The first of several jobs fails when the test says so; all have printed a line by then.
PRINTS = 'echo line of $YT_JOB_COOKIE >&2; while [ $YT_JOB_COOKIE != 0 ] || [ ! -e {} ]; do sleep 0.05; done; exit 1'


def for_all(command):
    return lambda cluster, operation, jobs, _: [cluster.command(command, job_id=job) for job in jobs]


def for_it(command, **options):
    return lambda cluster, operation, jobs, _: cluster.command(command, operation_id=operation, **options)


WAYS = {
    "abort": for_it("abort_operation"),
    "complete": for_it("complete_operation"),
    "suspend": for_it("suspend_operation", abort_running_jobs=True),
    "abandon": for_all("abandon_job"),
    "abort_job": for_all("abort_job"),
    "sibling": lambda cluster, operation, jobs, fail: fail.touch(),
}


def start_printing(cluster, count=2, **spec):
    """An operation whose jobs have all printed a line; their texts by id, and the file that lets the first fail."""
    fail = cluster.shared / f"fail-{time.monotonic_ns()}"
    operation = cluster.start_vanilla(PRINTS.format(fail), job_count=count, spec={"max_failed_job_count": 1, **spec})
    cluster.wait_jobs(operation, count)
    jobs = {job["id"]: b"line of %d\n" % job["job_cookie"] for job in cluster.jobs(operation)}
    wait_for(lambda: all(cluster.stderr(operation, job) == text for job, text in jobs.items()), what="their lines")
    return operation, jobs, fail


def sizes(cluster, operation, jobs):
    return {job["id"]: job.get("stderr_size") for job in cluster.jobs(operation) if job["id"] in jobs}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_left_of_jobs_whatever_ended_them(small, way):
    operation, jobs, fail = start_printing(small)
    WAYS[way](small, operation, jobs, fail)
    if way in ("abort", "complete", "suspend", "abandon"):
        # There is no moment at which nothing can be had: the node tells it, the archive does, or neither can yet.
        for job, text in jobs.items():
            try:
                assert small.command("get_job_stderr", operation_id=operation, job_id=job) == text
            except ServerError as error:
                assert 3 in error.codes()
    wanted = {job: len(text) for job, text in jobs.items()}
    wait_for(lambda: sizes(small, operation, jobs) == wanted, what="the sizes of their stderrs")
    assert {job: small.stderr(operation, job) for job in jobs} == jobs
    assert {job: small.command("get_job_stderr", job_id=job) for job in jobs} == jobs
    if way in ("suspend", "abort_job"):
        small.command("abort_operation", operation_id=operation)


@pytest.mark.parametrize("way", ["abort", "suspend"])
def test_what_is_left_comes_after_a_kill_of_the_server(small, way):
    operation, jobs, fail = start_printing(small)
    node = small.nodes[0].popen.pid
    os.kill(node, signal.SIGSTOP)
    try:
        WAYS[way](small, operation, jobs, fail)
        assert [job["state"] for job in small.jobs(operation)] == ["aborted", "aborted"]
        small.server.kill()
    finally:
        os.kill(node, signal.SIGCONT)
    small.restart()
    wanted = {job: len(text) for job, text in jobs.items()}
    wait_for(lambda: sizes(small, operation, jobs) == wanted, what="the sizes of their stderrs")
    assert {job: small.stderr(operation, job) for job in jobs} == jobs
    if way == "suspend":
        small.command("abort_operation", operation_id=operation)


def test_as_many_are_kept_as_have_a_place(small):
    operation, jobs, _ = start_printing(small, 4, max_stderr_count=2)
    small.command("abort_operation", operation_id=operation)

    def told():
        texts = {job: small.stderr(operation, job) for job, size in sizes(small, operation, jobs).items() if size}
        return len(texts) == 2 and all(jobs[job] == text for job, text in texts.items())
    wait_for(told, what="two stderrs")


def test_a_long_stderr_of_an_aborted_job(small):
    """It is brought before the end is told."""
    operation = small.start_vanilla("yes | head -c 1000000 >&2; sleep 1000")
    job, = small.wait_jobs(operation)
    wait_for(lambda: small.stderr(operation, job).count(b"y\n") == 500_000, what="all that it prints")
    small.command("abort_operation", operation_id=operation)
    wait_for(lambda: sizes(small, operation, [job])[job] == 1_000_000, what="the size of its stderr")
    assert small.stderr(operation, job).count(b"y\n") == 500_000


def test_a_node_that_does_not_answer_is_not_a_job_that_prints_nothing(small):
    operation, jobs, _ = start_printing(small, 1)
    (job, text), = jobs.items()
    node = small.nodes[0].popen.pid
    os.kill(node, signal.SIGSTOP)
    try:
        with pytest.raises(ServerError) as running:
            small.command("get_job_stderr", operation_id=operation, job_id=job)
        small.command("abort_operation", operation_id=operation)
        with pytest.raises(ServerError) as over:
            small.command("get_job_stderr", operation_id=operation, job_id=job)
    finally:
        os.kill(node, signal.SIGCONT)
    for refused in (running, over):
        assert refused.value.error["code"] == 3 and "does not answer" in refused.value.text()
    wait_for(lambda: sizes(small, operation, jobs) == {job: len(text)}, what="the size of its stderr")
    assert small.stderr(operation, job) == text


def test_jobs_that_are_over_are_found_by_their_ids_alone(small):
    operation = small.run_vanilla("echo said >&2")
    job, = small.jobs(operation)
    assert small.command("get_job", job_id=job["id"]) == small.command("get_job", operation_id=operation, job_id=job["id"])
    assert set(small.command("get_job", job_id=job["id"], attributes=["state"])) <= {"id", "state"}
    assert small.command("get_job_stderr", job_id=job["id"]) == b"said\n"
    running, = small.wait_jobs(other := small.start_vanilla("sleep 1000"))
    for parameters in ({"job_id": job["id"]}, {"job_id": job["id"], "operation_id": operation}, {"job_id": running},
                       {"job_id": running, "operation_id": other}):
        with pytest.raises(ServerError) as refused:
            small.command("get_job_fail_context", **parameters)
        assert refused.value.error["code"] == 203 and "has no fail context" in refused.value.text()
    for command in ("get_job", "get_job_stderr", "get_job_fail_context"):
        with pytest.raises(ServerError) as refused:
            small.command(command, job_id="1-2-384-3")
        assert refused.value.error["code"] == 203 and "No such job" in refused.value.text()
    small.command("abort_operation", operation_id=other)
