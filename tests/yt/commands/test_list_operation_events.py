"""`list_operation_events` through the real client."""

def test_list_operation_events(client, operation):
    events = client.list_operation_events(operation[0])
    assert [event["state"] for event in events] == [
        "starting", "waiting_for_agent", "initializing", "preparing", "pending", "materializing", "running"]
    shown = client.get_operation(operation[0], attributes=["events"])["events"]
    assert [event["timestamp"] for event in events] == [event["time"] for event in shown]
