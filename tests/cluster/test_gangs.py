"""Jobs that only make sense together begin anew where they were, and others may stay (jobs-and-nodes.md 6.9)."""

from harness import wait_for


def by_rank(cluster, operation):
    """Running jobs by their cookies, once there are three."""
    jobs = wait_for(lambda: runs if len(runs := cluster.jobs(operation, state="running")) == 3 else None,
                    what="the whole gang")
    return {job["job_cookie"]: job for job in jobs}


def test_a_gang_stays_where_it_is(cluster, pool, shared):
    """One of three fails: the other two are run again in their allocations, the failed one in a new one."""
    # Each run waits for a file with its own number; those of the first incarnation fail then.
    command = f"while [ ! -e {shared}/end-$YT_JOB_INDEX ]; do sleep 0.1; done; echo $YT_GANG_RANK; [ $YT_JOB_INDEX -gt 2 ]"
    operation = cluster.start_vanilla(command, job_count=3, pool=pool, gang_options={})
    first = by_rank(cluster, operation)
    assert {job["gang_rank"] for job in first.values()} == {0, 1, 2}
    [incarnation] = {job["operation_incarnation"] for job in first.values()}
    (shared / "end-0").touch()
    wait_for(lambda: cluster.counters(operation)["failed"] == 1, what="the failure")
    # Whichever job had the first number.
    [failed] = [job["job_cookie"] for job in cluster.jobs(operation, state="failed")]
    second = by_rank(cluster, operation)
    assert not {job["id"] for job in first.values()} & {job["id"] for job in second.values()}
    assert {job["operation_incarnation"] for job in second.values()} != {incarnation}
    kept = {cookie for cookie in first if first[cookie]["allocation_id"] == second[cookie]["allocation_id"]}
    assert kept == {0, 1, 2} - {failed}
    assert {c: job["gang_rank"] for c, job in second.items()} == {0: 0, 1: 1, 2: 2}
    for number in range(3, 6):
        (shared / f"end-{number}").touch()
    cluster.wait_state(operation, "completed")
    reasons = [job.get("abort_reason") for job in cluster.jobs(operation, state="aborted")]
    assert reasons == ["operation_incarnation_changed"] * 2
    counters = cluster.counters(operation)
    assert (counters["total"], counters["completed"], counters["failed"], counters["aborted"]) == (3, 3, 1, 2)


def test_others_stay_if_they_want_to(cluster):
    """`enable_multiple_jobs`: the next job of a task begins where one has completed."""
    cluster.create_pool("narrow", resource_limits={"user_slots": 2})
    for stays in (False, True):
        operation = cluster.run_vanilla("true", job_count=12, pool="narrow",
                                        spec={"allocation": {"enable_multiple_jobs": stays}})
        jobs = cluster.jobs(operation)
        assert [job["state"] for job in jobs] == ["completed"] * 12
        allocations = {job["allocation_id"] for job in jobs}
        assert len(allocations) <= 2 if stays else len(allocations) == 12, allocations
