"""S7: each node has an identity of its own, and the server proves first who it is.

The holder of `node.token` could register any node name and was sent other users' jobs with their vaults; whoever took the server's
port was shown that token."""

import contextlib
import json
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.request

import pytest
from harness import BINARY, Process, cluster as make_cluster, free_port, wait_for, write_secret

SERVER_NAME = "node.millpond.internal"


def join(cluster, directory, name, token=None, *arguments):
    """`millpond node join`: exit code and what it said."""
    if token is not None:
        file = directory / f"{name}.token"
        file.unlink(missing_ok=True)
        write_secret(file, token)
        arguments = ["--join-token-file", file, *arguments]
    done = subprocess.run([str(a) for a in (BINARY, "node", "join", "--server", cluster.address, "--name", name,
                                            "--data", directory / name, *arguments)],
                          capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout + done.stderr


def start_node(cluster, directory, name, *arguments):
    """An agent with a data directory of its own."""
    process = Process(name, [BINARY, "node", "--server", cluster.address, "--name", name, "--data", directory / name,
                             "--resources", "cpu=1,memory=1GiB,user_slots=1", "--job-environment", "simple",
                             "--stop-jobs", "--supervised", *arguments], directory / f"{name}.log", cluster.mark)
    process.start()
    return process


@contextlib.contextmanager
def running(*node):
    """`start_node` for a `with` statement."""
    process = start_node(*node)
    try:
        yield process
    except BaseException:
        print(process.tail())
        raise
    finally:
        process.terminate()


def says(process, words, timeout=60):
    wait_for(lambda: words in process.tail(400), what=f"{words!r} in the log of {process.name}", seen=process.tail, timeout=timeout)


def identities(cluster):
    return {i["name"]: i for i in cluster.command("list_node_identities")["identities"] if i["state"] != "revoked"}


def audited(cluster, action):
    request = urllib.request.Request(f"http://{cluster.address}/api/millpond/events?last=10000&event=audit&action={action}")
    if cluster.token:
        request.add_header("Authorization", f"OAuth {cluster.token}")
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.loads(reply.read())["events"]


def alerts(cluster):
    return {alert["attributes"].get("alert_type"): alert["message"] for alert in cluster.get("//sys/scheduler/@alerts")}


@pytest.fixture(scope="module")
def guarded():
    with make_cluster(nodes=1, auth=True) as cluster:
        yield cluster


def test_s7_the_token_of_all_nodes_is_refused(guarded, tmp_path):
    """S7: whoever had a copy of `node.token` could be any node."""
    token = guarded.directory / "server" / "node.token"
    assert not token.exists(), "nobody needs it"
    write_secret(token, "0" * 64)
    with running(guarded, tmp_path, "holder", "--insecure-plaintext", "--token-file", token) as node:
        says(node, "speaks with nodes by TLS only")
        assert len(guarded.online()) == 1
    refused = wait_for(lambda: [e for e in audited(guarded, "sign_in") if e["shown"] == "node_token"], what="a line of the audit log")
    assert refused[0]["denied"]
    # As release 0.1 did it, with what is left of that today.
    with running(guarded, tmp_path, "old", "--token-file", token) as node:
        says(node, "token_file is not used")
        says(node, "waits for an approval")
        assert len(guarded.online()) == 1
    guarded.command("revoke_node", name="old")


def test_s7_a_join_token_is_good_once(guarded, tmp_path):
    """S7: a stolen token is of no use after the node has joined, and the theft is told."""
    code, token, _ = guarded.millpond("node", "token", "create", "--ttl", "1h")
    token = token.strip()
    assert token.startswith("millpond-join-1."), token
    stored = b"".join(path.read_bytes() for path in (guarded.directory / "server").glob("store*") if path.is_file())
    assert token.split(".")[2].encode() not in stored, "only a digest is kept"
    code, said = join(guarded, tmp_path, "first", token)
    assert code == 0, said
    code, said = join(guarded, tmp_path, "thief", token)
    assert code == 1 and "used already, by first" in said, said
    wait_for(lambda: [e for e in audited(guarded, "sign_in") if e["shown"] == "join_token"], what="the theft in the audit log")
    assert [e["node"] for e in audited(guarded, "join_node") if e["node"] in ("first", "thief")] == ["first"]
    assert audited(guarded, "create_join_token")[-1]["user"] == "root"
    # Ended, unknown, malformed, of another name, revoked.
    short = guarded.command("create_join_token", ttl=1)
    named = guarded.command("create_join_token", name="somebody")
    revoked = guarded.command("create_join_token")
    listed = json.loads(guarded.millpond("node", "token", "list", "--json")[1])
    digest = next(t["token_sha256"] for t in listed if not t["used"] and "name" not in t)
    guarded.millpond("node", "token", "revoke", digest)
    for bad, words in ((short, "not known or has ended"), (revoked, "not known or has ended"), (named, "for node somebody"),
                       (token[:-1], "expected a join token"), ("secret", "expected a join token")):
        code, said = join(guarded, tmp_path, "thief", bad)
        assert code == 1 and words in said, said
        assert bad not in said, "a secret is not repeated"
    guarded.command("revoke_node", name="first")


def test_s7_an_exchange_that_was_interrupted_is_finished_by_the_same_node(guarded, tmp_path):
    """S7: a node that dies after its token was used and before it has its certificate is not locked out; nor does a crash of
    the server forget who has joined."""
    token = guarded.command("create_join_token")
    data = tmp_path / "slow"
    data.mkdir(mode=0o700)
    # What it gets cannot be stored: as a kill in this moment would leave it.
    (data / "identity.pem.draft").mkdir()
    code, said = join(guarded, tmp_path, "slow", token)
    assert code == 1 and "identity.pem" in said, said
    assert "slow" in identities(guarded), "the server has counted the exchange"
    guarded.server.kill()
    guarded.restart()
    (data / "identity.pem.draft").rmdir()
    code, said = join(guarded, tmp_path, "thief", token)
    assert code == 1 and "used already, by slow" in said, said
    code, said = join(guarded, tmp_path, "slow", token)
    assert code == 0, said
    assert (data / "identity.pem").stat().st_mode & 0o777 == 0o600
    assert not (data / "joining.pem").exists()
    with running(guarded, tmp_path, "slow"):
        guarded.wait_nodes(2)
    guarded.command("revoke_node", name="slow")


def test_s7_a_node_cannot_register_under_the_name_of_another(guarded, tmp_path):
    """S7: the name belongs to the identity that used it first."""
    victim = guarded.nodes[0].name
    # With a token for any name.
    code, said = join(guarded, tmp_path, victim, guarded.command("create_join_token"))
    assert code == 1 and "belongs to another identity" in said, said
    # With an identity of its own, by saying another name.
    code, said = join(guarded, tmp_path, "liar", guarded.command("create_join_token"))
    assert code == 0, said
    identity = tmp_path / "liar" / "identity.pem"
    identity.write_text(re.sub(r"(?m)^name: liar$", f"name: {victim}x", identity.read_text()))
    shutil.move(tmp_path / "liar", tmp_path / f"{victim}x")
    with running(guarded, tmp_path, f"{victim}x") as node:
        says(node, "belongs to node liar")
        assert guarded.online() == [victim]
    # Without one: only an administrator can let it in.
    with running(guarded, tmp_path, "nameless") as node:
        says(node, "waits for an approval")
        assert guarded.online() == [victim]
    guarded.command("revoke_node", name="nameless")
    guarded.command("revoke_node", name="liar")


def test_s7_a_revoked_node_is_cut_off(guarded, tmp_path):
    """S7."""
    code, said = join(guarded, tmp_path, "suspect", guarded.command("create_join_token", name="suspect"))
    assert code == 0, said
    unused = guarded.command("create_join_token", name="suspect", replace=True)
    node = start_node(guarded, tmp_path, "suspect")
    guarded.wait_nodes(2)
    before = time.monotonic()
    guarded.millpond("node", "revoke", "suspect")
    wait_for(lambda: len(guarded.online()) == 1, what="the node to be cut off")
    assert time.monotonic() - before < 10, "not only when it is silent for too long"
    says(node, "has revoked it")
    for process in (node, guarded.server):
        process.kill()
        process.start()
        guarded.wait_server()
    says(node, "was revoked")
    assert guarded.online() in ([], [guarded.nodes[0].name])
    code, said = join(guarded, tmp_path, "suspect", unused)
    assert code == 1, said
    # A new one lets it in again.
    node.terminate()
    shutil.rmtree(tmp_path / "suspect")
    code, said = join(guarded, tmp_path, "suspect", guarded.command("create_join_token", name="suspect"))
    assert code == 0, said
    with running(guarded, tmp_path, "suspect"):
        guarded.wait_nodes(2)
    guarded.command("revoke_node", name="suspect")


def test_s7_a_node_without_a_token_waits_for_an_approval(guarded, tmp_path):
    """S7."""
    authority = guarded.command("create_join_token").split(".")[1]
    with running(guarded, tmp_path, "waiting", "--authority-sha256", authority) as node:
        says(node, "waits for an approval")
        key = re.search(r"must show the key ([0-9a-f]{64})", node.tail()).group(1)
        listed = guarded.millpond("node", "list")[1]
        assert f"waiting waits for an approval: key {key}" in listed, listed
        assert "waiting" not in guarded.online()
        guarded.millpond("node", "approve", "waiting", "--key", key)
        wait_for(lambda: "waiting" in guarded.online(), what="the approved node to be online")
    assert "waiting" in guarded.millpond("node", "identities")[1]
    assert guarded.millpond("node", "approve", "nobody", check=False)[0] == 1
    guarded.command("revoke_node", name="waiting")


class Squatter(threading.Thread):
    """What a job can do that has taken the server's port: it speaks TLS with a certificate for the right name, from an authority
    of its own, and writes down what it is told. Without a certificate it only listens."""

    def __init__(self, port, chain=None):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", port))
        self.context, self.connections, self.raw, self.told = None, 0, b"", b""
        if chain:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*chain)
            self.context.set_alpn_protocols(["h2"])
        self.over = threading.Event()
        self.listener.settimeout(0.2)
        self.start()

    def run(self):
        while not self.over.is_set():
            with contextlib.suppress(OSError):
                connection, _ = self.listener.accept()
                connection.settimeout(2)
                with connection, contextlib.suppress(OSError, ssl.SSLError):
                    self.connections += 1
                    if self.context is None:
                        while data := connection.recv(1 << 16):
                            self.raw += data
                    else:
                        with self.context.wrap_socket(connection, server_side=True) as stream:
                            while data := stream.recv(1 << 16):
                                self.told += data

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()
        self.listener.close()


