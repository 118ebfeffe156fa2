"""The rest of what each `yt` call needs (http-api.md 12), through the real command: the calls of ranks 5 and later, and
a list of all of them with the tests that make them.
"""

import itertools
import json
import pathlib
import re
import stat

import pytest
import yt.yson as yson
from harness import wait_for

TESTS = pathlib.Path(__file__).parents[1]
SMALL = "cpu_limit=0.1;memory_limit=67108864"
_numbers = itertools.count()


@pytest.fixture
def yt(cluster):
    """What the command prints."""
    def call(*arguments, **options):
        return cluster.yt(*arguments, **options)[1].rstrip("\n")
    return call


@pytest.fixture
def home(cluster):
    path = f"//tmp/rows-{next(_numbers)}"
    cluster.command("create", type="map_node", path=path)
    return path


def name(prefix):
    return f"{prefix}-{next(_numbers)}"


# --- accounts, users and groups

def test_create_account(yt):
    account = name("account")
    yt("create-account", account, "--resource-limits", "{disk_space=1000}")
    assert account in yt("list", "//sys/accounts").split()
    assert yt("get", f"//sys/accounts/{account}/@resource_limits/disk_space") == "1000"
    assert "already exists" in yt_fails(yt, "create-account", account)


def yt_fails(yt, *arguments):
    """What it says when it fails."""
    with pytest.raises(AssertionError) as failed:
        yt(*arguments)
    return str(failed.value)


def test_members(yt):
    user, group = name("user"), name("group")
    yt("create", "user", "--attributes", f"{{name={user}}}")
    yt("create", "group", "--attributes", f"{{name={group}}}")
    yt("add-member", user, group)
    assert yson.loads(yt("get", f"//sys/groups/{group}/@members").encode()) == [user]
    assert "908" in yt_fails(yt, "add-member", user, group)
    yt("remove-member", user, group)
    assert yson.loads(yt("get", f"//sys/groups/{group}/@members").encode()) == []


def test_tokens(yt):
    user = name("user")
    yt("create", "user", "--attributes", f"{{name={user}}}")
    assert yt("issue-token", user)
    digests = json.loads(yt("list-user-tokens", user))
    assert len(digests) == 1
    yt("revoke-token", user, "--token-sha256", digests[0])
    assert json.loads(yt("list-user-tokens", user)) == []


# --- files and tables

def test_files(yt, home):
    for write, read in (("write-file", "read-file"), ("upload", "download")):
        yt(write, f"{home}/f", "--executable", stdin="some text")
        assert yt(read, f"{home}/f") == "some text"
        assert yt(read, f"{home}/f", "--offset", "5", "--length", "3") == "tex"
        assert yt("get", f"{home}/f/@executable") == "%true"
    yt("upload", f"{home}/f", "--compute-md5", stdin="other text")
    assert re.fullmatch('"[0-9a-f]{32}"', yt("get", f"{home}/f/@md5"))


def test_tables(yt, home):
    yt("write-table", f"{home}/t", "--format", "json", stdin='{"a":1}{"a":2}')
    yt("write-table", f"<append=%true>{home}/t", "--format", "json", stdin='{"a":3}')
    assert yt("read-table", f"{home}/t[#1:]", "--format", "json") == '{"a":2}\n{"a":3}'
    yt("create", "table", f"{home}/all")
    yt("concatenate", "--src", f"{home}/t", "--src", f"{home}/t", "--dst", f"{home}/all")
    assert yt("get", f"{home}/all/@row_count") == "6"
    yt("create", "table", f"{home}/typed")
    yt("alter-table", f"{home}/typed", "--schema", "[{name=a;type=int64}]")
    assert yson.loads(yt("get", f"{home}/typed/@schema").encode())[0]["name"] == "a"
    made = yt("create-temp-table", "--path", home)
    assert yt("get", f"{made}/@type") == '"table"'


# --- operations over tables

@pytest.fixture
def two(client, home):
    """Two tables, each in order."""
    for table, rows in (("a", [1, 3]), ("b", [2, 4])):
        client.write_table(f"<sorted_by=[n]>{home}/{table}", [{"n": n} for n in rows])
    return home


def test_map(yt, two, pool):
    told = yt("map", "grep -v 3", "--src", f"{two}/a", "--src", f"{two}/b", "--dst", f"{two}/c", "--format", "json",
              "--spec", f"{{pool={pool};mapper={{{SMALL};enable_input_table_index=%false}}}}")
    assert told == "", "what is worth knowing goes to stderr"
    assert sorted(yt("read-table", f"{two}/c", "--format", "json").split()) == ['{"n":1}', '{"n":2}', '{"n":4}']


def test_map_without_waiting(cluster, yt, two, pool):
    operation = yt("map", "cat", "--src", f"{two}/a", "--dst", f"{two}/c", "--format", "json", "--async",
                   "--spec", f"{{pool={pool};mapper={{{SMALL}}}}}")
    yt("track-op", operation)
    assert yt("get", f"{two}/c/@row_count") == "2"


