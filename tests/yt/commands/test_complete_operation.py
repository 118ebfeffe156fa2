"""`complete_operation` through the real client."""

from calls import fresh, raw, refused, refuses_finished_operations, refuses_strange_operations, vanilla


def test_complete_operation(cluster, client, operation):
    client.complete_operation(operation[0])
    cluster.wait_state(operation[0], "completed")


def test_running_jobs_are_aborted(cluster, client, operation):
    id, job = operation
    client.complete_operation(id)
    cluster.wait_state(id, "completed")
    shown = client.get_operation(id)
    assert shown["result"]["error"]["code"] == 0
    assert set(shown["alerts"]) == {"operation_completed_by_user_request"}
    counted = shown["brief_progress"]["jobs"]
    assert (counted["running"], counted["failed"], counted["aborted"]) == (0, 0, 1)
    told = client.get_job(id, job)
    assert (told["state"], told["abort_reason"]) == ("aborted", "operation_completed")


def test_what_is_done_stays(cluster, client, home, pool):
    """Rows of jobs that are done are there, of others there are none."""
    client.write_table(f"{home}/in", [{"n": n} for n in range(4)])
    # The first job does its work, the others do not end.
    command = "[ $YT_JOB_COOKIE = 0 ] && cat || { cat; sleep 1000; }"
    operation = client.run_map(command, f"{home}/in", f"{home}/out", format="json", sync=False,
                               spec={"job_count": 2, "pool": pool, "mapper": {"cpu_limit": 0.1, "memory_limit": 64 << 20}})
    cluster.wait_counters(operation.id, completed=1)
    assert client.row_count(f"{home}/out") == 0
    client.complete_operation(operation.id)
    cluster.wait_state(operation.id, "completed")
    assert client.row_count(f"{home}/out") == 2


def test_by_alias_and_while_it_is_suspended(cluster, client, pool):
    alias = f"*{fresh('complete')}"
    id = vanilla(client, pool, alias=alias)
    client.suspend_operation(id)
    client.complete_operation(operation_alias=alias)
    cluster.wait_state(id, "completed")


def test_what_has_not_begun(client, pool):
    client.set(f"//sys/pools/{pool}/@max_running_operation_count", 0)
    id = vanilla(client, pool)
    with refused(201, '"pending".*"running"'):
        client.complete_operation(id)
    assert client.get_operation_state(id).name == "pending"


def test_what_is_refused(cluster, client, pool):
    def complete(**named):
        raw(client, "complete_operation", **named)
    refuses_strange_operations(complete)
    refuses_finished_operations(cluster, pool, complete)
