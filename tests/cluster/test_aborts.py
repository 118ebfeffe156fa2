"""Jobs that cannot start: their operation is refused, or fails soon and says why."""

import pytest
from harness import ServerError, cluster as make_cluster, error_text, wait_for
from test_jobs import upload

EXABYTE = 1 << 60
EXPLANATIONS = "//sys/scheduler/orchid/scheduler/operation_explanations"


@pytest.mark.parametrize("options", [{"disk_request": {"disk_space": EXABYTE}}, {"disk_space_limit": EXABYTE}])
def test_s4_more_disk_than_any_node_has_is_refused(cluster, pool, options):
    """S4: it was accepted, and its jobs were aborted and tried again without end."""
    with pytest.raises(ServerError) as refused:
        cluster.start_vanilla("true", pool=pool, **options)
    text = refused.value.text()
    field = "disk_space_limit" if "disk_space_limit" in options else "disk_request/disk_space"
    assert f"/tasks/t/{field}" in text and "expected at most" in text and str(EXABYTE) in text, text


TOO_LONG = {
    "one variable": {"environment": {"LONG": "x" * 200_000}},
    "all variables": {"environment": {f"VARIABLE_{n}": "x" * 100_000 for n in range(100)}},
    "the command": {"command": "true " + "x" * 200_000},
}


@pytest.mark.parametrize("what", TOO_LONG)
def test_s4_a_command_or_environment_that_is_too_long_fails_the_job(cluster, pool, what):
    """S4: E2BIG is the doing of the specification, so the job has failed; an abort would be tried again."""
    task = {"command": "true", **TOO_LONG[what]}
    operation = cluster.start_vanilla(pool=pool, memory_limit=128 << 20, spec={"max_failed_job_count": 1}, **task)
    cluster.wait_state(operation, "failed")
    counters = cluster.counters(operation)
    assert (counters["failed"], counters["aborted"]) == (1, 0), counters
    assert "too long for the system" in error_text(cluster.result(operation)), cluster.result(operation)


def test_s12_a_node_that_prevents_every_job_fails_the_operation_and_stays_online():
    """S12: the aborts of one operation took the node from everybody."""
    config = 'min_required_disk_space = "1000000GiB"'
    with make_cluster(nodes=1, node_config=config) as cluster:
        cluster.create_pool("p")
        cluster.command("set", path="//sys/controller_agents/config",
                        value={"job_abort_backoff": {"min": 500, "max": 2000}})
        started = []

        def explanation():
            return "\n".join(cluster.get(f"{EXPLANATIONS}/{started[-1]}/text"))

        def explained():
            # It fails after a few seconds. If the test was too late to ask before, the next one is asked about.
            if not started or cluster.state(started[-1]) == "failed":
                started.append(cluster.start_vanilla("true", job_count=50, spec={"max_aborts_before_start": 5}))
            text = explanation()
            return "No job of task" in text and "Not enough disk space" in text
        wait_for(explained, what="an explanation", seen=explanation)
        operation = started[-1]
        cluster.wait_state(operation, "failed")
        result = str(cluster.operation(operation, "result"))
        assert "No job of the task could be started" in result and "Not enough disk space" in result, result
        # 50 jobs are started together, since nothing is known of them yet, then in rounds.
        assert cluster.counters(operation)["aborted"] <= 5 * 16
        assert not cluster.get(f"//sys/cluster_nodes/{cluster.nodes[0].name}/@alerts"), "it does not switch itself off"


def test_s20_a_file_whose_blob_is_missing_fails_the_operation():
    """S20: the job waited for ever, in silence."""
    with make_cluster(nodes=1) as cluster:
        cluster.create_pool("p")
        upload(cluster, "//tmp/data", b"content of the file\n" * 1000)
        blob, = [path for path in (cluster.directory / "server").glob("blobs/**/*")
                 if path.is_file() and path.read_bytes().startswith(b"content of the file\n")]
        blob.unlink()
        operation = cluster.start_vanilla("cat data", pool="p", file_paths=["//tmp/data"])
        cluster.wait_state(operation, "failed")
        result = str(cluster.operation(operation, "result"))
        assert "The content of file //tmp/data is missing on the server: blob" in result, result
        alerts = [alert for alert in cluster.get("//sys/scheduler/@alerts") if "//tmp/data" in str(alert)]
        assert alerts and "file_content_lost" in str(alerts), alerts
        upload(cluster, "//tmp/data", b"again\n")
        again = cluster.run_vanilla("cat data >&2", pool="p", file_paths=["//tmp/data"])
        assert cluster.stderr(again, cluster.jobs(again)[0]["id"]) == b"again\n"
        assert not [alert for alert in cluster.get("//sys/scheduler/@alerts") if "//tmp/data" in str(alert)]


def test_s20_a_table_whose_chunk_is_missing_fails_the_operation():
    """S20: the error named neither the table nor the chunk, and there was no alert."""
    with make_cluster(nodes=1) as cluster:
        cluster.create_pool("p")
        for path in ("//tmp/whole", "//tmp/lost", "//tmp/out"):
            cluster.command("create", type="table", path=path)

        def write(path, text):
            cluster.client().write_table(path, [{"text": f"{text} {n}"} for n in range(1000)])

        def blobs():
            return {path for path in (cluster.directory / "server" / "blobs").iterdir() if len(path.name) == 16}

        def run():
            spec = {"pool": "p", "mapper": {"command": "grep -v table_index", "format": "json", "memory_limit": 64 << 20},
                    "input_table_paths": ["//tmp/whole", "//tmp/lost"], "output_table_paths": ["//tmp/out"]}
            return cluster.command("start_operation", operation_type="map", spec=spec)["operation_id"]

        def alerts():
            return [alert for alert in cluster.get("//sys/scheduler/@alerts") if "//tmp/lost" in str(alert)]
        write("//tmp/whole", "whole")
        before = blobs()
        write("//tmp/lost", "lost")
        blob, = blobs() - before
        blob.unlink()
        operation = run()
        cluster.wait_state(operation, "failed")
        result = str(cluster.operation(operation, "result"))
        assert f"Rows of table //tmp/lost are missing or damaged on the server: blob {int(blob.name, 16)}" in result, result
        assert "table_content_lost" in str(alerts()), cluster.get("//sys/scheduler/@alerts")
        write("//tmp/lost", "again")
        assert not alerts(), alerts()
        cluster.wait_state(run(), "completed")
        assert cluster.get("//tmp/out/@row_count") == 2000
