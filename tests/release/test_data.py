"""Data directories of earlier releases, opened with the binary of the day.

tests/data/release-VERSION/ has what a server and nodes of that release left when they were killed. Nothing of it may be
lost, and the cluster goes on from there. A difference is an error of the binary: data of a release is never made again.
"""

import collections
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import tempfile
import time
import urllib.error
import urllib.request

import pytest
import yt.wrapper
from harness import PREFIX, Cluster, ServerError, wait_for
from release_data import DATA, alone, ask, compare, name_nodes, unpack

RELEASES = sorted(path.name for path in DATA.glob("release-*") if (path / "expected.json").exists())
# Boot id of a host that runs no test.
ANOTHER_BOOT = "00000000-0000-4000-8000-000000000000"
TREE = "//sys/scheduler/orchid/scheduler/pool_trees/physical"
# Known defect: after a restart `full_spec` of a map shows another default of `max_job_count`.
KNOWN = re.compile(r": constant attributes/json/full_spec/max_job_count: expected 100000, found 4294967295$")
# The first start moves nodes outside of //sys and //tmp from the account `sys` to `default`, and closes `sys` to users (S15).
MOVED = re.compile("|".join([
    r'^list //sys/accounts/json/value: expected 4 items, found 5: .*, found \["default", "intermediate", "research", "sys", "tmp"\]$',
    r"^attributes of //sys/accounts/json/value/count: expected 4, found 5$",
    r"^attributes of //sys/accounts(/sys)?/json/value/(access_time|modification_time|revision|content_revision|attribute_revision): ",
    r"^attributes of //sys/accounts/sys/json/value/(acl: expected 0 items, found 2|inherit_acl: expected true, found false)",
    r'^attributes of //home/[a-z/]+/json/value/account: expected "sys", found "default"$',
]))
FINISHED = ("completed", "failed", "aborted")


class Restored(Cluster):
    """A cluster over the data of a release. None of its processes has been started."""

    def __init__(self, release, parent, archives=("server", "node-0", "node-1"), boot_id=ANOTHER_BOOT):
        self.expected = json.loads((DATA / release / "expected.json").read_text())
        for archive in archives:
            unpack(DATA / release / f"{archive}.tar.xz", parent / release)
        # The record of a job names the boot of its host. The result must not depend on the host of the test.
        for record in (parent / release).glob("node-*/slots/*/job/record"):
            old = record.read_bytes()
            assert self.expected["boot_id"].encode() in old, f"{record} has no boot id"
            record.write_bytes(old.replace(self.expected["boot_id"].encode(), boot_id.encode()))
        super().__init__(nodes=2, resources=self.expected["resources"], directory=parent / release, auth=True,
                         server_config='heartbeat_period = "300ms"\narchive_age = "36500d"\n',
                         node_config='job_proxy_heartbeat_period = "200ms"\n')
        name_nodes(self, release)
        self.tokens = self.expected["tokens"]
        self.operations = self.expected["operations"]

    def kill_and_start(self):
        """kill -9 of everything, and a start of what had run."""
        running = [p for p in (self.server, *self.nodes) if p.running()]
        for process in running:
            process.kill()
        for process in running:
            process.start()
            if process is self.server:
                self.wait_server()
        self.wait_nodes()

    def differences(self, choose=lambda question: True):
        found = compare(self, self.tokens, [q for q in self.expected["questions"] if choose(q)])
        return [line for line in found if not KNOWN.search(line) and not MOVED.search(line)]

    def touch(self, *names):
        """Puts files into all sandboxes: jobs wait for them."""
        for sandbox in self.directory.glob("node-*/slots/*/sandbox"):
            for name in names:
                # The sandbox may be on its way in or out.
                with contextlib.suppress(OSError):
                    (sandbox / name).touch()

    def end_of(self, *names):
        """Lets all jobs end and waits for the end of these operations."""
        def ended():
            self.touch("go", "end")
            states = {name: self.state(self.operations[name]) for name in names}
            assert "failed" not in states.values(), {n: self.result(self.operations[n]) for n, s in states.items() if s == "failed"}
            return all(state in FINISHED for state in states.values())
        wait_for(ended, what=f"the end of {names}", period=0.1, seen=lambda: {n: self.state(self.operations[n]) for n in names})

    def rows(self, path):
        return list(self.client().read_table(path, format=yt.wrapper.JsonFormat()))

    def volume(self, pool):
        return self.pool_orchid(pool)["accumulated_resource_volume"]["cpu"]