@pytest.mark.parametrize("mode", [None, "unordered", "sorted"])
def test_merge(yt, client, home, pool, mode):
    """Without a mode it looks at the sources and finds that they are sorted."""
    for table, rows in (("a", [1, 2]), ("b", [3, 4])):
        client.write_table(f"<sorted_by=[n]>{home}/{table}", [{"n": n} for n in rows])
    yt("merge", "--src", f"{home}/a", "--src", f"{home}/b", "--dst", f"{home}/m", "--spec", f"{{pool={pool}}}",
       *(["--mode", mode] if mode else []))
    assert yt("read-table", f"{home}/m", "--format", "json").split() == [f'{{"n":{n}}}' for n in (1, 2, 3, 4)]
    if mode != "unordered":
        assert yt("get", f"{home}/m/@sorted") == "%true"


# --- operations by their alias

def test_alias(cluster, yt, pool):
    alias = "*" + name("known")
    tasks = f'{{t={{command="sleep 1000";job_count=1;{SMALL}}}}}'
    operation = yt("vanilla", "--async", "--tasks", tasks, "--spec", f'{{pool={pool};alias="{alias}"}}')
    cluster.wait_state(operation, "running")
    yt("suspend-op", alias)
    assert cluster.operation(operation, "suspended")["suspended"]
    yt("resume-op", alias)
    assert not cluster.operation(operation, "suspended")["suspended"]
    yt("update-op-parameters", alias, "{weight=4.0}")
    assert cluster.operation(operation, "runtime_parameters")["runtime_parameters"]["scheduling_options_per_pool_tree"]["physical"]["weight"] == 4
    # These two of the client ask for the state first, by id only (get_operation_state).
    yt("complete-op", operation)
    cluster.wait_state(operation, "completed")


# --- jobs

def test_input_of_a_job(cluster, yt, two, pool):
    operation = yt("map", "cat > /dev/null; sleep 1000", "--src", f"{two}/a", "--dst", f"{two}/c", "--format", "json", "--async",
                   "--spec", f"{{pool={pool};mapper={{{SMALL}}}}}")
    job, = cluster.wait_jobs(operation)
    assert yt("get-job-input", job) == '{"n":1}\n{"n":3}'
    # `get-job-input-paths` of the client of this version fails by itself, on whatever it has got: it hands an iterator
    # of Python to its printer. What it gets is in commands/.


# --- the rest

def test_transfer_pool_resources(cluster, yt):
    a, b = name("pool"), name("pool")
    yt("create-pool", a, "--strong-guarantee-resources", "{cpu=1}")
    yt("create-pool", b)
    yt("transfer-pool-resources", a, b, "physical", "--resource-delta", "{strong_guarantee_resources={cpu=1}}")
    assert yt("get", f"//sys/pools/{b}/@strong_guarantee_resources/cpu") == "1."


def test_generate_timestamp(yt):
    assert int(yt("generate-timestamp")) < int(yt("generate-timestamp"))


# --- all of section 12

# Each call with the test that makes it; `None`: a row of the table in test_calls.py.
HERE = "yt/test_rows.py"
CALLS = {
    **dict.fromkeys(
        ["get", "list", "exists", "set", "create", "remove", "copy", "move", "link", "find", "set-attribute", "remove-attribute",
         "create-pool", "vanilla", "track-op", "abort-op", "suspend-op", "resume-op", "complete-op", "update-op-parameters",
         "get-operation", "list-operations", "list-jobs", "get-job", "get-job-stderr", "abort-job", "execute", "execute-batch",
         "check-permission", "whoami", "explain-id"]),
    "create-account": (HERE, "test_create_account"),
    "map": (HERE, "test_map"),
    "merge": (HERE, "test_merge"),
    "run-job-shell": ("cluster/test_shells.py", "test_the_real_client"),
    "run-job-shell-command": ("cluster/test_shells.py", "test_a_command_of_the_real_client"),
    **dict.fromkeys(["write-file", "upload", "read-file", "download"], (HERE, "test_files")),
    **dict.fromkeys(["write-table", "read-table"], (HERE, "test_tables")),
    **dict.fromkeys(["start-tx", "ping-tx", "commit-tx", "abort-tx", "lock", "unlock"],
                    ("yt/test_transactions.py", "test_the_command_line")),
    **dict.fromkeys(["add-member", "remove-member"], (HERE, "test_members")),
    **dict.fromkeys(["issue-token", "revoke-token", "list-user-tokens"], (HERE, "test_tokens")),
    "transfer-pool-resources": (HERE, "test_transfer_pool_resources"),
    "job-tool": ("yt/test_job_input.py", "test_a_job_prepared_by_the_job_tool"),
    "run_operation": ("yt/test_sdk.py", "test_vanilla"),
    "run_map": ("yt/test_map_functions.py", "test_a_function_of_rows"),
    "create_batch_client": ("yt/test_sdk.py", "test_batch_client"),
}


def body(source, test):
    """Of a test, with the functions of its file."""
    assert f"def {test}(" in source, test
    return source.split(f"def {test}(", 1)[1].split("\n\n\n", 1)[0]


@pytest.mark.parametrize("call", CALLS)
def test_every_call_of_the_section(call):
    if CALLS[call] is None:
        source = (TESTS / "yt/test_calls.py").read_text()
        assert re.search(rf'Call\(\d+, \["{call}"', source), call
    else:
        file, test = CALLS[call]
        text = body((TESTS / file).read_text(), test)
        assert re.search(rf'["(.]({call})["(]|\b{call}\(', text) or f'"{call}"' in text, f"{file}::{test} does not call {call}"
