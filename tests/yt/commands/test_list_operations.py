"""`list_operations` through the real client."""

import collections

import pytest
import yt.wrapper
from calls import formatted, fresh, refused, vanilla

COUNTS = ("pool_tree_counts", "pool_counts", "user_counts", "state_counts", "type_counts")
# Of those that are listed.
KEYS = set("authenticated_user brief_progress brief_spec experiment_assignment_names id type runtime_parameters start_time state "
           "suspended".split())
Some = collections.namedtuple("Some", "ids pools from_time to_time times alias")


@pytest.fixture(scope="module")
def some(cluster):
    """Five operations, oldest first, and a window of time in which there are no others."""
    client = cluster.client()
    client.create("user", attributes={"name": "lister"})
    other = yt.wrapper.YtClient(config={**client.config, "impersonation_user": "lister"})
    one, two, alias = fresh("one"), fresh("two"), f"*{fresh('Listed')}"
    for pool in (one, two):
        cluster.create_pool(pool)
    before = vanilla(client, one, "true")
    client.write_table("//tmp/listed-in", [{"a": 1}])
    client.create("table", "//tmp/listed-out")
    done = vanilla(client, one, "true", title="Some Title", alias=alias)
    others = vanilla(other, one, "true", annotations={"note": ["inner-word"]})
    failed = vanilla(client, two, "exit 1", max_failed_job_count=1)
    map = client.run_map("cat", "//tmp/listed-in", "//tmp/listed-out", format="json", sync=False,
                         spec={"pool": two, "mapper": {"cpu_limit": 0.1, "memory_limit": 64 << 20}}).id
    for id, state in ((before, "completed"), (done, "completed"), (others, "completed"), (failed, "failed"), (map, "completed")):
        cluster.wait_state(id, state)
    runs = vanilla(client, two)
    cluster.wait_state(runs, "running")
    ids = [done, others, failed, map, runs]
    times = [client.get_operation(id, attributes=["start_time"])["start_time"] for id in [before, *ids]]
    yield Some(ids, (one, two), times[0], times[-1], times[1:], alias)
    client.abort_operation(runs)


@pytest.fixture
def found(client, some):
    """Numbers of those that are found in the window, as they are listed."""
    def found(**filters):
        filters = {"from_time": some.from_time, "to_time": some.to_time, **filters}
        return [some.ids.index(o["id"]) for o in formatted(client, "list_operations", **filters)["operations"]]
    return found


def test_list_operations(client, operation, pool):
    assert [o["id"] for o in client.list_operations(pool=pool)["operations"]] == [operation[0]]


def test_newest_first_with_what_there_is(client, some, found):
    assert found() == [4, 3, 2, 1, 0]
    listed = client.list_operations(from_time=some.from_time, to_time=some.to_time)
    assert set(listed) == {"operations", "incomplete", "failed_jobs_count", *COUNTS} and not listed["incomplete"]
    running, *over = listed["operations"]
    assert set(running) == KEYS and all(set(o) == KEYS | {"finish_time"} for o in over)
    for operation in listed["operations"]:
        asked = client.get_operation(operation["id"], attributes=sorted(KEYS - {"brief_progress"}))
        assert {name: value for name, value in operation.items() if name in asked} == asked


@pytest.mark.parametrize("filters, expected", [
    ({"user": "lister"}, [1]),
    ({"user": "root"}, [4, 3, 2, 0]),
    ({"user": "nobody"}, []),
    ({"state": "completed"}, [3, 1, 0]),
    ({"state": "running"}, [4]),
    ({"state": "aborted"}, []),
    ({"type": "map"}, [3]),
    ({"type": "vanilla"}, [4, 2, 1, 0]),
    ({"pool_tree": "physical"}, [4, 3, 2, 1, 0]),
    ({"pool_tree": "nowhere"}, []),
    ({"pool": "nowhere"}, []),
    ({"with_failed_jobs": True}, [2]),
    ({"with_failed_jobs": False}, [4, 3, 1, 0]),
    ({"user": "root", "state": "completed", "type": "vanilla"}, [0]),
    ({"include_archive": True, "state": "failed"}, [2]),
    ({"include_archive": False, "enable_ui_mode": True, "state": "failed"}, [2]),
])
def test_filters(found, filters, expected):
    assert found(**filters) == expected


def test_filter_by_pool(some, found):
    assert found(pool=some.pools[0]) == [1, 0] and found(pool=some.pools[1], pool_tree="physical") == [4, 3, 2]
    assert found(pool=some.pools[0], pool_tree="nowhere") == []


def test_filter_by_text(some, found):
    """In all that is said of an operation, whatever the case."""
    words = {"some TITLE": [0], some.alias.upper(): [0], some.ids[2]: [2], some.ids[4][2:-2].upper(): [4], "LISTER": [1],
             "inner-word": [1], "map": [3], "RUNN": [4], some.pools[0]: [1, 0], "listed-in": [3], "listed-OUT": [3], "no such word": []}
    assert {word: found(filter=word) for word in words} == words


def test_window(some, found):
    times = some.times
    assert found(from_time=times[1]) == [4, 3, 2], "the beginning is not in it"
    assert found(to_time=times[3]) == [3, 2, 1, 0], "the end is"
    assert found(from_time=times[3], to_time=times[3]) == []


