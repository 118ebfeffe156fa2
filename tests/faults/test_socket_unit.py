"""S6: the port of a server that systemd holds, and the ports that a cluster has."""

import contextlib
import http.client
import os
import pathlib
import shutil
import socket
import subprocess
import threading

import pytest
from harness import BINARY, ROOT, cluster as make_cluster, free_port, wait_for

UNITS = ROOT / "deploy/systemd"


class Held:
    """A listening socket as systemd holds it, and the server that it is handed to."""

    def __init__(self, directory):
        self.directory = directory
        self.socket = socket.create_server(("127.0.0.1", free_port()), backlog=4096)
        self.port = self.socket.getsockname()[1]
        self.server = None

    def start(self):
        """As systemd starts a service of a socket: descriptor 3, the number of descriptors, the pid."""
        def hand_over():
            os.dup2(self.socket.fileno(), 3)
        with open(self.directory / "log", "ab") as log:
            self.server = subprocess.Popen(
                ["sh", "-c", 'export LISTEN_PID=$$; exec "$@"', "sh", str(BINARY), "server", "--data", str(self.directory / "data")],
                env={**os.environ, "LISTEN_FDS": "1"}, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                pass_fds=(3,), preexec_fn=hand_over)

    def log(self):
        return (self.directory / "log").read_text(errors="replace")

    def stop(self):
        self.server.terminate()
        assert self.server.wait(60) == 0, self.log()


class Client(threading.Thread):
    """Asks one question after the other, each on a connection of its own."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.answers, self.refused, self.over = port, 0, [], threading.Event()

    def run(self):
        while not self.over.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
            try:
                connection.request("GET", "/ping")
                status = connection.getresponse().status
                assert status == 200, status
                self.answers += 1
            except Exception as error:  # whatever it is, the test tells it
                self.refused.append(repr(error))
            finally:
                connection.close()


def test_s6_a_restart_through_a_held_socket_refuses_nobody(tmp_path):
    """S6: `millpond server` without such a socket closes its port while it restarts."""
    held = Held(tmp_path)
    clients = [Client(held.port) for _ in range(4)]
    try:
        held.start()
        for client in clients:
            client.start()
        for _ in range(4):
            before = [client.answers for client in clients]
            wait_for(lambda before=before: all(client.answers > count + 20 for client, count in zip(clients, before, strict=True)),
                     what="answers to all clients", seen=lambda: ([client.answers for client in clients], held.log()))
            held.stop()
            # Nobody is there to answer now; those who ask wait.
            held.start()
        before = [client.answers for client in clients]
        wait_for(lambda: all(client.answers > count for client, count in zip(clients, before, strict=True)), what="answers of the last life")
    finally:
        for client in clients:
            client.over.set()
        for client in clients:
            client.join(120)
        if held.server:
            held.server.kill()
            held.server.wait()
        held.socket.close()
    assert [client.refused for client in clients] == [[]] * len(clients)


def sockets_of(pid):
    found = set()
    with contextlib.suppress(OSError):
        for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                target = os.readlink(descriptor)
                if target.startswith("socket:["):
                    found.add(target[8:-1])
    return found


def ports_of(pid):
    """Ports of the network and paths of Unix sockets on which a process listens, or receives datagrams."""
    own, found = sockets_of(pid), set()
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        with contextlib.suppress(FileNotFoundError):
            for line in pathlib.Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[9] in own and (kind.startswith("udp") or fields[3] == "0A"):
                    found.add((kind, int(fields[1].rsplit(":", 1)[1], 16)))
    for line in pathlib.Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[6] in own and int(fields[3], 16) & 0x10000:
            found.add(("unix", fields[7] if len(fields) > 7 else "without a name"))
    return found


def test_s6_the_server_has_one_port_and_nobody_else_has_any():
    """S6: a second port, for metrics or to look for faults, would need the same care. The table of docs/security.md has them all."""
    with make_cluster(nodes=1) as cluster:
        cluster.create_pool("p")
        operation = cluster.start_vanilla("exec sleep 1000", pool="p")
        cluster.wait_jobs(operation)
        found = {(port, "server" if pid == cluster.server.popen.pid else command)
                 for pid, command in cluster.pids().items() for port in ports_of(pid)}
        expected = {("tcp", cluster.port), ("unix", str(cluster.directory / "node-0/proxies.sock"))}
        assert {port for port, _ in found} == expected, found
        assert {who for port, who in found if port[0] == "tcp"} == {"server"}, found
        cluster.command("abort_operation", operation_id=operation)


def test_s6_the_units_are_good(tmp_path):
    """S6: the units of deploy/systemd, as systemd reads them."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("there is no systemd-analyze on this host")
    units = []
    for unit in sorted(UNITS.iterdir()):
        # Its program and its user need not be there.
        text = unit.read_text().replace("/usr/bin/millpond ", "/bin/true ")
        text = "\n".join(line for line in text.splitlines() if not line.startswith(("User=", "Group=")))
        (tmp_path / unit.name).write_text(text + "\n")
        units.append(str(tmp_path / unit.name))
    assert len(units) == 3
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, timeout=60)
    told = [line for line in (done.stdout + done.stderr).splitlines() if str(tmp_path) in line]
    assert done.returncode == 0 and told == [], done.stdout + done.stderr


