"""Tables with the real Python client and the real `yt` command (http-api.md 8.3)."""

import http.client
import json
import socket

import pytest
import yt.wrapper
import yt.yson
from harness import ServerError, cluster as make_cluster, error_codes, wait_for

ROWS = [{"id": n, "name": f"row {n}", "half": n / 2, "even": n % 2 == 0, "more": {"list": [n, None]}} for n in range(10)]


def read(client, path, **options):
    return list(client.read_table(path, **options))


@pytest.mark.parametrize("written", [
    yt.wrapper.YsonFormat(format="binary"), yt.wrapper.YsonFormat(format="text"), yt.wrapper.YsonFormat(format="pretty"),
    yt.wrapper.JsonFormat(),
])
def test_rows_come_back_in_every_format(client, home, written):
    table = f"{home}/t"
    client.write_table(table, ROWS, format=written)
    for format in (yt.wrapper.YsonFormat(format="binary"), yt.wrapper.YsonFormat(format="text"),
                   yt.wrapper.YsonFormat(format="pretty"), yt.wrapper.JsonFormat()):
        assert read(client, table, format=format) == ROWS
    attributes = client.get(f"{table}/@")
    assert attributes["row_count"] == 10 and attributes["chunk_count"] == 1
    assert attributes["data_weight"] > 0 and attributes["uncompressed_data_size"] > 0
    assert attributes["sorted"] == False and attributes["schema_mode"] == "weak" and attributes["dynamic"] == False


def test_dsv(client, home):
    client.write_table(f"{home}/t", b"a=1\tb=x\\ty\na=2\n", format=yt.wrapper.DsvFormat(), raw=True)
    assert read(client, f"{home}/t") == [{"a": "1", "b": "x\ty"}, {"a": "2"}]
    assert client.read_table(f"{home}/t", format=yt.wrapper.DsvFormat(), raw=True).read() == b"a=1\tb=x\\ty\na=2\n"
    client.write_table(f"{home}/nested", [{"a": {"b": 1}}])
    with pytest.raises(yt.wrapper.YtResponseError, match="DSV"):
        client.read_table(f"{home}/nested", format=yt.wrapper.DsvFormat(), raw=True).read()


def test_append_and_overwrite(client, home):
    table = f"{home}/t"
    client.write_table(table, ROWS[:3])
    revision = client.get(f"{table}/@content_revision")
    client.write_table(f"<append=%true>{table}", ROWS[3:5])
    assert read(client, table) == ROWS[:5] and client.get(f"{table}/@chunk_count") == 2
    assert client.get(f"{table}/@content_revision") > revision
    client.write_table(table, ROWS[5:])
    assert read(client, table) == ROWS[5:] and client.get(f"{table}/@chunk_count") == 1
    client.write_table(table, [])
    assert read(client, table) == [] and client.get(f"{table}/@row_count") == 0


def test_ranges_and_columns(client, home):
    table = f"{home}/t"
    client.write_table(table, ROWS[:4])
    client.write_table(f"<append=%true>{table}", ROWS[4:])
    ids = [{"id": n} for n in range(10)]
    assert read(client, f"{table}{{id}}") == ids
    for suffix, expected in (("[#2:#6]", ids[2:6]), ("[#3]", [ids[3]]), ("[:#2]", ids[:2]), ("[#8:]", ids[8:]),
                             ("[#9:#100]", ids[9:]), ("[#5:#5]", []), ("[#7:#9,#1:#2,#0]", [*ids[7:9], ids[1], ids[0]])):
        assert read(client, f"{table}{{id}}{suffix}") == expected, suffix
    for row in read(client, f"{table}{{id,name}}[#0:#2]"):
        assert sorted(row) == ["id", "name"]
    with pytest.raises(yt.wrapper.YtResponseError, match="not supported"):
        read(client, f"{table}[a:b]")


