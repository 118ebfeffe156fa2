"""Operations that only have rows written anew: `erase`, and merges that cannot take chunks as they are."""

import json
import random

import pytest
import yt.wrapper
from harness import ServerError

ROWS = [{"id": n, "name": f"row {n}"} for n in range(10)]


def read(client, path):
    return list(client.read_table(path, format=yt.wrapper.JsonFormat()))


def in_chunks(client, table, rows, size=3):
    for first in range(0, len(rows), size):
        client.write_table(yt.wrapper.TablePath(table, append=True), rows[first:first + size])


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


def test_a_sorted_merge_takes_chunks_if_it_can(cluster, client, home):
    client.write_table(f"<sorted_by=[id]>{home}/a", ROWS)
    client.write_table(f"<sorted_by=[id]>{home}/b", [{"id": 100}])
    operation = client.run_merge([f"{home}/b", f"{home}/a"], f"{home}/m", mode="sorted")
    assert cluster.jobs(operation.id) == [] and client.get(f"{home}/m/@chunk_count") == 2
    assert [row["id"] for row in read(client, f"{home}/m")] == [*range(len(ROWS)), 100]
    for rows, spec in (("", {"combine_chunks": True}), ("", {"force_transform": True}), ("[#0:#100]", {})):
        operation = client.run_merge([f"{home}/b", f"{home}/a{rows}"], f"{home}/n", mode="sorted", spec=spec)
        [job] = cluster.jobs(operation.id)
        assert job["type"] == "sorted_merge" and client.get(f"{home}/n/@chunk_count") == 1
        assert read(client, f"{home}/n") == read(client, f"{home}/m")


def test_rows_of_a_sorted_merge_come_between_one_another(cluster, client, home):
    """Many chunks of a few blocks, keys of several types and columns, ties: against sorted() of Python."""
    dice = random.Random(8)
    all_rows, tables = [], []
    for number in range(7):
        table = f"{home}/t{number}"
        rows = sorted(({"a": dice.choice([None, 1, 2, 3]), "b": f"{dice.randrange(40):03}", "pad": "x" * dice.randrange(3000), "t": number} for _ in range(dice.choice([0, 1, 300, 900]))), key=order)
        client.create("table", table, attributes={"schema": [{"name": "a", "type": "int64", "sort_order": "ascending"}, {"name": "b", "type": "string", "sort_order": "ascending"}, {"name": "pad", "type": "string"}, {"name": "t", "type": "int64"}]})
        for i in range(0, len(rows), 250):
            client.write_table(f"<append=%true>{table}", rows[i:i + 250])
        tables.append(table)
        all_rows.extend(rows)
    want = sorted(all_rows, key=order)
    client.run_merge(tables, f"{home}/m", mode="sorted")
    assert read(client, f"{home}/m") == want
    assert client.get(f"{home}/m/@sorted_by") == ["a", "b"]
    # By a part of the key the order of the rest is that of the tables.
    client.run_merge(tables, f"{home}/by-a", mode="sorted", spec={"merge_by": ["a"]})
    assert read(client, f"{home}/by-a") == sorted(all_rows, key=lambda row: order(row)[0])
    # What a job reads is known, and which job it was; a schema sorted by less does not change the order of the rows.
    by_a = [{"name": "a", "type": "int64", "sort_order": "ascending"}]
    output = yt.wrapper.TablePath(f"{home}/less", attributes={"schema": yt.yson.to_yson_type(by_a, attributes={"strict": False})})
    operation = client.run_merge(tables, output, mode="sorted")
    assert read(client, f"{home}/less") == want and client.get(f"{home}/less/@sorted_by") == ["a"]
    job, = cluster.jobs(operation.id)
    assert list(client.get_job_input(job["id"])) != []
    # Into itself.
    client.run_merge([tables[2], tables[3]], tables[2], mode="sorted")
    assert read(client, tables[2]) == sorted((row for row in all_rows if row["t"] in (2, 3)), key=order)
    # Behind what is there, in order.
    client.run_merge([tables[2], tables[4]], f"{home}/two", mode="sorted")
    last = {"a": 9, "b": "", "pad": "", "t": 0}
    client.write_table(f"<sorted_by=[a;b]>{home}/last", [last])
    client.run_merge([f"{home}/last", f"{home}/last"], f"<append=%true>{home}/two", mode="sorted", spec={"force_transform": True})
    assert read(client, f"{home}/two")[-2:] == [last, last]


