"""`get_job_input_paths` through the real client."""

from calls import NO_JOB, formatted, refused, refuses_strange_operations, vanilla


def test_get_job_input_paths(client, home, failed):
    path, = client.get_job_input_paths(failed[1])
    assert str(path) == f"{home}/rows"
    assert path.attributes["ranges"] == [{"lower_limit": {"row_index": 0}, "upper_limit": {"row_index": 2}}]


def test_of_several_jobs(cluster, client, home, pool):
    """Each has its part, and all have everything, once."""
    for name in "ab":
        client.write_table(f"{home}/{name}", [{"n": n} for n in range(3)])
    operation = client.run_map("cat > /dev/null", [f"{home}/a[#1:]", f"{home}/b{{n}}"], [], format="json", sync=False,
                               spec={"pool": pool, "job_count": 3, "mapper": {"cpu_limit": 0.1, "memory_limit": 64 << 20}})
    cluster.wait_state(operation.id, "completed")
    found = []
    for job in client.list_jobs(operation.id)["jobs"]:
        for path in client.get_job_input_paths(job["id"]):
            for part in path.attributes["ranges"]:
                rows = range(part["lower_limit"]["row_index"], part["upper_limit"]["row_index"])
                found += [(str(path).rpartition("/")[2], row) for row in rows]
    assert sorted(found) == [("a", 1), ("a", 2), ("b", 0), ("b", 1), ("b", 2)]


def test_paths_that_are_refused(client, failed, pool):
    def ask(**parameters):
        return formatted(client, "get_job_input_paths", **parameters)
    refuses_strange_operations(lambda **named: ask(job_id=failed[1], **named), missing=False)
    for more in ({}, {"job_id": "xyz"}):
        with refused(1, "job_id"):
            ask(**more)
    for more in ({"job_id": failed[1], "operation_id": vanilla(client, pool)}, {"job_id": NO_JOB, "operation_id": failed[0]}):
        with refused(203, "No such job"):
            ask(**more)