def test_renamed_columns(client, home):
    table = f"{home}/t"
    client.write_table(table, [{"a": 1, "b": "x"}, {"a": 2, "c": []}])
    for path, expected in (("<rename_columns={a=n}>", [{"n": 1, "b": "x"}, {"n": 2, "c": []}]),
                           ("<rename_columns={a=n};columns=[n]>", [{"n": 1}, {"n": 2}]),
                           ("<rename_columns={a=n};columns=[a;b]>", [{"b": "x"}, {}]),
                           # Whoever is given the name of another column takes its place.
                           ("<rename_columns={a=b}>", [{"b": 1}, {"b": 2, "c": []}]),
                           ("<rename_columns={a=b;b=a}>", [{"b": 1, "a": "x"}, {"b": 2, "c": []}])):
        assert read(client, path + table) == expected, path
    assert client.read_table(f"<rename_columns={{a=n}}>{table}[#0]", format="<format=text>yson", raw=True).read() == b'{"n"=1;"b"="x";};\n'
    for wrong in ("{a=x;b=x}", "[a]", "{a=5}", '{a=""}'):
        with pytest.raises(yt.wrapper.YtResponseError, match="rename_columns"):
            read(client, f"<rename_columns={wrong}>{table}")


def test_a_path_with_more_ranges_than_anybody_needs(client, home):
    client.write_table(f"{home}/t", ROWS)
    many = ",".join(f"#{n % 10}" for n in range(1001))
    with pytest.raises(yt.wrapper.YtResponseError, match="at most 1000"):
        read(client, f"{home}/t[{many}]")


def test_schemaful_dsv(cluster, client, home):
    table = f"{home}/t"
    client.create("table", table)
    client.write_table(table, b"1\tone\n2\ttab\\there\n", format="<columns=[a;b]>schemaful_dsv", raw=True)
    assert read(client, table) == [{"a": "1", "b": "one"}, {"a": "2", "b": "tab\there"}]

    def printed(**attributes):
        format = yt.yson.to_yson_type("schemaful_dsv", attributes)
        return client.read_table(table, format=yt.yson.dumps(format).decode(), raw=True).read()
    assert printed(columns=["b", "a"]) == b"one\t1\ntab\\there\t2\n"
    client.write_table(f"<append=%true>{table}", [{"a": 3}])
    assert printed(columns=["a", "b"], missing_value_mode="skip_row") == b"1\tone\n2\ttab\\there\n"
    assert printed(columns=["b"], missing_value_mode="print_sentinel", missing_value_sentinel="-") == b"one\ntab\\there\n-\n"
    with pytest.raises(yt.wrapper.YtResponseError, match="each column"):
        client.write_table(table, b"1\n", format="<columns=[a;b]>schemaful_dsv", raw=True)


def test_control_attributes(client, home):
    table = f"{home}/t"
    client.write_table(table, [{"a": n} for n in range(5)])
    rows = client.read_table(f"{table}[#1:#2,#3:#5]", control_attributes={"enable_row_index": True, "enable_range_index": True},
                             format=yt.wrapper.YsonFormat(format="text"), raw=True).read()
    assert rows == (b'<"range_index"=0;>#;\n<"row_index"=1;>#;\n{"a"=1;};\n'
                    b'<"range_index"=1;>#;\n<"row_index"=3;>#;\n{"a"=3;};\n{"a"=4;};\n')
    with pytest.raises(yt.wrapper.YtResponseError, match="enable_row_index"):
        client.read_table(table, control_attributes={"enable_row_index": 5}, raw=True, format="yson").read()


def test_row_indexes_of_the_client(client, home):
    table = f"{home}/t"
    client.write_table(table, [{"a": n} for n in range(5)])
    rows = client.read_table(f"{table}[#3:#5]", control_attributes={"enable_row_index": True},
                             format=yt.wrapper.YsonFormat(control_attributes_mode="row_fields"))
    assert [(row["@row_index"], row["a"]) for row in rows] == [(3, 3), (4, 4)]


def test_schema(client, home):
    table = f"{home}/t"
    schema = [{"name": "id", "type": "int64", "required": True}, {"name": "name", "type": "utf8"}]
    client.create("table", table, attributes={"schema": schema})
    assert client.get(f"{table}/@schema_mode") == "strong"
    client.write_table(table, [{"id": 1, "name": "x"}, {"id": 2, "name": None}])
    for row, error in (({"name": "x"}, "required column \"id\" is missing"), ({"id": "x"}, "column \"id\": expected an integer"),
                       ({"id": 1, "other": 2}, "column \"other\" is not in the schema")):
        with pytest.raises(yt.wrapper.YtResponseError) as refused:
            client.write_table(table, [{"id": 0}, row])
        assert "Row 1: " + error in str(refused.value)
    assert len(read(client, table)) == 2, "a refused write changes nothing"
    with pytest.raises(yt.wrapper.YtResponseError, match="unknown type"):
        client.create("table", f"{home}/bad", attributes={"schema": [{"name": "a", "type": "blob"}]})
    assert not client.exists(f"{home}/bad")
    client.alter_table(table, schema=[*schema, {"name": "new", "type": "any"}])
    client.write_table(f"<append=%true>{table}", [{"id": 3, "new": [1]}])
    with pytest.raises(yt.wrapper.YtResponseError, match="was not required|has another type"):
        client.alter_table(table, schema=[{"name": "id", "type": "string"}])