def false_chain(directory):
    """Certificate for the name of the server, with its authority behind it, and the key."""
    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
    authority, key, request, cert, names = (directory / f"false.{kind}" for kind in ("ca", "key", "csr", "pem", "ext"))
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=false", "-addext",
            "basicConstraints=critical,CA:TRUE", "-keyout", directory / "false-ca.key", "-out", authority)
    names.write_text(f"subjectAltName=DNS:{SERVER_NAME}\n")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", request, "-subj", f"/CN={SERVER_NAME}")
    openssl("x509", "-req", "-in", request, "-CA", authority, "-CAkey", directory / "false-ca.key", "-CAcreateserial",
            "-days", "30", "-extfile", names, "-out", cert)
    cert.write_text(cert.read_text() + authority.read_text())
    return cert, key


def test_s6_s7_another_server_is_told_nothing(tmp_path):
    """S6, S7: a squatter was shown the token of all nodes. Now the server proves first who it is."""
    chain = false_chain(tmp_path)
    with make_cluster(nodes=1, auth=True, start=False) as cluster:
        cluster.server.start()
        cluster.wait_server()
        token = cluster.command("create_join_token", name="careful")
        cluster.server.kill()
        file = tmp_path / "careful.token"
        write_secret(file, token)
        secret = token.split(".")[2].encode()
        # A node that is about to join.
        with Squatter(cluster.port) as deaf:
            node = start_node(cluster, tmp_path, "careful", "--join-token-file", file)
            wait_for(lambda: deaf.raw, what="the first words of the node")
            assert deaf.raw[0] == 0x16, "it begins with a handshake of TLS"
            assert secret not in deaf.raw and b"careful" not in deaf.raw
        with Squatter(cluster.port, chain) as false:
            says(node, "this is another server")
            connections = false.connections
            wait_for(lambda: false.connections > connections, what="one more try")
            assert false.told == b"", false.told
        cluster.server.start()
        cluster.wait_server()
        wait_for(lambda: "careful" in cluster.online(), what="the node to join the right server")
        # A node that has joined, while the server is away.
        cluster.server.kill()
        with Squatter(cluster.port, chain) as false:
            wait_for(lambda: false.connections >= 2, what="tries to connect again")
            assert false.told == b"", false.told
        cluster.server.start()
        cluster.wait_server()
        wait_for(lambda: "careful" in cluster.online(), what="the node to come back")
        node.terminate()
        # Without a token and far away it is not even asked.
        done = subprocess.run([str(BINARY), "node", "--server", "192.0.2.1:1", "--name", "far", "--data", str(tmp_path / "far"),
                               "--job-environment", "simple", "--resources", "cpu=1,memory=1GiB,user_slots=1"],
                              capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        assert done.returncode != 0 and "nothing says which server to trust" in done.stdout + done.stderr, done


def asks_for_a_certificate(port, *server_name):
    """Whether a client of TLS is asked for a certificate of its own, and the certificate that it sees."""
    done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{port}", *server_name], capture_output=True, text=True,
                          timeout=60, stdin=subprocess.DEVNULL)
    text = done.stdout + done.stderr
    subject = re.search(r"subject=.*?CN ?= ?(\S+)", text)
    return "Acceptable client certificate CA names" in text, subject and subject.group(1)