def test_pages(client, some, found):
    """From a cursor into the past it is in it, into the future it is not."""
    times = some.times

    def page(**asked):
        listed = formatted(client, "list_operations", from_time=some.from_time, to_time=some.to_time, **asked)
        return [some.ids.index(o["id"]) for o in listed["operations"]], listed["incomplete"]
    assert page(limit=2) == ([4, 3], True)
    assert page(limit=5) == ([4, 3, 2, 1, 0], False)
    assert page(cursor_time=times[2], limit=2) == page(cursor_time=times[2], limit=2, cursor_direction="past") == ([2, 1], True)
    assert page(cursor_time=times[1], limit=2) == ([1, 0], False)
    assert page(cursor_time=times[1], cursor_direction="future", limit=2) == ([3, 2], True), "the next ones, newest first"
    assert page(cursor_time=times[2], cursor_direction="future", limit=2) == ([4, 3], False)
    assert page(cursor_time=times[4], cursor_direction="future") == ([], False)
    assert page(cursor_direction="future", limit=2) == ([1, 0], True)
    assert page(cursor_time=times[1], cursor_direction="none") == ([4, 3, 2, 1, 0], False)
    assert page(limit=0) == ([], True)
    assert page(limit=5000) == ([4, 3, 2, 1, 0], False)
    assert page(state="completed", cursor_time=times[3], limit=2) == ([3, 1], True), "pages of what is found"


@pytest.mark.parametrize("direction, expected", [("past", [4, 3, 2, 1, 0]), ("future", [0, 1, 2, 3, 4])])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_all_pages(client, some, direction, expected, size):
    pages = client.iterate_operations(from_time=some.from_time, to_time=some.to_time, cursor_direction=direction, limit_per_request=size)
    assert [some.ids.index(o["id"]) for o in pages] == expected


def test_counters_are_progressive(client, some):
    """Each is over what passes the filters before its own."""
    one, two = some.pools

    def counts(**filters):
        listed = client.list_operations(from_time=some.from_time, to_time=some.to_time, limit=1, **filters)
        return [*(listed[name] for name in COUNTS), listed["failed_jobs_count"]]
    pools, users, states = {one: 2, two: 3}, {"root": 4, "lister": 1}, {"completed": 3, "failed": 1, "running": 1}
    types, trees = {"vanilla": 4, "map": 1}, {"physical": 5}
    assert counts() == [trees, pools, users, states, types, 1]
    assert counts(pool_tree="nowhere") == [trees, {}, {}, {}, {}, 0]
    in_one = [trees, pools, {"root": 1, "lister": 1}, {"completed": 2}, {"vanilla": 2}, 0]
    assert counts(pool=one) == in_one
    assert counts(pool=one, user="lister") == [*in_one[:3], {"completed": 1}, {"vanilla": 1}, 0]
    assert counts(user="root", state="failed") == [trees, pools, users, {"completed": 2, "failed": 1, "running": 1}, {"vanilla": 1}, 1]
    assert counts(state="completed", type="map") == [trees, pools, users, states, {"vanilla": 2, "map": 1}, 0]
    assert counts(with_failed_jobs=False) == [trees, pools, users, states, types, 1]
    assert counts(filter="some title") == [{"physical": 1}, {one: 1}, {"root": 1}, {"completed": 1}, {"vanilla": 1}, 0]
    assert counts(cursor_time=some.times[0]) == counts(cursor_time=some.times[3], cursor_direction="future") == counts(), "cursors do not count"


def test_without_counters(client, some):
    for limit in (2, 100):
        listed = client.list_operations(from_time=some.from_time, to_time=some.to_time, include_counters=False, limit=limit)
        assert set(listed) == {"operations", "incomplete"} and listed["incomplete"] == (limit == 2)


def test_attributes(client, some):
    window = {"from_time": some.from_time, "to_time": some.to_time}
    for asked, expected in ((["state"], {"state", "id", "start_time"}), (["id"], {"id", "start_time"}),
                            (["result", "spec"], {"id", "start_time", "result", "spec"})):
        running, *over = client.list_operations(attributes=asked, **window)["operations"]
        assert all(set(o) == expected for o in over) and set(running) == expected - {"result"}
    assert [o["state"] for o in client.list_operations(attributes=["state"], **window)["operations"]] == [
        "running", "completed", "failed", "completed", "completed"]
    with refused(1920, "colour") as error:
        client.list_operations(attributes=["state", "colour"])
    assert error.value.error["attributes"]["attribute_name"] == "colour"


@pytest.mark.parametrize("parameters, words", [
    ({"cursor_direction": "up"}, 'cursor_direction.*"up".*future'),
    ({"cursor_time": "yesterday"}, "cursor_time.*yesterday"),
    ({"from_time": 5}, "from_time.*int64 5"),
    ({"to_time": "2026-13-01T00:00:00Z"}, "to_time.*2026-13"),
    ({"limit": -1}, "limit.*-1"),
    ({"limit": "many"}, "limit.*many"),
    ({"with_failed_jobs": "yes"}, "with_failed_jobs.*yes"),
    ({"include_counters": 1}, "include_counters.*1"),
    ({"attributes": "state"}, "attributes.*list of strings"),
    ({"user": ["root"]}, "user.*list"),
    ({"pool": 5}, "pool.*int64 5"),
    ({"access": "root"}, "access.*map"),
])
def test_what_is_refused(client, parameters, words):
    with refused(1, words):
        formatted(client, "list_operations", **parameters)
