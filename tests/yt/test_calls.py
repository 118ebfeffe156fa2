"""The real `yt` command: every call of ranks 1 to 4 of http-api.md section 12, with its output.

One table of calls, in the order in which a person would try them; each has its arguments and what
its output must be. At the end the calls with their outputs are written to build/yt-calls.txt.

Arguments may hold {names}: of operations and jobs that fixtures made, and of what earlier calls
printed (`keep`).
"""

import dataclasses
import json
import re
import time
from typing import Any, Callable

import pytest
import yt.yson as yson
from harness import BUILD, wait_for


@dataclasses.dataclass
class Call:
    """One call of the command."""

    rank: int
    arguments: list[str]
    # The exact output (final line end aside), a compiled expression to be found in it, or a function
    # of (output, names, cluster) that asserts.
    expect: Any = None
    # What it prints on stderr: an expression to be found there.
    says: str | None = None
    code: int = 0
    # Name under which the output is known to later calls.
    keep: str | None = None
    # Done before, with the cluster and the names.
    before: Callable | None = None
    stdin: str | None = None


GUID = re.compile(r"^[0-9a-f]+-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+$")
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")


def filled(text, names):
    """Puts names in. `{word}` alone is never YSON, which wants `{word=value}`."""
    return re.sub(r"\{(\w+)\}", lambda m: names[m[1]], text)


def guid(output, names, cluster):
    assert GUID.match(output.strip()), output


def parsed(check):
    """The output is YSON; `check` gets the value."""
    def run(output, names, cluster):
        value = yson.loads(output.encode())
        result = check(value, names)
        assert result is not False, value
    return run


def has(**wanted):
    """The output is a YSON map with at least these values."""
    def check(value, names):
        for key, expected in wanted.items():
            expected = filled(expected, names) if isinstance(expected, str) else expected
            assert value[key] == expected, (key, value[key], expected)
    return parsed(check)


def lines(*wanted):
    """The output has these lines, in any order, and no others."""
    def check(output, names, cluster):
        assert sorted(output.split()) == sorted(filled(w, names) for w in wanted), output
    return check


def listed(key, *wanted, exactly=True):
    """The `id`s of the list `key` in the output."""
    def check(value, names):
        ids = [item["id"] for item in value[key]]
        expected = [filled(w, names) for w in wanted]
        assert (sorted(ids) == sorted(expected)) if exactly else set(expected) <= set(ids), ids
        assert all(isinstance(item, dict) for item in value[key])
    return parsed(check)


def state_is(name, state):
    def check(output, names, cluster):
        wait_for(lambda: cluster.state(names[name]) == state, what=f"{name} to be {state}")
    return check


def suspended_is(name, value):
    def check(output, names, cluster):
        assert cluster.operation(names[name], "suspended")["suspended"] is value
    return check


def job_of(name, state="running"):
    """Waits for a job of the operation `name`, known as `<name>_job` from now on."""
    def before(cluster, names):
        jobs = wait_for(lambda: cluster.jobs(names[name], state=state), what=f"a {state} job of {name}")
        names[f"{name}_job"] = jobs[0]["id"]
    return before


def start(name, command, pool="team", **options):
    """Starts an operation over plain HTTP, known as `name` from now on."""
    def before(cluster, names):
        names[name] = cluster.start_vanilla(command, pool=pool, **options)
        cluster.wait_state(names[name], "running", "completed")
    return before


def both(*steps):
    def before(cluster, names):
        for step in steps:
            step(cluster, names)
    return before


def attributes_with(*names_of_attributes):
    def check(value, names):
        for name in names_of_attributes:
            assert name in value, name
    return parsed(check)


def vanilla(command, **options):
    return yson.dumps({"t": {"command": command, "job_count": 1, "cpu_limit": 0.1, "memory_limit": 64 << 20,
                             **options}}).decode()


POOL = "//sys/pool_trees/physical/team"

