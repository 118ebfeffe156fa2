"""Where secrets lie: a cluster gets a secret vault, tokens, passwords and a variable of a job, each with a text that is nowhere
else, and everything that the cluster writes down or tells is searched for them. What may be found where is listed in ALLOWED."""

import base64
import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import re
import secrets
import shutil
import urllib.error
import urllib.request

import pytest
from harness import ENVIRONMENT, ServerError, cluster as make_cluster, error_text, wait_for

# Files are named as below the directory of the cluster, answers by what was asked. The reasons are those of docs/security.md.
ALLOWED = [
    ("root token", r"server/(before-new-cluster-[0-9]+/)?root\.token", "the only place where the server leaves it, for its operator: mode 0600"),
    ("join token", r"node-0\.join-token", "where the operator of this test has put it"),
    ("key of vaults", r"server/(before-new-cluster-[0-9]+/)?vault\.key", "the only place of the key: mode 0600, and not in backups that are not secret"),
    ("key of the authority", r"server/(before-new-cluster-[0-9]+/)?node-authority\.pem", "the only place of the key: mode 0600, and not in backups that are not secret"),
    ("key of the node", r"node-0/identity\.pem", "the only place of the key: mode 0600"),
    ("vault", r"answer: shell", "a shell beside a job shows to the job's owner what the job has"),
    ("variable", r"server/store\.redb", "a variable of the specification is no secret: secure_vault is for those"),
    ("variable", r"server/(before-new-cluster-[0-9]+/)?event-log/.*", "operation_started has the specification, without the vault"),
    ("variable", r"answer: (get_operation|list_operations|operation in the tree|op get|events|millpond events|specification of a job)",
     "the specification is for everybody who may see the operation"),
]

# Places that must have been looked at: a search that misses them shows nothing.
LOOKED_AT = [r"server/before-new-cluster-[0-9]+/vault\.key", r"server/store\.redb", r"server/(before-new-cluster-[0-9]+/)?root\.token", r"server/vault\.key", r"server/node-authority\.pem", r"server/event-log/[0-9]+\.jsonl",
             r"server\.log", r"node-0\.log", r"node-0/identity\.pem", r"node-0/slots/[0-9]+/job/record", r"node-0/slots/[0-9]+/job/stderr.*"]


class Marked:
    """Texts that are found nowhere by chance, and their other forms."""

    def __init__(self):
        self.forms = {}

    def add(self, name, text):
        """A text, or bytes."""
        data = text if isinstance(text, bytes) else text.encode()
        self.forms[name] = {"as it is": data, "hex": data.hex().encode(), "HEX": data.hex().upper().encode()}
        for shift in range(3):
            # Inside of something longer: what depends on the neighbours is cut off.
            whole = base64.b64encode(b"\0" * shift + data + b"\0" * 3)
            begin, end = (4 * shift + 2) // 3 + 1, -(8 if len(whole) > 24 else 4)
            self.forms[name][f"base64 at {shift}"] = whole[begin:end]
            self.forms[name][f"base64url at {shift}"] = whole[begin:end].replace(b"+", b"-").replace(b"/", b"_")
        return text

    def found_in(self, data):
        return [(name, form) for name, forms in self.forms.items() for form, text in forms.items() if text in data]


def test_the_search_finds_every_form():
    """Otherwise the tests below show nothing."""
    marked = Marked()
    text = marked.add("it", f"marker-{secrets.token_hex(12)}").encode()
    assert marked.found_in(b"nothing") == []
    for before in (b"", b"a", b"ab", b"abc", b"abcd"):
        for data in (text, text.hex().encode(), text.hex().upper().encode(), base64.b64encode(before + text + b"more"),
                     base64.urlsafe_b64encode(before + text + b"more")):
            assert marked.found_in(b"{" + data + b"}") != [], (before, data)