def setting(unit, name):
    """Values of a setting of a unit."""
    return [line.split("=", 1)[1] for line in (UNITS / unit).read_text().splitlines() if line.startswith(f"{name}=")]


def test_s6_the_unit_holds_the_port_of_both_families():
    """S6: with ListenStream=0.0.0.0:8000 a job could listen on [::1]:8000, which `localhost` means first. A server that fails again
    and again must not make systemd close the socket."""
    assert setting("millpond-server.socket", "ListenStream") == ["8000"]
    assert setting("millpond-server.socket", "BindIPv6Only") == ["both"]
    assert setting("millpond-server.socket", "TriggerLimitIntervalSec") == ["0"]
    with socket.socket(socket.AF_INET6) as held:
        held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        try:
            held.bind(("::", 0))
        except OSError:
            pytest.skip("there is no IPv6 on this host")
        held.listen()
        for address in ("127.0.0.1", "0.0.0.0", "::1", "::"):
            with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as squatter:
                squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                with pytest.raises(OSError):
                    squatter.bind((address, held.getsockname()[1]))
                    squatter.listen()


@pytest.mark.skipif(os.geteuid() != 0, reason="not root: the test needs a mount namespace")
def test_a_server_in_its_unit_tells_nodes_where_its_data_is(tmp_path):
    """S3: nodes of the server's user cover its data in the view of jobs. Under ProtectSystem=strict the usual places for that are closed."""
    assert setting("millpond-server.service", "ProtectSystem") == ["strict"]
    [name], [mode] = (setting("millpond-server.service", f"RuntimeDirectory{what}") for what in ("", "Mode"))
    user, port = "61234", free_port()
    script = f"""
        set -e
        mount --make-rprivate /
        mount -t tmpfs -o mode=755 none /run; mkdir -m {mode} /run/{name}; chown {user}:{user} /run/{name}
        mount -t tmpfs -o mode=755 none /mnt; mkdir -m 700 /mnt/data; chown {user}:{user} /mnt/data
        mount --bind /tmp /tmp; mount -o remount,bind,ro /tmp
        exec setpriv --reuid {user} --regid {user} --clear-groups "$@"
    """
    arguments = [str(BINARY), "server", "--listen", f"127.0.0.1:{port}", "--data", "/mnt/data", "--auth"]
    log = tmp_path / "log"
    with open(log, "wb") as out:
        server = subprocess.Popen(["unshare", "--mount", "sh", "-c", script, "sh", *arguments],
                                  stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        def is_ready():
            assert server.poll() is None, log.read_text()
            return "the server is ready" in log.read_text()
        wait_for(is_ready, what="the server", seen=log.read_text)
        assert "may show the data directory" not in log.read_text(), log.read_text()
        entries = list(pathlib.Path(f"/proc/{server.pid}/root/run/{name}/data").iterdir())
        assert [entry.read_text() for entry in entries] == ["/mnt/data"]
    finally:
        server.kill()
        server.wait()


def test_core_files_of_both_units_are_off():
    """S2: a dump would have tokens and vaults in it."""
    for unit in ("millpond-server.service", "millpond-node.service"):
        assert setting(unit, "LimitCORE") == ["0"], unit


def test_s6_the_guide_has_the_units():
    """S6: an operator finds each unit."""
    guide = (ROOT / "docs/operator-guide.md").read_text()
    for unit in UNITS.iterdir():
        assert unit.name in guide, unit
