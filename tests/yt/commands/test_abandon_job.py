"""`abandon_job` through the real client."""

from calls import NO_JOB, raw, refused, vanilla


def test_abandon_job(cluster, client, operation):
    raw(client, "abandon_job", job_id=operation[1])
    cluster.wait_state(operation[0], "completed")


def test_it_counts_as_completed(cluster, client, operation):
    id, job = operation
    assert raw(client, "abandon_job", job_id=job) == {}
    cluster.wait_state(id, "completed")
    counted = client.get_operation(id, attributes=["brief_progress"])["brief_progress"]["jobs"]
    assert {name: n for name, n in counted.items() if n} == {"total": 1, "completed": 1}
    told, = client.list_jobs(id)["jobs"]
    assert (told["id"], told["state"]) == (job, "completed") and "error" not in told


def test_its_rows_are_dropped(cluster, client, home, pool):
    client.write_table(f"{home}/in", [{"n": n} for n in range(4)])
    command = "cat; [ $YT_JOB_COOKIE = 0 ] || sleep 1000"
    operation = client.run_map(command, f"{home}/in", f"{home}/out", format="json", sync=False,
                               spec={"pool": pool, "job_count": 2, "mapper": {"cpu_limit": 0.1, "memory_limit": 64 << 20}})
    cluster.wait_counters(operation.id, completed=1, running=1)
    job, = cluster.wait_jobs(operation.id)
    raw(client, "abandon_job", job_id=job)
    cluster.wait_state(operation.id, "completed")
    assert client.row_count(f"{home}/out") == 2


def test_the_others_go_on(cluster, client, pool):
    id = vanilla(client, pool, task={"job_count": 2})
    first, second = cluster.wait_jobs(id, 2)
    raw(client, "abandon_job", job_id=first)
    assert cluster.wait_jobs(id) == [second]
    with refused(203, first):
        raw(client, "abandon_job", job_id=first)
    assert cluster.counters(id)["completed"] == 1 and client.get_operation_state(id).is_running()


def test_a_job_of_another_operation(client, operation, pool):
    with refused(203):
        raw(client, "abandon_job", job_id=operation[1], operation_id=vanilla(client, pool))
    assert client.get_job(*operation)["state"] == "running"


def test_what_is_refused(cluster, client, pool):
    for parameters in ({}, {"job_id": "xyz"}, {"job_id": 5}):
        with refused(1, "job_id"):
            raw(client, "abandon_job", **parameters)
    done = vanilla(client, pool, "true")
    cluster.wait_state(done, "completed")
    for over in (NO_JOB, client.list_jobs(done)["jobs"][0]["id"]):
        with refused(203, f"No such job {over}") as error:
            raw(client, "abandon_job", job_id=over)
        assert error.value.contains_code(1916)