def test_sorted_tables(client, home):
    table = f"{home}/t"
    client.create("table", table)
    assert client.get(f"{table}/@key_columns") == [] and not client.exists(f"{table}/@sorted_by")
    client.write_table(f"<sorted_by=[k]>{table}", [{"k": 1}, {"k": 1}, {"k": 2}])
    assert client.get(f"{table}/@sorted") and client.get(f"{table}/@sorted_by") == ["k"]
    assert client.get(f"{table}/@key_columns") == ["k"]
    client.write_table(f"<append=%true;sorted_by=[k]>{table}", [{"k": 2}, {"k": 5}])
    assert client.get(f"{table}/@sorted")
    for rows in ([{"k": 4}], [{"k": 7}, {"k": 6}]):
        with pytest.raises(yt.wrapper.YtResponseError, match="the table is sorted|The table is sorted"):
            client.write_table(f"<append=%true;sorted_by=[k]>{table}", rows)
    assert [row["k"] for row in read(client, table)] == [1, 1, 2, 2, 5]
    client.write_table(f"<append=%true>{table}", [{"k": 0}])
    assert not client.get(f"{table}/@sorted")
    unique = f"{home}/unique"
    schema = yt.yson.to_yson_type([{"name": "k", "type": "int64", "sort_order": "ascending"}], attributes={"unique_keys": True})
    client.create("table", unique, attributes={"schema": schema})
    assert client.get(f"{unique}/@sorted_by") == ["k"]
    with pytest.raises(yt.wrapper.YtResponseError, match="is there twice"):
        client.write_table(unique, [{"k": 1}, {"k": 1}])


def test_transactions(client, cluster, home):
    table = f"{home}/t"
    client.write_table(table, ROWS[:1])
    with pytest.raises(ZeroDivisionError), client.Transaction():
        client.write_table(table, ROWS[1:3])
        assert read(client, table) == ROWS[1:3]
        assert read(cluster.client(), table) == ROWS[:1]
        1 / 0
    assert read(client, table) == ROWS[:1]
    with client.Transaction():
        client.write_table(f"<append=%true>{table}", ROWS[1:2])
    assert read(client, table) == ROWS[:2]


def test_copies_share_rows_until_the_last_is_gone(client, cluster, home):
    client.write_table(f"{home}/a", ROWS)
    client.copy(f"{home}/a", f"{home}/b")
    client.move(f"{home}/a", f"{home}/c")
    client.remove(f"{home}/c")
    assert read(client, f"{home}/b") == ROWS
    client.concatenate([f"{home}/b", f"{home}/b"], f"<append=%true>{home}/b")
    assert read(client, f"{home}/b") == ROWS * 3
    client.create("table", f"{home}/d")
    client.concatenate([f"{home}/b"], f"{home}/d")
    client.remove(f"{home}/b")
    assert read(client, f"{home}/d") == ROWS * 3


def test_reads_under_a_snapshot_lock_see_what_was(client, cluster, home):
    table = f"{home}/t"
    client.write_table(table, ROWS[:2])
    with client.Transaction():
        node = client.lock(table, mode="snapshot")["node_id"]
        cluster.client().write_table(table, ROWS[2:])
        assert read(client, f"#{node}") == ROWS[:2]
    assert read(client, table) == ROWS[2:]


def test_the_command(cluster, home):
    table = f"{home}/t"
    for format in ("json", "yson", "<format=text>yson", "dsv"):
        rows = {"json": '{"a":"1"}\n{"a":"2"}\n', "dsv": "a=1\na=2\n"}.get(format, '{"a"="1";};\n{"a"="2";};\n')
        cluster.yt("write-table", table, "--format", format, stdin=rows)
        asked = "<format=text>yson" if format == "yson" else format
        assert cluster.yt("read-table", table, "--format", asked)[1] == rows
    assert cluster.yt("get", f"{table}/@row_count")[1].strip() == "2"
    code, _, stderr = cluster.yt("write-table", table, "--format", "json", stdin="{]", check=False)
    assert code == 1 and "Cannot parse row 0 as JSON" in stderr
    assert cluster.yt("read-table", f"{table}[#1]", "--format", "json")[1] == '{"a":"2"}\n'


