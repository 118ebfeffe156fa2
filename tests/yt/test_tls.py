"""TLS: the real client, our own command and a node, with a certificate of an authority made for the test."""

import json
import os
import ssl
import subprocess
import urllib.request

import pytest
from harness import BINARY, YT, cluster as make_cluster, wait_for, write_secret


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def certificate(directory, name, authority):
    """A key and a certificate for this machine, signed by the authority."""
    key, request, cert = (directory / f"{name}.{kind}" for kind in ("key", "csr", "pem"))
    names = directory / f"{name}.ext"
    names.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", request, "-subj", f"/CN={name}")
    openssl("x509", "-req", "-in", request, "-CA", directory / f"{authority}.pem", "-CAkey", directory / f"{authority}.key",
            "-CAcreateserial", "-days", "30", "-extfile", names, "-out", cert)
    return cert, key


def make_authority(directory, name):
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", f"/CN={name}",
            "-addext", "basicConstraints=critical,CA:TRUE", "-keyout", directory / f"{name}.key", "-out", directory / f"{name}.pem")
    return directory / f"{name}.pem"


class TlsServer:
    """A server behind TLS with one node, over a cluster that the harness has made and not started."""

    def __init__(self, cluster, directory):
        self.cluster, self.directory = cluster, directory
        self.authority, self.stranger = make_authority(directory, "authority"), make_authority(directory, "stranger")
        self.cert, self.key = certificate(directory, "server", "authority")
        self.url = f"https://localhost:{cluster.port}"
        cluster.server.arguments += ["--tls-cert", self.cert, "--tls-key", self.key]

    def start(self):
        self.cluster.server.start()
        wait_for(lambda: self.ask("/ping") is not None, what="an answer by TLS")
        self.token = (self.cluster.directory / "server" / "root.token").read_text().strip()

    def ask(self, path, authority=None, method="GET", body=None, **headers):
        """Headers and body of a reply; none if there is no server."""
        context = ssl.create_default_context(cafile=authority or self.authority)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, data=body, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=180, context=context) as reply:
                return reply.headers, reply.read()
        except urllib.error.URLError as error:
            if isinstance(error.reason, ConnectionRefusedError):
                return None
            raise

    def environment(self, authority=None):
        return {**os.environ, "YT_TOKEN": self.token, "MILLPOND_TOKEN": self.token,
                "REQUESTS_CA_BUNDLE": str(authority or self.authority)}

    def yt(self, *arguments, authority=None, stdin=""):
        return subprocess.run([YT, "--proxy", self.url, *arguments], env=self.environment(authority), input=stdin,
                              capture_output=True, text=True, timeout=120)

    def millpond(self, *arguments, authority=None):
        return subprocess.run([BINARY, "--proxy", self.url, *arguments], env=self.environment(authority),
                              capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def secret(tmp_path_factory):
    with make_cluster(auth=True, start=False) as cluster:
        server = TlsServer(cluster, tmp_path_factory.mktemp("tls"))
        server.start()
        yield server


def test_the_real_client(secret, tmp_path):
    done = secret.yt("get", "//sys/@cluster_name", "--format", "json")
    assert (done.returncode, done.stdout.strip()) == (0, '"millpond"'), done.stderr
    # Heavy commands go where `/hosts` says, by TLS as well.
    assert secret.yt("create", "file", "//tmp/by_tls").returncode == 0
    content = "x" * 100_000
    written = secret.yt("execute", "write_file", '{path="//tmp/by_tls"}', stdin=content)
    assert written.returncode == 0, written.stderr
    read = secret.yt("execute", "read_file", '{path="//tmp/by_tls"}')
    assert read.stdout == content, read.stderr


def test_our_own_command(secret):
    done = secret.millpond("get", "//sys/@cluster_name")
    assert done.returncode == 0 and "millpond" in done.stdout, done.stderr


def test_who_does_not_trust_the_server_does_not_talk_to_it(secret):
    with pytest.raises(urllib.error.URLError) as refused:
        secret.ask("/ping", authority=secret.stranger)
    assert "CERTIFICATE_VERIFY_FAILED" in str(refused.value)
    done = secret.millpond("get", "/", authority=secret.stranger)
    assert done.returncode != 0 and "certificate" in done.stderr.lower(), done.stderr


def test_cookies_do_not_travel_in_the_open(secret):
    headers, _ = secret.ask("/login", method="POST", body=json.dumps({"token": secret.token}).encode())
    attributes = headers["Set-Cookie"].split("; ")[1:]
    assert sorted(attributes) == ["HttpOnly", "Max-Age=43200", "Path=/", "SameSite=Strict", "Secure"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


def test_a_node(secret):
    """S7: nodes have a door of their own on the same port, with the server's own authority."""
    cluster = secret.cluster
    node = cluster.nodes[0]

    def online():
        query = "/api/v4/get?path=//sys/scheduler/orchid/scheduler/cluster/exec_node_count"
        return json.loads(secret.ask(query, Authorization=f"OAuth {secret.token}")[1])["value"]
    body = json.dumps({"name": node.name}).encode()
    token = json.loads(secret.ask("/api/v4/create_join_token", method="POST", body=body, Authorization=f"OAuth {secret.token}",
                                  Content_Type="application/json")[1])
    head, authority, key = token.split(".")
    file = cluster.directory / "node-0.join-token"
    write_secret(file, ".".join([head, "0" * 64, key]))
    node.start()
    wait_for(lambda: "this is another server" in node.tail(), what="the node to say what is wrong with the server")
    assert online() == 0
    file.unlink()
    write_secret(file, token)
    wait_for(lambda: online() == 1, what="the node to be online")
    node.terminate()


def test_a_renewed_certificate_needs_no_restart(secret):
    def serial():
        return ssl.get_server_certificate(("localhost", secret.cluster.port))
    before = serial()
    cert, key = certificate(secret.directory, "renewed", "authority")
    os.replace(key, secret.key)
    os.replace(cert, secret.cert)
    wait_for(lambda: serial() != before, what="the renewed certificate", period=0.5)
    assert secret.ask("/ping") is not None


def test_what_cannot_work_is_said_at_the_start(secret, tmp_path):
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    empty.chmod(0o600)
    _, other_key = certificate(secret.directory, "other", "authority")
    open_key = tmp_path / "open.key"
    open_key.write_bytes(secret.key.read_bytes())
    open_key.chmod(0o644)
    for cert, key, expected in ((empty, secret.key, "no certificate"), (secret.cert, empty, "private key"),
                                (tmp_path / "none", secret.key, "none"), (secret.cert, other_key, "does not belong"),
                                # S2: others could have read it.
                                (secret.cert, open_key, "has mode 0644")):
        done = subprocess.run([BINARY, "server", "--listen", "127.0.0.1:0", "--data", tmp_path / "data", "--tls-cert", cert,
                               "--tls-key", key], capture_output=True, text=True, timeout=120)
        assert done.returncode != 0 and expected in done.stderr, done.stderr
