"""Users of the host that jobs run as: one for each user of the cluster (S9).

Users of jobs need root; skipped with a reason otherwise.
"""

import json
import os
import pathlib

import pytest
from harness import cluster as make_cluster, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not root: jobs have the user of the node")

# One slot, so that jobs of different users have the same one, one after the other.
ONE_SLOT = "cpu=4,memory=4GiB,user_slots=1"
# Range of the default ranges of clusters.
DEFAULTS = range(0x78000000, 0x7FFE0000)


class People:
    """A cluster with authentication and two users."""

    def __init__(self, cluster, names=("ann", "bob")):
        self.cluster = cluster
        cluster.create_pool("p")
        self.tokens = {"root": cluster.token}
        for name in names:
            cluster.command("create", type="user", attributes={"name": name})
            self.tokens[name] = cluster.command("issue_token", user=name)

    def start(self, user, command, **task):
        tasks = {"t": {"command": command, "job_count": 1, "cpu_limit": 0.1, "memory_limit": 128 << 20, **task}}
        return self.cluster.command("start_operation", operation_type="vanilla", token=self.tokens[user],
                                    spec={"pool": "p", "tasks": tasks, "max_failed_job_count": 1})["operation_id"]

    def run(self, user, command, state="completed", **task):
        """What the job of a user says."""
        operation = self.start(user, command, **task)
        self.cluster.wait_state(operation, state)
        [job] = self.cluster.jobs(operation, state=state)
        return self.cluster.stderr(operation, job["id"]).decode()

    def uid(self, user):
        return int(self.run(user, "id -u >&2"))


@pytest.fixture(scope="module")
def people():
    with make_cluster(nodes=1, resources=ONE_SLOT, auth=True) as cluster:
        yield People(cluster)


@pytest.fixture(scope="module")
def crowd():
    """The same with many slots."""
    with make_cluster(nodes=1, resources="cpu=8,memory=8GiB,user_slots=8", auth=True) as cluster:
        yield People(cluster)


def test_s9_users_of_one_slot_have_different_uids(people):
    """S9: the uid belonged to the slot, so different people got the same one, one after the other."""
    command = "id -u >&2; id -G >&2; stat -c %u:%a . >&2; umask >&2; pwd >&2"
    ann, bob, again = (people.run(user, command).split() for user in ("ann", "bob", "ann"))
    assert ann == again
    assert ann[4] == bob[4], "both jobs had the same slot"
    for user, (uid, groups, sandbox, umask, _) in (("ann", ann), ("bob", bob)):
        assert int(uid) in DEFAULTS and groups == uid and sandbox == f"{uid}:700" and umask == "0077", user
        assert people.cluster.get(f"//sys/users/{user}/@job_uid") == int(uid)
    assert ann[0] != bob[0]


def test_s9_a_uid_is_never_root(people):
    """S9: neither that of the user root, nor without authentication."""
    root = people.uid("root")
    assert root in DEFAULTS and root not in (people.uid("ann"), people.uid("bob"))
    with make_cluster(nodes=1) as cluster:
        cluster.create_pool("p")
        operation = cluster.run_vanilla("id -u >&2")
        [job] = cluster.jobs(operation)
        uid = int(cluster.stderr(operation, job["id"]))
        assert uid in DEFAULTS and uid == cluster.get("//sys/users/root/@job_uid")


