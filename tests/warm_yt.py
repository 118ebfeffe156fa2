"""Runs the unmodified `yt` command without its start-up: hundreds of calls would spend half of the processor time of the
suite on importing the client.

`Warm` starts one Python process that imports the modules of the command and forks for each call. The fork gets the
arguments, the environment and the descriptors of the call, makes the client read its environment again, and runs the
script `yt` itself. `tests/yt/test_calls.py` starts a fresh process for the first call of each command, and
MILLPOND_TEST_FRESH_YT=1 for all calls of all tests.
"""

import array
import contextlib
import json
import os
import pathlib
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading


def serve(name):
    """Forks for each connection until stdin ends."""
    import yt.cli.yt_binary  # noqa: F401
    assert threading.active_count() == 1, "a fork has no other threads"
    # Nobody waits for the forks of this process.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(f"\0{name}")
        listener.listen(64)
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([listener, 0], [], [])
            if listener not in ready:
                return
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                answer(connection)
                os._exit(0)
            connection.close()


def answer(connection):
    """Starts the call, sends its pid and then its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request, fds = b"", array.array("i")
    while not request.endswith(b"\n"):
        piece, ancillary, _, _ = connection.recvmsg(1 << 20, socket.CMSG_SPACE(3 * fds.itemsize))
        if not piece:
            return
        request += piece
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(data)
    call = json.loads(request)
    pid = os.fork()
    if pid == 0:
        connection.close()
        for target, fd in enumerate(fds):
            os.dup2(fd, target)
            os.close(fd)
        os._exit(run(call))
    for fd in fds:
        os.close(fd)
    with contextlib.suppress(OSError):
        connection.sendall(f"{pid}\n".encode())
        _, status = os.waitpid(pid, 0)
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def run(call):
    os.environ.clear()
    os.environ.update(call["environment"])
    os.chdir(call["directory"])
    sys.modules["yt.wrapper.config"]._reload(ignore_env=False)
    sys.argv = call["arguments"]
    code = 0
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    import atexit
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    return code


class Warm:
    """The process, started by the first call."""

    def __init__(self, script):
        self.script = script
        self.popen = None
        self.lock = threading.Lock()

    def start(self):
        with self.lock:
            if self.popen is None or self.popen.poll() is not None:
                self.name = f"millpond-test-yt-{os.getpid()}-{os.urandom(4).hex()}"
                # It ends with the pipe, and so with this process.
                self.popen = subprocess.Popen([sys.executable, __file__, self.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                assert self.popen.stdout.readline() == b"ready\n", "the yt client cannot be imported"

    def call(self, *arguments, environment, stdin=None, timeout=180):
        """Returns exit code, stdout and stderr, as `subprocess.run` with `text=True` does."""
        self.start()
        ends = [os.pipe() for _ in range(3)]
        (theirs_in, ours_in), (ours_out, theirs_out), (ours_err, theirs_err) = ends
        said = {}

        def write():
            with contextlib.suppress(BrokenPipeError), open(ours_in, "wb") as pipe:
                pipe.write((stdin or "").encode())

        def read(name, fd):
            with open(fd, encoding="utf-8") as pipe:
                said[name] = pipe.read()
        threads = [threading.Thread(target=write), threading.Thread(target=read, args=("out", ours_out)),
                   threading.Thread(target=read, args=("err", ours_err))]
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout)
            connection.connect(f"\0{self.name}")
            request = {"arguments": [str(self.script), *arguments], "environment": environment, "directory": os.getcwd()}
            socket.send_fds(connection, [json.dumps(request).encode() + b"\n"], [theirs_in, theirs_out, theirs_err])
            for fd in (theirs_in, theirs_out, theirs_err):
                os.close(fd)
            for thread in threads:
                thread.start()
            pid = None
            try:
                with connection.makefile("rb") as lines:
                    pid = int(lines.readline())
                    code = int(lines.readline())
            except (OSError, ValueError):
                if pid:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                raise AssertionError(f"yt {' '.join(arguments)} did not end within {timeout} s") from None
            finally:
                for thread in threads:
                    thread.join(10)
        return code, said["out"], said["err"]


if __name__ == "__main__":
    # The command does not know of the directory of this file.
    sys.path.remove(str(pathlib.Path(__file__).resolve().parent))
    serve(sys.argv[1])