def test_s7_browsers_are_not_asked_for_certificates(tmp_path):
    """S7: only on the name of the server for nodes; and who speaks no TLS is served as before."""
    cert, key = false_chain(tmp_path)
    with make_cluster(nodes=1) as cluster:
        assert asks_for_a_certificate(cluster.port, "-servername", SERVER_NAME) == (True, SERVER_NAME)
        for other in (["-noservername"], ["-servername", "localhost"]):
            assert asks_for_a_certificate(cluster.port, *other) == (False, None), other
        assert urllib.request.urlopen(f"http://{cluster.address}/ping", timeout=60).status == 200
    with make_cluster(nodes=0, start=False, server_arguments=["--tls-cert", cert, "--tls-key", key]) as cluster:
        cluster.server.start()
        wait_for(lambda: asks_for_a_certificate(cluster.port, "-servername", SERVER_NAME)[0], what="the server to answer nodes")
        for other in (["-noservername"], ["-servername", "localhost"]):
            assert asks_for_a_certificate(cluster.port, *other) == (False, SERVER_NAME), other
        with pytest.raises(OSError):
            urllib.request.urlopen(f"http://{cluster.address}/ping", timeout=60)


class Http2:
    """A connection by the door for nodes that says what no library would. Only the frames that matter here are understood."""

    # Seconds. After 30 the server closes each connection, since its pings are not answered here.
    LIMIT = 12

    def __init__(self, port, identity=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        if identity:
            context.load_cert_chain(identity)
        raw = socket.create_connection(("127.0.0.1", port), timeout=self.LIMIT)
        self.stream = context.wrap_socket(raw, server_hostname=SERVER_NAME)
        self.stream.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(4, 0, 0))
        self.number, self.settings, self.rest = -1, {}, b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()

    @staticmethod
    def frame(kind, flags, number, body=b""):
        return len(body).to_bytes(3, "big") + bytes([kind, flags]) + number.to_bytes(4, "big") + body

    def call(self, name, begin=b""):
        """Begins a call: its headers, and the first bytes of its body, which goes on."""
        headers = {":method": "POST", ":scheme": "https", ":path": f"/millpond.node.v1.NodeService/{name}", ":authority": SERVER_NAME,
                   "content-type": "application/grpc", "te": "trailers"}
        # Literals without an index (RFC 7541 6.2.2).
        block = b"".join(bytes([0, len(key)]) + key.encode() + bytes([len(value)]) + value.encode() for key, value in headers.items())
        self.number += 2
        self.stream.sendall(self.frame(1, 4, self.number, block))
        if begin:
            self.stream.sendall(self.frame(0, 0, self.number, begin))
        return self.number

    def next_frame(self):
        """Kind, flags, stream and body; `None` at the end of the connection."""
        while len(self.rest) < 9 or len(self.rest) < 9 + int.from_bytes(self.rest[:3], "big"):
            try:
                data = self.stream.recv(1 << 16)
            except TimeoutError:
                raise
            except OSError:
                return None
            if not data:
                return None
            self.rest += data
        end = 9 + int.from_bytes(self.rest[:3], "big")
        head, body, self.rest = self.rest[:9], self.rest[9:end], self.rest[end:]
        if head[3] == 4 and not head[4] & 1:
            for at in range(0, len(body), 6):
                self.settings[int.from_bytes(body[at:at + 2], "big")] = int.from_bytes(body[at + 2:at + 6], "big")
        return head[3], head[4], int.from_bytes(head[5:], "big"), body

    def wait_end(self, number, what):
        """Until the server has answered a call, although its body is not complete."""
        deadline = time.monotonic() + self.LIMIT
        while time.monotonic() < deadline:
            try:
                frame = self.next_frame()
            except TimeoutError:
                break
            if frame is None or frame[0] == 7 or (frame[2] == number and (frame[0] == 3 or (frame[0] == 1 and frame[1] & 1))):
                return
        raise AssertionError(f"the server waits for the rest of {what}")

    def wait_closed(self, what):
        """Until the server has closed the connection."""
        deadline = time.monotonic() + self.LIMIT
        while time.monotonic() < deadline:
            try:
                if self.next_frame() is None:
                    return
            except TimeoutError:
                break
        raise AssertionError(f"the connection of {what} stays open")


