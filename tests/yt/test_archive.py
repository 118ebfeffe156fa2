"""What stays of operations that are over: over restarts, within bounds, with stderrs."""

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