class Search:
    def __init__(self, cluster, marked):
        self.cluster, self.marked, self.looked_at, self.used = cluster, marked, set(), set()

    def look(self, place, data):
        self.looked_at.add(place)
        wrong = []
        for name, form in self.marked.found_in(data):
            allowed = [at for at, (of, where, _) in enumerate(ALLOWED) if name == of and re.fullmatch(where, place)]
            self.used.update(allowed)
            if not allowed:
                wrong.append(f"{name} ({form})")
        assert wrong == [], f"{place} has {wrong}"

    def assert_complete(self):
        """The search has seen the places where something had to be: it finds what it looks for."""
        unused = [ALLOWED[at][:2] for at in range(len(ALLOWED)) if at not in self.used]
        assert unused == [], f"nothing was found where it is allowed: {unused}"
        missed = [where for where in LOOKED_AT if not any(re.fullmatch(where, place) for place in self.looked_at)]
        assert missed == [], f"{missed} were not looked at, only {sorted(self.looked_at)}"

    def disk(self):
        """Every file of the cluster, and of the directories that its processes share on this host."""
        shared = [pathlib.Path(path) for path in ("/run/millpond", "/run/millpond-oci", f"/tmp/millpond-{os.getuid()}")]
        for top in [self.cluster.directory, *shared]:
            for folder, _, files in os.walk(top):
                for name in files:
                    path = pathlib.Path(folder, name)
                    # A file may go meanwhile.
                    with contextlib.suppress(FileNotFoundError):
                        if path.is_file() and not path.is_symlink():
                            place = str(path.relative_to(self.cluster.directory)) if top == self.cluster.directory else str(path)
                            self.look(place, path.read_bytes())

    def answer(self, name, data):
        self.look(f"answer: {name}", data if isinstance(data, bytes) else json.dumps(data).encode())


def ask(cluster, path, token, wanted):
    """The answer, whose status must be one of `wanted`."""
    request = urllib.request.Request(f"http://{cluster.address}{path}")
    request.add_header("Authorization", f"OAuth {token}")
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            status, answer = reply.status, reply.read()
    except urllib.error.HTTPError as error:
        status, answer = error.code, error.read()
    assert status in wanted, (path, status, answer)
    return answer


# Answers that an operation does not have any more when it is over.
OVER = ("job_explanation", "job_history")


def all_answers(cluster, search, operation, jobs, refused=()):
    """What people and tools ask, of an operation that runs or is over. Each answer must be a good one, but for those of
    `refused`, which must be errors."""
    def command(name, what, ask):
        if name in refused:
            with pytest.raises(ServerError) as error:
                ask()
            search.answer(what, error_text(error.value.error).encode())
        else:
            search.answer(what, ask())

    for name, parameters in {
        "get_operation": {"operation_id": operation},
        "list_operations": {"attributes": ["id", "spec", "full_spec", "provided_spec", "brief_spec", "runtime_parameters", "events"]},
        "list_jobs": {"operation_id": operation},
        "list_operation_events": {"operation_id": operation},
        "list_user_tokens": {"user": "ann", "with_metadata": True},
    }.items():
        command(name, name, lambda name=name, parameters=parameters: cluster.command(name, **parameters))
    for job in jobs:
        search.answer("get_job", cluster.command("get_job", operation_id=operation, job_id=job))
        command("get_job_spec", "specification of a job", lambda job=job: cluster.command("get_job_spec", method="GET", job_id=job))
        search.answer("stderr of a job", cluster.stderr(operation, job))
        search.answer("job_explanation", ask(cluster, f"/api/millpond/job_explanation?operation_id={operation}&job_id={job}", cluster.token,
                                             wanted=(400,) if "job_explanation" in refused else (200,)))
        # The first numbers of a job come after a while, and go with the job.
        if "job_history" not in refused:
            search.answer("job_history", wait_for(lambda job=job: history(cluster, job), what=f"the history of job {job}"))
    bucket = f"{int(operation.split('-')[3], 16) & 0xff:02x}"
    for name, path in {
        "operation in the tree": f"//sys/operations/{bucket}/{operation}/@",
        "orchid": "//sys/scheduler/orchid",
        "nodes": "//sys/cluster_nodes",
        "user": "//sys/users/ann/@",
        "tokens": "//sys/tokens",
        "alerts": "//sys/scheduler/@alerts",
    }.items():
        command(name, name, lambda path=path: cluster.get(path))
    for node in cluster.command("list", method="GET", path="//sys/cluster_nodes")["value"]:
        search.answer("orchid of a node", cluster.get(f"//sys/cluster_nodes/{node}/orchid"))
    for name, path in {
        "operation_explanation": f"/api/millpond/operation_explanation?operation_id={operation}",
        "pool_explanation": "/api/millpond/pool_explanation?pool=p", "pool_history": "/api/millpond/pool_history?pool=p",
        "preemption_log": "/api/millpond/preemption_log", "events": "/api/millpond/events?from=1&limit=100000",
        "metrics": "/metrics", "health": "/health",
    }.items():
        search.answer(name, ask(cluster, path, cluster.token, wanted=(200,)))
    for name, arguments in {
        "op get": ("op", "get", operation, "--json"), "op explain": ("op", "explain", operation),
        "op list": ("op", "list", "--json"), "pool explain": ("pool", "explain", "p"), "node list": ("node", "list", "--json"),
        "millpond events": ("events", "--from", "1", "--json"), "audit": ("audit", "--from", "1", "--json"),
    }.items():
        code, out, err = cluster.millpond(*arguments, check=False)
        search.answer(name, (out + err).encode())
        assert (code == 0) == (name not in refused), (name, code, out, err)


