"""`execute_batch` through the real client."""

import json
import re

from calls import acting, closed, formatted, plain, refused


def item(command, input=None, **parameters):
    return {"command": command, "parameters": parameters, **({} if input is None else {"input": input})}


def run(client, *requests, **parameters):
    """What became of each: its output, or its error."""
    results = formatted(client, "execute_batch", requests=list(requests), **parameters)["results"]
    assert all(list(result) in (["output"], ["error"]) for result in results)
    return [next(iter(result.values())) for result in results]


def test_execute_batch(client, home):
    batch = client.create_batch_client()
    exists, missing = batch.exists(home), batch.get(f"{home}/nothing")
    batch.commit_batch()
    assert exists.get_result() and missing.get_error()["code"] == 500


def test_execute_batch_in_the_order_of_requests(client, home):
    told = run(client, item("set", 5, path=f"{home}/a"), item("get", path=f"{home}/a"), item("get", path=f"{home}/a", return_only_value=True),
               item("set", "text", path=f"{home}/a"), item("remove", path=f"{home}/a"), item("exists", path=f"{home}/a"),
               item("list", path=home), item("create", type="map_node", path=f"{home}/m"), item("get_version"))
    assert told[:3] == [{}, {"value": 5}, 5] and told[3]["code"] == 1, "a mistake does not stop what is behind it"
    assert told[4:7] == [{}, {"value": False}, {"value": []}] and told[7] == {"node_id": client.get(f"{home}/m/@id")}
    assert list(told[8]) == ["version"]
    many = run(client, *(item("set", n, path=f"{home}/n") if n % 2 else item("get", path=f"{home}/n") for n in range(1, 200)), concurrency=3)
    assert [value["value"] for value in many[1::2]] == [n for n in range(1, 199, 2)]


def test_execute_batch_nothing(client):
    for concurrency in (1, 50, 10**9):
        assert formatted(client, "execute_batch", requests=[], concurrency=concurrency) == {"results": []}


def test_execute_batch_items_that_cannot_be(client, home):
    for request, words in (
            (item("frobnicate"), "frobnicate"), (item("read_table", path=home), '"read_table" cannot be part of a batch'),
            (item("read_file", path=home), "read_file"), (item("write_file", "x", path=home), '"write_file" cannot be part of a batch'),
            (item("get_job_stderr", job_id="1-2-384-3"), "get_job_stderr"), (item("run_job_shell_command"), "run_job_shell_command"),
            ({}, '"command"'),
            ({"command": 5}, '"command"'), (5, '"command"'), ([], '"command"'),
            ({"command": "get", "parameters": 5}, '"parameters".*map, found int64'),
            (item("get"), '"path"'), (item("get", path=5), '"path"'),
            (item("set", path=f"{home}/a"), '"set" needs an input'),
            (item("write_table", {}, path=f"{home}/t"), '"input".*list of rows, found map')):
        before, error, after = run(client, item("exists", path=home), request, item("exists", path=home))
        assert before == after == {"value": True}
        assert set(error) == {"code", "message", "attributes", "inner_errors"} and (error["code"] == 1) == (request != item("frobnicate"))
        assert re.search(words, error["message"]), error
    assert client.list(home) == []


def test_execute_batch_parameters(client):
    for parameters, words in (({}, '"requests"'), ({"requests": {}}, '"requests" must be a list'), ({"requests": 5}, '"requests"'),
                              ({"requests": [], "concurrency": "x"}, '"concurrency"'), ({"requests": [], "concurrency": -1}, '"concurrency"')):
        with refused(1, words):
            formatted(client, "execute_batch", **parameters)


def test_execute_batch_formats(cluster, client, home):
    """Items are in the format of the whole, and the input of each is a value of it."""
    client.create("document", f"{home}/d")
    value = {"k": [1, None, "text", {"$value": 2, "$attributes": {"x": True}}]}
    body = {"requests": [item("set", value, path=f"{home}/d"), item("get", path=f"{home}/d", return_only_value=True)]}
    status, headers, answer = plain(cluster, "POST", "execute_batch", body=json.dumps(body).encode(), Content_Type="application/json")
    assert (status, json.loads(answer)) == (200, {"results": [{"output": {}}, {"output": value}]})
    assert headers["Content-Type"] == "application/json"
    assert plain(cluster, "GET", "execute_batch", {"requests": []})[0] == 405


def test_execute_batch_in_transactions(client, home, transaction):
    id, _ = transaction
    inside = {"transaction_id": id}
    told = run(client, item("set", 1, path=f"{home}/a", **inside), item("exists", path=f"{home}/a", **inside), item("exists", path=f"{home}/a"),
               item("abort_transaction", **inside), item("exists", path=f"{home}/a", **inside))
    assert told[:4] == [{}, {"value": True}, {"value": False}, {}] and told[4]["code"] == 11000


def test_execute_batch_a_repeated_mutation(client, home):
    requests = [item("create", type="map_node", path=f"{home}/m"), item("create", type="map_node", path=f"{home}/m"), item("get", path=f"{home}/n"),
                item("create", type="table", path=f"{home}/t"), item("write_table", [{"a": 1}], path=f"<append=%true>{home}/t")]
    first = run(client, *requests, mutation_id="1-2-8901-1")
    client.set(f"{home}/n", 5)
    again = run(client, *requests, mutation_id="1-2-8901-1", retry=True)
    assert first[0] == again[0] and "node_id" in first[0] and first[1]["code"] == again[1]["code"] == 501
    # What changes nothing is asked anew.
    assert (first[2]["code"], again[2]) == (500, {"value": 5})
    assert first[3:] == again[3:] and client.get(f"{home}/t/@row_count") == 1
    assert run(client, *requests, mutation_id="1-2-8901-1000")[0]["code"] == 501


def test_execute_batch_permissions(guarded):
    path, reader, stranger = closed(guarded, "document", value=7)
    requests = [item("get", path=path, return_only_value=True), item("set", 8, path=path), item("get_current_user")]
    told = run(reader, *requests)
    assert (told[0], told[1]["code"], told[2]) == (7, 901, {"user": reader.config["impersonation_user"]})
    assert [answer.get("code") for answer in run(stranger, *requests)] == [901, 901, None]
    assert guarded.client().get(path) == 7
    assert run(acting(guarded, "root"), item("set", 8, path=path)) == [{}]
