"""The port of a server that is started again."""

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request

from harness import BINARY, free_port, wait_for


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def is_server(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().split(b"\0")[1:2] == [b"server"]
    return False


class Squatter(threading.Thread):
    """Tries to take a port, as a job of any user could: jobs share the host's network."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.tries, self.taken, self.over = port, 0, [], threading.Event()

    def run(self):
        while not self.over.is_set():
            for address in ("127.0.0.1", "0.0.0.0", "::1", "::"):
                with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as squatter:
                    squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    if ":" in address:
                        squatter.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                    self.tries += 1
                    with contextlib.suppress(OSError):
                        squatter.bind((address, self.port))
                        squatter.listen()
                        self.taken.append(address)
            time.sleep(0.001)


def test_s6_nobody_can_take_the_port_while_the_server_of_up_restarts(tmp_path):
    """S6: a job that took the port was shown the token of the node, and the server could not come back."""
    port = free_port()
    log = open(tmp_path / "log", "wb")
    up = subprocess.Popen([str(BINARY), "up", "--listen", f"127.0.0.1:{port}", "--data", str(tmp_path / "d"), "--nodes", "0"],
                          stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def answers():
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/ping", timeout=180):
            return True
        return False

    def server():
        found = [pid for pid in children(up.pid) if is_server(pid)]
        return found[0] if found else None
    squatter = Squatter(port)
    try:
        # Before that a server that ends is not started again.
        wait_for(lambda: b"is ready on" in (tmp_path / "log").read_bytes(), what="the cluster")
        squatter.start()
        for _ in range(3):
            killed = server()
            os.kill(killed, signal.SIGKILL)
            # A question that is asked while nobody is there to answer it is answered by the next life of the server.
            wait_for(lambda killed=killed: server() not in (None, killed), what="the next life of the server")
            assert answers()
        assert squatter.tries > 10 and squatter.taken == [], (squatter.tries, squatter.taken)
    finally:
        squatter.over.set()
        up.terminate()
        up.wait(180)
        log.close()