@contextlib.contextmanager
def restored(release, **options):
    parent = pathlib.Path(tempfile.mkdtemp(prefix=PREFIX))
    # Jobs must get through to their sandboxes.
    parent.chmod(0o755)
    try:
        with alone(release):
            cluster = Restored(release, parent, **options)
            try:
                yield cluster
            except BaseException:
                print(cluster.logs())
                cluster.clean_up()
                raise
            cluster.stop()
    finally:
        shutil.rmtree(parent, ignore_errors=True)


def fail_with(found):
    """Fails with the number of differences and the first hundred of them."""
    assert not found, "\n".join([f"{len(found)} differences:", *found[:100]])


def sign_in(cluster, user, password):
    """Returns the HTTP status of an attempt to sign in."""
    request = urllib.request.Request(f"http://{cluster.address}/login", method="POST",
                                     data=json.dumps({"user": user, "password": password}).encode())
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code


def the_owed_end_is_told(cluster):
    """The server aborted the job while its node was away. Its stderr is unknown until the node has spoken.

    The proxy of the job was killed, so the stderr may be lost.
    """
    operation = cluster.operations["owed"]
    [job] = cluster.jobs(operation, limit=10)
    assert (job["state"], job["abort_reason"]) == ("aborted", "operation_aborted")

    def stderr():
        try:
            return cluster.stderr(operation, job["id"])
        except ServerError as error:
            return error.text()
    wait_for(lambda: stderr() in (b"", b"owed\n"), what="the end that a node owed", seen=stderr)


def test_there_is_data():
    assert RELEASES, f"no release in {DATA}"


@pytest.mark.parametrize("release", RELEASES)
def test_everything_is_there(release):
    """The server alone, so that nothing goes on: every answer is as it was. It is so after a second restart, too."""
    with restored(release) as cluster:
        for life in ("the first", "a second"):
            cluster.server.start()
            cluster.wait_server()
            alerts = [alert for alert in cluster.get("//sys/scheduler/@alerts") if "operations_not_restored" in json.dumps(alert)]
            assert not alerts, f"{life} life: {alerts}"
            fail_with([f"{life} life: {line}" for line in cluster.differences()])
            for pool in ("burst", "relaxed"):
                # What the store has is a little less than what there was.
                before = cluster.expected["volumes"][pool]
                assert before / 2 <= cluster.volume(pool) <= before + 600, f"{life} life: volume of {pool}"
            cluster.server.kill()


@pytest.mark.parametrize("release", RELEASES)
def test_users_tokens_and_passwords(release):
    with restored(release) as cluster:
        cluster.server.start()
        cluster.wait_server()
        for name, user in (("root", "root"), ("ann", "ann"), ("second of ann", "ann"), ("bob", "bob"), ("carl", "carl"), ("dora", "dora")):
            assert cluster.command("get_current_user", method="GET", token=cluster.tokens[name])["user"] == user, name
        for name, code in (("revoked", 111), ("removed", 111), ("banned", 903)):
            with pytest.raises(ServerError) as refused:
                cluster.command("get", path="//tmp", token=cluster.tokens[name])
            assert refused.value.error["code"] == code, name
        for user, password in cluster.expected["passwords"].items():
            assert sign_in(cluster, user, password) == 200, user
            assert sign_in(cluster, user, f"{password}?") == 401, user
        assert sign_in(cluster, "carl", "") == 401
        # A token that was good can be revoked.
        digest = hashlib.sha256(cluster.tokens["second of ann"].encode()).hexdigest()
        cluster.command("revoke_token", user="ann", token_sha256=digest)
        with pytest.raises(ServerError):
            cluster.command("get", path="//tmp", token=cluster.tokens["second of ann"])