def test_s9_no_job_is_root_without_control_groups():
    """S9: a node of root with the job environment "simple", whose cluster has no authentication, ran jobs as root of the host.
    All that a job needs is its user's: files, a memory file system, a shell; and its processes end with it."""
    with make_cluster(nodes=1, environment="simple", node_config='isolation = "auto"\n') as cluster:
        cluster.create_pool("p")
        begun = cluster.shared / "begun"
        command = f"""
            set -e; id -u >&2; stat -c %u . volume {cluster.shared}/mine >&2
            echo x >made; echo x >volume/made; cat made volume/made >{cluster.shared}/out
            (setsid sleep 1000 >/dev/null 2>&1 5>&- &); touch {begun}"""
        mine = cluster.shared / "mine"
        mine.touch()
        volume = {"tmpfs_volumes": [{"path": "volume", "size": 1 << 20}]}
        operation = cluster.run_vanilla(command, **volume)
        [job] = cluster.jobs(operation)
        uid = cluster.get("//sys/users/root/@job_uid")
        assert uid in DEFAULTS
        # The last file is not the job's: it shows what a node's own files look like.
        assert [int(line) for line in cluster.stderr(operation, job["id"]).split()] == [uid, uid, uid, 0]
        assert (cluster.shared / "out").read_text() == "x\nx\n" and (cluster.shared / "out").stat().st_uid == uid
        wait_for(lambda: not cluster.job_processes(), what="background processes to be gone", seen=cluster.job_processes)
        # A running one: shell and abort.
        begun.unlink()
        operation = cluster.start_vanilla(f"touch {begun}; exec sleep 1000", **volume)
        [job] = cluster.wait_jobs(operation)
        wait_for(begun.exists, what="the job to begin")
        _, out, _ = cluster.millpond("job", "shell", job, "--", "id -u")
        assert out.split() == [str(uid)], out
        cluster.command("abort_operation", operation_id=operation)
        wait_for(lambda: not cluster.job_processes(), what="the aborted job to be gone", seen=cluster.job_processes)
        assert not any("jobs_run_as_root" in json.dumps(alert) for alert in cluster.get(f"//sys/cluster_nodes/{cluster.nodes[0].name}/@alerts"))


@pytest.mark.parametrize("auth, environment, words", [
    (True, "auto", "this node cannot isolate jobs, and with authentication it starts none without isolation"),
    (False, "auto", "this node runs as root and cannot isolate jobs"),
    (False, "simple", "this node runs as root and cannot isolate jobs"),
])
def test_s5_s9_a_root_node_without_the_right_to_isolate_starts_nothing(auth, environment, words):
    """S5, S9: without CAP_SYS_ADMIN a node of root ran the jobs of all users as root of the host."""
    with make_cluster(nodes=1, start=False, auth=auth, environment=environment, node_config='isolation = "auto"\n') as cluster:
        [node] = cluster.nodes
        node.arguments = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", *node.arguments]
        cluster.start()
        capabilities = pathlib.Path(f"/proc/{node.popen.pid}/status").read_text()
        effective = int(next(line.split()[1] for line in capabilities.splitlines() if line.startswith("CapEff")), 16)
        assert effective and not effective >> 21 & 1, "the node has all rights but CAP_SYS_ADMIN"
        path = f"//sys/cluster_nodes/{node.name}"
        alerts = cluster.get(f"{path}/@alerts")
        [alert] = [alert for alert in alerts if alert["attributes"].get("alert_type") == "job_environment_disabled"]
        assert words in alert["message"] and "--isolation none" in alert["message"], alert
        assert cluster.get(f"{path}/@resource_limits")["user_slots"] == 0
        lines = [line for line in node.tail(1000).splitlines() if words in line]
        assert len(lines) == 1 and "WARN" in lines[0], node.tail()
        _, out, _ = cluster.millpond("node", "list")
        assert f"{node.name}: Job environment is disabled: {words}" in out, out
        cluster.create_pool("p")
        begun = cluster.shared / "begun"
        operation = cluster.start_vanilla(f"touch {begun}", pool="p")

        def explained():
            _, out, _ = cluster.millpond("op", "explain", operation)
            return out if words in out else None
        told = wait_for(explained, what="the reason of the node in the explanation", seen=lambda: cluster.millpond("op", "explain", operation))
        assert f'Node "{node.name}" offers no slots: Job environment is disabled: {words}' in told, told
        # What the system said.
        assert alert["inner_errors"][0]["message"] in told, told
        cluster.rounds()
        assert not begun.exists() and cluster.jobs(operation) == []
        cluster.command("abort_operation", operation_id=operation)


def test_s9_a_uid_survives_everything(people):
    """S9: kept in the store, told to the nodes, and not given to another user when its user is gone."""
    cluster = people.cluster
    before = {user: people.uid(user) for user in ("ann", "bob")}
    for process in (cluster.server, *cluster.nodes):
        process.kill()
    cluster.restart()
    assert {user: people.uid(user) for user in before} == before
    cluster.command("create", type="user", attributes={"name": "eve"})
    people.tokens["eve"] = cluster.command("issue_token", user="eve")
    eve = people.uid("eve")
    cluster.remove("//sys/users/eve")
    cluster.command("create", type="user", attributes={"name": "eve"})
    people.tokens["eve"] = cluster.command("issue_token", user="eve")
    assert people.uid("eve") not in (eve, *before.values()), "another user of the same name"