def test_a_client_that_dies_in_the_middle_leaves_nothing(client, cluster, home):
    table = f"{home}/t"
    client.write_table(table, ROWS)

    def blobs():
        return {path.name for path in (cluster.directory / "server" / "blobs").iterdir()}
    # Contents that earlier tests have replaced may go meanwhile.
    before = blobs()
    host, port = cluster.address.split(":")
    connection = socket.create_connection((host, int(port)))
    parameters = json.dumps({"path": table})
    connection.sendall((f"PUT /api/v4/write_table HTTP/1.1\r\nHost: {cluster.address}\r\nTransfer-Encoding: chunked\r\n"
                        f"X-YT-Parameters: {parameters}\r\n\r\n").encode())
    piece = b'{"a"=1;};' * 10000
    for _ in range(20):
        connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
    wait_for(lambda: blobs() - before, what="a part")
    connection.close()
    wait_for(lambda: not blobs() - before, what="the part to be gone", seen=lambda: blobs() - before)
    assert read(client, table) == ROWS


def test_rows_survive_kill_9():
    with make_cluster() as cluster:
        client = cluster.client()
        client.write_table("<sorted_by=[id]>//tmp/t", ROWS)
        client.write_table("<append=%true;sorted_by=[id]>//tmp/t", [{"id": 100}])
        cluster.server.kill()
        cluster.server.start()
        cluster.wait_server()
        assert read(cluster.client(), "//tmp/t") == [*ROWS, {"id": 100}]
        assert client.get("//tmp/t/@sorted_by") == ["id"]


def test_large_tables(client, home):
    """Many blocks, and rows that are longer than pieces of the body."""
    table = f"{home}/t"
    rows = [{"n": n, "text": "x" * (n % 5000)} for n in range(2000)] + [{"n": 2000, "text": "y" * 3_000_000}]
    client.write_table(table, rows)
    assert read(client, table) == rows
    assert read(client, f"{table}[#1990:]") == rows[1990:]


def test_plain_http(cluster, home):
    """What curl does: JSON headers, and YSON text when no format is named."""
    connection = http.client.HTTPConnection(cluster.address)

    def ask(method, command, parameters, body=None, **headers):
        headers = {"X-YT-Parameters": json.dumps(parameters), **{k.replace("_", "-"): v for k, v in headers.items()}}
        connection.request(method, f"/api/v4/{command}", body=body, headers=headers)
        reply = connection.getresponse()
        return reply.status, dict(reply.getheaders()), reply.read()
    cluster.command("create", type="table", path=f"{home}/t")
    assert ask("PUT", "write_table", {"path": f"{home}/t"}, b"{a=1};{a=2}") [0] == 200
    status, headers, body = ask("GET", "read_table", {"path": f"{home}/t[#1:]"})
    assert (status, body) == (200, b'{"a"=2;};\n')
    headers = {name.lower(): value for name, value in headers.items()}
    assert json.loads(headers["x-yt-response-parameters"]) == {
        "start_row_index": 1, "approximate_row_count": 1, "omitted_inaccessible_columns": []}
    status, _, body = ask("PUT", "write_table", {"path": f"{home}/t"}, b'{"a":1}{"a":2}', Content_Type="application/json")
    assert status == 200
    status, headers, body = ask("GET", "read_table", {"path": f"{home}/t"}, Accept="application/json")
    assert body == b'{"a":1}\n{"a":2}\n'
    for path, code in ((f"{home}/nothing", 500), (home, 1), ("//sys/scheduler/orchid", 1)):
        for method, command in (("GET", "read_table"), ("PUT", "write_table")):
            status, _, body = ask(method, command, {"path": path}, None if method == "GET" else b"{a=1}")
            assert (status, json.loads(body)["code"]) == (400, code), (command, path, body)


# --- merges


