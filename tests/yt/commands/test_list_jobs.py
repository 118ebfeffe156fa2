"""`list_jobs` through the real client."""

import collections
import itertools

import pytest
import yt.yson
from calls import formatted, fresh, refused, refuses_strange_operations, vanilla
from harness import find_error

TASK = {"job_count": 1, "cpu_limit": 0.1, "memory_limit": 64 << 20}
# Of every job that has begun (http-api.md 10.1).
ALWAYS = set("""id operation_id type state controller_state address start_time progress task_name pool_tree job_cookie allocation_id
    operation_incarnation has_spec has_competitors brief_statistics events is_stale""".split())
Jobs = collections.namedtuple("Jobs", "operation alias by_state")


@pytest.fixture(scope="module")
def jobs(cluster):
    """An operation with two jobs that are completed, one that has failed and one that runs in its place."""
    client, pool, alias = cluster.client(), fresh("jobs"), f"*{fresh('jobs')}"
    cluster.create_pool(pool)
    mark = cluster.shared / fresh("mark")
    tasks = {"good": {**TASK, "command": "echo said >&2", "job_count": 2},
             "bad": {**TASK, "command": f"[ -e {mark} ] && sleep 1000; touch {mark}; exit 3"}}
    id = formatted(client, "start_operation", operation_type="vanilla",
                   spec={"pool": pool, "tasks": tasks, "alias": alias, "max_failed_job_count": 5})["operation_id"]
    cluster.wait_counters(id, completed=2, failed=1, running=1)
    cluster.wait_jobs(id, 1)
    by_state = collections.defaultdict(list)
    for job in client.list_jobs(id)["jobs"]:
        by_state[job["state"]].append(job)
    assert {state: len(found) for state, found in by_state.items()} == {"completed": 2, "failed": 1, "running": 1}
    yield Jobs(id, alias, by_state)
    client.abort_operation(id)


@pytest.fixture
def states(client, jobs):
    """Of the jobs that are found, sorted."""
    def states(**filters):
        return sorted(job["state"] for job in formatted(client, "list_jobs", operation_id=jobs.operation, **filters)["jobs"])
    return states


ALL = ["completed", "completed", "failed", "running"]


def test_list_jobs(client, operation):
    assert [job["id"] for job in client.list_jobs(operation[0])["jobs"]] == [operation[1]]


def test_the_whole_answer(client, jobs):
    listed = client.list_jobs(jobs.operation)
    assert set(listed) == {"jobs", "cypress_job_count", "scheduler_job_count", "controller_agent_job_count", "archive_job_count",
                           "type_counts", "state_counts", "errors"}
    assert isinstance(listed["cypress_job_count"], yt.yson.YsonEntity) and listed["errors"] == []
    assert (listed["scheduler_job_count"], listed["controller_agent_job_count"], listed["archive_job_count"]) == (1, 1, 3)
    assert listed["type_counts"] == {"vanilla": 4} and listed["state_counts"] == {"completed": 2, "failed": 1, "running": 1}
    assert [job["id"] for job in client.list_jobs(operation_alias=jobs.alias)["jobs"]] == [job["id"] for job in listed["jobs"]]


def test_what_is_told_of_jobs(cluster, client, jobs):
    for job in client.list_jobs(jobs.operation)["jobs"]:
        assert ALWAYS <= set(job), ALWAYS - set(job)
        assert (job["operation_id"], job["type"], job["pool_tree"]) == (jobs.operation, "vanilla", "physical")
        assert ("finish_time" in job) == (job["state"] != "running")
        assert ("error" in job) == (job["state"] == "failed")
        assert ("stderr_size" in job) == (job["state"] == "completed")
    failed, running = jobs.by_state["failed"][0], jobs.by_state["running"][0]
    assert (failed["task_name"], failed["job_cookie"]) == (running["task_name"], running["job_cookie"]) == ("bad", 0)
    assert failed["error"]["code"] == 1205 and find_error(failed["error"], 10000)["attributes"]["exit_code"] == 3
    assert {job["job_cookie"] for job in jobs.by_state["completed"]} == {0, 1}
    assert [job["stderr_size"] for job in jobs.by_state["completed"]] == [5, 5]