@pytest.mark.parametrize("release", RELEASES)
def test_transactions_go_on(release):
    with restored(release) as cluster:
        cluster.server.start()
        cluster.wait_server()
        outer, nested, of_ann = (cluster.expected["transactions"][name] for name in ("outer", "nested", "of ann"))
        for transaction in (outer, nested):
            cluster.command("ping_transaction", transaction_id=transaction)
        with pytest.raises(ServerError) as refused:
            cluster.command("ping_transaction", transaction_id=outer, token=cluster.tokens["bob"])
        assert refused.value.error["code"] == 901
        with pytest.raises(ServerError) as refused:
            cluster.set("//tmp/r/locked", "by another")
        assert refused.value.error["code"] == 402
        rows = cluster.rows("//tmp/r/rows")
        cluster.command("abort_transaction", transaction_id=nested)
        cluster.command("commit_transaction", transaction_id=outer)
        assert cluster.get("//tmp/r/locked") == "not committed"
        assert not cluster.exists("//tmp/r/locked/@note") and cluster.exists("//tmp/r/copied"), "changes of the aborted transaction"
        assert cluster.exists("//tmp/r/not_committed")
        assert cluster.rows("//tmp/r/rows") == [*rows, {"n": 1000, "name": "not committed"}]
        assert cluster.rows("//tmp/r/new_table") == [{"a": "not committed"}]
        cluster.command("abort_transaction", transaction_id=of_ann, token=cluster.tokens["ann"])
        assert not cluster.get("//tmp/r/shared_lock/@locks")
        cluster.set("//tmp/r/locked", "by another")


@pytest.mark.parametrize("release", RELEASES)
def test_operations_run_to_their_ends(release):
    """On another host, where no job of the last life lives: those that ran are run again, those that had ended are not."""
    with restored(release) as cluster:
        cluster.start()
        first = cluster.nodes[0].name
        wait_for(lambda: cluster.get(f"//sys/scheduler/orchid/scheduler/nodes/{first}/tree") == "physical", what="the node in its tree")
        assert {"ssd", "rack-4"} <= set(cluster.get(f"//sys/cluster_nodes/{first}/@tags"))
        wait_for(lambda: cluster.get(f"//sys/cluster_nodes/{first}/@resource_limits")["user_slots"] == 55, what="the limits that were set by hand")
        unfinished = [name for name, operation in cluster.operations.items() if cluster.state(operation) not in FINISHED]
        finished = [operation for name, operation in cluster.operations.items() if name not in unfinished]
        before = {name: cluster.jobs(cluster.operations[name], state="completed", limit=1000) for name in unfinished}
        assert len(unfinished) >= 20, unfinished
        wait_for(lambda: not [name for name in unfinished if cluster.state(cluster.operations[name]) == "reviving_jobs"], what="the end of the revival")
        cluster.command("abort_operation", operation_id=cluster.operations["too large"])
        unfinished.remove("too large")
        cluster.command("update_operation_parameters", operation_id=cluster.operations["grows"], parameters={"tasks": {"work": {"job_count": 4}}})
        for name in ("suspended", "suspended before the first job"):
            assert cluster.operation(cluster.operations[name], "suspended")["suspended"], name
            cluster.command("resume_operation", operation_id=cluster.operations[name])
        cluster.end_of(*unfinished)
        for name in unfinished:
            operation = cluster.operations[name]
            assert cluster.state(operation) == "completed", name
            jobs = cluster.jobs(operation, state="completed", limit=1000)
            assert {job["id"] for job in before[name]} <= {job["id"] for job in jobs}, f"{name}: jobs of the last life are missing"
            cookies = collections.Counter((job["task_name"], job["job_cookie"]) for job in jobs)
            if name != "split":
                assert set(cookies.values()) <= {1}, f"{name}: units that were done twice: {cookies}"
        assert sorted(row["n"] for row in cluster.rows("//tmp/r/split")) == list(range(12_000))
        appended = [{"n": n} for _ in range(5) for n in range(20)]
        assert cluster.rows("//tmp/r/mapping") == [*({"n": n, "name": f"row {n}"} for n in range(40)), *appended[10:70]]
        assert cluster.get("//tmp/r/merged_later/@row_count") == 40 + 100
        [job] = cluster.jobs(cluster.operations["pending"], state="completed", limit=1)
        assert cluster.stderr(cluster.operations["pending"], job["id"]) == b"was pending\n"
        # New work, in the pool with a volume, for a user of the last life.
        ran = cluster.command("start_operation", operation_type="vanilla", token=cluster.tokens["ann"], spec={"pool": "burst", "tasks": {
            "work": {"command": "echo new >&2; ./script", "job_count": 2, "cpu_limit": 0.5, "memory_limit": 64 << 20, "file_paths": ["//tmp/r/script"]}}})["operation_id"]
        cluster.wait_state(ran, "completed")
        # A pool of the name of a removed one takes its volume over.
        cluster.create_pool("removed", integral_guarantees={"guarantee_type": "burst", "resource_flow": {"cpu": 1}, "burst_guarantee_resources": {"cpu": 2}})
        assert cluster.volume("removed") >= cluster.expected["volumes"]["removed"] / 2
        the_owed_end_is_told(cluster)
        finished.remove(cluster.operations["owed"])
        # The past is still there, also after one more restart.
        def of_the_past(question):
            return question["parameters"].get("operation_id") in finished
        fail_with(cluster.differences(of_the_past))
        cluster.kill_and_start()
        fail_with(cluster.differences(of_the_past))
        for name in unfinished:
            assert cluster.state(cluster.operations[name]) == "completed", name
        assert cluster.state(ran) == "completed"