def test_one_sorted_table_is_cut_as_usual(cluster, client, home):
    in_chunks(client, f"<sorted_by=[id]>{home}/a", ROWS)
    operation = client.run_merge(f"{home}/a", f"{home}/m", mode="sorted", spec={"combine_chunks": True, "job_count": 2})
    assert len(cluster.jobs(operation.id)) == 2 and client.get(f"{home}/m/@chunk_count") == 2
    assert read(client, f"{home}/m") == ROWS and client.get(f"{home}/m/@sorted_by") == ["id"]


def order(row):
    return ((row["a"] is not None, row["a"] or 0), row["b"])


def test_what_a_sorted_merge_refuses(cluster, client, home):
    client.write_table(f"<sorted_by=[id]>{home}/a", ROWS)
    merge = {"output_table_path": f"{home}/m", "mode": "sorted"}
    for path in (f"{home}/a{{id}}", f"<rename_columns={{id=n}}>{home}/a"):
        with pytest.raises(ServerError, match="/input_table_paths/0"):
            cluster.command("start_operation", operation_type="merge", spec={**merge, "input_table_paths": [path]})
    client.create("table", f"{home}/m")
    with pytest.raises(yt.wrapper.YtOperationFailedError) as failed:
        client.run_merge([f"{home}/a[{','.join(['#0:#1'] * 101)}]"], f"{home}/m", mode="sorted")
    assert "At most 100 tables" in str(failed.value) + json.dumps(failed.value.attributes, default=str)
    unique = [{"name": "id", "type": "int64", "sort_order": "ascending"}]
    client.create("table", f"{home}/u", attributes={"schema": yt.yson.to_yson_type(unique, attributes={"unique_keys": True})})
    client.write_table(f"{home}/u", [{"id": 1}])
    client.create("table", f"{home}/out", attributes={"schema": yt.yson.to_yson_type(unique, attributes={"unique_keys": True})})
    with pytest.raises(yt.wrapper.YtOperationFailedError, match="is there twice"):
        client.run_merge([f"{home}/u", f"{home}/u"], f"{home}/out", mode="sorted", spec={"max_failed_job_count": 1})
    assert read(client, f"{home}/out") == []


KV = [{"name": "k", "type": "int64", "sort_order": "ascending"}, {"name": "v", "type": "string"}]
PAIRS = [{"k": n, "v": str(n)} for n in range(6)]
ANEW = {"force_transform": True}


def seen(client, table):
    """Strict, names, key columns, unique keys; none without a schema."""
    schema = client.get(f"{table}/@schema")
    if client.get(f"{table}/@schema_mode") == "weak":
        return None
    keys = [column["name"] for column in schema if column.get("sort_order")]
    assert client.get(f"{table}/@sorted") == bool(keys)
    return schema.attributes["strict"], [column["name"] for column in schema], keys, schema.attributes["unique_keys"]