def test_jobs_have_a_pool_when_they_are_over_too(cluster, client, pool):
    id = vanilla(client, pool, "true")
    cluster.wait_state(id, "completed")
    assert [job.get("pool") for job in client.list_jobs(id)["jobs"]] == [pool]


def test_where_jobs_are(jobs):
    for job in itertools.chain.from_iterable(jobs.by_state.values()):
        assert job["addresses"] == {"default": job["address"]}


def test_slots_of_jobs(client, jobs):
    """Those too that had ended before their node said that they run."""
    for job in itertools.chain.from_iterable(jobs.by_state.values()):
        assert job["exec_attributes"]["slot_index"] >= 0, job["state"]
        assert client.get_job(jobs.operation, job["id"])["exec_attributes"] == job["exec_attributes"]


@pytest.mark.xfail(strict=True, reason="nodes listen nowhere: their names have no port")
def test_addresses_have_ports(jobs):
    assert all(job["address"].rpartition(":")[2].isdigit() for found in jobs.by_state.values() for job in found)


@pytest.mark.parametrize("filters, expected", [
    ({"job_state": "completed"}, ["completed"] * 2),
    ({"state": "failed"}, ["failed"]),
    ({"job_state": "aborted"}, []),
    ({"job_type": "vanilla"}, ALL),
    ({"type": "vanilla"}, ALL),
    ({"type": "map"}, []),
    ({"task_name": "bad"}, ["failed", "running"]),
    ({"task_name": "nobody"}, []),
    ({"with_stderr": True}, ["completed"] * 2),
    ({"with_stderr": False}, ["failed", "running"]),
    ({"with_fail_context": True}, []),
    ({"with_fail_context": False}, ALL),
    ({"with_competitors": True}, []),
    ({"with_competitors": False}, ALL),
    ({"with_interruption_info": True}, []),
    ({"with_monitoring_descriptor": True}, []),
    ({"monitoring_descriptor": "nothing"}, []),
    ({"job_competition_id": "1-2-3-4"}, []),
    ({"operation_incarnation": "1-2-3-4"}, []),
    ({"pool_tree": "physical"}, ALL),
    ({"pool_tree": "nowhere"}, []),
    ({"address": "nowhere"}, []),
    ({"task_name": "bad", "state": "failed", "with_stderr": False}, ["failed"]),
    ({"include_cypress": False, "include_runtime": False, "include_archive": False}, ALL),
    ({"data_source": "archive"}, ALL),
    ({"data_source": "runtime", "job_state": "failed"}, ["failed"]),
])
def test_filters(states, filters, expected):
    assert states(**filters) == expected


def test_filters_by_what_jobs_say(jobs, states):
    job = jobs.by_state["failed"][0]
    assert states(address=job["address"]) == states(address=job["address"][3:-1]) == ALL
    assert states(operation_incarnation=job["operation_incarnation"]) == ALL
    assert states(with_spec=job["has_spec"]) == ALL and states(with_spec=not job["has_spec"]) == []


def test_window(jobs, states):
    begun = sorted(job["start_time"] for found in jobs.by_state.values() for job in found)
    last = jobs.by_state["running"][0]["start_time"]
    assert last == begun[-1] and states(from_time=last) == ["running"]
    assert states(from_time=begun[0], to_time=last) == ALL
    assert states(to_time="2020-01-01T00:00:00Z") == [] == states(from_time="2100-01-01T00:00:00Z")


