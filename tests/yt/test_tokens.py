"""Tokens with an end, and tokens in the place of others: the API, our own command, a restart."""

import hashlib
import json
import time
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
        with urllib.request.urlopen(request, timeout=180) as reply:
            return reply.status, None
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def session(cluster, token):
    """Headers of a browser that has signed in with this token; `None` if it is refused."""
    body = json.dumps({"token": token}).encode()
    try:
        with urllib.request.urlopen(f"http://{cluster.address}/login", body, timeout=180) as reply:
            return {"Cookie": reply.headers["Set-Cookie"].split(";")[0]}
    except urllib.error.HTTPError as refused:
        assert refused.code == 401, refused
        return None


def test_a_token_ends(guarded):
    lasting = guarded.command("issue_token", user="ann")
    # A session ends with the token that it began with. On a late machine a short token is over before it begins.
    for seconds in (3, 15, 75):
        short = guarded.command("issue_token", user="ann", ttl=1000 * seconds)
        listed = guarded.command("list_user_tokens", user="ann", with_metadata=True)
        end = listed[digest(short)]["valid_until"] if digest(short) in listed else None
        cookie = session(guarded, short)
        if cookie:
            break
        assert end is None or time.time() >= moment(end), f"a token that is valid until {end} is refused at {time.time()}"
    assert cookie, "no token was long enough for a sign-in"
    assert "valid_until" not in listed[digest(lasting)]
    assert moment(end) - moment(listed[digest(short)]["creation_time"]) == pytest.approx(seconds, abs=0.01)
    status, error = wait_for(lambda: (lambda a: a if a[0] != 200 else None)(refusal(guarded, short)), what="the end of the token")
    assert (status, error["code"]) == (401, 111)
    assert f"the token has expired at {end}" in error["message"], error
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(f"http://{guarded.address}/auth/whoami", headers=cookie), timeout=180)
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

    def audit():
        return guarded.millpond("audit", "--action", "rotate_token")[1]
    # The event log is written behind the answer.
    lines = wait_for(lambda: (lambda found: found if digest(token) in found else None)(audit()), what="the rotation in the audit log",
                     seen=audit)
    assert digest(new) in lines
    assert token not in lines and new not in lines