@pytest.mark.parametrize("release", RELEASES)
def test_a_job_that_ended_without_its_agent_counts_once(release):
    """On the same host, which was not restarted: the node has the result of the job."""
    boot_id = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    with restored(release, boot_id=boot_id) as cluster:
        cluster.start()
        operation = cluster.operations["ends without the agent"]
        wait_for(lambda: cluster.state(operation) == "completed" or cluster.jobs(operation, state="running"), what="word of the job")
        assert cluster.state(operation) == "completed", "the job that had ended runs again"
        [job] = cluster.jobs(operation, limit=10)
        assert job["state"] == "completed"
        assert cluster.stderr(operation, job["id"]) == b"ended alone\n"
        statistics = cluster.command("get_job", operation_id=operation, job_id=job["id"])["statistics"]
        assert statistics["custom"]["alone"]["sum"] == 1
        the_owed_end_is_told(cluster)
        # The jobs whose proxies are dead are run again.
        cluster.end_of("on the second node", "burst")


@pytest.mark.parametrize("host", ["the same host", "another host"])
@pytest.mark.parametrize("release", RELEASES)
def test_nodes_of_an_unknown_cluster_clean_up(release, host):
    """Their server is a new one, which knows none of their jobs."""
    boot_id = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip() if host == "the same host" else ANOTHER_BOOT
    with restored(release, archives=("node-0", "node-1"), boot_id=boot_id) as cluster:
        def left():
            slots = [cluster.directory / f"node-{i}" / "slots" for i in range(2)]
            return [str(p) for s in slots for pattern in ("*/job/record", "*/sandbox/*", "*/files/*", "*/changes/*") for p in s.glob(pattern)]
        assert left(), "the data has no jobs"
        cluster.start()
        wait_for(lambda: not left(), what="clean slots", seen=left)
        assert not cluster.job_processes()
        cluster.create_pool("p")
        operation = cluster.run_vanilla("echo works >&2", job_count=20, spec={"max_stderr_count": 20})
        for job in cluster.jobs(operation, limit=20):
            assert cluster.stderr(operation, job["id"]) == b"works\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="not root: jobs have the user of the node")
