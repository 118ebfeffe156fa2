"""`list_operations` through the real client."""

def test_list_operations(client, operation, pool):
    assert [o["id"] for o in client.list_operations(pool=pool)["operations"]] == [operation[0]]