def test_s7_a_stranger_is_refused_before_its_message_is_taken(guarded, tmp_path):
    """S7: without a certificate 200 calls at a time could announce 256 MiB each, which the server waited for."""
    huge = b"\0" + (256 << 20).to_bytes(4, "big")
    for name in ("Join", "Renew", "FetchFile", "FetchRows", "UploadRows", "UploadStderr", "UploadFailContext", "Connect"):
        with Http2(guarded.port) as stranger:
            stranger.wait_end(stranger.call(name, huge), f"{name} of a stranger")
            assert stranger.settings[3] <= 8, "calls at a time"
            assert stranger.settings[4] <= 1 << 16, "bytes on their way"
    # A node may send large streams, but no large questions, and no large pieces.
    code, said = join(guarded, tmp_path, "large", guarded.command("create_join_token"))
    assert code == 0, said
    identity = tmp_path / "large" / "identity.pem"
    for name in ("Renew", "FetchFile", "FetchRows", "UploadRows", "UploadStderr", "UploadFailContext"):
        with Http2(guarded.port, identity) as node:
            node.wait_end(node.call(name, huge), f"{name} of a node")
    # A revoked one is a stranger.
    guarded.command("revoke_node", name="large")
    with Http2(guarded.port, identity) as revoked:
        revoked.wait_end(revoked.call("UploadRows", huge), "UploadRows of a revoked node")
        revoked.wait_closed("a revoked node")


