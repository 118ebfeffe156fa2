"""`get_job_input_paths` through the real client."""

def test_get_job_input_paths(client, home, failed):
    path, = client.get_job_input_paths(failed[1])
    assert str(path) == f"{home}/rows"
    assert path.attributes["ranges"] == [{"lower_limit": {"row_index": 0}, "upper_limit": {"row_index": 2}}]
