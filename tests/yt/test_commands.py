"""One test for each command that the server describes, through the real Python client (http-api.md 8): what it asks for
and what it makes of the answer. Depth is elsewhere (tables, transactions, access, operations); here nothing is left out.
"""

import contextlib
import hashlib
import itertools
import json
import sys
import urllib.error
import urllib.request

import pytest
import yt.wrapper
import yt.yson
from yt.wrapper import job_commands
from yt.wrapper.driver import make_formatted_request, make_request
from harness import cluster as make_cluster, wait_for

_numbers = itertools.count()
LATE = 600_000  # milliseconds: a transaction of a test does not end because the machine is slow


@pytest.fixture(scope="module")
def client(cluster):
    return cluster.client()


@pytest.fixture
def transaction(client):
    """A transaction and a client inside it."""
    id = client.start_transaction(timeout=LATE)
    inside = yt.wrapper.YtClient(config=client.config)
    with inside.Transaction(transaction_id=id, ping=False):
        yield id, inside
    with contextlib.suppress(yt.wrapper.YtResponseError):
        client.abort_transaction(id)


@pytest.fixture
def operation(cluster, client, pool):
    """One with a job that runs and has said something."""
    operation = client.run_operation(
        yt.wrapper.VanillaSpecBuilder().pool(pool).begin_task("t").command("echo hello >&2; sleep 1000").job_count(1)
        .memory_limit(64 << 20).end_task(), sync=False)
    job = cluster.wait_jobs(operation.id, timeout=120)[0]
    return operation.id, job


def raw(client, command, data=None, **parameters):
    """A command for which the client has no function: as `yt execute` calls it."""
    answer = make_request(command, parameters, data=data, client=client)
    return yt.yson.loads(answer) if answer else None


def formatted(client, command, **parameters):
    return make_formatted_request(command, parameters, format=None, client=client)


# --- tree

def test_get(client, home):
    client.set(f"{home}/a", {"b": 1})
    assert client.get(home) == {"a": {"b": 1}} and client.get(f"{home}/a/@count") == 1


def test_list(client, home):
    client.set(f"{home}/b", 1)
    client.set(f"{home}/a", 1)
    assert client.list(home) == ["a", "b"]
    assert [child.attributes["type"] for child in client.list(home, attributes=["type"])] == ["int64_node"] * 2


def test_exists(client, home):
    assert client.exists(home) and not client.exists(f"{home}/nothing")


def test_set(client, home):
    client.set(f"{home}/@x", [1, "two"])
    assert client.get(f"{home}/@x") == [1, "two"]


def test_multiset_attributes(client, home):
    raw(client, "multiset_attributes", data=b"{x=1;y=2}", path=f"{home}/@", input_format="yson")
    assert (client.get(f"{home}/@x"), client.get(f"{home}/@y")) == (1, 2)


def test_create(client, home):
    id = client.create("document", f"{home}/a/b", recursive=True, attributes={"value": 5})
    assert client.get(f"{home}/a/b") == 5 and client.get(f"#{id}/@path") == f"{home}/a/b"


def test_remove(client, home):
    client.set(f"{home}/a", {"b": 1})
    client.remove(f"{home}/a", recursive=True)
    client.remove(f"{home}/a", force=True)
    assert client.list(home) == []


def test_copy(client, home):
    client.set(f"{home}/a", 1)
    client.copy(f"{home}/a", f"{home}/b")
    assert client.get(home) == {"a": 1, "b": 1}


def test_move(client, home):
    client.set(f"{home}/a", 1)
    client.move(f"{home}/a", f"{home}/b")
    assert client.get(home) == {"b": 1}


def test_link(client, home):
    client.set(f"{home}/a", 1)
    client.link(f"{home}/a", f"{home}/b")
    assert client.get(f"{home}/b") == 1 and client.get(f"{home}/b&/@type") == "link"


def test_parse_ypath(client):
    parsed = formatted(client, "parse_ypath", path="//tmp/t{a}[#1:#2]")
    parsed = parsed["path"] if isinstance(parsed, dict) else parsed
    assert str(parsed) == "//tmp/t" and parsed.attributes["columns"] == ["a"]


# --- transactions

def test_start_transaction(client):
    id = client.start_transaction(timeout=LATE, attributes={"title": "mine"})
    assert client.get(f"#{id}/@title") == "mine"
    client.abort_transaction(id)


def test_ping_transaction(client, transaction):
    before = client.get(f"#{transaction[0]}/@last_ping_time")
    client.ping_transaction(transaction[0])
    assert client.get(f"#{transaction[0]}/@last_ping_time") > before


