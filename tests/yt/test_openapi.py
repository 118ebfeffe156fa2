"""The description of the API for programs is true: a valid document, and the server that serves it serves that."""

import json
import re

import pytest
from harness import cluster as make_cluster
from openapi_spec_validator import validate
from yt.packages import requests


@pytest.fixture(scope="module")
def cluster():
    with make_cluster(nodes=0) as c:
        yield c


@pytest.fixture(scope="module")
def document(cluster):
    return requests.get(f"http://{cluster.address}/api/openapi.json", timeout=180).json()


def test_it_is_a_valid_document(document):
    validate(document)
    references = set(re.findall(r'"(\$+ref)": "([^"]*)"', json.dumps(document)))
    assert references == {("$ref", "#/components/schemas/Error")}


def test_its_commands_are_those_of_the_server(cluster, document):
    served = {command["name"] for command in requests.get(f"http://{cluster.address}/api/v4", timeout=180).json()}
    described = {path.removeprefix("/api/v4/") for path in document["paths"] if path.startswith("/api/v4/")}
    assert served == described


def test_what_is_described_is_there_and_nothing_else(cluster, document):
    """Without a parameter most is an error; that of an address or a method that is not there is another one."""
    for path, operations in document["paths"].items():
        for method in ["get", "post", "put"]:
            answer = requests.request(
                method, f"http://{cluster.address}{path}", timeout=180, allow_redirects=False, stream=True,
                json={} if method != "get" else None)
            with answer:
                # Some commands can be called by more methods than anybody needs.
                assert answer.status_code != 404 and answer.status_code < 500, (method, path, answer.status_code)
                if method in operations:
                    assert str(answer.status_code) in operations[method]["responses"], (method, path, answer.status_code)
                    assert answer.status_code != 405, (method, path)
    assert requests.get(f"http://{cluster.address}/api/v4/nothing", timeout=180).status_code == 404


def test_an_error_is_as_described(cluster, document):
    answer = requests.get(f"http://{cluster.address}/api/v4/get", timeout=180)
    error = document["components"]["schemas"]["Error"]
    assert answer.status_code == 400
    assert set(error["required"]) <= set(answer.json()) <= set(error["properties"])
