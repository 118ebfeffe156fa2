"""`complete_operation` through the real client."""

def test_complete_operation(cluster, client, operation):
    client.complete_operation(operation[0])
    cluster.wait_state(operation[0], "completed", timeout=120)