def test_commit_transaction(client, home, transaction):
    id, inside = transaction
    inside.set(f"{home}/a", 1)
    assert not client.exists(f"{home}/a")
    client.commit_transaction(id)
    assert client.get(f"{home}/a") == 1


def test_abort_transaction(client, home, transaction):
    id, inside = transaction
    inside.set(f"{home}/a", 1)
    client.abort_transaction(id)
    assert not client.exists(f"{home}/a") and not client.exists(f"#{id}")


def test_lock(client, home, transaction):
    inside = transaction[1]
    lock = inside.lock(home, mode="exclusive")
    assert client.get(f"#{lock['lock_id']}/@state") == "acquired"
    with pytest.raises(yt.wrapper.YtResponseError) as refused:
        client.set(f"{home}/@x", 1)
    assert refused.value.contains_code(402)


def test_unlock(client, home, transaction):
    inside = transaction[1]
    inside.lock(home)
    inside.unlock(home)
    client.set(f"{home}/@x", 1)


# --- files and tables

def test_write_file(client, home):
    client.write_file(f"{home}/f", b"abc", compute_md5=True)
    assert client.get(f"{home}/f/@md5") == hashlib.md5(b"abc").hexdigest()


def test_read_file(client, home):
    client.write_file(f"{home}/f", b"abcdef")
    assert client.read_file(f"{home}/f", offset=1, length=3).read() == b"bcd"


def cached(client, home):
    client.write_file(f"{home}/f", home.encode(), compute_md5=True)
    md5 = client.get(f"{home}/f/@md5")
    client.create("map_node", f"{home}/cache")
    return md5, client.put_file_to_cache(f"{home}/f", md5, cache_path=f"{home}/cache")


def test_put_file_to_cache(client, home):
    md5, path = cached(client, home)
    assert str(path) == f"{home}/cache/{md5[-2:]}/{md5}" and client.read_file(str(path)).read() == home.encode()


def test_get_file_from_cache(client, home):
    md5, path = cached(client, home)
    assert str(client.get_file_from_cache(md5, cache_path=f"{home}/cache")) == str(path)
    assert not client.get_file_from_cache("0" * 32, cache_path=f"{home}/cache")


def test_write_table(client, home):
    client.write_table(f"{home}/t", [{"a": 1}])
    client.write_table(f"<append=%true>{home}/t", [{"a": 2}])
    assert client.get(f"{home}/t/@row_count") == 2


def test_read_table(client, home):
    client.write_table(f"{home}/t", [{"a": n} for n in range(5)])
    assert list(client.read_table(f"{home}/t[#1:#3]")) == [{"a": 1}, {"a": 2}]


def test_get_table_columnar_statistics(client, home):
    client.write_table(f"{home}/t", [{"a": "x" * 9}] * 4)
    whole, half = client.get_table_columnar_statistics([f"{home}/t", f"{home}/t[#0:#2]"])
    assert whole == {"column_data_weights": {}, "legacy_chunks_data_weight": 40, "chunk_row_count": 0, "legacy_chunk_row_count": 4}
    assert (half["legacy_chunks_data_weight"], half["legacy_chunk_row_count"]) == (20, 2)
    with pytest.raises(yt.wrapper.YtResponseError) as missing:
        client.get_table_columnar_statistics([f"{home}/t", f"{home}/nothing"])
    assert missing.value.contains_code(500)


def test_alter_table(client, home):
    client.create("table", f"{home}/t")
    client.alter_table(f"{home}/t", schema=[{"name": "a", "type": "int64"}])
    assert client.get(f"{home}/t/@schema")[0]["name"] == "a"


def test_concatenate(client, home):
    for name in "cd":
        client.write_file(f"{home}/{name}", name.encode())
    client.concatenate([f"{home}/c", f"{home}/d"], f"{home}/files")
    assert client.read_file(f"{home}/files").read() == b"cd"
    for name in "ab":
        client.write_table(f"{home}/{name}", [{"from": name}])
    client.create("table", f"{home}/all")
    client.concatenate([f"{home}/a", f"{home}/b"], f"{home}/all")
    assert list(client.read_table(f"{home}/all")) == [{"from": "a"}, {"from": "b"}]


# --- operations and jobs

def test_start_operation(client, operation):
    assert client.get_operation_state(operation[0]).name == "running"


def test_abort_operation(client, operation):
    client.abort_operation(operation[0])
    assert client.get_operation_state(operation[0]).name == "aborted"


def test_suspend_operation(client, operation):
    client.suspend_operation(operation[0])
    assert client.get_operation(operation[0], attributes=["suspended"])["suspended"]