def history(cluster, job):
    answer = ask(cluster, f"/api/millpond/job_history?job_id={job}", cluster.token, wanted=(200, 400))
    return None if b"There is no histor" in answer else answer


def left_out_of_backups():
    """Patterns of names in the server's directory that docs/security.md lists for a backup that is no secret."""
    page = (pathlib.Path(__file__).parents[2] / "docs/security.md").read_text()
    [line] = [line for line in page.splitlines() if line.startswith("A copy of the server's directory is as secret as the cluster, unless")]
    patterns = re.findall(r"`([^`]+)`", line)
    assert len(patterns) > 3, line
    return patterns


def login(cluster, **words):
    host, port = cluster.address.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    try:
        connection.request("POST", "/login", json.dumps(words).encode())
        reply = connection.getresponse()
        reply.read()
        return reply.status, reply.headers.get("Set-Cookie", "")
    finally:
        connection.close()


def private_key(file):
    """A private key of the curve P-256 in PEM form: a line of it, which has a part of the secret number, and the number in bytes."""
    lines = file.read_text().split("-----BEGIN PRIVATE KEY-----")[1].split("-----END")[0].split()
    key = base64.b64decode("".join(lines))
    # An octet string of 32 bytes, in the structure of the curve's key.
    begin = key.index(b"\x02\x01\x01\x04\x20") + 5
    return lines[1], key[begin:begin + 32]


def shell_shows(cluster, search, job, text):
    """A shell beside the job prints its vault: that is an answer to the one who asked, and is written nowhere."""
    def poll(**parameters):
        return cluster.command("poll_job_shell", job_id=job, parameters=parameters)["result"]
    shell = poll(operation="spawn", term="dumb", height=24, width=200)["shell_id"]
    keys = 'echo "$YT_SECURE_VAULT_word"\n'.encode().hex()
    poll(operation="update", shell_id=shell, keys=keys, input_offset=0, height=24, width=200)
    seen = ""

    def printed():
        nonlocal seen
        answer = poll(operation="poll", shell_id=shell)
        search.answer("shell", answer)
        seen += str(answer.get("output", ""))
        return text in seen
    wait_for(printed, what="the shell to print the vault", seen=lambda: seen)
    search.disk()
    poll(operation="terminate", shell_id=shell)


# The whole vault is in one variable, too.
COMMAND = 'case "$YT_SECURE_VAULT" in *"$YT_SECURE_VAULT_word"*) ;; *) exit 7;; esac; printf %s "$YT_SECURE_VAULT_word$VARIABLE" | sha256sum >&2; exec sleep 1000'


def environments():
    """The usual one, and a runtime that gets the environment of a job in a file, where there is one."""
    oci = os.geteuid() == 0 and shutil.which("runc") and shutil.which("busybox")
    return [ENVIRONMENT, pytest.param("oci", marks=pytest.mark.skipif(not oci, reason="not root, or there is no runc or no busybox (tests/setup.sh oci)"))]