def test_counters_are_progressive(client, jobs):
    """Types after all filters but type and state, states after the type, too."""
    def counts(**filters):
        listed = client.list_jobs(jobs.operation, limit=1, **filters)
        return listed["type_counts"], listed["state_counts"]
    whole = ({"vanilla": 4}, {"completed": 2, "failed": 1, "running": 1})
    assert counts() == counts(job_state="failed") == counts(job_state="aborted") == whole
    assert counts(job_type="map") == ({"vanilla": 4}, {})
    assert counts(with_stderr=True) == ({"vanilla": 2}, {"completed": 2})


def test_only_counts(client, jobs):
    listed = client.list_jobs(jobs.operation, limit=0)
    assert listed["jobs"] == [] and listed["state_counts"] == {"completed": 2, "failed": 1, "running": 1}


def test_only_counts_have_no_next_page(client, jobs):
    assert "continuation_token" not in client.list_jobs(jobs.operation, limit=0)


@pytest.mark.parametrize("field", ["none", "type", "state", "start_time", "finish_time", "address", "duration", "progress", "id", "task_name"])
def test_orders_and_pages(client, jobs, field):
    """There are several of each kind: pages do not overlap in whatever order."""
    def ids(**asked):
        return [job["id"] for job in client.list_jobs(jobs.operation, sort_field=field, **asked)["jobs"]]
    up, down = ids(), ids(sort_order="descending")
    assert up == ids(sort_order="ascending") and len(set(up)) == 4 and set(up) == set(down)
    assert [ids(limit=1, offset=n) for n in range(5)] == [*([id] for id in up), []]
    assert ids(limit=2, offset=1, sort_order="descending") == down[1:3]
    by_id = {job["id"]: job for job in client.list_jobs(jobs.operation)["jobs"]}
    if field in ("state", "start_time", "id", "task_name", "address", "type"):
        assert [by_id[id][field] for id in up] == sorted(job[field] for job in by_id.values())
        assert [by_id[id][field] for id in down] == sorted((job[field] for job in by_id.values()), reverse=True)
    if field == "duration":
        assert by_id[up[-1]]["state"] == "running", "for how long is not known yet"


def test_pages_of_what_is_found(client, jobs):
    pages = [client.list_jobs(jobs.operation, job_state="completed", limit=1, offset=n) for n in range(3)]
    assert [len(page["jobs"]) for page in pages] == [1, 1, 0]
    assert ["continuation_token" in page for page in pages] == [True, False, False]


def test_attributes(client, jobs):
    for asked, expected in ((["state"], {"state", "id"}), (["id"], {"id"}), (["error", "task_name"], {"id", "task_name"})):
        for job in client.list_jobs(jobs.operation, attributes=asked)["jobs"]:
            assert set(job) - {"error"} == expected


def test_jobs_that_were_aborted(cluster, client, pool):
    id = vanilla(client, pool)
    job, = cluster.wait_jobs(id)
    client.abort_operation(id)
    told, = client.list_jobs(id, job_state="aborted")["jobs"]
    assert (told["id"], told["abort_reason"], told["error"]["attributes"]["abort_reason"]) == (job, "operation_aborted", "operation_aborted")


@pytest.mark.parametrize("parameters, words", [
    ({"sort_field": "size"}, 'sort_field.*"size".*start_time'),
    ({"sort_order": "up"}, 'sort_order.*descending.*"up"'),
    ({"limit": -1}, "limit.*-1"),
    ({"offset": "x"}, "offset.*x"),
    ({"continuation_token": "next"}, "continuation_token.*next"),
    ({"with_stderr": "yes"}, "with_stderr.*boolean"),
    ({"from_time": "soon"}, "from_time.*soon"),
    ({"job_type": 5}, "job_type.*int64"),
    ({"attributes": "id"}, "attributes.*list of strings"),
    ({"task_name": ["good"]}, "task_name.*list"),
])
def test_what_is_refused(client, jobs, parameters, words):
    with refused(1, words):
        formatted(client, "list_jobs", operation_id=jobs.operation, **parameters)


def test_operations_that_are_not_there(client):
    refuses_strange_operations(lambda **named: formatted(client, "list_jobs", **named))