def test_resume_operation(client, operation):
    client.suspend_operation(operation[0])
    client.resume_operation(operation[0])
    assert not client.get_operation(operation[0], attributes=["suspended"])["suspended"]


def test_complete_operation(cluster, client, operation):
    client.complete_operation(operation[0])
    cluster.wait_state(operation[0], "completed", timeout=120)


def test_update_operation_parameters(client, operation):
    client.update_operation_parameters(operation[0], {"weight": 3.0})
    told = client.get_operation(operation[0], attributes=["runtime_parameters"])["runtime_parameters"]
    assert told["scheduling_options_per_pool_tree"]["physical"]["weight"] == yt.yson.YsonDouble(3.0)


def test_patch_operation_spec(cluster, client, operation):
    id = operation[0]
    client.patch_operation_spec(id, [{"path": "/max_failed_job_count", "value": 77}])
    told = client.get_operation(id, attributes=["spec", "full_spec"])
    assert told["full_spec"]["max_failed_job_count"] == 77 and told["spec"]["max_failed_job_count"] == 77
    for patch, error in (({"path": "/title", "value": "x"}, "/title"), ({"path": "/max_failed_job_count", "value": "x"}, "max_failed_job_count"),
                         ({"path": "/max_failed_job_count", "value": -1}, "max_failed_job_count"), ({"value": 1}, "patches")):
        with pytest.raises(yt.wrapper.YtResponseError, match=error):
            client.patch_operation_spec(id, [{"path": "/max_failed_job_count", "value": 5}, patch])
    assert client.get_operation(id, attributes=["full_spec"])["full_spec"]["max_failed_job_count"] == 77, "all or nothing"
    cluster.server.kill()
    cluster.server.start()
    cluster.wait_server()
    assert client.get_operation(id, attributes=["full_spec"])["full_spec"]["max_failed_job_count"] == 77


def test_get_operation(client, operation):
    assert client.get_operation(operation[0])["type"] == "vanilla"


def test_list_operations(client, operation, pool):
    assert [o["id"] for o in client.list_operations(pool=pool)["operations"]] == [operation[0]]


def test_list_operation_events(client, operation):
    events = client.list_operation_events(operation[0])
    assert [event["state"] for event in events] == [
        "starting", "waiting_for_agent", "initializing", "preparing", "pending", "materializing", "running"]
    shown = client.get_operation(operation[0], attributes=["events"])["events"]
    assert [event["timestamp"] for event in events] == [event["time"] for event in shown]


def test_list_jobs(client, operation):
    assert [job["id"] for job in client.list_jobs(operation[0])["jobs"]] == [operation[1]]


def test_get_job(client, operation):
    assert client.get_job(operation[0], operation[1])["state"] == "running"


def test_get_job_stderr(client, operation):
    wait_for(lambda: client.get_job_stderr(operation[0], operation[1]).read() == b"hello\n", what="what the job has said")


@pytest.fixture
def failed(cluster, client, home):
    """A map over the rows of a table, and a job of it that has failed with them."""
    client.write_table(f"{home}/rows", [{"a": 1}, {"a": 2}])
    mapper = {"cpu_limit": 0.1, "memory_limit": 64 << 20}
    operation = client.run_map("exit 1", f"{home}/rows", f"{home}/out", format="json", sync=False,
                               spec={"mapper": mapper, "max_failed_job_count": 1})
    cluster.wait_state(operation.id, "failed", timeout=120)
    return operation.id, cluster.jobs(operation.id, state="failed")[0]["id"]


def test_get_job_input(client, failed):
    rows = client.get_job_input(failed[1]).read().splitlines()
    assert [json.loads(row) for row in rows] == [{"a": 1}, {"a": 2}]


def test_get_job_input_paths(client, home, failed):
    path, = client.get_job_input_paths(failed[1])
    assert str(path) == f"{home}/rows"
    assert path.attributes["ranges"] == [{"lower_limit": {"row_index": 0}, "upper_limit": {"row_index": 2}}]


def test_get_job_spec(client, home, failed):
    spec = client.get_job_spec(failed[1])
    assert (spec["operation_id"], spec["job_id"], spec["type"]) == (*failed, "map")
    assert spec["user_job_spec"]["command"] and spec["user_job_spec"]["memory_limit"] > 0
    assert str(spec["input_table_specs"][0]) == f"{home}/rows" and [str(p) for p in spec["output_table_specs"]] == [f"{home}/out"]
    short = client.get_job_spec(failed[1], omit_input_table_specs=True, omit_output_table_specs=True, omit_node_directory=True)
    assert "input_table_specs" not in short and "output_table_specs" not in short