@pytest.mark.parametrize("environment", environments())
def test_secrets_lie_where_the_page_of_security_says_and_nowhere_else(monkeypatch, environment):
    # As much as there is in logs.
    monkeypatch.setenv("MILLPOND_LOG", "trace")
    marked = Marked()
    vault = marked.add("vault", f"vault-{secrets.token_hex(16)}")
    variable = marked.add("variable", f"variable-{secrets.token_hex(16)}")
    password = marked.add("password", f"password-{secrets.token_hex(16)}")
    guess = marked.add("wrong password", f"guess-{secrets.token_hex(16)}")
    wrong_token = marked.add("wrong token", secrets.token_hex(32))
    refused_vault = marked.add("vault of a refused operation", f"refused-{secrets.token_hex(16)}")
    digest = marked.add("digest that stands for the password", hashlib.sha256(password.encode()).hexdigest())
    with make_cluster(nodes=1, auth=True, environment=environment) as cluster:
        old_token = marked.add("root token", cluster.token)
        marked.add("join token", (cluster.directory / "node-0.join-token").read_text().strip().rsplit(".", 1)[1])
        [key] = [line for line in (cluster.directory / "server/vault.key").read_text().split("\n") if line and not line.startswith("#")]
        marked.add("key of vaults", bytes.fromhex(key))
        for name, file in (("key of the authority", "server/node-authority.pem"), ("key of the node", "node-0/identity.pem")):
            line, number = private_key(cluster.directory / file)
            marked.add(name, line)
            marked.add(f"{name}, as bytes", number)
        search = Search(cluster, marked)
        cluster.create_pool("p")
        cluster.command("create", type="user", attributes={"name": "ann"})
        cluster.command("set_user_password", user="ann", new_password_sha256=digest)
        ann = marked.add("answer of issue_token", cluster.command("issue_token", user="ann"))
        with pytest.raises(ServerError):
            cluster.command("list", method="GET", path="/", token=wrong_token)
        status, cookie = login(cluster, user="ann", password=password)
        assert status == 200
        marked.add("session", cookie.split(";")[0].split("=", 1)[1])
        assert login(cluster, user="ann", password=guess)[0] == 401
        assert login(cluster, token=ann)[0] == 200

        # Refusals tell what is wrong, and not what was secret.
        for bad in ({"not a name": refused_vault}, refused_vault, [refused_vault]):
            with pytest.raises(ServerError) as refused:
                cluster.start_vanilla("true", pool="p", spec={"secure_vault": bad})
            search.answer("refusal of a vault", error_text(refused.value.error).encode())
        with pytest.raises(ServerError):
            cluster.start_vanilla("true", pool="nowhere/p", spec={"secure_vault": {"word": refused_vault}, "max_failed_job_count": -1})

        operation = cluster.start_vanilla(COMMAND, pool="p", environment={"VARIABLE": variable},
                                          spec={"secure_vault": {"word": vault, "map": {"of": vault}}, "title": "secrets"})
        expected = hashlib.sha256((vault + variable).encode()).hexdigest()

        def job_has_it(job):
            return wait_for(lambda: expected in cluster.stderr(operation, job).decode(), what="the job to say that it has the secrets",
                            seen=lambda: cluster.stderr(operation, job))
        first, = cluster.wait_jobs(operation)
        job_has_it(first)
        search.disk()
        all_answers(cluster, search, operation, [first])
        shell_shows(cluster, search, first, vault)

        # The job is adopted, and the next one gets the vault from the store.
        cluster.server.kill()
        cluster.nodes[0].kill()
        search.disk()
        cluster.restart()
        assert cluster.wait_jobs(operation) == [first]
        cluster.command("abort_job", job_id=first)
        second, = wait_for(lambda: [job for job in cluster.wait_jobs(operation) if job != first], what="the next job")
        job_has_it(second)
        search.disk()

        # A backup: all but the files with secrets, and what may be left of them.
        cluster.server.terminate()
        data, backup = cluster.directory / "server", cluster.directory / "backup"
        halves = ["root.token.draft", "root.draft", "node.draft", "vault.draft", "vault.key.draft", "node-authority.pem.draft"]
        planted = [*halves, "vault.key.damaged-1700000000", "before-new-cluster-1700000000/root.token",
                   "before-new-cluster-1700000000/vault.key"]
        for name in planted:
            (data / name).parent.mkdir(mode=0o700, exist_ok=True)
            (data / name).write_text(marked.add(f"planted {name}", f"planted-{secrets.token_hex(16)}"))
            (data / name).chmod(0o600)
        shutil.copytree(data, backup, ignore=shutil.ignore_patterns(*left_out_of_backups()))
        assert (backup / "store.redb").exists() and list((backup / "event-log").iterdir()), "there is a backup"
        for path in backup.rglob("*"):
            if path.is_file():
                search.look(f"server/{path.relative_to(backup)}", path.read_bytes())
        shutil.rmtree(backup)
        cluster.restart()
        assert [name for name in halves if (data / name).exists()] == [], "a start removes halves of secrets"
        for name in set(planted) - set(halves):
            (data / name).unlink()
        (data / "before-new-cluster-1700000000").rmdir()
        cluster.wait_jobs(operation)
        cluster.command("abort_operation", operation_id=operation)
        cluster.wait_state(operation, "aborted")
        all_answers(cluster, search, operation, [first, second], refused=OVER)
        search.disk()
        # Logs of the whole run were among the files.
        assert all(log.stat().st_size > 0 for log in (pathlib.Path(cluster.server.log), pathlib.Path(cluster.nodes[0].log)))
        for process in [*cluster.nodes, cluster.server]:
            process.terminate()
        search.disk()

        # A cluster that was moved aside keeps its secrets where they were, and the new one has others.
        (cluster.directory / "server/store.redb").unlink()
        cluster.server.arguments.append("--new-cluster")
        cluster.server.start()
        cluster.wait_server()
        [aside] = (cluster.directory / "server").glob("before-new-cluster-*")
        assert (aside / "root.token").read_text().strip() == old_token != cluster.token
        cluster.server.terminate()
        search.disk()
        search.assert_complete()