def test_s7_no_connection_of_a_revoked_node_stays_open(guarded, tmp_path):
    """S7: only the server's half of the stream was closed; the node could go on with its half and with other calls."""
    code, said = join(guarded, tmp_path, "stays", guarded.command("create_join_token"))
    assert code == 0, said
    with running(guarded, tmp_path, "stays"):
        guarded.wait_nodes(2)
        with Http2(guarded.port, tmp_path / "stays" / "identity.pem") as second:
            # Its body never ends, and neither does the call.
            second.call("UploadStderr")
            guarded.command("revoke_node", name="stays")
            second.wait_closed("a revoked node")


def text_chunk(job_id, data):
    """A gRPC message: a `TextChunk` with the id of a job."""
    def field(number, value):
        length, size = b"", len(value)
        while size > 127:
            length, size = length + bytes([size & 127 | 128]), size >> 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + value
    message = field(1, b"".join(int(part, 16).to_bytes(4, "big") for part in job_id.split("-"))) + field(2, data)
    return b"\0" + len(message).to_bytes(4, "big") + message


def test_s7_an_upload_without_end_is_cut_at_the_limit_of_its_job():
    """S7: a node whose machine is taken over could fill the disk of the server with the stderr of one job."""
    with make_cluster(nodes=1, auth=True) as cluster:
        cluster.create_pool("p")
        operation = cluster.start_vanilla("until [ -e go ]; do sleep 0.1; done; echo told >&2", max_stderr_size=1000)
        [job] = cluster.wait_jobs(operation)

        def drafts():
            return list((cluster.directory / "server" / "blobs").rglob("*.part"))
        identity = cluster.directory / "node-0" / "identity.pem"
        for name in ("UploadStderr", "UploadFailContext"):
            with Http2(cluster.port, identity) as node:
                # It waits for the rest until another upload of the same begins. This one is within the limit.
                first = node.call(name, text_chunk(job, b"x" * 500))
                wait_for(drafts, what=f"the first {name}")
                second = node.call(name, text_chunk(job, b"x" * 500))
                node.wait_end(first, f"the first {name}")
                if name == "UploadStderr":
                    node.stream.sendall(node.frame(0, 0, second, text_chunk(job, b"x" * 10_000)))
                    node.wait_end(second, f"{name} beyond the limit")
        wait_for(lambda: "oversized_upload" in alerts(cluster), what="the alert", seen=lambda: alerts(cluster))
        told = alerts(cluster)["oversized_upload"]
        assert cluster.nodes[0].name in told and f"stderr of job {job}" in told, told
        request = urllib.request.Request(f"http://{cluster.address}/metrics", headers={"Authorization": f"OAuth {cluster.token}"})
        metrics = urllib.request.urlopen(request, timeout=60).read().decode()
        assert 'millpond_refused_uploads_total{upload="stderr"} 1' in metrics, metrics
        wait_for(lambda: not drafts(), what="the drafts to be removed", seen=drafts)
        # The job and its node are well.
        [sandbox] = (cluster.directory / "node-0" / "slots").glob("*/sandbox")
        (sandbox / "go").touch()
        cluster.wait_state(operation, "completed")
        assert cluster.stderr(operation, job).strip() in (b"told", "told")