def test_s9_jobs_of_one_user_share_files_and_others_do_not(crowd):
    """S9: with a uid for each slot one user's jobs could not share files, and another user's next job could."""
    shared = crowd.cluster.shared
    crowd.run("ann", f"mkdir {shared}/own; echo secret >{shared}/own/file; echo secret >{shared}/file; echo open >{shared}/open; chmod 644 {shared}/open")
    # Both at the same time, so in different slots.
    begun = shared / "begun"
    first = crowd.start("ann", f"touch {begun}; while [ ! -e {shared}/go ]; do sleep 0.05; done; cat {shared}/from-second >&2")
    wait_for(begun.exists, what="the first job")
    assert crowd.run("ann", f"cat {shared}/own/file >&2; echo more >>{shared}/file; echo hello >{shared}/from-second; echo slot $(pwd) >&2").startswith("secret\nslot")
    crowd.run("ann", f"touch {shared}/go")
    crowd.cluster.wait_state(first, "completed")
    [job] = crowd.cluster.jobs(first)
    assert crowd.cluster.stderr(first, job["id"]) == b"hello\n"
    assert (shared / "file").read_text() == "secret\nmore\n"
    script = f"""
cat {shared}/file && echo read
cat {shared}/own/file && echo read below
ls {shared}/own && echo listed
(echo x >>{shared}/file) && echo written
(echo x >{shared}/own/new) && echo made
(rm -f {shared}/file && [ ! -e {shared}/file ]) && echo removed
(mv {shared}/file {shared}/stolen) && echo moved
chmod 777 {shared}/file && echo opened
cat {shared}/open
true"""
    # What a job opens on purpose is open.
    assert crowd.run("bob", f"{{ {script}; }} 2>/dev/null >said; cat said >&2") == "open\n"
    assert (shared / "file").read_text() == "secret\nmore\n"


# One job of a user passes its working directory to another job of the user, which runs on and later tries to get at what the next
# job of the slot has there.
PASS = """
import array, os, socket, sys, time
def until(path):
    while not os.path.exists(path):
        time.sleep(0.05)
sandbox = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
os.chdir(sys.argv[2])
if sys.argv[1] == "pass":
    os.chmod(sandbox, 0o777)
    until("passage")
    end = socket.socket(socket.AF_UNIX)
    end.connect("passage")
    socket.send_fds(end, [b"x"], [sandbox])
    assert end.recv(1) == b"y"
else:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("new")
    listener.listen()
    os.rename("new", "passage")
    end, _ = listener.accept()
    _, [directory], _, _ = socket.recv_fds(end, 1, 1)
    end.send(b"y")
    until("go")
    found = []
    def attempt(name, action):
        try:
            action()
            found.append(name)
        except OSError as error:
            print(name, error)
    attempt("opened", lambda: os.fchmod(directory, 0o777))
    attempt("made", lambda: os.close(os.open("planted", os.O_CREAT | os.O_WRONLY, 0o666, dir_fd=directory)))
    attempt("read", lambda: os.close(os.open("secret", os.O_RDONLY, dir_fd=directory)))
    attempt("linked", lambda: os.symlink("/etc/passwd", "link", dir_fd=directory))
    print("could:" + ",".join(found), flush=True)
"""


