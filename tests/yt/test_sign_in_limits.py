"""Wrong passwords and tokens: the back-off after them, the audit log, the metric (S11)."""

import concurrent.futures
import hashlib
import http.client
import json

import pytest
from harness import ServerError, cluster as make_cluster, wait_for
from test_metrics import scrape, value

# Of the server: crates/server/src/back_off.rs.
FREE_OF_PAIR = 5
FREE_OF_ADDRESS = 30
LONGEST = 60

ATTACKER, OFFICE = "127.0.0.66", "127.0.0.77"


@pytest.fixture(scope="module")
def guarded():
    with make_cluster(nodes=0, auth=True) as c:
        for user in ("ann", "bob", "root"):
            if user != "root":
                c.command("create", type="user", attributes={"name": user})
            password = hashlib.sha256(f"password of {user}".encode()).hexdigest()
            c.command("set_user_password", user=user, new_password_sha256=password)
        yield c


def ask(cluster, path, method="GET", body=None, source="127.0.0.1", **headers):
    """Status, headers and JSON of one request from a given address of this host."""
    host, port = cluster.address.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=180, source_address=(source, 0))
    try:
        connection.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
        reply = connection.getresponse()
        return reply.status, reply.headers, json.loads(reply.read() or b"{}")
    finally:
        connection.close()


def login(cluster, user, password, source):
    return ask(cluster, "/login", "POST", json.dumps({"user": user, "password": password}).encode(), source)


def with_token(cluster, token, source):
    return ask(cluster, "/api/v4/list?path=/", source=source, Authorization=f"OAuth {token}")


def audit(cluster, **wanted):
    page = ask(cluster, "/api/millpond/events?event=audit&last=100000", Authorization=f"OAuth {cluster.token}")[2]
    return [e for e in page["events"] if all(e.get(name) == text for name, text in wanted.items())]


def test_the_right_password_is_not_told_from_a_wrong_one_during_a_back_off(guarded):
    """S11: 23 guesses a second were answered, for ever."""
    source = "127.0.0.10"
    for n in range(FREE_OF_PAIR + 1):
        status, _, error = login(guarded, "ann", f"guess {n}", source)
        assert (status, error["code"]) == (401, 111), n
    # The delay is a second at first: guesses go on until one meets it.
    answers = []

    def closed():
        for password in ("guess", "password of ann"):
            status, headers, error = login(guarded, "ann", password, source)
            answers.append((status, error.get("code"), headers.get("Retry-After"), error.get("message")))
        return answers[-1][0] == 429 and answers[-2][0] == 429
    wait_for(closed, what="both passwords to be refused in one back-off", seen=lambda: answers[-6:])
    wrong, right = answers[-2:]
    assert wrong[1] == right[1] == 904
    assert all(1 <= int(answer[2]) <= LONGEST for answer in (wrong, right)), (wrong, right)
    assert wrong[3].split("try again")[0] == right[3].split("try again")[0]
    # A lockout ends by itself.
    status, _, who = wait_for(lambda: (lambda a: a if a[0] == 200 else None)(login(guarded, "ann", "password of ann", source)),
                              what="the right password to be accepted", timeout=LONGEST + 120, period=0.5)
    assert who["login"] == "ann"


def test_a_stranger_does_not_lock_out_root_elsewhere(guarded):
    """S11: few guesses count for the pair of account and address, so that a stranger cannot lock out root."""
    def guess(n):
        return login(guarded, "root", f"guess {n}", ATTACKER)[0]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(guess, range(100)))
    assert set(answers) == {401, 429}, answers
    # The pair of account and address: few guesses were looked at.
    assert answers.count(401) <= FREE_OF_PAIR + 8, answers
    assert login(guarded, "root", "password of root", OFFICE)[0] == 200
    assert login(guarded, "ann", "password of ann", OFFICE)[0] == 200
    # Another user behind the same address as the stranger.
    assert login(guarded, "bob", "password of bob", ATTACKER)[0] == 200
    # And tokens of root, there as well.
    assert with_token(guarded, guarded.token, ATTACKER)[0] == 200
    body = json.dumps({"token": guarded.token}).encode()
    assert ask(guarded, "/login", "POST", body, ATTACKER)[2]["login"] == "root"


def test_wrong_tokens_close_their_address(guarded):
    """S11."""
    source = "127.0.0.11"
    answers = [with_token(guarded, f"guess {n}", source) for n in range(FREE_OF_ADDRESS + 30)]
    codes = [status for status, _, _ in answers]
    assert set(codes[:FREE_OF_ADDRESS]) == {401} and 429 in codes, codes
    refused = next(answer for answer in answers if answer[0] == 429)
    assert refused[2]["code"] == 904 and 1 <= int(refused[1]["Retry-After"]) <= LONGEST
    token = guarded.command("issue_token", user="bob")
    assert with_token(guarded, token, source)[0] == 200, "a right token is let in"
    assert with_token(guarded, "guess", "127.0.0.12")[0] == 401, "another address"


def test_refused_sign_ins_are_in_the_audit_log(guarded):
    """S11."""
    source = "127.0.0.13"
    assert login(guarded, "nobody at all", "x", source)[0] == 401
    assert with_token(guarded, "planted-token", source)[0] == 401
    found = wait_for(lambda: (lambda e: e if len(e) == 2 else None)(audit(guarded, address=source)), what="both records",
                     seen=lambda: audit(guarded)[-5:])
    assert [(e["action"], e["shown"], e.get("user"), e["denied"], e["error"]["code"]) for e in found] == [
        ("sign_in", "password", "nobody at all", True, 111), ("sign_in", "token", None, True, 111)]
    assert "planted-token" not in json.dumps(found)
    # One of those who are let in, but not as they want.
    bob = guarded.command("issue_token", user="bob")
    status, _, error = ask(guarded, "/auth/whoami", source=source, Authorization=f"OAuth {bob}", X_YT_User_Name="root")
    assert (status, error["code"]) == (400, 900)
    wait_for(lambda: [e for e in audit(guarded, address=source) if e.get("user") == "bob"], what="the third record")
    # Guesses without end are some records.
    assert len(audit(guarded, address=ATTACKER)) <= 20
    families = scrape(guarded)

    def counted(**labels):
        return value(families, "millpond_refused_sign_ins", "millpond_refused_sign_ins_total", **labels)
    assert counted(shown="password", reason="wrong") >= 1 and counted(shown="token", reason="wrong") >= 1
    assert counted(shown="token", reason="act_as") == 1
    assert "sign_in shown=password" in guarded.millpond("audit", "--user", "nobody at all")[1]
    assert "denied: Invalid credentials" in guarded.millpond("audit", "--user", "nobody at all")[1]


def test_denied_changes_are_in_the_audit_log(guarded):
    """S11."""
    token = guarded.command("issue_token", user="bob")
    for command, parameters in (("set", {"path": "//sys/@denied", "value": 1}),
                                ("create", {"type": "user", "attributes": {"name": "eve"}}),
                                ("set_user_password", {"user": "ann", "new_password_sha256": "0" * 64})):
        with pytest.raises(ServerError) as refused:
            guarded.command(command, token=token, **parameters)
        assert refused.value.error["code"] == 901, command
    found = wait_for(lambda: (lambda e: e if len(e) == 3 else None)([e for e in audit(guarded, user="bob", denied=True) if e["action"] != "sign_in"]),
                     what="three denied changes", seen=lambda: audit(guarded)[-5:])
    assert [(e["action"], e["error"]["code"]) for e in found] == [("set", 901), ("create", 901), ("set_user_password", 901)]