def valid_until(data):
    return int(re.search(r"(?m)^valid_until: (\d+)$", (data / "identity.pem").read_text()).group(1))


def test_s7_certificates_are_renewed_before_they_end(tmp_path):
    """S7."""
    with make_cluster(nodes=1, auth=True, server_config='node_certificate_ttl = "6s"\n') as cluster:
        data, seen = cluster.directory / "node-0", set()
        registered = cluster.get(f"//sys/cluster_nodes/{cluster.nodes[0].name}/@register_time")

        def renewed():
            seen.add(valid_until(data))
            return len(seen) >= 4
        wait_for(renewed, what="four certificates", timeout=60)
        assert cluster.online() == [cluster.nodes[0].name]
        assert cluster.get(f"//sys/cluster_nodes/{cluster.nodes[0].name}/@register_time") == registered, "the link was never closed"
        assert (data / "identity.pem").stat().st_mode & 0o777 == 0o600
        # One that was off for longer than its certificate is refused, and comes back with a new token.
        node = cluster.nodes[0]
        node.kill()
        wait_for(lambda: identities(cluster)[node.name]["state"] == "ended", what="the end of the certificate", timeout=60)
        node.start()
        says(node, "its certificate has ended")
        assert cluster.online() == []
        (cluster.directory / "node-0.join-token").unlink()
        cluster.write_join_tokens()
        cluster.wait_nodes(1)