@pytest.mark.parametrize("leaves", ["nothing", "tree"])
def test_s9_a_passed_descriptor_is_of_no_use(leaves):
    """S9: a job passed its sandbox to another job of its user; the sandbox went to the next user's job, and the other job opened
    it to itself and put files into it."""
    python = pathlib.Path("/usr/bin/python3")
    if not python.exists():
        pytest.skip(f"there is no {python} that jobs could see")
    with make_cluster(nodes=1, resources="cpu=4,memory=4GiB,user_slots=2", auth=True) as cluster:
        people = People(cluster)
        shared = cluster.shared
        script = shared / "pass.py"
        script.write_text(PASS)
        script.chmod(0o644)
        keeper = people.start("ann", f"{python} {script} keep {shared}")
        wait_for((shared / "passage").exists, what="the job that waits for a descriptor")
        fill = {"nothing": "true", "tree": "mkdir -p a/b; touch a/b/c"}[leaves]
        place = people.run("ann", f"{fill}; {python} {script} pass {shared} && pwd >&2")
        begun, done = shared / "begun", shared / "done"
        bob = people.start("bob", f"echo secret >secret; pwd >&2; touch {begun}; while [ ! -e {done} ]; do sleep 0.05; done; "
                                  f"stat -c %a . >&2; ls >&2")
        wait_for(begun.exists, what="the job of the other user")
        (shared / "go").touch()
        cluster.wait_state(keeper, "completed")
        done.touch()
        cluster.wait_state(bob, "completed")
        [job] = cluster.jobs(keeper)
        assert "could:" in cluster.stderr(keeper, job["id"]).decode().splitlines(), cluster.stderr(keeper, job["id"])
        [job] = cluster.jobs(bob)
        assert cluster.stderr(bob, job["id"]).decode() == f"{place}700\nsecret\n", "what bob's job had, in ann's slot"


# Makes a POSIX message queue, a shared memory segment, a semaphore and a message queue of System V and a POSIX shared memory object,
# open to everybody, and leaves them; or looks for those of another job.
IPC = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
try:
    librt = ctypes.CDLL("librt.so.1", use_errno=True)
except OSError:
    librt = libc
KEY, CREATE = 0x51CAFE, 0o1000
found = []
def note(name, result):
    if result != -1:
        found.append(name)
if sys.argv[1] == "leave":
    note("mqueue", librt.mq_open(b"/left", os.O_CREAT | os.O_RDWR, 0o666, None))
    segment = libc.shmget(KEY, 4096, CREATE | 0o666)
    note("shm", segment)
    libc.shmat.restype = ctypes.c_void_p
    ctypes.memmove(libc.shmat(segment, None, 0), b"secret", 6)
    note("sem", libc.semget(KEY, 1, CREATE | 0o666))
    note("msg", libc.msgget(KEY, CREATE | 0o666))
    with open("/dev/shm/left", "w") as file:
        file.write("secret")
    os.chmod("/dev/shm/left", 0o666)
    found.append("posix shm")
else:
    for name, flags in (("read", os.O_RDONLY), ("write", os.O_WRONLY)):
        note("mqueue " + name, librt.mq_open(b"/left", flags))
    for name, mode in (("read", 0o444), ("write", 0o222)):
        note("shm " + name, libc.shmget(KEY, 4096, mode))
        note("sem " + name, libc.semget(KEY, 1, mode))
        note("msg " + name, libc.msgget(KEY, mode))
    if os.path.exists("/dev/shm/left"):
        found.append("posix shm")
print(";".join(found), file=sys.stderr)
"""


def test_s9_ipc_is_not_shared(crowd):
    """S9: queues and segments that a job leaves, or has while it runs, are not there for another user's job, however open
    they are, and not for the user's own next job either."""
    python = pathlib.Path("/usr/bin/python3")
    if not python.exists():
        pytest.skip(f"there is no {python} that jobs could see")
    shared = crowd.cluster.shared
    script = shared / "ipc.py"
    script.write_text(IPC)
    script.chmod(0o644)
    begun, go = shared / "ipc-begun", shared / "ipc-go"
    left = "mqueue;shm;sem;msg;posix shm\n"
    living = crowd.start("ann", f"{python} {script} leave; touch {begun}; while [ ! -e {go} ]; do sleep 0.05; done")
    wait_for(begun.exists, what="the job that lives")
    assert crowd.run("ann", f"{python} {script} leave") == left
    for user in ("bob", "ann"):
        assert crowd.run(user, f"{python} {script} look") == "\n", user
    go.touch()
    crowd.cluster.wait_state(living, "completed")
    [job] = crowd.cluster.jobs(living)
    assert crowd.cluster.stderr(living, job["id"]).decode() == left


def alerts(cluster):
    return json.dumps(cluster.get(f"//sys/cluster_nodes/{cluster.nodes[0].name}/@alerts"))


def slots(cluster):
    return cluster.get(f"//sys/cluster_nodes/{cluster.nodes[0].name}/@resource_limits")["user_slots"]


FAST = 'heartbeat_period = "200ms"\n'