@pytest.mark.parametrize("release", RELEASES)
def test_jobs_get_the_uids_of_their_users(release):
    """S9: release 0.1 gave jobs the users of slots. Store and nodes are taken over with a warning; modes of that release are
    corrected, and jobs of different users have different uids from then on."""
    with restored(release) as cluster:
        for number, node in enumerate(cluster.nodes):
            # As when the data was made.
            node.arguments[node.arguments.index("--uid-offset") + 1] = 1000 * number
        cluster.start()
        assert "the jobs of these unfinished operations had no user of the host" in cluster.server.tail(1000)
        for node in cluster.nodes:
            assert "were open to other users of this host" in node.tail(1000)
        assert any("belong to users of slots, of release 0.1" in node.tail(1000) for node in cluster.nodes)
        cluster.create_pool("users-of-jobs")
        uids = {}
        for user in ("ann", "bob"):
            tasks = {"t": {"command": "id -u >&2; stat -c %u:%a . >&2", "job_count": 3, "cpu_limit": 0.1, "memory_limit": 64 << 20}}
            operation = cluster.command("start_operation", operation_type="vanilla", token=cluster.tokens[user],
                                        spec={"pool": "users-of-jobs", "tasks": tasks})["operation_id"]
            cluster.wait_state(operation, "completed")
            said = {cluster.stderr(operation, job["id"]).decode() for job in cluster.jobs(operation)}
            uids[user] = cluster.get(f"//sys/users/{user}/@job_uid")
            assert said == {f"{uids[user]}\n{uids[user]}:700\n"}, user
        assert uids["ann"] != uids["bob"] and 0x78000000 <= min(uids.values()) and max(uids.values()) < 0x7FFE0000
        for directory in cluster.directory.glob("node-*/slots/*"):
            assert directory.stat().st_mode & 0o7777 == 0o700, directory
            for sandbox in directory.glob("sandbox"):
                assert sandbox.stat().st_mode & 0o7777 == 0o700, sandbox
@pytest.mark.parametrize("release", [name for name in RELEASES if name == "release-0.1"])
def test_vaults_that_lay_in_clear_are_encrypted(release):
    """Release 0.1 had secure vaults in clear in the store, and in records of jobs on nodes."""
    # `key=kept` in binary YSON, and variables in a message of protobuf: of one word, and of the whole vault.
    in_store, in_record, whole_in_record = b"\x01\x06key=\x01\x08kept", b"YT_SECURE_VAULT_key\x12\x04kept", b'{"key"="kept";}'

    def files_with(text, pattern):
        while True:
            # Nodes clear their slots while one looks: then it is looked again.
            with contextlib.suppress(FileNotFoundError):
                return [str(path) for path in cluster.directory.glob(pattern) if path.is_file() and text in path.read_bytes()]
    with restored(release) as cluster:
        assert files_with(in_store, "server/store.redb")
        assert files_with(in_record, "node-*/slots/*/job/record") and files_with(whole_in_record, "node-*/slots/*/job/record")
        # A start that is refused, here for the authority of nodes, takes nothing over.
        store = cluster.directory / "server/store.redb"
        before = store.read_bytes()
        authority = cluster.directory / "server/node-authority.pem"
        authority.write_text("damaged")
        authority.chmod(0o600)
        cluster.server.start()
        wait_for(lambda: not cluster.server.running(), what="the server to refuse its data", seen=cluster.server.tail)
        assert store.read_bytes() == before and not (cluster.directory / "server/vault.key").exists()
        authority.unlink()
        cluster.server.start()
        cluster.wait_server()
        assert files_with(in_store, "server/*") == []
        told = cluster.server.tail(1000)
        assert "they are encrypted now" in told and "the file of the store was copied once" in told, told
        for node in cluster.nodes:
            node.start()
        cluster.wait_nodes()
        # The jobs of "living" are lost, since the host seems to be another one, and get their vault when they run again.
        cluster.end_of("living")
        assert files_with(in_store, "server/*") == []
        assert files_with(in_record, "node-*/**/*") == files_with(whole_in_record, "node-*/**/*") == []
        cluster.server.terminate()
        assert files_with(in_store, "server/*") == []
        cluster.server.start()
        cluster.wait_server()
        assert "encrypted now" not in cluster.server.tail(1000).replace(told, "")