def test_s7_the_old_way_needs_options_that_name_the_risk(tmp_path):
    """S7: warned of in both logs and in alerts, and it does not get the name of a node with an identity."""
    with make_cluster(nodes=1, auth=True, server_arguments=["--insecure-plaintext-nodes"]) as cluster:
        assert "--insecure-plaintext-nodes" in cluster.server.tail(1000)
        assert "jobs and vaults of all users" in alerts(cluster)["insecure_plaintext_nodes"]
        assert "insecure_node_link" not in alerts(cluster)
        token = cluster.directory / "server" / "node.token"
        with running(cluster, tmp_path, "old-way", "--insecure-plaintext", "--token-file", token) as node:
            cluster.wait_nodes(2)
            says(node, "--insecure-plaintext: this node speaks with the server in clear")
            assert "old-way" in alerts(cluster)["insecure_node_link"]
            own = cluster.get("//sys/cluster_nodes/old-way/@alerts")
            assert [a["attributes"]["alert_type"] for a in own if "insecure" in a["message"]] == ["insecure_node_link"]
        wait_for(lambda: "insecure_node_link" not in alerts(cluster), what="the alert to go")
        victim = cluster.nodes[0].name
        cluster.nodes[0].terminate()
        # The name is locked on this host while the node lives.
        with running(cluster, tmp_path, victim, "--insecure-plaintext", "--token-file", token) as node:
            says(node, "has or had an identity of its own")
        cluster.restart()


def ask_up(data, port, question):
    """The answer of the server of `millpond up`, if it answers."""
    token = data / "server" / "root.token"
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v4/{question}")
    with contextlib.suppress(OSError):
        if token.exists():
            request.add_header("Authorization", f"OAuth {token.read_text().strip()}")
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.loads(reply.read())


def nodes_of_up(data, port):
    """Number of online nodes."""
    answer = ask_up(data, port, "get?path=//sys/scheduler/orchid/scheduler/cluster/exec_node_count")
    return answer and answer["value"]


def unused_tokens_of_up(data, port):
    """Join tokens that could replace a node."""
    answer = ask_up(data, port, "list_node_identities") or {}
    known = answer.get("value", answer)
    return [token for token in known.get("tokens", [{"used": False}]) if not token["used"]]