@pytest.mark.parametrize("spec", [{}, ANEW])
def test_the_schema_of_the_output_of_a_merge(cluster, client, home, spec):
    for name, rows in (("a", PAIRS[:3]), ("b", PAIRS[3:])):
        client.create("table", f"{home}/{name}", attributes={"schema": yt.yson.to_yson_type(KV, attributes={"unique_keys": name == "a"})})
        client.write_table(f"{home}/{name}", rows)
    client.create("table", f"{home}/other", attributes={"schema": [{"name": "k", "type": "int64"}]})
    client.write_table(f"{home}/weak", PAIRS[:1])
    a, b, other, weak, out = (f"{home}/{name}" for name in ("a", "b", "other", "weak", "m"))
    plain, keyed = (True, ["k", "v"], [], False), (True, ["k", "v"], ["k"], False)

    def merged(inputs, mode, inference=None, output=out):
        client.remove(out, force=True)
        more = {"schema_inference_mode": inference} if inference else {}
        operation = client.run_merge(inputs, output, mode=mode, spec={**spec, **more})
        assert client.get_operation(operation.id)["unrecognized_spec"] == {}
        assert bool(cluster.jobs(operation.id)) == bool(spec or output is not out), "as usual"
        return seen(client, out)

    for inference in (None, "auto", "from_input"):
        assert merged([a, b], "unordered", inference) == plain
        assert merged([a, b], "ordered", inference) == plain
        assert merged([a, b], "sorted", inference) == keyed
        # All of one table is as it was.
        assert merged([a], "ordered", inference) == (True, ["k", "v"], ["k"], True)
        assert merged([a], "sorted", inference) == keyed and merged([a], "unordered", inference) == plain
        assert merged([a, a], "ordered", inference) == plain and merged([weak], "unordered", inference) is None
    assert read(client, b) == PAIRS[3:] and merged([a, b], "sorted") == keyed and read(client, out) == PAIRS
    # Inputs that do not agree, and an output that is to stay as it is.
    for inputs in ([a, other], [a, weak], [weak, b, a]):
        assert merged(inputs, "unordered") is None and merged(inputs, "ordered", "from_output") is None
        with pytest.raises(yt.wrapper.YtOperationFailedError) as failed:
            merged(inputs, "unordered", "from_input")
        assert f"but {inputs[0]} and {inputs[1]} have different schemas" in str(failed.value)
    assert merged([a, b], "sorted", "from_output") is None and client.get(f"{out}/@sorted_by") == ["k"]
    # What the output says of itself wins.
    less = [{"name": "k", "type": "any"}, {"name": "v", "type": "string"}, {"name": "more", "type": "any"}]
    for inference in (None, "from_output", "from_input"):
        output = yt.wrapper.TablePath(out, attributes={"schema": less})
        assert merged([a, b], "unordered", inference, output) == (True, ["k", "v", "more"], [], False)
    client.write_table(out, PAIRS[:1])
    client.run_merge([a, b], out, mode="unordered", spec=spec)
    assert seen(client, out) == (True, ["k", "v", "more"], [], False)
    client.run_merge([a, b], f"<append=%true>{weak}", mode="unordered", spec={**spec, "schema_inference_mode": "auto"})
    assert seen(client, weak) is None and len(read(client, weak)) == 7


def test_schemas_of_parts_and_of_mixed_keys(client, home):
    for name in ("a", "b"):
        client.create("table", f"{home}/{name}", attributes={"schema": KV})
        client.write_table(f"{home}/{name}", PAIRS)
    client.run_merge(f"{home}/a[#2:#4]", f"{home}/m", mode="ordered")
    assert seen(client, f"{home}/m") == (True, ["k", "v"], [], False) and read(client, f"{home}/m") == PAIRS[2:4]
    client.run_merge([f"<columns=[n];rename_columns={{v=n}}>{home}/a", f"<columns=[n];rename_columns={{v=n}}>{home}/b"], f"{home}/n", mode="unordered")
    assert seen(client, f"{home}/n") == (True, ["n"], [], False) and len(read(client, f"{home}/n")) == 12
    # Rows that come between one another.
    client.run_merge([f"{home}/a", f"{home}/b"], f"{home}/s", mode="sorted", spec={"merge_by": ["k"]})
    assert seen(client, f"{home}/s") == (True, ["k", "v"], ["k"], False)
    assert [row["k"] for row in read(client, f"{home}/s")] == [n // 2 for n in range(12)]
