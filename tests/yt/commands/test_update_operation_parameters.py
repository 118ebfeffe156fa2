"""`update_operation_parameters` through the real client."""

import yt.yson


def test_update_operation_parameters(client, operation):
    client.update_operation_parameters(operation[0], {"weight": 3.0})
    told = client.get_operation(operation[0], attributes=["runtime_parameters"])["runtime_parameters"]
    assert told["scheduling_options_per_pool_tree"]["physical"]["weight"] == yt.yson.YsonDouble(3.0)