def run_up(data, port, log, *arguments):
    """`millpond up` until its two nodes are online; what it has said."""
    with open(log, "wb") as out:
        up = subprocess.Popen([str(BINARY), "up", "--listen", f"127.0.0.1:{port}", "--data", str(data), "--nodes", "2",
                               "--job-environment", "simple", "--isolation", "none", *arguments],
                              stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        wait_for(lambda: up.poll() is not None or nodes_of_up(data, port) == 2, what="two nodes online", seen=lambda: log.read_text())
        assert up.poll() is None, log.read_text()
        wait_for(lambda: not unused_tokens_of_up(data, port), what="the end of tokens that no node needs any more")
    finally:
        up.terminate()
        up.wait(timeout=120)
    return log.read_text()


def test_s7_up_does_it_by_itself(tmp_path):
    """S7: without the user noticing, also after parts of the data are gone."""
    data, port = tmp_path / "d", free_port()

    def run(log):
        said = run_up(data, port, log, "--auth", "--new-cluster")
        assert "error" not in said.lower(), said

    run(tmp_path / "first.log")
    assert not (data / "server" / "node.token").exists()
    assert (data / "server" / "node-authority.pem").stat().st_mode & 0o777 == 0o600
    kept = (data / "node-2" / "identity.pem").read_text()
    # The data of a node are lost.
    shutil.rmtree(data / "node-1")
    run(tmp_path / "second.log")
    assert kept.split("-----BEGIN CERTIFICATE")[0].split("valid_until")[1].split("\n", 1)[1] in (data / "node-2" / "identity.pem").read_text()
    # The server's are: it is another cluster, with another authority.
    (data / "server" / "store.redb").unlink()
    run(tmp_path / "third.log")


def test_s7_up_goes_on_with_nodes_that_must_start_again(tmp_path):
    """S7: nodes that had started without authentication ended when it was switched on, and `up` with them."""
    data, port = tmp_path / "d", free_port()
    run_up(data, port, tmp_path / "open.log", "--no-auth")
    identity = data / "node-1" / "identity.pem"
    assert "\nauthentication: false\n" in identity.read_text()
    said = run_up(data, port, tmp_path / "guarded.log", "--auth")
    assert "has to be started again" in said and "error" not in said.lower(), said
    assert "\nauthentication: true\n" in identity.read_text()
    # Without join tokens nodes that have joined are started nevertheless.
    token = data / "node-1.join-token"
    token.unlink()
    token.mkdir()
    said = run_up(data, port, tmp_path / "tokens.log", "--auth")
    assert "nodes have no join tokens yet" in said, said


def test_s7_s17_a_lost_authority_is_not_replaced_in_silence(tmp_path):
    """S7, S17: a server without the file made another authority, and no node could connect any more."""
    data, port = tmp_path / "d", free_port()
    run_up(data, port, tmp_path / "first.log", "--auth")
    file = data / "server" / "node-authority.pem"
    file.unlink()
    done = subprocess.run([str(BINARY), "up", "--listen", f"127.0.0.1:{port}", "--data", str(data), "--auth"], capture_output=True,
                          text=True, timeout=120, stdin=subprocess.DEVNULL)
    said = done.stdout + done.stderr
    assert done.returncode == 1 and "is missing" in said and "--new-node-authority" in said, said
    assert not file.exists()
    run_up(data, port, tmp_path / "new.log", "--auth", "--new-node-authority")
    run_up(data, port, tmp_path / "after.log", "--auth")


def test_s7_no_node_goes_on_unisolated_when_authentication_is_switched_on(tmp_path):
    """S7: nodes of a cluster without authentication got jobs of its users before they knew that they must keep them apart."""
    with make_cluster(nodes=1) as cluster:
        cluster.create_pool("p")
        operation = cluster.start_vanilla("sleep 1", pool="p", job_count=1000)
        node = cluster.nodes[0]
        cluster.server.terminate()
        cluster.server.arguments.append("--auth")
        cluster.auth = True
        cluster.server.start()
        cluster.wait_server()
        wait_for(lambda: not node.running(), what="the node to end", seen=node.tail)
        assert node.popen.returncode == 75 and "must be started again" in node.tail(), node.tail()
        assert "the server refuses this node" not in node.tail(1000), "it has heard of it before it said what it has"
        node.start()
        cluster.wait_nodes(1)
        # A node that asks nobody: its file says that users trust each other.
        identity = cluster.directory / "node-0" / "identity.pem"
        assert "\nauthentication: true\n" in identity.read_text()
        # With work for the node at all times.
        assert cluster.state(operation) == "running"


def test_s7_keys_that_others_could_read_are_refused(tmp_path):
    """S7: they were closed at the start and used on."""
    with make_cluster(nodes=1, auth=True) as cluster:
        node = cluster.nodes[0]
        for process, key in ((node, cluster.directory / "node-0" / "identity.pem"),
                             (cluster.server, cluster.directory / "server" / "node-authority.pem"),
                             (cluster.server, cluster.directory / "server" / "vault.key")):
            process.terminate()
            key.chmod(0o644)
            process.start()
            wait_for(lambda: not process.running(), what=f"{process.name} to refuse {key.name}", seen=process.tail)
            assert process.popen.returncode == 1 and f"{key.name} has mode 0644" in process.tail(), process.tail()
            assert key.stat().st_mode & 0o777 == 0o644, "nothing was changed"
            key.chmod(0o600)
            cluster.restart()
