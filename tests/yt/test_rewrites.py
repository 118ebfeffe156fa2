"""Operations that only have rows written anew: `erase`, and merges that cannot take chunks as they are."""

import json

import pytest
import yt.wrapper
from harness import ServerError

ROWS = [{"id": n, "name": f"row {n}"} for n in range(10)]


def read(client, path):
    return list(client.read_table(path, format=yt.wrapper.JsonFormat()))


def in_chunks(client, table, rows, size=3):
    for first in range(0, len(rows), size):
        client.write_table(f"<append=%true>{table}", rows[first:first + size])


@pytest.mark.parametrize(("ranges", "left"), [
    ("", []), ("[#0:#4]", range(4, 10)), ("[#2:#5]", [0, 1, *range(5, 10)]), ("[#3]", [0, 1, 2, *range(4, 10)]),
    ("[#8:]", range(8)), ("[#7:#9,#1:#3,#2:#5]", [0, 5, 6, 9]), ("[#20:]", range(10)), ("[:#100]", [])])
def test_erase(client, home, ranges, left):
    table = f"{home}/t"
    in_chunks(client, table, ROWS)
    id = client.get(f"{table}/@id")
    operation = client.run_erase(f"{table}{ranges}")
    assert operation.get_state() == "completed"
    assert read(client, table) == [ROWS[n] for n in left]
    assert client.get(f"{table}/@id") == id and client.get(f"{table}/@row_count") == len(list(left))


def test_what_is_told_of_an_erase(cluster, client, home):
    in_chunks(client, f"{home}/t", ROWS)
    operation = client.run_erase(f"{home}/t[#2:#5]", spec={"combine_chunks": True})
    told = client.get_operation(operation.id)
    assert told["type"] == "erase" and told["unrecognized_spec"] == {}
    assert told["brief_spec"]["input_table_paths"] and "mapper" not in told["brief_spec"]
    job, = cluster.jobs(operation.id)
    assert job["type"] == "ordered_merge"
    # What its job was given are the rows that stay.
    path, = client.get_job_input_paths(job["id"])
    assert [(r["lower_limit"]["row_index"], r["upper_limit"]["row_index"]) for r in path.attributes["ranges"]] == [(0, 2), (5, 10)]
    assert client.get(f"{home}/t/@chunk_count") == 1


def test_sorted_tables_stay_sorted(client, home):
    rows = [{"k": n // 2, "v": n} for n in range(10)]
    for name, attributes in (("by-path", "<sorted_by=[k]>"), ("by-schema", "")):
        table = f"{home}/{name}"
        if not attributes:
            schema = [{"name": "k", "type": "int64", "sort_order": "ascending"}, {"name": "v", "type": "int64"}]
            client.create("table", table, attributes={"schema": schema})
        client.write_table(f"{attributes}{table}", rows)
        client.run_erase(f"{table}[#3:#6]")
        assert read(client, table) == [*rows[:3], *rows[6:]]
        assert client.get(f"{table}/@sorted_by") == ["k"], name


def test_an_erase_goes_through_its_transaction(cluster, client, home):
    client.write_table(f"{home}/t", ROWS)
    with pytest.raises(ZeroDivisionError), client.Transaction():
        client.run_erase(f"{home}/t[#0:#9]")
        assert read(client, f"{home}/t") == ROWS[9:]
        assert read(cluster.client(), f"{home}/t") == ROWS
        1 / 0
    assert read(client, f"{home}/t") == ROWS


def test_an_erase_that_is_aborted_leaves_the_table(cluster, client, home, pool):
    client.write_table(f"{home}/t", ROWS)
    client.set(f"//sys/pool_trees/physical/{pool}/@max_running_operation_count", 0)
    operation = client.run_erase(f"{home}/t", spec={"pool": pool}, sync=False)
    client.abort_operation(operation.id)
    assert read(client, f"{home}/t") == ROWS


def test_erases_that_cannot_be(cluster, client, home):
    client.write_table(f"{home}/t", ROWS)
    for spec, error in (({}, "table_path"), ({"table_path": 5}, "/table_path"), ({"table_path": f"{home}/t{{id}}"}, "columns"),
                        ({"table_path": f"<append=%true>{home}/t"}, "append"), ({"table_path": f"{home}/t", "job_count": 0}, "/job_count")):
        with pytest.raises(ServerError) as refused:
            cluster.command("start_operation", operation_type="erase", spec=spec)
        assert error in refused.value.text(), spec
    for path, error in ((f"{home}/nothing", "nothing"), (home, "expected a table"), (f"{home}/t[a:b]", "not supported")):
        operation = cluster.command("start_operation", operation_type="erase", spec={"table_path": path})["operation_id"]
        cluster.wait_state(operation, "failed")
        assert error in json.dumps(cluster.result(operation))
    assert read(client, f"{home}/t") == ROWS


def test_the_command(cluster, client, home):
    client.write_table(f"{home}/t", ROWS)
    cluster.yt("erase", f"{home}/t[#1:]")
    assert read(client, f"{home}/t") == ROWS[:1]


@pytest.mark.parametrize("mode", ["ordered", "unordered"])
def test_a_merge_that_combines_chunks(client, home, mode):
    in_chunks(client, f"{home}/a", ROWS[:6], size=1)
    client.write_table(f"{home}/b", ROWS[6:])
    operation = client.run_merge([f"{home}/a", f"{home}/b"], f"{home}/m", mode=mode, spec={"combine_chunks": True})
    assert read(client, f"{home}/m") == ROWS
    assert client.get(f"{home}/m/@chunk_count") == 1
    assert client.get_operation(operation.id)["type"] == "merge"
    # A table into itself, as it is done to tables that have been appended to often.
    client.run_merge(f"{home}/a", f"{home}/a", mode=mode, spec={"combine_chunks": True})
    assert read(client, f"{home}/a") == ROWS[:6] and client.get(f"{home}/a/@chunk_count") == 1


def test_a_merge_of_parts(client, home):
    client.write_table(f"{home}/a", ROWS)
    client.write_table(f"{home}/b", [{"n": 5, "other": 1}])
    client.run_merge([f"{home}/a{{id}}[#2:#4]", f"<rename_columns={{n=id}};columns=[id]>{home}/b"], f"{home}/m", mode="ordered")
    assert read(client, f"{home}/m") == [{"id": 2}, {"id": 3}, {"id": 5}]
    client.run_merge(f"{home}/a[#0]", f"<append=%true>{home}/m", mode="unordered")
    assert read(client, f"{home}/m")[-1] == ROWS[0]


def test_a_sorted_merge_takes_chunks_as_they_are(cluster, client, home):
    client.write_table(f"<sorted_by=[id]>{home}/a", ROWS)
    for more in ({"combine_chunks": True}, {"force_transform": True}, {"input_table_paths": [f"{home}/a[#0]"]}):
        spec = {"input_table_paths": [f"{home}/a"], "output_table_path": f"{home}/a", "mode": "sorted", **more}
        with pytest.raises(ServerError, match="/mode"):
            cluster.command("start_operation", operation_type="merge", spec=spec)