CALLS = [
    # --- rank 1: transport, who am I, what is served
    Call(1, ["whoami"], "root"),
    Call(1, ["execute", "get_version", "{}"], parsed(lambda v, _: bool(v["version"]))),
    Call(1, ["execute", "get", '{path="//sys/pool_trees/@default_tree"}'], '{\n    "value" = "physical";\n}'),
    Call(1, ["execute", "frobnicate", "{}"], says="frobnicate", code=1),
    Call(1, ["get-features"], parsed(lambda v, _: "primitive_types" in v)),

    # --- rank 2: the tree
    Call(2, ["exists", "//tmp/demo"], "false"),
    Call(2, ["create", "map_node", "//tmp/demo"], guid),
    Call(2, ["exists", "//tmp/demo"], "true"),
    Call(2, ["create", "map_node", "//tmp/demo"], says="already exists", code=1),
    Call(2, ["create", "map_node", "//tmp/demo", "--ignore-existing"], guid),
    Call(2, ["create", "map_node", "//tmp/demo/a/b/c", "--recursive", "--attributes", '{color=green}'], guid),
    Call(2, ["get", "//tmp/demo/a/b/c/@color"], '"green"'),
    Call(2, ["create", "document", "//tmp/demo/settings", "--attributes", "{value={depth=[1;2;3]}}"], guid),
    Call(2, ["get", "//tmp/demo/settings/depth/1"], "2"),
    Call(2, ["set", "//tmp/demo/number", "17"], ""),
    Call(2, ["get", "//tmp/demo/number"], "17"),
    Call(2, ["get", "//tmp/demo/number/@type"], '"int64_node"'),
    Call(2, ["set", "//tmp/demo/number", '"text"'], says="(?i)type", code=1),
    Call(2, ["set", "//tmp/demo/deep/er/value", "%true", "--recursive"], ""),
    Call(2, ["get", "//tmp/demo/deep"],
         '{\n    "er" = {\n        "value" = %true;\n    };\n}'),
    Call(2, ["set", "--format", "json", "//tmp/demo/json"], "", stdin='[1, {"k": "\u00e9"}]'),
    Call(2, ["get", "--format", "json", "//tmp/demo/json"], '[1,{"k":"\u00e9"}]'),
    Call(2, ["get", "//tmp/demo", "--attribute", "type"],
         parsed(lambda v, _: v["a"].attributes["type"] == "map_node" and v["number"].attributes["type"] == "int64_node")),
    Call(2, ["list", "//tmp/demo"], lines("a", "deep", "json", "number", "settings")),
    Call(2, ["list", "//tmp/demo", "--absolute"], re.compile(r"^//tmp/demo/a$", re.M)),
    Call(2, ["list", "-l", "//tmp/demo"], re.compile(r"int64_node.*number")),
    Call(2, ["list", "//tmp/demo/number"], says="(?i)list", code=1),
    Call(2, ["set-attribute", "//tmp/demo", "owner_team", '"research"'], ""),
    Call(2, ["get", "//tmp/demo/@owner_team"], '"research"'),
    Call(2, ["set", "//tmp/demo/@limits", "{cpu=2}"], ""),
    Call(2, ["set", "//tmp/demo/@limits/memory", "100"], ""),
    Call(2, ["get", "//tmp/demo/@limits/memory"], "100"),
    Call(2, ["remove-attribute", "//tmp/demo", "owner_team"], ""),
    Call(2, ["exists", "//tmp/demo/@owner_team"], "false"),
    Call(2, ["get", "//tmp/demo/@"], attributes_with("id", "type", "path", "creation_time", "count", "limits")),
    Call(2, ["get", "//tmp/demo/@creation_time"],
         lambda out, *_: TIME.match(yson.loads(out.encode())) or pytest.fail(out)),
    Call(2, ["get", "//tmp/demo/nothing"], says="no child.*nothing|nothing", code=1),
    Call(2, ["copy", "//tmp/demo/number", "//tmp/demo/copied"], ""),
    Call(2, ["get", "//tmp/demo/copied"], "17"),
    Call(2, ["copy", "//tmp/demo/number", "//tmp/demo/copied"], says="already exists", code=1),
    Call(2, ["copy", "--recursive", "//tmp/demo/a", "//tmp/demo/x/y"], ""),
    Call(2, ["get", "//tmp/demo/x/y/b/c/@color"], '"green"'),
    Call(2, ["move", "//tmp/demo/copied", "//tmp/demo/moved"], ""),
    Call(2, ["exists", "//tmp/demo/copied"], "false"),
    Call(2, ["get", "//tmp/demo/moved"], "17"),
    Call(2, ["move", "//tmp/demo/a", "//tmp/demo/a/b/inside"], says=".", code=1),
    Call(2, ["link", "//tmp/demo/a", "//tmp/demo/link"], ""),
    Call(2, ["get", "//tmp/demo/link/b/c/@color"], '"green"'),
    Call(2, ["get", "//tmp/demo/link&/@target_path"], '"//tmp/demo/a"'),
    Call(2, ["find", "//tmp/demo/x", "--name", "c"], "//tmp/demo/x/y/b/c"),
    Call(2, ["remove", "//tmp/demo/moved"], ""),
    Call(2, ["remove", "//tmp/demo/moved"], says="moved", code=1),
    Call(2, ["remove", "--force", "//tmp/demo/moved"], ""),
    Call(2, ["remove", "//tmp/demo/x"], says="(?i)recursive|empty", code=1),
    Call(2, ["remove", "--recursive", "//tmp/demo/x"], ""),
    Call(2, ["execute-batch",
             '{command=get;parameters={path="//tmp/demo/number";return_only_value=%true}}',
             '{command=exists;parameters={path="//tmp/none"}}',
             '{command=get;parameters={path="//tmp/none"}}'],
         parsed(lambda v, _: [list(item) for item in v["results"]] == [["output"], ["output"], ["error"]]
                and v["results"][0]["output"] == 17 and v["results"][2]["error"]["code"] == 500)),
    Call(2, ["check-permission", "root", "write", "//tmp"], re.compile("allow")),
    Call(2, ["get", "//sys/pools/@type"], says=None, expect=re.compile("scheduler_pool")),

    # --- pools: what the ranks below need, and the two calls that make them
    Call(3, ["create-pool", "team"], guid),
    Call(3, ["create", "scheduler_pool", "--attributes",
             "{name=inner;pool_tree=physical;parent_name=team;weight=2.0}"], guid),
    Call(3, ["create-pool", "team"], says="already exists", code=1),
    Call(3, ["get", POOL + "/inner/@weight"], "2."),
    Call(3, ["set", POOL + "/@max_running_operation_count", "5"], ""),
    Call(3, ["set", POOL + "/@strong_guarantee_resources", "{cpu=1}"], ""),
    Call(3, ["set", POOL + "/@weight", "-1"], says="weight", code=1),
    Call(3, ["list", POOL], "inner"),
    Call(3, ["get", "//sys/scheduler/orchid/scheduler/pool_trees/physical/pools/team/max_running_operation_count"], "5",
         before=lambda cluster, names: wait_for(lambda: cluster.pool_orchid("team")["max_running_operation_count"] == 5,
                                                what="an update that knows the limit")),
    Call(3, ["exists", "//sys/pools/team/inner"], "true"),

    # --- rank 3: operations
    Call(3, ["vanilla", "--tasks", vanilla("echo hello >&2"),
             "--spec", "{pool=team;title=first}"], says=r"(?s)Operation started.*completed"),
    Call(3, ["vanilla", "--tasks", vanilla("echo the reason >&2; exit 3"),
             "--spec", "{pool=team;max_failed_job_count=1}"],
         says=r"(?s)Failed jobs limit exceeded.*the reason", code=1),
    Call(3, ["vanilla", "--tasks", vanilla("true", job_count=0),
             "--spec", "{pool=team}"], says="job_count", code=1),
    Call(3, ["vanilla", "--tasks", vanilla("true", colour="red"),
             "--spec", "{pool=team}"], says="(?s)(?i)unrecognized.*colour"),
    Call(3, ["vanilla", "--async", "--tasks", vanilla("sleep 1000"),
             "--spec", '{pool=team;alias="*long";title="a long one"}'], guid, keep="long"),
    Call(3, ["get-operation", "{long}", "--attribute", "state", "--attribute", "type"],
         has(type="vanilla"), before=lambda cluster, names: cluster.wait_state(names["long"], "running")),
    Call(3, ["get-operation", "{long}"],
         attributes_with("id", "state", "type", "authenticated_user", "start_time", "suspended", "spec", "full_spec",
                         "unrecognized_spec", "brief_spec", "runtime_parameters", "brief_progress", "progress",
                         "alerts", "events", "slot_index_per_pool_tree", "task_names")),
    Call(3, ["get-operation", "--operation-alias", "*long", "--include-runtime", "--attribute", "id"], has(id="{long}")),
    Call(3, ["get-operation", "{long}", "--attribute", "nonsense"], says="nonsense", code=1),
    Call(3, ["get-operation", "1-2-3e80001-4"], says="(?i)no such operation", code=1),
    Call(3, ["list-operations", "--state", "running", "--pool", "team"], listed("operations", "{long}")),
    Call(3, ["list-operations", "--filter", "a long one"], listed("operations", "{long}")),
    Call(3, ["list-operations", "--state", "failed"],
         parsed(lambda v, _: len(v["operations"]) == 1 and v["state_counts"]["failed"] == 1)),
    Call(3, ["list-operations", "--limit", "2"],
         parsed(lambda v, _: len(v["operations"]) == 2 and v["incomplete"])),
    Call(3, ["update-op-parameters", "{long}",
             "{scheduling_options_per_pool_tree={physical={weight=3.0}}}"], "",
         before=lambda cluster, names: cluster.wait_state(names["long"], "running")),
    Call(3, ["get-operation", "{long}", "--attribute", "runtime_parameters"],
         parsed(lambda v, _: float(v["runtime_parameters"]["scheduling_options_per_pool_tree"]["physical"]["weight"]) == 3)),
    Call(3, ["update-op-parameters", "{long}", "{weight=-1.0}"], says="weight", code=1),
    Call(3, ["update-op-parameters", "{long}", '{pool="inner"}'], ""),
    Call(3, ["list-operations", "--state", "running", "--pool", "inner"], listed("operations", "{long}")),
    Call(3, ["suspend-op", "{long}", "--reason", "lunch"], suspended_is("long", True)),
    Call(3, ["resume-op", "{long}"], suspended_is("long", False)),
    Call(3, ["resume-op", "{long}"], says=".", code=1),
    Call(3, ["abort-op", "{long}", "--message", "enough of it"], state_is("long", "aborted")),
    Call(3, ["get-operation", "{long}", "--attribute", "result"], re.compile("enough of it")),
    Call(3, ["abort-op", "{long}"], "", says=None),
    Call(3, ["track-op", "{long}"], says="aborted", code=1),
    Call(3, ["complete-op", "{endless}"], state_is("endless", "completed"), before=start("endless", "sleep 1000")),
    Call(3, ["track-op", "{endless}"], says="completed"),
    Call(3, ["track-op", "{short}"], says="completed", before=start("short", "sleep 0.5")),
    Call(3, ["get-operation", "{short}", "--attribute", "brief_progress"],
         parsed(lambda v, _: {k: v["brief_progress"]["jobs"][k] for k in ("total", "completed", "failed", "running")}
                == {"total": 1, "completed": 1, "failed": 0, "running": 0})),
    Call(3, ["explain-id", "--local", "{short}"], re.compile("operation")),
    Call(3, ["explain-id", "{short}"],
         re.compile(r"Exists: +true\n +Creation range: +\d{4}-\d\d-\d\dT[\d:.]+Z - \d{4}-\d\d-\d\dT[\d:.]+Z")),
    Call(3, ["explain-id", "1-2-3e8-4"], says="no child with key", code=1),

    # --- rank 4: jobs
    Call(4, ["list-jobs", "{work}"], listed("jobs", "{work_job}"),
         before=both(start("work", "echo from the job >&2; sleep 1000"), job_of("work"))),
    Call(4, ["list-jobs", "{work}", "--job-state", "completed"], listed("jobs")),
    Call(4, ["list-jobs", "{work}", "--sort-field", "start_time", "--sort-order", "descending", "--limit", "5"],
         listed("jobs", "{work_job}")),
    Call(4, ["list-jobs", "1-2-3e80001-4"], says="(?i)no such operation", code=1),
    Call(4, ["get-job", "{work_job}", "{work}"],
         has(id="{work_job}", job_id="{work_job}", state="running", task_name="t", operation_id="{work}")),
    Call(4, ["get-job", "1-2-3840001-4", "{work}"], says="(?i)no such job", code=1),
    Call(4, ["get-job-stderr", "{work_job}", "{work}"], "from the job",
         before=lambda cluster, names: wait_for(lambda: cluster.stderr(names["work"], names["work_job"]),
                                                what="stderr of a running job")),
    Call(4, ["abort-job", "{work_job}"],
         lambda out, names, cluster: wait_for(
             lambda: [j["id"] for j in cluster.jobs(names["work"], state="aborted")] == [names["work_job"]],
             what="the job to be aborted")),
    Call(4, ["abort-job", "{work_job}"], says="(?i)job", code=1),
    Call(4, ["list-jobs", "{work}", "--job-state", "aborted"], listed("jobs", "{work_job}")),
    Call(4, ["list-jobs", "{work}", "--job-state", "running"],
         parsed(lambda v, n: len(v["jobs"]) == 1 and v["jobs"][0]["id"] != n["work_job"]
                and v["jobs"][0]["job_cookie"] == 0),
         before=lambda cluster, names: wait_for(lambda: cluster.jobs(names["work"], state="running"),
                                                what="the job to run again")),
    Call(4, ["abort-op", "{work}"], state_is("work", "aborted")),
    # When neither the node nor the archive can tell it, there is an error for a moment.
    Call(4, ["get-job-stderr", "{work_job}", "{work}"], "from the job",
         before=lambda cluster, names: wait_for(lambda: cluster.stderr(names["work"], names["work_job"]),
                                                what="stderr of an aborted job")),
    Call(4, ["list-jobs", "{bad}", "--job-state", "failed"],
         parsed(lambda v, n: v["jobs"][0]["error"]["code"] == 1205
                and v["jobs"][0]["error"]["inner_errors"][0]["attributes"]["exit_code"] == 7),
         before=lambda cluster, names: names.__setitem__(
             "bad", cluster.run_vanilla("exit 7", pool="team", state="failed", spec={"max_failed_job_count": 1}))),

    # --- the end of the tree's part
    Call(2, ["remove", "//sys/pool_trees/physical/team/inner"], ""),
    Call(2, ["exists", "//sys/pools/team/inner"], "false"),
    Call(2, ["remove", "--recursive", "//tmp/demo"], ""),
]