def test_dump_job_context(cluster, client, home):
    client.write_table(f"{home}/rows", [{"a": 1}, {"a": 2}])
    operation = client.run_map("cat > /dev/null; sleep 1000", f"{home}/rows", f"{home}/out", format="json", sync=False,
                               spec={"mapper": {"cpu_limit": 0.1, "memory_limit": 64 << 20}})
    job, = cluster.wait_jobs(operation.id, timeout=120)
    client.dump_job_context(job, f"{home}/context")
    assert [json.loads(row) for row in client.read_file(f"{home}/context").read().splitlines()] == [{"a": 1}, {"a": 2}]
    with pytest.raises(yt.wrapper.YtResponseError):
        client.dump_job_context(job, f"{home}/context")
    client.abort_operation(operation.id)
    with pytest.raises(yt.wrapper.YtResponseError) as over:
        client.dump_job_context(job, f"{home}/late")
    assert over.value.contains_code(203) and not client.exists(f"{home}/late")


def test_list_job_traces(client, failed):
    assert client.list_job_traces(*failed) == {"traces": []}


def test_get_job_trace(client, failed):
    assert client.get_job_trace(*failed).read() == b""


def test_get_job_fail_context(client, failed):
    rows = job_commands.get_job_fail_context(*failed, client=client).read().splitlines()
    assert [json.loads(row) for row in rows] == [{"a": 1}, {"a": 2}]


def test_abort_job(cluster, client, operation):
    client.abort_job(operation[1])
    wait_for(lambda: cluster.counters(operation[0])["aborted"] == 1, what="the job to be aborted")


def test_abandon_job(cluster, client, operation):
    raw(client, "abandon_job", job_id=operation[1])
    cluster.wait_state(operation[0], "completed", timeout=120)


def without_shells(refused):
    if "isolation" in str(refused):
        pytest.skip("jobs of this host have no shells")
    raise refused


def test_poll_job_shell(client, operation):
    def shell(**parameters):
        answer = formatted(client, "poll_job_shell", job_id=operation[1], parameters=parameters)
        return answer.get("result", answer)
    try:
        opened = shell(operation="spawn", term="xterm", height=24, width=80)
    except yt.wrapper.YtResponseError as refused:
        without_shells(refused)
    assert opened["shell_id"]
    shell(operation="terminate", shell_id=opened["shell_id"])


def test_run_job_shell_command(client, operation):
    try:
        said = make_request("run_job_shell_command", {"job_id": operation[1], "command": "echo $((6 * 7))"}, client=client)
    except yt.wrapper.YtResponseError as refused:
        without_shells(refused)
    assert said.strip() == b"42"


# --- users and permissions

@pytest.fixture
def user(client):
    name = f"user-{next(_numbers)}"
    client.create("user", attributes={"name": name})
    return name


def test_check_permission(client, user):
    assert client.check_permission(user, "read", "//tmp")["action"] == "allow"


def test_check_permission_by_acl(client, user):
    acl = [{"action": "allow", "subjects": [user], "permissions": ["read"]}]
    assert formatted(client, "check_permission_by_acl", user=user, permission="read", acl=acl)["action"] == "allow"
    assert formatted(client, "check_permission_by_acl", user=user, permission="write", acl=acl)["action"] == "deny"


def test_check_operation_permission(client, operation, user):
    told = formatted(client, "check_operation_permission", operation_id=operation[0], user=user, permission="manage")
    assert told["action"] == "deny"


def group(client, user):
    name = f"group-{next(_numbers)}"
    client.create("group", attributes={"name": name})
    client.add_member(user, name)
    return name


def test_add_member(client, user):
    assert client.get(f"//sys/groups/{group(client, user)}/@members") == [user]


def test_remove_member(client, user):
    name = group(client, user)
    client.remove_member(user, name)
    assert client.get(f"//sys/groups/{name}/@members") == []


def digest(token):
    return hashlib.sha256(str(token).encode()).hexdigest()


def tokens(client, user):
    listed = client.list_user_tokens(user)
    # As it came: the client does not ask for a format and hands the bytes on.
    return json.loads(listed) if isinstance(listed, (bytes, str)) else list(listed)


@pytest.fixture(scope="module")
def guarded():
    """A server that asks who one is."""
    with make_cluster(nodes=0, auth=True) as cluster:
        yield cluster


def known_by(cluster, token):
    return yt.wrapper.YtClient(proxy=cluster.address, token=token, config={"proxy": {"enable_proxy_discovery": False}})


