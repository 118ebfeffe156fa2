"""`get_job_spec` through the real client."""

import pytest
from calls import NO_JOB, formatted, refused, refuses_strange_operations, vanilla


def test_get_job_spec(client, home, failed):
    spec = client.get_job_spec(failed[1])
    assert (spec["operation_id"], spec["job_id"], spec["type"]) == (*failed, "map")
    assert spec["user_job_spec"]["command"] and spec["user_job_spec"]["memory_limit"] > 0
    assert str(spec["input_table_specs"][0]) == f"{home}/rows" and [str(p) for p in spec["output_table_specs"]] == [f"{home}/out"]
    short = client.get_job_spec(failed[1], omit_input_table_specs=True, omit_output_table_specs=True, omit_node_directory=True)
    assert "input_table_specs" not in short and "output_table_specs" not in short


@pytest.mark.parametrize("omitted, key", [("omit_input_table_specs", "input_table_specs"), ("omit_output_table_specs", "output_table_specs")])
def test_each_part_is_left_out_by_itself(client, failed, omitted, key):
    whole, part = client.get_job_spec(failed[1]), client.get_job_spec(failed[1], **{omitted: True})
    assert key in whole and {**part, key: whole[key]} == whole
    assert client.get_job_spec(failed[1], **{omitted: False}) == whole


def test_of_one_that_runs(client, operation):
    for over in (False, True):
        spec = client.get_job_spec(operation[1])
        assert (spec["operation_id"], spec["job_id"], spec["type"]) == (*operation, "vanilla")
        assert spec["user_job_spec"]["command"] == "echo hello >&2; sleep 1000"
        if not over:
            client.abort_operation(operation[0])


def test_specs_that_are_refused(client, failed, pool):
    def ask(**parameters):
        return formatted(client, "get_job_spec", **parameters)
    refuses_strange_operations(lambda **named: ask(job_id=failed[1], **named), missing=False)
    for more, words in (({}, "job_id"), ({"job_id": "xyz"}, "job_id"),
                        ({"job_id": failed[1], "omit_input_table_specs": "yes"}, "omit_input_table_specs.*yes")):
        with refused(1, words):
            ask(**more)
    for more in ({"job_id": failed[1], "operation_id": vanilla(client, pool)}, {"job_id": NO_JOB}):
        with refused(203, "No such job"):
            ask(**more)
