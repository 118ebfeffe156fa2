"""What the tests of commands have in common: calls for which the client has no function, and names that are new."""

import contextlib
import hashlib
import itertools
import json
import re
import urllib.error
import urllib.request

import pytest
import yt.wrapper
import yt.yson
from harness import error_text
from yt.wrapper.client import create_client_with_command_params
from yt.wrapper.driver import make_formatted_request, make_request

_numbers = itertools.count()
LATE = 600_000  # milliseconds: a transaction of a test does not end because the machine is slow


def fresh(what):
    """A name that no other test has."""
    return f"{what}-{next(_numbers)}"


def raw(client, command, data=None, **parameters):
    """A command for which the client has no function: as `yt execute` calls it."""
    answer = make_request(command, parameters, data=data, client=client)
    return yt.yson.loads(answer) if answer else None


def formatted(client, command, **parameters):
    return make_formatted_request(command, parameters, format=None, client=client)


def codes(error):
    return {error["code"]}.union(*(codes(inner) for inner in error.get("inner_errors", ())))


@contextlib.contextmanager
def refused(code, match=""):
    """What is inside is refused by the server with this code, somewhere in the tree of its error."""
    with pytest.raises(yt.wrapper.YtResponseError) as error:
        yield error
    answer = error.value.error
    assert code in codes(answer) and re.search(match, error_text(answer), re.DOTALL), answer


@contextlib.contextmanager
def told(code, *words):
    """What is inside is refused by the server with just this code, in these words."""
    with pytest.raises(yt.wrapper.YtResponseError) as error:
        yield error
    answer = error.value.error
    assert answer["code"] == code and all(word in error_text(answer) for word in words), answer


def inside(client, **options):
    """A new transaction, and a client that does all within it."""
    id = client.start_transaction(timeout=LATE, **options)
    return id, create_client_with_command_params(client, transaction_id=id)


def known_by(cluster, token):
    return yt.wrapper.YtClient(proxy=cluster.address, token=token, config={"proxy": {"enable_proxy_discovery": False}})


def group(client, user):
    """A new one with this member."""
    name = fresh("group")
    client.create("group", attributes={"name": name})
    client.add_member(user, name)
    return name


def digest(token):
    return hashlib.sha256(str(token).encode()).hexdigest()


def tokens(client, user):
    listed = client.list_user_tokens(user)
    # As it came: the client does not ask for a format and hands the bytes on.
    return json.loads(listed) if isinstance(listed, (bytes, str)) else list(listed)


def cached(client, home):
    """The md5 of a file that was put into a cache, and where it is."""
    client.write_file(f"{home}/f", home.encode(), compute_md5=True)
    md5 = client.get(f"{home}/f/@md5")
    client.create("map_node", f"{home}/cache")
    return md5, client.put_file_to_cache(f"{home}/f", md5, cache_path=f"{home}/cache")


def without_shells(refused):
    if "isolation" in str(refused):
        pytest.skip("jobs of this host have no shells")
    raise refused


# Of nobody: their shape is right.
NO_OPERATION = "1-2-103e8-3"
NO_JOB = "1-2-384-3"


def refuses_strange_operations(ask, missing=True):
    """Who asks about an operation that is not there, or that is badly named, is told so."""
    for named in ({"operation_id": NO_OPERATION}, {"operation_alias": "*nobody"}, {"operation_id": "*nobody"}):
        with refused(1915, "|".join((NO_OPERATION, "nobody"))) as error:
            ask(**named)
        assert error.value.contains_code(200)
    both = {"operation_id": NO_OPERATION, "operation_alias": "*nobody"}
    for named, word in ((both, "exclude"), ({"operation_id": "xyz"}, "operation_id"), ({"operation_id": 5}, "int64"),
                        *([({}, "operation_id")] if missing else [])):
        with refused(1, word):
            ask(**named)


def refuses_finished_operations(cluster, pool, ask):
    """Who wants to change an operation that is over is told so, by id and by alias."""
    alias = f"*{fresh('over')}"
    over = cluster.run_vanilla("true", pool=pool, spec={"alias": alias})
    for named in ({"operation_id": over}, {"operation_alias": alias}):
        with refused(200, 'finished.*"completed"') as error:
            ask(**named)
        assert not error.value.contains_code(1915)
    assert cluster.state(over) == "completed"


def vanilla(client, pool, command="sleep 1000", task=None, **spec):
    """Starts an operation of one job; gives its id."""
    task = {"command": command, "job_count": 1, "cpu_limit": 0.1, "memory_limit": 64 << 20, **(task or {})}
    spec = {"pool": pool, "tasks": {"t": task}, **spec}
    return formatted(client, "start_operation", operation_type="vanilla", spec=spec)["operation_id"]


def plain(cluster, method, command, parameters=None, body=None, query="", **headers):
    """One request without the client; gives status, headers and body."""
    headers = {"X-YT-Parameters": json.dumps(parameters or {}), **{name.replace("_", "-"): value for name, value in headers.items()}}
    if cluster.token:
        headers.setdefault("Authorization", f"OAuth {cluster.token}")
    request = urllib.request.Request(f"http://{cluster.address}/api/v4/{command}{query}", data=body, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=180) as reply:
            return reply.status, reply.headers, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def acting(cluster, user):
    """A client of somebody who may do everything, that acts as this user."""
    client = cluster.client()
    client.config["impersonation_user"] = user
    return client


def closed(cluster, kind, **attributes):
    """A node that one user may read, and nobody else may do anything with; clients of him and of somebody else."""
    root, path, users = cluster.client(), f"//tmp/{fresh('closed')}", [fresh(who) for who in ("reader", "stranger")]
    for name in users:
        root.create("user", attributes={"name": name})
    acl = [{"action": "allow", "subjects": users[:1], "permissions": ["read"]}]
    root.create(kind, path, attributes={"inherit_acl": False, "acl": acl, **attributes})
    return path, *[acting(cluster, name) for name in users]


def denied(user, permission):
    """What is inside is refused to this client for want of this permission."""
    return refused(901, f'Access denied for user "{user.config["impersonation_user"]}": "{permission}"')