def test_issue_token(guarded):
    root = known_by(guarded, guarded.token)
    root.create("user", attributes={"name": "ann"})
    token = root.issue_token("ann")
    assert known_by(guarded, token).get_current_user()["user"] == "ann"
    with pytest.raises(yt.wrapper.YtTokenError):
        known_by(guarded, token[::-1]).list("/")


def test_list_user_tokens(client, user):
    token = client.issue_token(user)
    assert tokens(client, user) == [digest(token)]


def test_revoke_token(client, user):
    token = client.issue_token(user)
    client.revoke_token(user, token_sha256=digest(token))
    assert tokens(client, user) == []


def test_set_user_password(guarded):
    root = known_by(guarded, guarded.token)
    root.create("user", attributes={"name": "bob"})

    def signed_in(password):
        who = json.dumps({"user": "bob", "password": password}).encode()
        try:
            with urllib.request.urlopen(f"http://{guarded.address}/login", data=who) as reply:
                return json.loads(reply.read())["login"]
        except urllib.error.HTTPError as error:
            return error.code
    assert signed_in("secret") == 401
    root.set_user_password("bob", "secret")
    assert (signed_in("secret"), signed_in("Secret")) == ("bob", 401)


def test_get_current_user(client):
    assert client.get_current_user()["user"] == "root"


# --- the rest

def test_transfer_pool_resources(cluster, client):
    a, b = (f"transfer-{next(_numbers)}" for _ in range(2))
    cluster.create_pool(a, strong_guarantee_resources={"cpu": 1.0})
    cluster.create_pool(b)
    client.transfer_pool_resources(a, b, "physical", {"strong_guarantee_resources": {"cpu": 1.0}})
    assert client.get(f"//sys/pool_trees/physical/{b}/@strong_guarantee_resources/cpu") == yt.yson.YsonDouble(1.0)


def test_transfer_account_resources(client):
    a, b = (f"account-{next(_numbers)}" for _ in range(2))
    client.create("account", attributes={"name": a, "resource_limits": {"node_count": 10, "disk_space_per_medium": {"default": 100}}})
    client.create("account", attributes={"name": b})

    def limits(account):
        return client.get(f"//sys/accounts/{account}/@resource_limits")
    client.transfer_account_resources(a, b, {"node_count": 4, "disk_space_per_medium": {"default": 30}})
    assert limits(a) == {"node_count": 6, "disk_space_per_medium": {"default": 70}}
    assert limits(b) == {"node_count": 4, "disk_space_per_medium": {"default": 30}}
    for delta, error in (({"node_count": 7}, "has 6"), ({"node_count": -1}, "at least 0"), ({"chunk_count": 1}, "has 0"),
                         ({"node_count": 1, "disk_space_per_medium": {"default": 71}}, "disk_space_per_medium/default")):
        with pytest.raises(yt.wrapper.YtResponseError, match=error):
            client.transfer_account_resources(a, b, delta)
    with pytest.raises(yt.wrapper.YtResponseError) as missing:
        client.transfer_account_resources(a, "nobody", {})
    assert missing.value.contains_code(500)
    assert limits(a)["node_count"] == 6 and limits(b)["node_count"] == 4, "all or nothing"


def test_execute_batch(client, home):
    batch = client.create_batch_client()
    exists, missing = batch.exists(home), batch.get(f"{home}/nothing")
    batch.commit_batch()
    assert exists.get_result() and missing.get_error()["code"] == 500


def test_get_version(cluster, client):
    assert cluster.millpond("--version")[1].split() == ["millpond", formatted(client, "get_version")["version"]]


def test_get_supported_features(client):
    integers = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    assert client.get_supported_features() == {
        "primitive_types": [*integers, "string", "double", "boolean", "any"],
        "compression_codecs": ["none"],
        "erasure_codecs": ["none"],
        "operation_statistics_descriptions": {},
        "require_password_in_authentication_commands": False,
    }


def test_generate_timestamp(client):
    first = client.generate_timestamp()
    assert client.generate_timestamp() >= first > 0


def test_discover_proxies(cluster, client):
    assert formatted(client, "discover_proxies", type="http")["proxies"] == [cluster.address]


def test_every_command_is_here(cluster):
    with urllib.request.urlopen(f"http://{cluster.address}/api/v4") as reply:
        names = {command["name"] for command in json.loads(reply.read())}
    here = {name.removeprefix("test_") for name in dir(sys.modules[__name__]) if name.startswith("test_")}
    assert names <= here, f"without a test: {sorted(names - here)}"
