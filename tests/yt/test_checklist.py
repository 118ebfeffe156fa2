"""What broke or would break the client: the check list of http-api.md 14, one test for each line, as it is on the wire."""

import gzip
import hashlib
import http.client
import itertools
import json
import zlib

import pytest
import yt.yson as yson
from harness import ServerError, cluster as make_cluster, wait_for

_numbers = itertools.count()
TEXT = "<format=text>yson"
COUNTERS = ("running", "completed", "pending", "failed", "aborted", "lost", "total")


class Reply:
    """An answer as it came."""

    def __init__(self, reply):
        self.status, self.headers, self.body = reply.status, reply.headers, reply.read()

    def json(self):
        return json.loads(self.body)

    def yson(self):
        return yson.loads(self.body)


def ask(cluster, method, target, parameters=None, body=None, connection=None, **headers):
    """One request as the client makes it: parameters in a header, as YSON."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if parameters is not None:
        headers |= {"X-YT-Header-Format": TEXT, "X-YT-Parameters": yson.dumps(parameters, yson_format="text").decode()}
    connection = connection or http.client.HTTPConnection(cluster.address, timeout=120)
    connection.request(method, target, body=body, headers=headers)
    return Reply(connection.getresponse())


@pytest.fixture
def home(cluster):
    path = f"//tmp/list-{next(_numbers)}"
    cluster.command("create", type="map_node", path=path)
    return path


@pytest.fixture(scope="module")
def running(cluster):
    """An operation with a job that runs, and one that has failed; the job of each."""
    cluster.create_pool("list")
    failed = cluster.run_vanilla("exit 3", pool="list", state="failed", spec={"max_failed_job_count": 1})
    operation = cluster.start_vanilla("sleep 1000", pool="list")
    return {"running": (operation, cluster.wait_jobs(operation)[0]),
            "failed": (failed, cluster.jobs(failed, state="failed")[0]["id"])}


def test_01_descriptors(cluster):
    """No keys but those five; every command of the table of section 2.1 that this server knows how to do is there."""
    descriptors = ask(cluster, "GET", "/api/v4").json()
    for descriptor in descriptors:
        assert set(descriptor) == {"name", "input_type", "output_type", "is_volatile", "is_heavy"}, descriptor
    # What the client calls in the sequences of sections 8, 9 and 12.
    used = """get set list exists create remove copy move link concatenate multiset_attributes lock unlock
        start_transaction ping_transaction commit_transaction abort_transaction
        write_file read_file write_table read_table alter_table get_file_from_cache put_file_to_cache parse_ypath
        start_operation abort_operation suspend_operation resume_operation complete_operation update_operation_parameters
        get_operation list_operations list_operation_events list_jobs get_job get_job_stderr get_job_input get_job_input_paths
        get_job_fail_context abort_job abandon_job poll_job_shell run_job_shell_command check_permission
        check_permission_by_acl check_operation_permission add_member remove_member issue_token revoke_token list_user_tokens
        set_user_password get_current_user execute_batch get_version get_supported_features generate_timestamp
        discover_proxies transfer_pool_resources transfer_account_resources patch_operation_spec dump_job_context
        get_job_spec list_job_traces get_job_trace get_table_columnar_statistics""".split()
    assert set(used) <= {descriptor["name"] for descriptor in descriptors}


BAD = [
    ("GET", "/api/v4/get", {"path": "//nothing"}), ("GET", "/api/v4/get", {"path": "nonsense"}), ("GET", "/api/v4/get", {}),
    ("GET", "/api/v4/get", {"path": 5}), ("GET", "/api/v4/get_operation", {"operation_id": "x"}),
    ("GET", "/api/v4/get_operation", {"operation_id": "1-2-3e80001-4"}), ("GET", "/api/v4/list_jobs", {"limit": "many"}),
    ("POST", "/api/v4/start_operation", {"operation_type": "vanilla", "spec": {}}),
    ("POST", "/api/v4/start_operation", {"operation_type": "sort", "spec": {}}),
    ("POST", "/api/v4/create", {"type": "nonsense", "path": "//tmp/x"}), ("PUT", "/api/v4/set", {"path": "//tmp/x"}),
    ("PUT", "/api/v4/write_table", {"path": "//tmp/none"}), ("GET", "/api/v4/read_file", {"path": "//tmp"}),
    ("GET", "/api/v4/nonsense", {}), ("GET", "/api/v4/create", {}), ("POST", "/api/v4/set", {"path": "//tmp"}),
]


@pytest.mark.parametrize(("method", "target", "parameters"), BAD)
def test_02_no_user_error_is_one_of_the_server(cluster, method, target, parameters):
    body = b"]" if method == "PUT" else None
    assert 400 <= ask(cluster, method, target, parameters, body=body).status < 500


def shape(error):
    assert set(error) == {"code", "message", "attributes", "inner_errors"}, error
    assert isinstance(error["attributes"], dict) and "\n" not in error["message"]
    for inner in error["inner_errors"]:
        shape(inner)


@pytest.mark.parametrize(("method", "target", "parameters"), BAD)
def test_03_errors_have_four_keys(cluster, running, method, target, parameters):
    reply = ask(cluster, method, target, parameters, body=b"]" if method == "PUT" else None)
    shape(reply.json())
    assert json.loads(reply.headers["X-YT-Error"]) == reply.json()
    assert int(reply.headers["X-YT-Response-Code"]) == reply.json()["code"]


@pytest.mark.parametrize("style", ["text", "binary", "pretty"])
def test_03_errors_in_the_format_that_is_asked_for(cluster, style):
    """`X-YT-Error-Format` of section 2.2; the header stays one line of text."""
    reply = ask(cluster, "GET", "/api/v4/get", {"path": "//tmp/\u044f"}, X_YT_Error_Format=f"<format={style}>yson")
    assert reply.headers["X-YT-Error-Content-Type"] == "application/x-yt-yson-text"
    assert reply.headers["Content-Type"] == f"application/x-yt-yson-{style}"
    body, header = yson.loads(reply.body), yson.loads(reply.headers["X-YT-Error"].encode())
    assert body == header and body["code"] == 500 == int(reply.headers["X-YT-Response-Code"])
    shape(body)
    # What makes no sense is JSON, and does not hide the error.
    for nonsense in ("<<", "dsv", "json"):
        reply = ask(cluster, "GET", "/api/v4/get", {"path": "//tmp/nothing"}, X_YT_Error_Format=nonsense)
        assert reply.json()["code"] == 500 and reply.headers["Content-Type"] == "application/json"


def test_03_errors_inside_of_answers_too(cluster, running):
    operation, job = running["failed"]
    shape(cluster.result(operation))
    shape(cluster.jobs(operation)[0]["error"])
    shape(cluster.command("get_job", operation_id=operation, job_id=job)["error"])
    batch = cluster.command("execute_batch", requests=[{"command": "get", "parameters": {"path": "//nothing"}}])
    shape(batch["results"][0]["error"])


def test_04_nothing_is_an_empty_map(cluster, home):
    for format, empty in ((TEXT, b"{}"), ("<format=binary>yson", b"{}"), ("<format=pretty>yson", b"{}"), ("json", b"{}")):
        format = yson.loads(format.encode())
        told = ask(cluster, "PUT", "/api/v4/set", {"path": f"{home}/a", "output_format": format}, body=b"5", X_YT_Input_Format="yson")
        assert (told.status, told.body) == (200, empty), format
    told = ask(cluster, "POST", "/api/v4/remove", {"path": f"{home}/a", "output_format": yson.loads(TEXT.encode())})
    assert (told.status, told.body) == (200, b"{}")


def test_05_some_answers_are_bare(cluster, home, running):
    user = f"user-{next(_numbers)}"
    cluster.command("create", type="user", attributes={"name": user})
    assert isinstance(cluster.command("issue_token", user=user), str)
    tokens = ask(cluster, "GET", "/api/v4/list_user_tokens", {"user": user}).json()
    assert isinstance(tokens, list) and len(tokens) == 1
    content = home.encode()
    cluster.command("create", type="file", path=f"{home}/f")
    ask(cluster, "PUT", "/api/v4/write_file", {"path": f"{home}/f", "compute_md5": True}, body=content)
    md5 = hashlib.md5(content).hexdigest()
    cluster.command("create", type="map_node", path=f"{home}/cache")
    put = cluster.command("put_file_to_cache", path=f"{home}/f", md5=md5, cache_path=f"{home}/cache")
    assert put == f"{home}/cache/{md5[-2:]}/{md5}"
    for sought, found in ((md5, put), ("0" * 32, "")):
        reply = ask(cluster, "GET", "/api/v4/get_file_from_cache", {"md5": sought, "cache_path": f"{home}/cache"})
        assert reply.json() == found
    operation, job = running["running"]
    assert cluster.operation(operation, "id") == {"id": operation}
    assert isinstance(cluster.command("list_operations")["operations"], list)
    assert isinstance(cluster.command("list_jobs", operation_id=operation)["jobs"], list)
    assert cluster.command("get_job", operation_id=operation, job_id=job)["job_id"] == job
    assert isinstance(ask(cluster, "GET", "/api/v4/list_operation_events", {"operation_id": operation}).json(), list)


def test_06_objects_have_object_ids(cluster, home):
    assert set(cluster.command("create", type="document", path=f"{home}/d")) == {"node_id"}
    number = next(_numbers)
    for kind, more in (("user", {}), ("group", {}), ("account", {}), ("scheduler_pool", {"pool_tree": "physical"})):
        made = cluster.command("create", type=kind, attributes={"name": f"{kind}-{number}", **more})
        assert set(made) == {"object_id"}, kind


def test_07_tables_come_with_parameters(cluster, home):
    cluster.command("create", type="table", path=f"{home}/t")
    ask(cluster, "PUT", "/api/v4/write_table", {"path": f"{home}/t"}, body=b"{a=1};{a=2};{a=3}", X_YT_Input_Format="yson")
    path = yson.to_yson_type(f"{home}/t", attributes={"ranges": [{"lower_limit": {"row_index": 1}}]})
    reply = ask(cluster, "GET", "/api/v4/read_table", {"path": path})
    told = yson.loads(reply.headers["X-YT-Response-Parameters"].encode())
    assert told == {"start_row_index": 1, "approximate_row_count": 2, "omitted_inaccessible_columns": []}


@pytest.mark.parametrize("pack", [zlib.compress, gzip.compress], ids=["zlib", "gzip"])
def test_08_what_is_called_gzip_is_a_zlib_stream(cluster, home, pack):
    reply = ask(cluster, "PUT", "/api/v4/set", {"path": f"{home}/a"}, body=pack(b'"packed"'), Content_Encoding="gzip",
                X_YT_Input_Format="yson")
    assert reply.status == 200, reply.body
    assert cluster.get(f"{home}/a") == "packed"


def test_09_progress_has_all_counters(cluster, running):
    for operation, _ in running.values():
        progress = cluster.operation(operation, "brief_progress")["brief_progress"]
        assert progress["build_time"] and all(type(progress["jobs"][name]) is int for name in COUNTERS), progress


def test_10_what_is_unknown_is_no_mistake(cluster, home):
    format = yson.to_yson_type("yson", attributes={
        "format": "text", "ignore_inner_attributes": False, "always_create_attributes": False, "lazy": False, "sort_keys": False})
    parameters = {"path": home, "transaction_id": "0-0-0-0", "suppress_transaction_coordinator_sync": False,
                  "ping_ancestor_transactions": False, "read_from": "cache", "disable_per_user_cache": True, "master_cell_id": 0,
                  "something_new": {"a": 1}, "output_format": format}
    assert ask(cluster, "GET", "/api/v4/get", parameters).body == b'{"value"={};}'


def test_11_nothing_says_local_mode(cluster):
    for name in ("local_mode_fqdn", "local_mode_proxy_address"):
        assert cluster.exists(f"//sys/@{name}") is False
        with pytest.raises(ServerError) as refused:
            cluster.get(f"//sys/@{name}")
        assert refused.value.error["code"] == 500


def test_12_jobs_are_listed_whatever_is_included(cluster, running):
    for operation, job in running.values():
        for flags in itertools.product((False, True), repeat=3):
            included = dict(zip(("include_cypress", "include_runtime", "include_archive"), flags))
            listed = ask(cluster, "GET", "/api/v4/list_jobs", {"operation_id": operation, **included}).json()
            assert [found["id"] for found in listed["jobs"]] == [job], flags
    alias = cluster.start_vanilla("true", pool="list", spec={"alias": "*listed"})
    told = ask(cluster, "GET", "/api/v4/get_operation", {"operation_alias": "*listed", "include_runtime": False}).json()
    assert told["id"] == alias


def test_13_jobs_are_aborted_by_get(cluster):
    operation = cluster.start_vanilla("sleep 1000", pool="list")
    for method in ("GET", "POST"):
        job, = cluster.wait_jobs(operation)
        assert ask(cluster, method, "/api/v4/abort_job", {"job_id": job}).status == 200
        wait_for(lambda: job in [found["id"] for found in cluster.jobs(operation, state="aborted")], what="its end")


def test_14_ids_may_have_attributes(cluster, running):
    operation, job = running["failed"]
    dressed = yson.to_yson_type(job, attributes={"address": "somewhere:1", "error": {"code": 1}})
    reply = ask(cluster, "GET", "/api/v4/get_job_stderr", {"operation_id": operation, "job_id": dressed})
    assert reply.status == 200, reply.body


def test_15_too_many_operations_is_an_error_at_once(cluster):
    pool = f"full-{next(_numbers)}"
    cluster.create_pool(pool, max_operation_count=1, max_running_operation_count=1)
    cluster.start_vanilla("sleep 1000", pool=pool)
    spec = {"pool": pool, "tasks": {"t": {"command": "true", "job_count": 1}}}
    reply = ask(cluster, "POST", "/api/v4/start_operation", {"operation_type": "vanilla", "spec": spec})
    assert reply.status == 400 and 202 in ServerError(reply.json()).codes(), reply.body


def test_16_transactions_that_have_ended_are_told_by_their_code(cluster, home):
    ended = []
    for end in ("commit_transaction", "abort_transaction"):
        ended.append(cluster.command("start_transaction")["transaction_id"])
        cluster.command(end, transaction_id=ended[-1])
    for id in [*ended, "1-2-10001-4"]:
        for method, command in (("POST", "ping_transaction"), ("POST", "commit_transaction"), ("GET", "get"), ("POST", "lock"),
                                ("GET", "read_file"), ("POST", "create")):
            reply = ask(cluster, method, f"/api/v4/{command}", {"path": home, "type": "document", "transaction_id": id})
            assert (reply.status, reply.json()["code"]) == (400, 11000), (command, reply.body)


def test_17_some_answers_need_no_token():
    with make_cluster(nodes=0, auth=True) as guarded:
        for target in ("/api", "/api/v4", "/api/v3", "/hosts", "/ping", "/version"):
            assert ask(guarded, "GET", target).status == 200, target
        assert ask(guarded, "GET", "/api/v4/get", {"path": "/"}).status == 401


def test_18_nothing_in_bytes_is_nothing(cluster, home, running):
    cluster.command("create", type="file", path=f"{home}/f")
    cluster.command("create", type="table", path=f"{home}/t")
    operation, job = running["failed"]
    for command, parameters in (("read_file", {"path": f"{home}/f"}), ("read_table", {"path": f"{home}/t"}),
                                ("get_job_stderr", {"operation_id": operation, "job_id": job})):
        reply = ask(cluster, "GET", f"/api/v4/{command}", {**parameters, "output_format": "yson"})
        assert (reply.status, reply.body) == (200, b""), command


def test_19_connections_stay_open(cluster, home):
    connection = http.client.HTTPConnection(cluster.address, timeout=120)
    connection.connect()
    socket = connection.sock
    cluster.command("create", type="table", path=f"{home}/t")
    for method, target, parameters, body in (
            ("GET", "/api/v4/get", {"path": home}, None), ("GET", "/api/v4/get", {"path": "//nothing"}, None),
            ("PUT", "/api/v4/set", {"path": f"{home}/a"}, b"5"), ("PUT", "/api/v4/write_table", {"path": f"{home}/t"}, b"{a=1}"),
            ("GET", "/api/v4/read_table", {"path": f"{home}/t"}, None), ("GET", "/api/v4", None, None), ("GET", "/hosts", None, None)):
        more = {"X_YT_Input_Format": "yson"} if body else {}
        reply = ask(cluster, method, target, parameters, body=body, connection=connection, **more)
        assert connection.sock is socket or reply.headers.get("Connection") == "close", (target, parameters)
    assert connection.sock is socket


def test_20_files_in_directories_and_rows_without_separators(cluster, home):
    cluster.command("create", type="file", path=f"{home}/f")
    ask(cluster, "PUT", "/api/v4/write_file", {"path": f"{home}/f"}, body=b"in its place")
    operation = cluster.run_vanilla("cat modules/deep/_main.py >&2", pool="list", file_paths=[
        {"$value": f"{home}/f", "$attributes": {"file_name": "modules/deep/_main.py"}}])
    assert cluster.stderr(operation, cluster.jobs(operation)[0]["id"]) == b"in its place"
    cluster.command("create", type="table", path=f"{home}/t")
    for rows in (b'{"a":1}{"a":2}', b'{"a":1} {"a":2}\n', b'\n{"a":1}\n\n\t{"a":2}'):
        ask(cluster, "PUT", "/api/v4/write_table", {"path": f"{home}/t"}, body=rows, X_YT_Input_Format="json")
        told = ask(cluster, "GET", "/api/v4/read_table", {"path": f"{home}/t", "output_format": "json"})
        assert told.body == b'{"a":1}\n{"a":2}\n', rows


def test_21_pools_are_there_at_once(cluster):
    for _ in range(10):
        pool = f"fresh-{next(_numbers)}"
        cluster.create_pool(pool)
        operation = cluster.start_vanilla("true", pool=pool)
        options = cluster.operation(operation, "runtime_parameters")["runtime_parameters"]["scheduling_options_per_pool_tree"]
        assert options["physical"]["pool"] == pool
        # The Orchid shows the last snapshot of the scheduler, which comes a moment later.
        wait_for(lambda: cluster.exists(f"//sys/scheduler/orchid/scheduler/pool_trees/physical/pools/{pool}"), what="a snapshot")
        assert cluster.pool_orchid(pool)["is_ephemeral"] is False