@pytest.fixture(scope="module")
def names():
    return {}


@pytest.fixture(scope="module")
def journal():
    """What was called and what it printed, for people."""
    entries = []
    yield entries
    BUILD.mkdir(exist_ok=True)
    with open(BUILD / "yt-calls.txt", "w") as f:
        f.write("Calls of the real yt command of ranks 1 to 4, with their output.\n")
        for call, arguments, (code, out, err), seconds in entries:
            quoted = " ".join(a if re.fullmatch(r"[\w/@.=*:&-]+", a) else "'" + a + "'" for a in arguments)
            f.write(f"\n# rank {call.rank}, exit code {code}, {seconds:.2f} s\n$ yt {quoted}\n{out.rstrip()}\n")
            if err.strip():
                f.write("stderr:\n" + "".join(f"  {line}\n" for line in err.rstrip().splitlines()))


# The first call of each command is a process of its own, as a person starts it (harness.Cluster.yt).
FRESH = {call.arguments[0]: call for call in reversed(CALLS)}


def call_id(call):
    words = [re.sub(r"[^\w/@*-]+", "", a) for a in call.arguments]
    return " ".join(words)[:60]


@pytest.mark.parametrize("call", CALLS, ids=[f"{i:03}-{call_id(c)}" for i, c in enumerate(CALLS)])
def test_call(cluster, names, journal, call):
    if call.before:
        call.before(cluster, names)
    arguments = [filled(a, names) for a in call.arguments]
    begin = time.monotonic()
    code, out, err = cluster.yt(*arguments, check=False, stdin=call.stdin, fresh=call is FRESH[call.arguments[0]])
    journal.append((call, arguments, (code, out, err), time.monotonic() - begin))
    shown = f"exit code {code}\n--- stdout\n{out}\n--- stderr\n{err}"
    assert code == call.code, shown
    if call.keep:
        names[call.keep] = out.strip()
    if call.says:
        assert re.search(call.says, err), f"stderr does not say {call.says!r}: {shown}"
    if isinstance(call.expect, str):
        assert out.rstrip("\n") == filled(call.expect, names).rstrip("\n"), shown
    elif isinstance(call.expect, re.Pattern):
        assert call.expect.search(out), f"{call.expect.pattern!r} is not in the output: {shown}"
    elif call.expect:
        call.expect(out, names, cluster)


def test_every_rank_is_there():
    """The commands of section 12 that ranks 1 to 4 name are all in the table."""
    wanted = {
        1: {"whoami", "execute"},
        2: {"get", "list", "exists", "set", "create", "remove", "copy", "move", "link", "set-attribute",
            "remove-attribute", "find", "execute-batch", "check-permission"},
        3: {"create-pool", "vanilla", "track-op", "abort-op", "suspend-op", "resume-op", "complete-op",
            "update-op-parameters", "get-operation", "list-operations", "explain-id"},
        4: {"list-jobs", "get-job", "get-job-stderr", "abort-job"},
    }
    for rank, commands in wanted.items():
        assert commands <= {c.arguments[0] for c in CALLS if c.rank == rank}, rank


def test_output_of_json_is_json(cluster):
    for arguments in (["get", "//sys/pool_trees/@"], ["list-operations"], ["list", "//sys"]):
        _, out, _ = cluster.yt(arguments[0], *arguments[1:], "--format", "json")
        json.loads(out)
