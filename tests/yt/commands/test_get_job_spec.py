"""`get_job_spec` through the real client."""

def test_get_job_spec(client, home, failed):
    spec = client.get_job_spec(failed[1])
    assert (spec["operation_id"], spec["job_id"], spec["type"]) == (*failed, "map")
    assert spec["user_job_spec"]["command"] and spec["user_job_spec"]["memory_limit"] > 0
    assert str(spec["input_table_specs"][0]) == f"{home}/rows" and [str(p) for p in spec["output_table_specs"]] == [f"{home}/out"]
    short = client.get_job_spec(failed[1], omit_input_table_specs=True, omit_output_table_specs=True, omit_node_directory=True)
    assert "input_table_specs" not in short and "output_table_specs" not in short
