"""Users, tokens, permissions: a cluster that asks, seen by the real `yt`, our own command and a browser."""

import base64
import hashlib
import json
import os
import urllib.error
import urllib.parse
import urllib.request

import pytest
from harness import ServerError, cluster as make_cluster, wait_for


@pytest.fixture(scope="module")
def guarded():
    with make_cluster(auth=True) as c:
        for user in ("ann", "bob"):
            c.command("create", type="user", attributes={"name": user})
        yield c


@pytest.fixture(scope="module")
def tokens(guarded):
    return {user: guarded.command("issue_token", user=user) for user in ("ann", "bob")}


def ask(cluster, path, method="GET", body=None, **headers):
    """Status, headers and JSON of one request, as a browser makes it."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(f"http://{cluster.address}{path}", data=body, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=180) as reply:
            return reply.status, reply.headers, json.loads(reply.read() or b"{}")
    except urllib.error.HTTPError as error:
        return error.code, error.headers, json.loads(error.read())


def test_secrets_are_for_the_owner_of_the_directory(guarded):
    for name in ("root.token", "node-authority.pem"):
        assert os.stat(guarded.directory / "server" / name).st_mode & 0o777 == 0o600


def test_nothing_without_a_token(guarded):
    for path in ("/api/v4/get?path=//tmp", "/api/v4/get?path=//nothing", "/api/millpond/preemption_log",
                 "/api/millpond/stream", "/auth/whoami", "/api/v4/list_operations"):
        status, _, error = ask(guarded, path)
        assert (status, error["code"]) == (401, 111), path
        status, _, other = ask(guarded, path, Authorization="OAuth nonsense")
        assert (status, other["code"]) == (401, 111), path
    for path in ("/api/v4", "/hosts", "/ping", "/version", "/health"):
        assert urllib.request.urlopen(f"http://{guarded.address}{path}", timeout=180).status == 200, path
    code, _, errors = guarded.yt("list", "//tmp", token="nonsense", check=False)
    assert code != 0 and "token" in errors.lower(), errors


def test_the_real_client(guarded, tokens):
    assert guarded.yt("whoami", token=tokens["ann"])[1].strip() == "ann"
    assert guarded.yt("list", "/", token=tokens["ann"])[0] == 0
    guarded.yt("create", "map_node", "//tmp/of-ann", token=tokens["ann"])
    code, _, errors = guarded.yt("create", "map_node", "//sys/of-ann", token=tokens["ann"], check=False)
    assert code == 1 and "Access denied" in errors and "901" in errors, errors
    own = guarded.yt("issue-token", "ann", token=tokens["ann"])[1].strip()
    assert guarded.yt("whoami", token=own)[1].strip() == "ann"
    digest = hashlib.sha256(own.encode()).hexdigest()
    assert digest in guarded.yt("list-user-tokens", "ann", token=tokens["ann"])[1]
    guarded.yt("revoke-token", "ann", "--token-sha256", digest, token=tokens["ann"])
    code, _, errors = guarded.yt("whoami", token=own, check=False)
    assert code != 0, errors
    code, _, errors = guarded.yt("issue-token", "bob", token=tokens["ann"], check=False)
    assert code != 0, "a token for somebody else"


def test_pools_and_operations(guarded, tokens):
    ann = [{"action": "allow", "subjects": ["ann"], "permissions": ["use", "write"]}]
    guarded.command("create", type="scheduler_pool", attributes={"name": "anns", "pool_tree": "physical", "inherit_acl": False, "acl": ann})
    spec = {"pool": "anns", "tasks": {"t": {"job_count": 1, "command": "echo said >&2; sleep 1000"}}}

    def start(user):
        return guarded.command("start_operation", operation_type="vanilla", spec=spec, token=tokens[user])

    with pytest.raises(ServerError) as refused:
        start("bob")
    assert refused.value.error["code"] == 901
    operation = start("ann")["operation_id"]

    def jobs():
        return guarded.command("list_jobs", operation_id=operation)["jobs"]
    job = wait_for(lambda: [j for j in jobs() if j["state"] == "running"], what="a running job")[0]["id"]
    wait_for(lambda: guarded.stderr(operation, job), what="its stderr")
    assert guarded.command("get_job_stderr", operation_id=operation, job_id=job, token=tokens["ann"]) == b"said\n"
    for name, more in (("get_job_stderr", {"job_id": job}), ("abort_operation", {}),
                       ("update_operation_parameters", {"parameters": {"weight": 2.0}})):
        with pytest.raises(ServerError) as refused:
            guarded.command(name, operation_id=operation, token=tokens["bob"], **more)
        assert refused.value.error["code"] == 901, name
    for user, expected in (("ann", "allow"), ("bob", "deny")):
        checked = guarded.command("check_operation_permission", operation_id=operation, user=user, permission="manage")
        assert checked["action"] == expected
    assert guarded.yt("check-permission", "bob", "use", "//sys/pool_trees/physical/anns")[1].count("deny") == 1
    guarded.yt("abort-op", operation, token=tokens["ann"])
    assert guarded.command("get_operation", operation_id=operation)["state"] == "aborted"


def test_our_own_command(guarded, tokens):
    assert "anns" in guarded.millpond("pool", "tree", token=tokens["bob"])[1]
    code, _, errors = guarded.millpond("pool", "set", "anns", "--weight", "3", token=tokens["bob"], check=False)
    assert code != 0 and "Access denied" in errors, errors
    code, _, errors = guarded.millpond("pool", "tree", token="nonsense", check=False)
    assert code != 0 and "MILLPOND_TOKEN" in errors, errors


def test_sign_in_from_a_browser(guarded):
    password = hashlib.sha256(b"secret").hexdigest()
    guarded.command("set_user_password", user="ann", new_password_sha256=password)

    def basic(text):
        return "Basic " + base64.b64encode(text.encode()).decode()
    for wrong in ("ann:Secret", "nobody:secret", "bob:"):
        assert ask(guarded, "/login", "POST", b"", Authorization=basic(wrong))[0] == 401, wrong
    assert ask(guarded, "/login", "POST", b"{}")[0] == 401
    body = json.dumps({"user": "ann", "password": "secret"}).encode()
    status, headers, who = ask(guarded, "/login", "POST", body)
    assert (status, who["login"], who["auth"]) == (200, "ann", True)
    assert "HttpOnly" in headers["Set-Cookie"] and "SameSite=Strict" in headers["Set-Cookie"]
    cookie = headers["Set-Cookie"].split(";")[0]
    assert ask(guarded, "/auth/whoami", Cookie=cookie)[2]["csrf_token"] == who["csrf_token"]
    assert ask(guarded, "/api/v4/list?path=/", Cookie=cookie)[0] == 200
    create = json.dumps({"type": "map_node", "path": "//tmp/by-browser"}).encode()
    status, _, error = ask(guarded, "/api/v4/create", "POST", create, Cookie=cookie)
    assert (status, error["code"]) == (401, 110)
    assert ask(guarded, "/api/v4/create", "POST", create, Cookie=cookie, X_Csrf_Token=who["csrf_token"])[0] == 200
    assert ask(guarded, "/logout", "POST", b"", Cookie=cookie, X_Csrf_Token=who["csrf_token"])[0] == 200
    assert ask(guarded, "/auth/whoami", Cookie=cookie)[0] == 401


def test_answers_cannot_be_used_by_other_pages(guarded):
    """The page and all other answers, also refusals and what users have written: no frames, no guessed types, no scripts
    but those of the page."""
    guarded.command("create", type="file", path="//tmp/evil.html", ignore_existing=True)
    guarded.client().write_file("//tmp/evil.html", b"<script>alert(1)</script>")
    for path, token in (("/", None), ("/scheduling", None), ("/no/such/page", None), ("/api/v4", None), ("/health", None),
                        ("/metrics", None), ("/api/v4/get?path=//tmp", None), ("/api/v4/get?path=//tmp", guarded.token),
                        ("/api/v4/read_file?path=//tmp/evil.html", guarded.token)):
        request = urllib.request.Request(f"http://{guarded.address}{path}", headers={"Authorization": f"OAuth {token}"} if token else {})
        try:
            reply = urllib.request.urlopen(request, timeout=180)
        except urllib.error.HTTPError as error:
            reply = error
        with reply:
            policy = dict(part.strip().split(" ", 1) for part in reply.headers["Content-Security-Policy"].split(";"))
            assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'", path
            assert policy.get("script-src", "'none'") in ("'none'", "'self'") and "unsafe" not in str(policy), path
            assert reply.headers["X-Content-Type-Options"] == "nosniff", path
            assert reply.headers["X-Frame-Options"] == "DENY" and reply.headers["Referrer-Policy"] == "no-referrer", path
            assert "html" not in reply.headers.get("Content-Type", "") or policy["script-src"] == "'self'", path


def test_the_cookie_of_a_session_is_closed_to_scripts_and_other_pages(guarded, tokens):
    status, headers, who = ask(guarded, "/login", "POST", json.dumps({"token": tokens["ann"]}).encode())
    name, *attributes = headers["Set-Cookie"].split("; ")
    assert status == 200 and name.startswith("millpond_session=") and len(name) > 60
    # Without TLS a cookie that is `Secure` would not come back; tests/yt/test_tls.py has the other case.
    assert sorted(attributes) == ["HttpOnly", "Max-Age=43200", "Path=/", "SameSite=Strict"]
    session = {"Cookie": name, "X_Csrf_Token": who["csrf_token"]}
    _, headers, _ = ask(guarded, "/logout", "POST", b"", **session)
    name, *attributes = headers["Set-Cookie"].split("; ")
    assert name == "millpond_session=" and "Max-Age=0" in attributes and "HttpOnly" in attributes
    assert ask(guarded, "/auth/whoami", **session)[0] == 401


def sign_in(cluster, **who):
    """Headers of a browser that has signed in."""
    status, headers, about = ask(cluster, "/login", "POST", json.dumps(who).encode())
    assert status == 200, about
    return {"Cookie": headers["Set-Cookie"].split(";")[0], "X_Csrf_Token": about["csrf_token"]}


def test_a_session_ends_with_what_it_began_with(guarded):
    def password(text):
        guarded.command("set_user_password", user="carl", new_password_sha256=hashlib.sha256(text).hexdigest())

    def whoami(session):
        return ask(guarded, "/auth/whoami", **session)[0]
    guarded.command("create", type="user", attributes={"name": "carl"})
    password(b"one")
    token = guarded.command("issue_token", user="carl")
    by_password, by_token = sign_in(guarded, user="carl", password="one"), sign_in(guarded, token=token)
    assert (whoami(by_password), whoami(by_token)) == (200, 200)
    password(b"one")  # the same one, set anew
    assert (whoami(by_password), whoami(by_token)) == (401, 200)
    by_password = sign_in(guarded, user="carl", password="one")
    guarded.command("revoke_token", user="carl", token_sha256=hashlib.sha256(token.encode()).hexdigest())
    assert (whoami(by_password), whoami(by_token)) == (200, 401)
    by_password, by_token = sign_in(guarded, user="carl", password="one"), sign_in(guarded, token=guarded.command("issue_token", user="carl"))
    guarded.set("//sys/users/carl/@banned", True)
    assert (whoami(by_password), whoami(by_token)) == (403, 403)
    assert ask(guarded, "/login", "POST", json.dumps({"user": "carl", "password": "one"}).encode())[0] == 403
    guarded.set("//sys/users/carl/@banned", False)
    by_password = sign_in(guarded, user="carl", password="one")
    guarded.remove("//sys/users/carl")
    guarded.command("create", type="user", attributes={"name": "carl"})
    assert whoami(by_password) == 401, "another user of the same name"


def test_who_is_a_superuser(guarded, tokens):
    for token, expected in ((tokens["ann"], False), (guarded.token, True)):
        assert ask(guarded, "/auth/whoami", Authorization=f"OAuth {token}")[2]["superuser"] is expected


def test_tokens_of_the_configuration(tmp_path):
    file = tmp_path / "tokens"
    file.write_text("# machines\nrobot abc\nnobody def\n")
    file.chmod(0o600)
    with make_cluster(nodes=0, auth=True, server_config=f'tokens_file = "{file}"') as c:
        assert c.yt("whoami", token="abc", check=False)[0] != 0, "there is no such user yet"
        c.command("create", type="user", attributes={"name": "robot"})
        assert c.yt("whoami", token="abc")[1].strip() == "robot"
        assert c.yt("whoami", token="abc2", check=False)[0] != 0
        c.command("set", path="//sys/users/robot/@banned", value=True)
        assert c.yt("whoami", token="abc", check=False)[0] != 0


def test_a_shell_is_its_openers(guarded, tokens):
    acl = [{"action": "allow", "subjects": ["ann", "bob"], "permissions": ["manage"]}]
    shells = [{"name": "open", "subcontainer": ""}]
    guarded.create_pool("shells")
    operation = guarded.start_vanilla("sleep 1000", pool="shells", spec={"acl": acl, "job_shells": shells})
    job = guarded.wait_jobs(operation)[0]

    def shell(user, operation, name=None, **more):
        named = {"shell_name": name} if name else {}
        return guarded.command("poll_job_shell", job_id=job, parameters={"operation": operation, **more},
                               token=tokens[user], **named)["result"]
    try:
        opened = shell("ann", "spawn", term="xterm", height=24, width=80)["shell_id"]
    except ServerError as refused:
        assert "isolation" in json.dumps(refused.error), refused.error
        pytest.skip("jobs of this host have no shells")
    assert shell("ann", "update", shell_id=opened, keys="61", input_offset=0)["consumed_offset"] == 1
    for user, name in (("bob", None), ("ann", "open")):
        with pytest.raises(ServerError) as refused:
            shell(user, "update", name, shell_id=opened, keys="62", input_offset=1)
        assert "No such shell" in refused.value.error["message"]
    shell("ann", "terminate", shell_id=opened)
    guarded.command("abort_operation", operation_id=operation)


def test_an_upload_is_refused_before_it_is_made(guarded, tokens):
    guarded.command("create", type="file", path="//sys/a_file")

    def endless():
        while True:
            yield b"x" * 65536
    request = urllib.request.Request(
        f"http://{guarded.address}/api/v4/write_file", data=endless(), method="PUT",
        headers={"X-YT-Parameters": json.dumps({"path": "//sys/a_file"}), "Authorization": f"OAuth {tokens['ann']}"})
    # Whether the client gets to read why or loses the connection: it does not go on for ever, and nothing is stored.
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        urllib.request.urlopen(request, timeout=180)
    assert guarded.get("//sys/a_file/@uncompressed_data_size") == 0


def test_banned_and_acting_as(guarded, tokens):
    root = {"Authorization": f"OAuth {guarded.token}"}
    assert ask(guarded, "/auth/whoami", X_YT_User_Name="bob", **root)[2]["login"] == "bob"
    status, _, error = ask(guarded, "/auth/whoami", X_YT_User_Name="ann", Authorization=f"OAuth {tokens['bob']}")
    assert (status, error["code"]) == (400, 900)
    guarded.command("set", path="//sys/users/bob/@banned", value=True)
    status, _, error = ask(guarded, "/auth/whoami", Authorization=f"OAuth {tokens['bob']}")
    assert (status, error["code"]) == (403, 903)
    guarded.command("set", path="//sys/users/bob/@banned", value=False)
    assert ask(guarded, "/auth/whoami", Authorization=f"OAuth {tokens['bob']}")[0] == 200


def test_tokens_survive_a_kill(guarded, tokens):
    guarded.server.kill()
    guarded.restart()
    assert guarded.yt("whoami", token=tokens["ann"])[1].strip() == "ann"
    assert guarded.yt("whoami", token=guarded.token)[1].strip() == "root"


def test_a_node_without_an_identity_stays_outside(guarded):
    node = guarded.nodes[0]
    arguments, identity = node.arguments, guarded.directory / "node-0" / "identity.pem"
    node.terminate()
    wait_for(lambda: not guarded.online(), what="the node to be gone")
    at = arguments.index("--join-token-file")
    node.arguments = [*arguments[:at], *arguments[at + 2:]]
    kept = identity.rename(guarded.directory / "kept.pem")
    node.start()
    # A stranger does not learn that the name is taken.
    wait_for(lambda: "waits for an approval" in node.tail(), what="the refusal in the node's log")
    assert not guarded.online()
    node.terminate()
    kept.rename(identity)
    node.arguments = arguments
    node.start()
    guarded.wait_nodes(1)


def test_the_audit_log(guarded, tokens):
    guarded.command("set", path="//tmp/@audited", value=1, token=tokens["ann"])
    guarded.command("set", path="//tmp/@audited", value=2, token=tokens["ann"])

    def found():
        events = ask(guarded, "/api/millpond/events?last=1000", Authorization=f"OAuth {guarded.token}")[2]["events"]
        return [e for e in events if e["event"] == "audit" and e.get("path") == "//tmp/@audited"]
    first, second = wait_for(lambda: found() if len(found()) == 2 else None, what="two lines of the audit log")
    assert (first["user"], first["action"], first.get("before"), first["after"]) == ("ann", "set", None, 1)
    assert (second["before"], second["after"]) == (1, 2)
    status, _, error = ask(guarded, "/api/millpond/events?last=10", Authorization=f"OAuth {tokens['bob']}")
    assert (status, error["code"]) == (400, 901)
    # The same by our own command.
    lines = guarded.millpond("audit", "--path", "//tmp/@audited")[1].strip().splitlines()
    assert [line.split(": ")[-1] for line in lines] == ["nothing -> 1", "1 -> 2"], lines
    own = [json.loads(line) for line in guarded.millpond("audit", "--user", "ann", "--action", "set", "--json")[1].splitlines()]
    assert own and all((e["event"], e["user"], e["action"]) == ("audit", "ann", "set") for e in own)
    assert guarded.millpond("audit", "--user", "did-nothing")[1] == ""
    code, _, errors = guarded.millpond("audit", token=tokens["bob"], check=False)
    assert code != 0 and "Access denied" in errors, errors


def test_the_server_looks_for_changes(guarded, tokens):
    """Filters of the event log: each alone and together, with pages, through the API and our own command."""
    place = "//tmp/audit a+b%20=c"
    for name, value in (("x", 1), ("y", 2), ("z", 3)):
        guarded.command("create", type="document", path=f"{place}/{name}", recursive=True, token=tokens["ann"])
        guarded.command("set", path=f"{place}/{name}/@n", value=value, token=tokens["ann"])
    guarded.command("move", source_path=f"{place}/x", destination_path="//tmp/audited_x")

    def asked(**parameters):
        query = urllib.parse.urlencode(parameters)
        status, _, page = ask(guarded, f"/api/millpond/events?{query}", Authorization=f"OAuth {guarded.token}")
        assert status == 200, page
        return page

    def seen(**parameters):
        return [(e["user"], e["action"], e["path"]) for e in asked(path=place, **parameters)["events"]]
    everything = wait_for(lambda: asked(path=place)["events"] if len(seen()) == 7 else None, what="all changes in the log")
    assert all(e["event"] == "audit" for e in everything)
    assert seen()[-1] == ("root", "move", "//tmp/audited_x"), "it is not where it was any more"
    assert seen(user="root") == seen()[-1:] and seen(user="eve") == seen(event="job_started") == []
    assert [path for _, _, path in seen(user="ann", action="create")] == [f"{place}/{name}" for name in "xyz"]

    # A limit counts what is found, and the rest is found from there on.
    number, pages = everything[0]["number"], []
    while len(pages) < 4:
        page = asked(path=place, limit=2, **{"from": number})
        number = page["next"]
        pages.append([e["number"] for e in page["events"]])
    assert pages == [[e["number"] for e in everything[n:n + 2]] for n in (0, 2, 4, 6)]

    # From a time on, and before a time.
    third = everything[2]["time"]
    assert len(seen(from_time=third)) == 5 and len(seen(to_time=third)) == 2
    assert seen(from_time=third, to_time=third) == []

    def told(*options):
        return [json.loads(line)["number"] for line in guarded.millpond("audit", "--json", *options)[1].splitlines()]
    numbers = [e["number"] for e in everything]
    assert told("--path", place) == told("--path", place, "--since", "1h") == told("--path", place, "--from", "1") == numbers
    assert told("--path", place, "--limit", "3") == numbers[:3]
    assert told("--path", place, "--since", third, "--user", "ann") == numbers[2:6]
    assert told("--path", place, "--since", "1h", "--until", third) == numbers[:2]
    assert told("--path", f"{place}/y", "--action", "set") == numbers[3:4]
    code, _, errors = guarded.millpond("audit", "--since", "yesterday", check=False)
    assert code == 2 and "yesterday" in errors and "15m" in errors, errors
    status, _, error = ask(guarded, "/api/millpond/events?path=tmp", Authorization=f"OAuth {guarded.token}")
    assert status == 400 and "//sys/pool_trees" in error["message"], error


def test_columns_have_lists(guarded, tokens):
    """Who may read a table needs not be one who may read all its columns."""
    root = guarded.client()
    acl = [{"action": "allow", "subjects": ["users"], "permissions": ["read", "write"]},
           {"action": "allow", "subjects": ["ann"], "permissions": ["read"], "columns": ["pay"]}]
    root.create("table", "//tmp/staff", attributes={"acl": acl})
    root.write_table("//tmp/staff", [{"name": "x", "pay": 1}, {"name": "y", "pay": 2}])
    rows = {user: guarded.client(token=tokens[user]) for user in tokens}
    assert list(rows["ann"].read_table("//tmp/staff")) == [{"name": "x", "pay": 1}, {"name": "y", "pay": 2}]
    names = [{"name": "x"}, {"name": "y"}]
    assert list(rows["bob"].read_table("//tmp/staff{name}")) == names
    for path in ("//tmp/staff", "//tmp/staff{pay}", "//tmp/staff{name,pay}[#1]"):
        code, _, errors = guarded.yt("read-table", path, "--format", "json", token=tokens["bob"], check=False)
        assert code == 1 and "901" in errors and 'column "pay"' in errors, errors
    status, headers, _ = raw(guarded, "/api/v4/read_table?path=//tmp/staff&omit_inaccessible_columns=%25true"
                             "&output_format=json", tokens["bob"])
    told = json.loads(headers["X-YT-Response-Parameters"])
    assert (status, told["omitted_inaccessible_columns"]) == (200, ["pay"])
    _, _, body = raw(guarded, "/api/v4/read_table?path=//tmp/staff&omit_inaccessible_columns=%25true"
                     "&output_format=json", tokens["bob"])
    assert [json.loads(line) for line in body.splitlines()] == names
    answer = root.check_permission("bob", "read", "//tmp/staff", columns=["name", "pay"])
    assert [column["action"] for column in answer["columns"]] == ["allow", "deny"]
    code, _, errors = guarded.yt("copy", "//tmp/staff", "//tmp/staff-copy", token=tokens["bob"], check=False)
    assert code == 1 and "901" in errors, errors
    guarded.yt("copy", "//tmp/staff", "//tmp/staff-copy", token=tokens["ann"])


def test_rows_of_jobs_are_rows_of_tables(guarded, tokens):
    """Who may look into an operation sees no more of its tables than he may read himself."""
    root = guarded.client()
    acl = [{"action": "allow", "subjects": ["ann"], "permissions": ["read"]}]
    root.create("user", attributes={"name": "dan"})
    root.create("table", "//tmp/wages", attributes={"acl": acl, "inherit_acl": False})
    root.write_table("//tmp/wages", [{"name": "x", "pay": 1}])
    root.create("table", "//tmp/out")
    started = root.run_map("cat > /dev/null; exit 1", "//tmp/wages", "//tmp/out", format="json", sync=False, spec={
        "mapper": {"cpu_limit": 0.1, "memory_limit": 64 << 20}, "max_failed_job_count": 1,
        "acl": [{"action": "allow", "subjects": ["ann", "bob"], "permissions": ["read", "manage"]},
                {"action": "allow", "subjects": ["dan"], "permissions": ["read"]}]})
    guarded.wait_state(started.id, "failed")
    job = guarded.jobs(started.id, state="failed")[0]["id"]
    for command in ("get_job_input", "get_job_fail_context"):
        path = f"/api/v4/{command}?job_id={job}&operation_id={started.id}"
        assert json.loads(raw(guarded, path, tokens["ann"])[2]) == {"name": "x", "pay": 1}
        status, _, error = ask(guarded, path, Authorization=f"OAuth {tokens['bob']}")
        assert (status, error["code"], error["attributes"]["object_name"]) == (400, 901, "//tmp/wages"), error
    root.set("//tmp/wages/@acl", [{"action": "allow", "subjects": ["bob"], "permissions": ["read"]},
                                  {"action": "allow", "subjects": ["ann"], "permissions": ["read"], "columns": ["pay"]}])
    _, _, error = ask(guarded, path, Authorization=f"OAuth {tokens['bob']}")
    assert error["code"] == 901 and 'column "pay"' in error["message"], error
    root.remove("//tmp/wages")
    assert json.loads(raw(guarded, path, tokens["bob"])[2]) == {"name": "x", "pay": 1}, "what had failed is kept"
    status, _, error = ask(guarded, path, Authorization=f"OAuth {guarded.token}", X_YT_User_Name="dan")
    assert (status, error["code"]) == (400, 901), "nobody can say any more whether he might read the table"


def raw(cluster, path, token):
    request = urllib.request.Request(f"http://{cluster.address}{path}", headers={"Authorization": f"OAuth {token}"})
    with urllib.request.urlopen(request, timeout=180) as reply:
        return reply.status, reply.headers, reply.read().decode()


def test_who_is_removed_is_forgotten(guarded):
    root = guarded.client()
    root.create("user", attributes={"name": "yan"})
    root.add_member("yan", "admins")
    root.set("//tmp/@acl/end", {"action": "allow", "subjects": ["yan"], "permissions": ["read"]})
    assert "yan" in root.get("//sys/groups/users/@members")
    root.remove("//sys/users/yan")
    root.create("user", attributes={"name": "yan"})
    assert list(root.get("//sys/users/yan/@member_of")) == ["users"]
    assert not any("yan" in ace["subjects"] for ace in root.get("//tmp/@acl"))
    with pytest.raises(Exception, match="no such user or group"):
        root.set("//tmp/@acl/end", {"action": "allow", "subjects": ["nobody"], "permissions": ["read"]})
    with pytest.raises(Exception, match="cannot be banned"):
        root.set("//sys/users/root/@banned", True)


def test_the_starter_stays_in_the_list_of_his_operation(guarded, tokens):
    root = guarded.client()
    root.create("user", attributes={"name": "cat"}, ignore_existing=True)
    ann = guarded.client(token=tokens["ann"])
    spec = {"tasks": {"t": {"job_count": 1, "command": "sleep 1000"}}, "pool": "ann-own"}
    started = guarded.command("start_operation", token=tokens["ann"], operation_type="vanilla", spec=spec)
    operation = started["operation_id"]
    to_cat = {"acl": [{"action": "allow", "subjects": ["cat"], "permissions": ["read", "manage"]}]}
    ann.update_operation_parameters(operation, to_cat)
    ann.suspend_operation(operation)
    odd = {"acl": [{"action": "allow", "subjects": ["cat"], "permissions": ["write"]}]}
    with pytest.raises(Exception, match='expected "read" or "manage"'):
        ann.update_operation_parameters(operation, odd)
    ann.abort_operation(operation)
