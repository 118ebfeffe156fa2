"""`execute_batch` through the real client."""

def test_execute_batch(client, home):
    batch = client.create_batch_client()
    exists, missing = batch.exists(home), batch.get(f"{home}/nothing")
    batch.commit_batch()
    assert exists.get_result() and missing.get_error()["code"] == 500
