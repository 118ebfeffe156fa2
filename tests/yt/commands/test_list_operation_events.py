"""`list_operation_events` through the real client."""

from calls import formatted, fresh, refused, refuses_strange_operations, vanilla


def test_list_operation_events(client, operation):
    events = client.list_operation_events(operation[0])
    assert [event["state"] for event in events] == [
        "starting", "waiting_for_agent", "initializing", "preparing", "pending", "materializing", "running"]
    shown = client.get_operation(operation[0], attributes=["events"])["events"]
    assert [event["timestamp"] for event in events] == [event["time"] for event in shown]


def test_some_of_them(client, pool):
    alias = f"*{fresh('events')}"
    id = vanilla(client, pool, alias=alias)
    for over in (False, True):
        events = client.list_operation_events(id)
        assert all({"timestamp", "event_type"} <= set(event) for event in events)
        assert [e["timestamp"] for e in events] == sorted(e["timestamp"] for e in events)
        assert client.list_operation_events(operation_alias=alias) == events
        assert client.list_operation_events(id, event_type="state_changed") == events
        assert formatted(client, "list_operation_events", operation_id=id, limit=2) == events[:2]
        assert formatted(client, "list_operation_events", operation_id=id, limit=0) == []
        assert (events[-1]["state"] == "aborted") == over
        if not over:
            client.abort_operation(id)


def test_what_is_refused(client, operation):
    refuses_strange_operations(lambda **named: formatted(client, "list_operation_events", **named))
    for parameters, words in (({"limit": -1}, "limit.*-1"), ({"event_type": 5}, "event_type.*int64")):
        with refused(1, words):
            formatted(client, "list_operation_events", operation_id=operation[0], **parameters)