def test_a_server_without_its_vault_key_does_not_start_until_it_is_told_to_give_up():
    """A lost key costs the operations whose vaults it decrypts, and only on demand."""
    with make_cluster(nodes=0) as cluster:
        cluster.create_pool("p")
        with_vault = cluster.start_vanilla("true", pool="p", spec={"secure_vault": {"word": "secret"}})
        without = cluster.start_vanilla("true", pool="p")
        key = cluster.directory / "server/vault.key"
        assert key.stat().st_mode & 0o7777 == 0o600
        text = key.read_text()
        for damage in (None, "damaged", "ab" * 32):
            cluster.server.terminate()
            if damage is None:
                key.unlink()
            else:
                key.write_text(damage)
                key.chmod(0o600)
            pathlib.Path(cluster.server.log).write_text("")
            cluster.server.start()
            wait_for(lambda: not cluster.server.running(), timeout=60, what="the server to refuse its data", seen=cluster.server.tail)
            told = cluster.server.tail()
            assert cluster.server.popen.returncode != 0 and "panicked" not in told, told
            for word in ("vault.key", "backup", "--abandon-locked-vaults"):
                assert word in told, told
            # The right file again.
            key.write_text(text)
            key.chmod(0o600)
            cluster.restart()
            for operation in (with_vault, without):
                cluster.wait_state(operation, "running")
        cluster.server.terminate()
        key.unlink()
        # A new key alone gives nothing up.
        cluster.server.arguments.append("--new-vault-key")
        cluster.server.start()
        wait_for(lambda: not cluster.server.running(), timeout=60, what="the server to refuse its data", seen=cluster.server.tail)
        assert not key.exists()
        cluster.server.arguments.remove("--new-vault-key")
        cluster.server.arguments.append("--abandon-locked-vaults")
        cluster.restart()
        cluster.wait_state(without, "running")
        assert cluster.state(with_vault) == "failed"
        assert "vault.key" in error_text(cluster.result(with_vault))
        alerts = {alert["attributes"]["alert_type"] for alert in cluster.get("//sys/scheduler/@alerts")}
        assert "operations_not_restored" in alerts
        # The new key encrypts what comes.
        cluster.start_vanilla("true", pool="p", spec={"secure_vault": {"word": "secret"}})
        cluster.server.arguments.remove("--abandon-locked-vaults")
        cluster.server.terminate()
        cluster.restart()
        cluster.wait_state(without, "running")