def test_merge_joins_tables_without_jobs(client, home):
    for name, rows in (("a", ROWS[:3]), ("b", ROWS[3:7]), ("c", ROWS[7:])):
        client.write_table(f"{home}/{name}", rows)
    sources = [f"{home}/{name}" for name in "abc"]
    for mode in ("ordered", "unordered", "auto"):
        operation = client.run_merge(sources, f"{home}/merged-{mode}", mode=mode)
        assert operation.get_state() == "completed"
        assert sorted(read(client, f"{home}/merged-{mode}"), key=lambda row: row["id"]) == ROWS
    assert read(client, f"{home}/merged-ordered") == ROWS
    attributes = client.get_operation(operation.id)
    assert attributes["type"] == "merge" and attributes["unrecognized_spec"] == {}
    client.run_merge(f"{home}/a", f"<append=%true>{home}/merged-ordered", mode="ordered")
    assert read(client, f"{home}/merged-ordered") == [*ROWS, *ROWS[:3]]
    client.run_merge([f"{home}/a", f"{home}/a"], f"{home}/a", mode="ordered")
    assert read(client, f"{home}/a") == ROWS[:3] * 2


def test_sorted_merges(client, home):
    client.write_table(f"<sorted_by=[k;l]>{home}/a", [{"k": 5, "l": 0}, {"k": 6, "l": 9}])
    client.write_table(f"<sorted_by=[k]>{home}/b", [{"k": 1}, {"k": 5}])
    client.run_merge([f"{home}/a", f"{home}/b"], f"{home}/m", mode="sorted")
    assert [row["k"] for row in read(client, f"{home}/m")] == [1, 5, 5, 6]
    assert client.get(f"{home}/m/@sorted_by") == ["k"]
    client.write_table(f"<sorted_by=[k]>{home}/c", [{"k": 0}, {"k": 9}])
    client.write_table(f"{home}/unsorted", [{"k": 0}])
    with pytest.raises(yt.wrapper.YtOperationFailedError) as failed:
        client.run_merge([f"{home}/a", f"{home}/unsorted"], f"{home}/m", mode="sorted")
    assert "is not sorted" in str(failed.value) + json.dumps(failed.value.attributes, default=str)
    assert len(read(client, f"{home}/m")) == 4, "a merge that failed leaves the output as it was"
    # Keys of one lie between those of the other.
    client.run_merge([f"{home}/a", f"{home}/c", f"{home}/b"], f"{home}/m", mode="sorted")
    assert [row["k"] for row in read(client, f"{home}/m")] == [0, 1, 5, 5, 6, 9]
    assert client.get(f"{home}/m/@sorted_by") == ["k"]


def test_merges_that_cannot_be(client, cluster, home):
    client.write_table(f"{home}/a", ROWS)
    for spec, error in (({"input_table_paths": [f"{home}/a"]}, "output_table_path"), ({"output_table_path": f"{home}/a"}, "input_table_paths"),
                        ({"input_table_paths": [], "output_table_path": f"{home}/a"}, "at least one table"),
                        ({"input_table_paths": [f"{home}/a"] * 1001, "output_table_path": f"{home}/a"}, "at most 1000 tables"),
                        ({"input_table_paths": [f"{home}/a"], "output_table_path": f"{home}/a", "mode": "odd"}, "/mode")):
        with pytest.raises(ServerError) as refused:
            cluster.command("start_operation", operation_type="merge", spec=spec)
        assert error in refused.value.text()
    for source, error in ((f"{home}/nothing", "nothing"), (home, "expected a table")):
        spec = {"input_table_paths": [source], "output_table_path": f"{home}/a"}
        operation = cluster.command("start_operation", operation_type="merge", spec=spec)["operation_id"]
        cluster.wait_state(operation, "failed")
        result = cluster.result(operation)
        assert error in json.dumps(result) and 216 in error_codes(result)
    assert read(client, f"{home}/a") == ROWS


def test_merges_go_through_the_transaction_they_were_started_in(client, cluster, home):
    client.write_table(f"{home}/a", ROWS)
    client.create("table", f"{home}/m")
    with pytest.raises(ZeroDivisionError), client.Transaction():
        client.run_merge(f"{home}/a", f"{home}/m", mode="ordered")
        assert read(client, f"{home}/m") == ROWS
        assert read(cluster.client(), f"{home}/m") == []
        1 / 0
    assert read(client, f"{home}/m") == []


def test_merge_by_the_command(cluster, home):
    for name, rows in (("a", '{"n":1}'), ("b", '{"n":2}')):
        cluster.yt("write-table", f"{home}/{name}", "--format", "json", stdin=rows)
    cluster.yt("merge", "--src", f"{home}/a", "--src", f"{home}/b", "--dst", f"{home}/m", "--mode", "ordered")
    assert cluster.yt("read-table", f"{home}/m", "--format", "json")[1] == '{"n":1}\n{"n":2}\n'
