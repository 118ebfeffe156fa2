"""Tokens with an end, and tokens in the place of others: the API, our own command, a restart."""

import hashlib
import json
import urllib.error
import urllib.request

import pytest
from harness import ServerError, cluster as make_cluster, moment, wait_for


@pytest.fixture(scope="module")
def guarded():
    with make_cluster(nodes=0, auth=True) as c:
        c.command("create", type="user", attributes={"name": "ann"})
        yield c


def digest(token):
    return hashlib.sha256(token.encode()).hexdigest()


def refusal(cluster, token):
    """Status and error of a request with this token; (200, None) if it is let in."""
    request = urllib.request.Request(f"http://{cluster.address}/api/v4/list?path=/", headers={"Authorization": f"OAuth {token}"})
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, None
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_a_token_ends(guarded):
    lasting, short = guarded.command("issue_token", user="ann"), guarded.command("issue_token", user="ann", ttl=3000)
    listed = guarded.command("list_user_tokens", user="ann", with_metadata=True)
    assert "valid_until" not in listed[digest(lasting)]
    end = listed[digest(short)]["valid_until"]
    assert moment(end) - moment(listed[digest(short)]["creation_time"]) == pytest.approx(3, abs=0.01)
    # A session ends with the token that it began with.
    body = json.dumps({"token": short}).encode()
    with urllib.request.urlopen(f"http://{guarded.address}/login", body, timeout=60) as reply:
        cookie = {"Cookie": reply.headers["Set-Cookie"].split(";")[0]}
    status, error = wait_for(lambda: (lambda a: a if a[0] != 200 else None)(refusal(guarded, short)), what="the end of the token", timeout=30)
    assert (status, error["code"]) == (401, 111)
    assert f"the token has expired at {end}" in error["message"], error
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(f"http://{guarded.address}/auth/whoami", headers=cookie), timeout=60)
    assert refused.value.code == 401
    assert refusal(guarded, lasting)[0] == 200
    with pytest.raises(ServerError) as refused:
        guarded.command("issue_token", user="ann", ttl=0)
    assert refused.value.error["message"].startswith("ttl: expected"), refused.value.error


def test_our_own_command(guarded):
    def millpond(*words, token=None, check=True):
        return guarded.millpond("token", *words, token=token, check=check)
    first = millpond("create", "--user", "ann", "--ttl", "2h", "--description", "nightly build")[1].strip()
    assert refusal(guarded, first)[0] == 200
    # Without --user it is the token's own user.
    shown = millpond("list", token=first)[1]
    assert digest(first) in shown and "nightly build" in shown and "VALID UNTIL" in shown
    second = millpond("rotate", token=first)[1].strip()
    assert refusal(guarded, first)[0] == 401 and refusal(guarded, second)[0] == 200
    listed = json.loads(millpond("list", "--json", token=second)[1])
    facts = listed[digest(second)]
    assert digest(first) not in listed and facts["description"] == "nightly build"
    assert moment(facts["valid_until"]) - moment(facts["creation_time"]) == pytest.approx(7200, abs=0.01)
    third = millpond("rotate", digest(second), "--ttl", "1d", "--grace", "1h", token=second)[1].strip()
    assert refusal(guarded, second)[0] == refusal(guarded, third)[0] == 200
    guarded.server.kill()
    guarded.restart()
    assert refusal(guarded, second)[0] == refusal(guarded, third)[0] == 200
    millpond("revoke", digest(second), token=third)
    assert refusal(guarded, second)[0] == 401
    code, _, errors = millpond("create", "--ttl", "5", token=third, check=False)
    assert code == 2 and "expected a time with a unit" in errors, errors
    code, _, errors = millpond("create", "--user", "root", token=third, check=False)
    assert code == 1 and "Access denied" in errors, errors


def test_rotation_is_in_the_audit_log_without_the_token(guarded):
    token = guarded.command("issue_token", user="ann")
    new = guarded.command("rotate_token", user="ann", token_sha256=digest(token))
    lines = guarded.millpond("audit", "--action", "rotate_token")[1]
    assert digest(token) in lines and digest(new) in lines
    assert token not in lines and new not in lines