def test_s9_two_clusters_of_one_host_never_use_the_same_uid():
    """S9: the node of a second cluster with the uids of the first refuses to start jobs, says why, and starts them when the
    first is gone."""
    base = 1_000_000_000 + 100_000 * os.getpid() % 500_000_000
    config = f'job_uids = "{base}-{base + 99}"\n{FAST}'
    with make_cluster(nodes=1, server_config=f'job_uids = "{base + 99}-{base + 199}"\n{FAST}') as second:
        second.create_pool("p")
        second.run_vanilla("true")
        with make_cluster(nodes=1, server_config=config) as first:
            first.create_pool("p")
            wait_for(lambda: slots(first) == 0, what="the node to offer nothing")
            said = alerts(first)
            assert "used on this host by another cluster" in said and "job_uids" in said and str(second.directory / "node-0") in said, said
            assert "used on this host by another cluster" in first.nodes[0].tail(1000)
            waiting = first.start_vanilla("id -u >&2")
            first.rounds()
            assert not first.jobs(waiting)
            second.nodes[0].terminate()
            first.wait_state(waiting, "completed")
            [job] = first.jobs(waiting, state="completed")
            assert int(first.stderr(waiting, job["id"])) == base
            wait_for(lambda: "another cluster" not in alerts(first), what="the alert to go")


def test_s9_uids_of_jobs_stay_claimed_when_the_range_changes():
    """S9: with another range in the configuration the uids of jobs that ran were free for another cluster of the host."""
    base = 1_100_000_000 + 10_000 * (os.getpid() % 10_000)
    config = lambda begin: f'job_uids = "{begin}-{begin + 9}"\n{FAST}'  # noqa: E731
    with make_cluster(nodes=1, server_config=config(base)) as first:
        first.create_pool("p")
        begun, go = first.shared / "begun", first.shared / "go"
        running = first.start_vanilla(f"id -u >&2; touch {begun}; while [ ! -e {go} ]; do sleep 0.05; done")
        wait_for(begun.exists, what="the job")
        first.server.kill()
        first.configuration("server", config(base + 1000))
        first.restart()
        operation = first.run_vanilla("id -u >&2")
        [job] = first.jobs(operation)
        assert int(first.stderr(operation, job["id"])) == base + 1000
        with make_cluster(nodes=1, server_config=config(base)) as second:
            second.create_pool("p")
            wait_for(lambda: slots(second) == 0, what="the node to offer nothing")
            said = alerts(second)
            assert "used on this host by another cluster" in said and f"{base}-{base} of" in said, said
            go.touch()
            first.wait_state(running, "completed")
            [job] = first.jobs(running)
            assert int(first.stderr(running, job["id"])) == base
            # What no job has is given back when the server says next what it wants.
            first.server.kill()
            first.restart()
            wait_for(lambda: slots(second) > 0, what="the node to offer slots")
            second.run_vanilla("true")


def test_s9_uids_of_accounts_of_the_host_are_refused():
    """S9: a job must not be an account of the host."""
    accounts = [line.split(":") for line in open("/etc/passwd")]
    found = [(name, int(uid)) for name, _, uid, *_ in accounts if 1000 <= int(uid) < 65_000]
    if not found:
        pytest.skip("the host has no account with a uid from 1000 on")
    name, uid = found[0]
    with make_cluster(nodes=1, server_config=f'job_uids = "{uid}-{uid + 10}"\n{FAST}') as cluster:
        cluster.create_pool("p")
        wait_for(lambda: slots(cluster) == 0, what="the node to offer nothing")
        said = alerts(cluster)
        assert "not free on this host" in said and name in said, said
        operation = cluster.start_vanilla("true")
        cluster.rounds()
        assert not cluster.jobs(operation)
        cluster.command("abort_operation", operation_id=operation)


def test_s9_when_there_are_no_more_uids():
    """S9: a clear error, and the users that have one go on."""
    base = 1_600_000_000 + 100 * (os.getpid() % 1_000_000)
    with make_cluster(nodes=1, auth=True, server_config=f'job_uids = "{base}-{base + 1}"\n') as cluster:
        people = People(cluster, names=("ann", "bob", "carl"))
        assert [people.uid("ann"), people.uid("bob")] == [base, base + 1]
        with pytest.raises(Exception, match="all 2 uids of the range") as refused:
            people.start("carl", "true")
        assert "job_uids" in str(refused.value)
        assert people.uid("ann") == base
