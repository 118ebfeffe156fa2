"""Makes the data of a release: data directories as a real server and real nodes of a binary left them.

    .venv/bin/python tests/release/make_data.py --binary BIN --out tests/data/release-VERSION

Run it once per release, as root, with the binary of that release. The cluster is driven until every kind of record is
there, then server and nodes are killed. `expected.json` has what a client could read before. Data of a release is
never made again: see the README.md beside it.
"""

import argparse
import collections
import datetime
import functools
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import redb_file  # noqa: E402
import release_data  # noqa: E402
from release_data import ANY, question  # noqa: E402

RELEASE = "release-0.1"
RESOURCES = "cpu=16,memory=8GiB,user_slots=60"
MIB = 1 << 20
FAR = "2100-01-01T00:00:00.000000Z"
# Thirty years in milliseconds.
LONG = 946_728_000_000
# Jobs with a cookie below $1 end at once, the others when there is a file `go` in their sandbox: a path that does not
# depend on where the data directory is.
STAYS = "[ $YT_JOB_COOKIE -lt {} ] || until [ -e go ]; do sleep 0.2; done"

# Kinds of records by table: how the kind is read from the key, and all kinds that the kernel writes.
KINDS = {
    "meta": (lambda key: key.split(b"/")[0].decode(), {"default_pool_tree", "id_time"}),
    # Part 0 is the operation's own, the others are its tasks'.
    "operations": (lambda key: chr(key[16]), set("sdcao")),
    "operation_archive": (lambda key: chr(key[16]) if len(key) > 16 else "whole", {"whole", "l", "i"}),
    "preemptions": (lambda key: chr(key[0]), set("ls")),
}
NOT_REACHABLE = {
    "subjects": "no code of this release writes or reads the table: users, groups and tokens are in `cypress`",
}
# Attributes of an unfinished operation that a restart changes with good reason: they are in a question of their own.
MOVING = {"progress", "brief_progress", "alerts", "alert_events", "events", "result", "controller_agent_address"}
JOB_LISTED = ["id", "operation_id", "state", "type", "task_name", "job_cookie", "abort_reason", "address", "stderr_size", "fail_context_size"]
LEARNED = ("task_name", "title", "job_type", "start_time", "user_job_memory_digest", "job_proxy_memory_digest", "user_job_memory_reserve_factor",
           "job_proxy_memory_reserve_factor", "min_needed_resources")
# Operations whose statistics are kept: of jobs of maps, of several tasks, of gangs, of failed jobs.
WITH_STATISTICS = ("two tasks", "mapped", "memory limit", "broken gang")
LISTED = ["id", "type", "state", "authenticated_user", "start_time", "finish_time", "brief_spec", "pool", "suspended"]


def without_libraries(text):
    """A program for Linux on x86-64 without libraries that writes `text` to stderr and ends: bash of a layer."""
    code = (b"\xb8\x01\x00\x00\x00\xbf\x02\x00\x00\x00\x48\x8d\x35\x10\x00\x00\x00\xba" + len(text).to_bytes(4, "little")
            + b"\x0f\x05\xb8\x3c\x00\x00\x00\x31\xff\x0f\x05")
    # The text begins 16 bytes behind the instruction that loads its address.
    code += b"\x90" * (17 + 16 - len(code)) + text
    size = 64 + 56 + len(code)
    head = bytes.fromhex("7f454c46020101000000000000000000") + b"\x02\x00\x3e\x00\x01\x00\x00\x00"
    head += (0x400078).to_bytes(8, "little") + (64).to_bytes(8, "little") + bytes(8) + bytes(4)
    head += b"\x40\x00\x38\x00\x01\x00\x00\x00\x00\x00\x00\x00"
    segment = b"\x01\x00\x00\x00\x05\x00\x00\x00" + bytes(8) + (0x400000).to_bytes(8, "little") * 2
    segment += size.to_bytes(8, "little") * 2 + (0x1000).to_bytes(8, "little")
    return head + segment + code


class Maker:
    def __init__(self, cluster):
        self.c = cluster
        self.tokens = {}
        self.operations = {}
        self.questions = []
        self.facts = {}

    def token(self, user):
        return None if user == "root" else self.tokens[user]

    def client(self, user="root"):
        return self.c.client(self.token(user))

    def start(self, name, kind="vanilla", user="root", **spec):
        """Starts an operation and remembers it by a name."""
        options = {"transaction_id": spec.pop("transaction_id")} if "transaction_id" in spec else {}
        self.operations[name] = self.c.command(
            "start_operation", operation_type=kind, spec={"title": name, **spec}, token=self.token(user), **options)["operation_id"]
        return self.operations[name]

    def vanilla(self, name, command="true", pool="batch", user="root", spec=None, **task):
        tasks = {"work": {"command": command, "job_count": 1, "cpu_limit": 0.1, "memory_limit": 64 * MIB, **task}}
        return self.start(name, user=user, pool=pool, tasks=tasks, **(spec or {}))

    def map(self, name, command, inputs, outputs, spec=None, **mapper):
        mapper = {"command": command, "cpu_limit": 0.1, "memory_limit": 64 * MIB, "format": "json", **mapper}
        return self.start(name, "map", input_table_paths=inputs, output_table_paths=outputs, mapper=mapper, **{"pool": "batch", **(spec or {})})

    def ended(self, name, state="completed"):
        self.c.wait_state(self.operations[name], state)

    def running(self, name, count):
        return self.c.wait_jobs(self.operations[name], count)

    # --- what is in the directories

    def users(self):
        c = self.c
        for user in ("ann", "bob", "carl", "dora"):
            c.command("create", type="user", attributes={"name": user})
        for group in ("team", "inner"):
            c.command("create", type="group", attributes={"name": group})
        for member, group in (("ann", "inner"), ("inner", "team"), ("bob", "team"), ("carl", "admins"), ("dora", "superusers")):
            c.command("add_member", member=member, group=group)
        c.command("create", type="account", attributes={"name": "research", "resource_limits": {"node_count": 100}})
        c.set("//sys/users/ann/@full_name", "Ann of the tests")
        self.tokens["root"] = c.token
        for user in ("ann", "bob", "carl", "dora"):
            self.tokens[user] = c.command("issue_token", user=user)
        self.tokens["second of ann"] = c.command("issue_token", user="ann", description="a second one")
        self.tokens["revoked"] = c.command("issue_token", user="ann")
        c.command("revoke_token", user="ann", token_sha256=hashlib.sha256(self.tokens["revoked"].encode()).hexdigest())
        self.passwords = {"ann": "secret of ann", "bob": "secret of bob"}
        for user, password in self.passwords.items():
            c.command("set_user_password", user=user, new_password_sha256=hashlib.sha256(password.encode()).hexdigest())
        c.command("create", type="user", attributes={"name": "eve"})
        self.tokens["banned"] = c.command("issue_token", user="eve")
        c.set("//sys/users/eve/@banned", True)
        c.command("create", type="user", attributes={"name": "gone"})
        self.tokens["removed"] = c.command("issue_token", user="gone")
        c.remove("//sys/users/gone")

    def settings(self):
        c = self.c
        tree = "//sys/pool_trees/physical/@config"
        for key, value in {
            "nodes_filter": "!second", "fair_share_starvation_timeout": 300, "preemptive_scheduling_backoff": 100,
            "allocation_preemption_timeout": 3_600_000, "max_running_operation_count_per_pool": 45,
            "enable_detailed_starvation_logs": True, "preemption_satisfaction_threshold": 1.0,
            "integral_guarantees": {"smooth_period": 30_000},
            "pool_config_presets": {"careful": {"max_share_ratio": 0.5, "allow_normal_preemption": False}, "late": {"fair_share_starvation_timeout": 90_000}},
        }.items():
            c.set(f"{tree}/{key}", value)
        c.command("create", type="scheduler_pool_tree", attributes={
            "name": "second", "config": {"nodes_filter": "second", "main_resource": "memory", "default_parent_pool": "other"}})
        for key, value in {"node_heartbeat_timeout": 600_000, "min_spare_allocation_resources_on_node": {"cpu": 0.1, "user_slots": 1},
                           "schedule_allocation_fail_backoff_time": 150}.items():
            c.set(f"//sys/scheduler/config/{key}", value)
        c.set("//sys/controller_agents/config/user_job_memory_reserve_quantile", 0.9)
        c.set("//sys/controller_agents/config/vanilla_operation_options", {"max_task_count": 90})

    def pools(self):
        c = self.c
        pool = c.create_pool
        pool("batch", weight=2.5)
        pool("production", strong_guarantee_resources={"cpu": 2, "memory": 512 * MIB}, resource_limits={"cpu": 30}, weight=3.0,
             abc={"id": 7, "name": "seven"}, metering_tags={"tag": "value"}, note_of_a_user={"kept": [1, 2]})
        pool("nightly", parent_name="production", mode="fifo", fifo_sort_parameters=["start_time", "weight"], max_running_operation_count=1,
             max_operation_count=7)
        pool("reports", parent_name="production", strong_guarantee_resources={"cpu": 1}, forbid_immediate_operations=False)
        pool("burst", integral_guarantees={"guarantee_type": "burst", "resource_flow": {"cpu": 2}, "burst_guarantee_resources": {"cpu": 4}})
        pool("relaxed", integral_guarantees={"guarantee_type": "relaxed", "resource_flow": {"cpu": 1}, "relaxed_share_multiplier_limit": 2.0})
        pool("removed", integral_guarantees={"guarantee_type": "burst", "resource_flow": {"cpu": 1}, "burst_guarantee_resources": {"cpu": 2}})
        pool("careful", config_preset="careful")
        pool("late", config_presets=["careful", "late"])
        pool("tagged", scheduling_tag_filter="ssd")
        pool("single", max_running_operation_count=1)
        pool("narrow", resource_limits={"user_slots": 1})
        pool("victims", max_operation_count=20)
        pool("strong", strong_guarantee_resources={"cpu": 8})
        pool("people", create_ephemeral_subpools=True, ephemeral_subpool_config={"max_operation_count": 5, "max_running_operation_count": 3})
        pool("of-ann", inherit_acl=False, acl=[{"action": "allow", "subjects": ["ann"], "permissions": ["use", "write"]},
                                               {"action": "deny", "subjects": ["bob"], "permissions": ["use"]}])
        pool("renamed", weight=0.5)
        c.set("//sys/pool_trees/physical/renamed/@name", "new-name")
        pool("moved")
        c.set("//sys/pool_trees/physical/moved/@parent_name", "production")
        for name in ("giver", "taker"):
            pool(name, strong_guarantee_resources={"cpu": 1})
        c.command("transfer_pool_resources", source_pool="giver", destination_pool="taker", pool_tree="physical",
                  resource_delta={"strong_guarantee_resources": {"cpu": 0.5}})
        c.command("create", type="scheduler_pool", attributes={"name": "other", "pool_tree": "second", "max_share_ratio": 0.75})

    def nodes(self):
        c = self.c
        at = "//sys/cluster_nodes/{}/@{}"
        first, second, third = (n.name for n in c.nodes)
        c.set(at.format(second, "user_tags"), ["second"])
        c.set(at.format(first, "user_tags"), ["ssd", "rack-4"])
        c.set(at.format(first, "resource_limits_overrides"), {"user_slots": 55})
        c.set(at.format(third, "user_tags"), ["second"])
        # Tags of users count from the next registration of a node.
        for node in c.nodes:
            node.kill()
            node.start()
        for name, tree in ((first, "physical"), (second, "second"), (third, "second")):
            place = f"//sys/scheduler/orchid/scheduler/nodes/{name}/tree"
            wait_for(lambda: c.get(place) == tree, what=f"{name} to be in tree {tree}")
        # This node is known by its settings alone.
        c.set(at.format(third, "ban_message"), "Smells of smoke")
        c.set(at.format(third, "banned"), True)
        c.set(at.format(third, "disable_scheduler_jobs"), True)
        c.nodes[2].terminate()
        # A server that is started again does not wait for a node that was lost.
        c.set("//sys/scheduler/config/node_heartbeat_timeout", 1500)
        wait_for(lambda: c.get(at.format(third, "register_time")) < "1971", what="the loss of the third node")
        c.set("//sys/scheduler/config/node_heartbeat_timeout", 600_000)

    def tree(self):
        c, client = self.c, self.client()
        client.create("map_node", "//tmp/r")
        client.create("map_node", "//home/ann", attributes={"owner": "ann"}, recursive=True)
        schema = [{"name": "k", "type": "int64", "sort_order": "ascending"}, {"name": "v", "type": "string", "required": True},
                  {"name": "more", "type": "any"}]
        client.create("table", "//tmp/r/sorted", attributes={"schema": schema})
        client.write_table("//tmp/r/sorted", [{"k": k, "v": f"value {k}", "more": {"list": [k, None]}} for k in range(50)])
        client.write_table("<append=%true>//tmp/r/sorted", [{"k": k, "v": "later", "more": None} for k in range(50, 60)])
        client.write_table("<append=%true;sorted_by=[a;b]>//tmp/r/sorted_by", [{"a": a, "b": str(a), "c": a / 2} for a in range(10)])
        client.create("table", "//tmp/r/strict", attributes={
            "schema": [{"name": "n", "type": "uint64"}, {"name": "x", "type": "double"}, {"name": "b", "type": "boolean"},
                       {"name": "l", "type_v3": {"type_name": "list", "item": "int64"}}], "optimize_for": "scan"})
        client.write_table("//tmp/r/strict", [{"n": 1 << 63, "x": 0.5, "b": True, "l": [1, 2]}, {"n": None, "x": None, "b": False, "l": []}])
        for part in range(5):
            client.write_table("<append=%true>//tmp/r/appended", [{"part": part, "n": n, "text": "x" * (n % 7)} for n in range(20)])
        # More than a block of a chunk.
        client.write_table("//tmp/r/large", [{"n": n, "text": f"{n % 97:0120d}"} for n in range(12_000)])
        client.create("table", "//tmp/r/empty")
        client.write_table("//tmp/r/rows", [{"n": n, "name": f"row {n}"} for n in range(40)])
        client.write_file("//tmp/r/file", b"the first line\n" + b"\x00\xff" * 50, compute_md5=True)
        client.set("//tmp/r/file/@executable", True)
        client.write_file("<append=%true>//tmp/r/file", b"appended\n")
        client.write_file("//tmp/r/script", b"#!/bin/bash\necho from the script >&2\n", compute_md5=True)
        client.set("//tmp/r/script/@executable", True)
        client.create("file", "//tmp/r/no_content")
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for name, content in (("bin", None), ("bin/bash", without_libraries(b"from the layer\n"))):
                info = tarfile.TarInfo(name)
                info.mode, info.type, info.size = (0o755, tarfile.DIRTYPE, 0) if content is None else (0o755, tarfile.REGTYPE, len(content))
                tar.addfile(info, content and io.BytesIO(content))
        client.write_file("//tmp/r/layer.tar", buffer.getvalue())
        client.create("document", "//tmp/r/document", attributes={"value": {"a": {"b": [1, 2.5, "x", None, True]}}})
        client.link("//tmp/r/rows", "//tmp/r/link")
        client.link("//tmp/r/nowhere", "//tmp/r/dangling", force=True)
        for kind, value in (("int64_node", -5), ("uint64_node", 1 << 63), ("double_node", 2.5), ("boolean_node", True), ("string_node", "text")):
            client.create(kind, f"//tmp/r/{kind}")
            client.set(f"//tmp/r/{kind}", value)
        client.create("list_node", "//tmp/r/list_node")
        for item in ("one", {"two": 2}):
            client.set("//tmp/r/list_node/end", item)
        c.set("//tmp/r/map", {"x": {"y": {"z": 1}}, "odd/name": 2})
        c.command("set", path="//tmp/r/rows/@own", value={"anything": [1, {"deep": True}]})
        client.set("//tmp/r/rows/@text_of_a_user", "ä\x00\xff")
        client.create("table", "//tmp/r/expires", attributes={"expiration_time": FAR})
        client.create("map_node", "//tmp/r/expires_unused", attributes={"expiration_timeout": LONG})
        client.create("map_node", "//tmp/r/closed", attributes={"inherit_acl": False, "owner": "ann", "account": "research", "opaque": True, "acl": [
            {"action": "allow", "subjects": ["team"], "permissions": ["read", "write"], "inheritance_mode": "object_and_descendants"}]})
        client.create("document", "//tmp/r/closed/inside", attributes={"value": 7})
        client.create("table", "//tmp/r/columns", attributes={"acl": [
            {"action": "allow", "subjects": ["ann"], "permissions": ["read"], "columns": ["secret"]}]})
        client.write_table("//tmp/r/columns", [{"secret": 1, "open": 2}])
        client.copy("//tmp/r/appended", "//tmp/r/copied")
        client.concatenate(["//tmp/r/rows", "//tmp/r/appended"], "//tmp/r/concatenated")
        client.write_table("//tmp/r/removed", [{"a": 1}])
        client.remove("//tmp/r/removed")
        client.create("file", "//tmp/r/cached", recursive=True)
        client.write_file("//tmp/r/cached", b"kept by its checksum", compute_md5=True)
        client.create("map_node", "//tmp/r/cache")
        self.facts["md5"] = hashlib.md5(b"kept by its checksum").hexdigest()
        c.command("put_file_to_cache", path="//tmp/r/cached", md5=self.facts["md5"], cache_path="//tmp/r/cache")
        client.write_table("//home/ann/t", [{"a": "of ann"}])
        c.command("create", type="map_node", path="//tmp/last_events", mutation_id="1-2-3-4")

    def transactions(self):
        c = self.c
        def start(**options):
            return c.command("start_transaction", timeout=3_600_000, **options)["transaction_id"]
        self.transaction = start(attributes={"title": "open at the stop", "own": 1})
        nested = start(transaction_id=self.transaction)
        token = self.tokens["ann"]
        of_ann = c.command("start_transaction", timeout=3_600_000, token=token)["transaction_id"]
        client = self.client()
        client.create("document", "//tmp/r/locked", attributes={"value": "before"})
        client.create("map_node", "//tmp/r/shared_lock")
        c.command("lock", path="//tmp/r/locked", mode="exclusive", transaction_id=self.transaction)
        c.command("lock", path="//tmp/r/shared_lock", mode="shared", child_key="k", transaction_id=of_ann, token=token)
        c.command("lock", path="//tmp/r/sorted", mode="snapshot", transaction_id=nested)
        c.command("set", path="//tmp/r/locked", value="not committed", transaction_id=self.transaction)
        c.command("create", type="map_node", path="//tmp/r/not_committed", transaction_id=self.transaction)
        c.command("set", path="//tmp/r/locked/@note", value="not committed", transaction_id=nested)
        c.command("remove", path="//tmp/r/copied", transaction_id=nested)
        inside = self.client()
        with inside.Transaction(transaction_id=self.transaction, ping=False):
            inside.write_table("<append=%true>//tmp/r/rows", [{"n": 1000, "name": "not committed"}])
            inside.write_table("//tmp/r/new_table", [{"a": "not committed"}])
        # Committed and aborted ones leave nothing of theirs.
        done = start()
        c.command("set", path="//tmp/r/committed", value=1, transaction_id=done)
        c.command("commit_transaction", transaction_id=done)
        dropped = start()
        c.command("set", path="//tmp/r/aborted", value=1, transaction_id=dropped)
        c.command("abort_transaction", transaction_id=dropped)
        self.transactions_open = {"outer": self.transaction, "nested": nested, "of ann": of_ann}
        self.vanilla("in a transaction", STAYS.format(0), spec={"transaction_id": self.transaction})
        self.running("in a transaction", 1)

    def finished_operations(self):
        c = self.c
        client = self.client()
        for name in ("mapped", "failed_map", "merged", "merged_sorted", "mapping", "merged_later", "from_vanilla", "split"):
            client.create("table", f"//tmp/r/{name}")
        client.write_table("//tmp/r/erased", [{"n": n} for n in range(20)])
        job_acl = [{"action": "allow", "subjects": ["bob"], "permissions": ["read", "manage"]}]
        self.start("two tasks", user="ann", pool="of-ann", alias="*two-tasks", acl=job_acl, annotations={"ticket": "T-1", "deep": {"a": [1]}},
                   secure_vault={"key": "of the vault"}, weight=1.5, resource_limits={"user_slots": 10}, unknown_option=5, tasks={
                       "first": {"command": "echo out of $YT_JOB_COOKIE >&2; echo '{rows=17;\"a/b\"=2};' >&5; ./script && [ \"$YT_SECURE_VAULT_key\" = 'of the vault' ]",
                                 "job_count": 3, "cpu_limit": 0.2, "memory_limit": 64 * MIB, "file_paths": ["//tmp/r/script"], "environment": {"NAME": "value"}},
                       "second": {"command": "head -c 300000 /dev/zero | tr '\\0' x >&2", "job_count": 2, "cpu_limit": 0.2, "memory_limit": 64 * MIB, "port_count": 1}})
        self.vanilla("failed", "echo the reason >&2; exit 3", spec={"max_failed_job_count": 2}, user="ann", pool="people")
        self.vanilla("memory limit", "a=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#a}", spec={"max_failed_job_count": 1})
        self.vanilla("aborted", STAYS.format(1), job_count=3)
        self.vanilla("killed by a signal", "kill -9 $$", spec={"max_failed_job_count": 1})
        self.map("mapped", "grep -v attributes; echo '{rows=1};' >&5; echo mapped >&2", ["//tmp/r/rows{n}[#5:#35]", "//tmp/r/appended"], ["//tmp/r/mapped"],
                 spec={"job_count": 4, "job_io": {"control_attributes": {"enable_row_index": True}}})
        self.map("failed map", "read -r line; echo broken >&2; exit 7", ["//tmp/r/rows"], ["//tmp/r/failed_map"], spec={"max_failed_job_count": 1, "job_count": 2})
        self.start("merged", "merge", mode="ordered", pool="batch", input_table_paths=["//tmp/r/rows", "//tmp/r/appended"], output_table_path="//tmp/r/merged")
        self.start("merged by jobs", "merge", mode="sorted", pool="batch", input_table_paths=["//tmp/r/sorted", "//tmp/r/sorted"],
                   output_table_path="//tmp/r/merged_sorted")
        self.start("erased", "erase", pool="batch", table_path="//tmp/r/erased[#5:#10]")
        self.vanilla("one after the other", "true", pool="narrow", job_count=4, spec={"allocation": {"enable_multiple_jobs": True}})
        self.vanilla("broken gang", "[ $YT_JOB_INDEX -ge 3 ] || { [ $YT_JOB_INDEX != 1 ] || exit 1; sleep 1000; }", job_count=3, gang_options={})
        self.vanilla("jobs aborted and abandoned", "[ $YT_JOB_INDEX -ge 3 ] || sleep 1000", job_count=3)
        self.vanilla("with a layer", layer_paths=["//tmp/r/layer.tar"])
        self.vanilla("writes tables", "echo \"{c=$YT_JOB_COOKIE};\"", job_count=2, output_table_paths=["//tmp/r/from_vanilla"])
        self.vanilla("speculated", "[ $YT_JOB_INDEX -ge 1 ] || sleep 1000", enable_speculative_jobs=True, spec={"job_speculation_timeout": 1000})
        self.vanilla("interrupted", "trap 'exit 0' TERM; [ $YT_JOB_INDEX -ge 1 ] || { sleep 1000 & wait; }", interruption_signal="SIGTERM")
        self.vanilla("in two trees", "true", spec={"pool_trees": ["physical", "second"]}, job_count=2)
        self.vanilla("completed by hand", STAYS.format(1), job_count=2)
        self.running("aborted", 2)
        self.c.command("abort_operation", operation_id=self.operations["aborted"], abort_message="No longer wanted")
        for job, end in zip(self.running("jobs aborted and abandoned", 3), ("abort_job", "abort_job", "abandon_job"), strict=True):
            c.command(end, job_id=job)
        [job] = self.running("interrupted", 1)
        c.command("abort_job", job_id=job, interrupt_timeout=100_000)
        self.running("completed by hand", 1)
        c.command("complete_operation", operation_id=self.operations["completed by hand"])
        ends = {"failed": "failed", "memory limit": "failed", "aborted": "aborted", "killed by a signal": "failed", "failed map": "failed"}
        for name in self.operations:
            self.ended(name, ends.get(name, "completed"))

    def preempted(self):
        """Jobs that had to go, and one that was told to go and is still there."""
        c = self.c
        self.vanilla("preempted", "[ $YT_JOB_INDEX -ge 10 ] || sleep 1000; echo done >&2", pool="victims", job_count=4, cpu_limit=4)
        self.running("preempted", 4)
        self.vanilla("preemptor", "true", pool="strong", job_count=2, cpu_limit=4)
        self.ended("preemptor")
        self.c.command("abort_operation", operation_id=self.operations["preempted"])
        assert [j for j in c.jobs(self.operations["preempted"], state="aborted") if j.get("abort_reason") == "preemption"]

    def unfinished_operations(self):
        c = self.c
        learns = "a=$(head -c 5000000 /dev/zero | tr '\\0' x); echo stays $YT_JOB_COOKIE >&2; echo '{done=1};' >&5; [ $YT_JOB_INDEX != 2 ] || exit 5; "
        self.start("living", user="ann", pool="of-ann", alias="*living", max_failed_job_count=5, secure_vault={"key": "kept"},
                   annotations={"at": "start"}, job_shells=[{"name": "default", "owners": ["ann"], "command": "bash", "subcontainer": ""}],
                   job_cpu_monitor={"enable_cpu_reclaim": True, "check_period": 200}, tasks={
                       "learns": {"command": learns + STAYS.format(6), "job_count": 8, "cpu_limit": 0.2, "memory_limit": 256 * MIB, "memory_reserve_factor": 0.1},
                       "files": {"command": "grep -q first file && ./script && [ \"$YT_SECURE_VAULT_key\" = kept ] || exit 1; " + STAYS.format(1), "job_count": 2, "cpu_limit": 0.2, "memory_limit": 64 * MIB,
                                 "file_paths": ["//tmp/r/file", "//tmp/r/script"], "tmpfs_path": "fast", "tmpfs_size": MIB, "port_count": 2}})
        self.vanilla("gang", "[ $YT_JOB_INDEX != 1 ] || exit 1; until [ -e go ]; do sleep 0.2; done", job_count=3, gang_options={})
        self.vanilla("several in one place", STAYS.format(3), job_count=6, spec={"allocation": {"enable_multiple_jobs": True}}, pool="production")
        self.map("mapping", "grep -v attributes; echo '{rows=1};' >&5; " + STAYS.format(3), ["//tmp/r/rows", "//tmp/r/appended{n}[#10:#70]"], ["//tmp/r/mapping"],
                 spec={"job_count": 6, "max_failed_job_count": 5}, file_paths=["//tmp/r/script"])
        # The first job is asked to stop in the middle of its input: another one has the rest to do.
        half = ("trap 'stop=1' TERM; if [ $YT_JOB_INDEX = 0 ]; then for i in 1 2 3 4 5; do IFS= read -r line; printf '%s\\n' \"$line\"; done; "
                "until [ \"$stop\" ]; do sleep 0.1; done; else until [ -e go ]; do sleep 0.2; done; fi; cat")
        self.map("split", half, ["//tmp/r/large"], ["//tmp/r/split"], spec={"job_count": 1}, interruption_signal="SIGTERM", signal_root_process_only=True)
        [job] = self.running("split", 1)
        c.command("abort_job", job_id=job, interrupt_timeout=100_000)
        self.vanilla("copied job", "echo run $YT_JOB_INDEX >&2; until [ -e go ]; do sleep 0.2; done", enable_speculative_jobs=True, spec={"job_speculation_timeout": 1000})
        self.vanilla("suspended", STAYS.format(1), job_count=3, pool="reports")
        self.vanilla("suspended before the first job", "true", job_count=2, spec={"suspend_operation_after_materialization": True})
        self.vanilla("first of the line", STAYS.format(0), pool="single")
        self.vanilla("pending", "echo was pending >&2", pool="single", job_count=2)
        self.start("pending merge", "merge", mode="unordered", pool="single", input_table_paths=["//tmp/r/rows", "//tmp/r/appended"],
                   output_table_path="//tmp/r/merged_later")
        self.vanilla("ephemeral", STAYS.format(1), pool="made-for-it", user="bob", job_count=2)
        self.vanilla("subpool of ann", STAYS.format(0), pool="people", user="ann")
        self.vanilla("grows", STAYS.format(1), job_count=2, expected_job_count=4)
        self.vanilla("too large", "true", cpu_limit=17)
        self.vanilla("burst", STAYS.format(0), pool="burst", cpu_limit=0.5)
        self.vanilla("tagged", STAYS.format(0), pool="tagged", spec={"scheduling_tag_filter": "rack-4"})
        self.vanilla("service", STAYS.format(1), job_count=2, restart_completed_jobs=False, restart_exit_code=9)
        # One job was told to stop and does not hear: the order stands.
        self.vanilla("told to stop", "trap '' TERM; " + STAYS.format(0), interruption_signal="SIGTERM", pool="victims", job_count=4, cpu_limit=2.5)
        # The whole gang ran again in the allocations that it had.
        self.running("gang", 3)
        wait_for(lambda: c.counters(self.operations["gang"])["failed"] == 1 and len(c.jobs(self.operations["gang"], state="running")) == 3,
                 what="the second incarnation of the gang")
        for name, completed, jobs in (("living", 7, 3), ("split", 1, 1), ("several in one place", 3, 3), ("mapping", 3, 3), ("suspended", 1, 2), ("first of the line", 0, 1),
                                      ("ephemeral", 1, 1), ("subpool of ann", 0, 1), ("grows", 1, 1), ("burst", 0, 1), ("tagged", 0, 1),
                                      ("service", 1, 1), ("told to stop", 0, 4)):
            c.wait_counters(self.operations[name], completed=completed, running=jobs, timeout=60)
        self.running("copied job", 2)
        change = functools.partial(c.command, "update_operation_parameters")
        change(operation_id=self.operations["living"], parameters={
            "scheduling_options_per_pool_tree": {"physical": {"weight": 4.5, "pool": "careful", "resource_limits": {"user_slots": 20}}},
            "annotations": {"at": "run time", "by": "root"}, "acl": [{"action": "allow", "subjects": ["bob"], "permissions": ["read"]}],
            "options_per_job_shell": {"default": {"owners": ["bob"]}}})
        change(operation_id=self.operations["grows"], parameters={"tasks": {"work": {"job_count": 3}}})
        c.command("patch_operation_spec", operation_id=self.operations["living"], patches=[{"path": "/max_failed_job_count", "value": 8}])
        c.command("suspend_operation", operation_id=self.operations["suspended"], abort_running_jobs=True)
        c.wait_counters(self.operations["grows"], completed=1, running=2)
        wait_for(lambda: c.state(self.operations["suspended before the first job"]) == "running" and
                 c.operation(self.operations["suspended before the first job"], "suspended")["suspended"], what="a suspended operation")
        # Takes the guarantee of its pool from those above theirs.
        self.vanilla("takes a place", STAYS.format(0), pool="strong", cpu_limit=4)
        wait_for(lambda: [a for a in c.command("get", path="//sys/scheduler/orchid/scheduler/pool_trees/physical/preemption_log")["value"]
                          if a["operation_id"] == self.operations["told to stop"]], what="an order to a job of \"told to stop\"")
        wait_for(lambda: "no_suitable_node" in c.operation(self.operations["too large"], "alerts")["alerts"], what="an alert")

    def second_node(self):
        """A node whose agent is dead while jobs end, by themselves and by order."""
        c = self.c
        for name, command in (("ends without the agent", "until [ -e end ]; do sleep 0.1; done; echo ended alone >&2; echo '{alone=1};' >&5"),
                              ("owed", "echo owed >&2; until [ -e go ]; do sleep 0.2; done"), ("on the second node", STAYS.format(0))):
            self.vanilla(name, command, pool="other", spec={"pool_trees": ["second"]})
            self.running(name, 1)
        c.nodes[1].kill()
        c.command("abort_operation", operation_id=self.operations["owed"])
        slots = c.directory / "node-1" / "slots"
        before = {path: path.read_bytes() for path in slots.glob("*/job/result")}
        for sandbox in slots.glob("*/sandbox"):
            (sandbox / "end").touch()
        wait_for(lambda: [p for p in slots.glob("*/job/result") if before.get(p) != p.read_bytes()], what="the result of a job without its agent")

    # --- questions

    def ask_all(self):
        return [release_data.ask(self.c, self.tokens, q) for q in self.questions]

    def add(self, what, command, /, **options):
        self.questions.append(question(what, command, **options))

    def make_questions(self):
        c = self.c
        for path in ("/", "//sys", "//tmp", "//tmp/r", "//tmp/r/cache", "//home", "//home/ann", "//sys/users", "//sys/groups", "//sys/accounts", "//sys/pool_trees",
                     "//sys/pools", "//sys/pool_trees/second", "//sys/cluster_nodes", "//sys/tokens"):
            self.add(f"list {path}", "list", path=path)
        for path in ("//sys", "//tmp", "//tmp/r", "//home", "//home/ann", "//tmp/r/cache"):
            for name in c.command("list", path=path)["value"]:
                name = name["$value"] if isinstance(name, dict) else name
                if path == "//sys" and name in ("tokens", "cluster_nodes", "operations", "transactions", "locks"):
                    continue
                place = f"{path}/{name.replace('/', chr(92) + '/')}"
                self.add(f"attributes of {place}", "get", path=f"{place}&/@")
        for kind in ("users", "groups", "accounts"):
            for name in c.command("list", path=f"//sys/{kind}")["value"]:
                self.add(f"attributes of //sys/{kind}/{name}", "get", path=f"//sys/{kind}/{name}/@")
        for path in ("//tmp/r/document", "//tmp/r/map", "//tmp/r/list_node", "//tmp/r/int64_node", "//tmp/r/uint64_node", "//tmp/r/double_node", "//tmp/r/boolean_node",
                     "//tmp/r/string_node", "//tmp/r/closed/inside", "//tmp/r/locked", "//sys/scheduler/config", "//sys/controller_agents/config",
                     "//tmp/r/rows/@own", "//tmp/r/closed/@acl", "//tmp/r/closed/@effective_acl", "//sys/operations/@acl", "//tmp/r/large/@chunk_count",
                     "//tmp/r/sorted/@schema", "//tmp/r/strict/@schema"):
            self.add(f"value of {path}", "get", path=path)
        for tree in ("physical", "second"):
            self.add(f"attributes of tree {tree}", "get", path=f"//sys/pool_trees/{tree}/@")
            self.add(f"config of tree {tree}", "get", path=f"//sys/pool_trees/{tree}/@config")
        def pools(path):
            for name in c.command("list", path=path)["value"]:
                yield f"{path}/{name}"
                yield from pools(f"{path}/{name}")
        for path in [*pools("//sys/pool_trees/physical"), *pools("//sys/pool_trees/second")]:
            self.add(f"list {path}", "list", path=path)
            self.add(f"attributes of {path}", "get", path=f"{path}/@")
            self.add(f"acl of {path}", "get", path=f"{path}/@acl")
        for table in ("sorted", "sorted_by", "strict", "appended", "large", "empty", "rows", "copied", "concatenated", "mapped", "merged", "merged_sorted", "erased",
                      "from_vanilla", "failed_map", "mapping", "columns"):
            self.add(f"rows of //tmp/r/{table}", "read_table", form="bytes", path=f"//tmp/r/{table}", output_format="json")
        for user in ("ann", "bob"):
            self.add(f"rows of a closed column, for {user}", "read_table", asks=user, form="bytes", path="//tmp/r/columns", output_format="json")
        self.add("rows of //home/ann/t", "read_table", form="bytes", path="//home/ann/t", output_format="json")
        for file in ("file", "script", "layer.tar", "cached", "no_content"):
            self.add(f"content of //tmp/r/{file}", "read_file", form="bytes", path=f"//tmp/r/{file}")
        self.add("the cache of files", "get_file_from_cache", md5=self.facts["md5"], cache_path="//tmp/r/cache")
        for name, transaction in self.transactions_open.items():
            user = "ann" if name == "of ann" else "root"
            self.add(f"transaction {name}", "get", path=f"//sys/transactions/{transaction}/@")
            for path in ("//tmp/r/locked", "//tmp/r/locked/@note"):
                self.add(f"{path} in transaction {name}", "get", asks=user, path=path, transaction_id=transaction)
            self.add(f"list //tmp/r in transaction {name}", "list", asks=user, path="//tmp/r", transaction_id=transaction)
            self.add(f"rows in transaction {name}", "read_table", asks=user, form="bytes", path="//tmp/r/rows", output_format="json", transaction_id=transaction)
        self.add("list //sys/transactions", "list", path="//sys/transactions")
        for path in ("//tmp/r/locked", "//tmp/r/shared_lock", "//tmp/r/rows", "//tmp/r/sorted", "//tmp/r/mapping"):
            self.add(f"locks of {path}", "get", path=f"{path}/@locks")
        for user in ("ann", "bob"):
            self.add(f"tokens of {user}", "list_user_tokens", user=user)
        for user, permission, path in (("ann", "use", "//sys/pool_trees/physical/of-ann"), ("bob", "use", "//sys/pool_trees/physical/of-ann"),
                                       ("ann", "read", "//tmp/r/closed"), ("carl", "read", "//tmp/r/closed"), ("eve", "write", "//tmp"), ("guest", "read", "//tmp"),
                                       ("carl", "write", "//sys/pool_trees/physical"), ("dora", "administer", "//sys")):
            self.add(f"may {user} {permission} {path}", "check_permission", path=path, permission=permission, user=user)
        for node in c.nodes:
            for attribute in ("banned", "ban_message", "disable_scheduler_jobs", "user_tags", "resource_limits_overrides"):
                self.add(f"{attribute} of node {node.name}", "get", path=f"//sys/cluster_nodes/{node.name}/@{attribute}")
        self.add("list of operations", "list_operations", limit=1000, include_archive=True, include_counters=True)
        self.add("operations of ann", "list_operations", limit=1000, user="ann")
        for text in ("ticket", "T-1", "mapped", "said by nobody"):
            self.add(f"operations found by {text}", "list_operations", filter=text, limit=1000)
        self.add("operations with failed jobs", "list_operations", with_failed_jobs=True, limit=1000)
        for alias in ("*living", "*two-tasks"):
            self.add(f"operation {alias}", "get_operation", operation_alias=alias, include_runtime=True, attributes=["id", "state", "spec"])
        self.add("preemption log", "/api/millpond/preemption_log")
        for name, operation in self.operations.items():
            finished = c.state(operation) in ("completed", "failed", "aborted")
            what = f"operation \"{name}\""
            if finished:
                self.add(what, "get_operation", operation_id=operation)
            else:
                self.add(f"{what}: constant attributes", "get_operation", operation_id=operation)
                self.add(f"{what}: progress", "get_operation", operation_id=operation, attributes=["progress", "brief_progress", "alerts", "alert_events", "events"])
            self.add(f"{what}: acl", "get", path=f"//sys/operations/{operation[-2:]}/{operation}/@acl")
            self.add(f"{what}: events", "list_operation_events", operation_id=operation, event_type="incarnation_started")
            for user in ("ann", "bob", "carl"):
                self.add(f"{what}: may {user} manage it", "check_operation_permission", operation_id=operation, permission="manage", user=user)
            jobs, specs = c.jobs(operation, limit=1000), set()
            for state in ("completed", "failed", "aborted"):
                self.add(f"{what}: {state} jobs", "list_jobs", operation_id=operation, state=state, limit=1000)
            for job in jobs:
                if job["state"] not in ("completed", "failed", "aborted"):
                    continue
                ids = {"operation_id": operation, "job_id": job["id"]}
                self.add(f"{what}: job {job['id']}", "get_job", **ids)
                self.add(f"{what}: stderr of job {job['id']}", "get_job_stderr", form="bytes", **ids)
                if "map" in name:
                    self.add(f"{what}: fail context of job {job['id']}", "get_job_fail_context", form="bytes", **ids)
                    self.add(f"{what}: input of job {job['id']}", "get_job_input", form="bytes", **ids)
                    self.add(f"{what}: input paths of job {job['id']}", "get_job_input_paths", job_id=job["id"])
                if job["state"] not in specs:
                    specs.add(job["state"])
                    self.add(f"{what}: spec of job {job['id']}", "get_job_spec", **ids)
        self.add("events", "/api/millpond/events?from=1&limit=100000")

    def volumes(self):
        """Volumes of integral pools: what the store has is a little less than what there is, and more flows in."""
        path = "//sys/scheduler/orchid/scheduler/pool_trees/physical/pools/{}/{}"
        found = dict(self.facts["volumes"])
        for pool in ("burst", "relaxed"):
            volume = self.c.get(path.format(pool, "accumulated_resource_volume"))["cpu"]
            assert volume > 0, f"pool {pool} has no volume"
            found[pool] = volume
        return found


def kinds(store, nodes):
    """How many records of each kind the directories have; fails if a kind is missing."""
    tables = redb_file.RedbFile(store).tables()
    count = collections.Counter()
    missing = []
    for name, records in sorted(tables.items()):
        if name == "store":
            continue
        count[name] = len(records)
        if not records and name not in NOT_REACHABLE:
            missing.append(f"table {name} is empty")
        if records and name in NOT_REACHABLE:
            missing.append(f"table {name} is not empty, but is said to be not reachable: {NOT_REACHABLE[name]}")
        if name in KINDS:
            kind_of, wanted = KINDS[name]
            found = collections.Counter(kind_of(key) for key, _ in records)
            count.update({f"{name}: {kind}": n for kind, n in found.items()})
            missing += [f"table {name} has no record of kind {kind}" for kind in sorted(wanted - set(found))]
            missing += [f"table {name} has records of an unknown kind {kind}" for kind in sorted(set(found) - wanted)]
    types = collections.Counter(match.group(1).decode() for _, value in tables["cypress"]
                                if (match := re.search(rb"(?s)\x01\x08type=\x01.([a-z0-9_]+)", value)))
    count.update({f"cypress: {kind}": n for kind, n in types.items()})
    stderrs = collections.Counter("inline" if value[0] == 0 else "blob" for _, value in tables["stderr"])
    count.update({f"stderr: {kind}": n for kind, n in stderrs.items()})
    removed = [1 for _, value in tables["volumes"] if b"removed" in value]
    count["volumes: of removed pools"] = len(removed)
    missing += [f"no stderr of kind {kind}" for kind in ("inline", "blob") if not stderrs[kind]]
    missing += [] if removed else ["no volume of a removed pool"]
    files = {
        "server: blobs": len(list(store.parent.glob("blobs/*"))), "server: event log": len(list(store.parent.glob("event-log/*"))),
        "nodes: record": sum(len(list(n.glob("slots/*/job/record"))) for n in nodes),
        "nodes: proxy.state": sum(len(list(n.glob("slots/*/job/proxy.state"))) for n in nodes),
        "nodes: result": sum(len(list(n.glob("slots/*/job/result"))) for n in nodes),
        "nodes: stderr": sum(len(list(n.glob("slots/*/job/stderr"))) for n in nodes),
        "nodes: cache": sum(len(list(n.glob("cache/*"))) for n in nodes),
        "nodes: layers": sum(len(list(n.glob("layers/*"))) for n in nodes),
    }
    missing += [f"no {name}" for name, number in files.items() if not number]
    count.update(files)
    assert not missing, "\n".join(missing)
    return dict(sorted(count.items()))


def revived(value):
    """A running operation of which no node has spoken yet is in another state after a restart."""
    if value.get("state") == "running":
        value["state"] = {"$one_of": ["running", "reviving_jobs"]}
    return value


def narrow(item, answer, seen):
    """Leaves out of an answer what a restart changes with good reason, and what is there many times.

    Statistics are large: those of some operations and of one of their jobs per state are kept.
    """
    what, value = item["what"], answer.get("json")
    if answer["status"] != 200 or value is None:
        return answer
    if item["command"] == "list_operations":
        whole = what == "list of operations"
        value["operations"] = [operation if whole and operation["state"] in ("completed", "failed", "aborted") else
                               revived({key: operation[key] for key in LISTED if key in operation}) for operation in value["operations"]]
        value.get("state_counts", {}).pop("running", None)
    elif item["command"] == "list_jobs":
        answer["json"] = {"jobs": [{key: job[key] for key in JOB_LISTED if key in job} for job in value["jobs"]]}
    elif item["command"] == "get_job":
        kind = (value["operation_id"], value["state"])
        if not any(f'"{name}"' in what for name in WITH_STATISTICS) or seen.setdefault(kind, value["job_id"]) != value["job_id"]:
            value.pop("statistics", None)
    elif what.endswith(": constant attributes"):
        answer["json"] = revived({key: part for key, part in value.items() if key not in MOVING})
    elif what.endswith(": progress"):
        # Jobs of the last life are run again: those that had ended count as before.
        def ends(jobs):
            return {key: jobs[key] for key in ("completed", "failed", "aborted", "lost") if key in jobs}
        progress = value.get("progress")
        kept = {"alerts": value.get("alerts"), "alert_events": value.get("alert_events"), "events": {"$begins": value.get("events", [])}}
        if progress:
            tasks = [{**{key: task[key] for key in LEARNED if key in task},
                      **{key: ends(task[key]) for key in ("job_counter", "speculative_job_counter")}} for task in progress["tasks"]]
            kept["progress"] = {"jobs": ends(progress["jobs"]), "tasks": tasks, "job_statistics_v2": of_ended_jobs(progress["job_statistics_v2"])}
        answer["json"] = kept
    elif what.startswith("operation *"):
        revived(value)
    elif what.startswith("transaction "):
        value["value"]["last_ping_time"] = {ANY: value["value"]["last_ping_time"]}
    elif what == "attributes of //sys/scheduler":
        # Without nodes guarantees are more than the cluster has.
        del value["value"]["alerts"]
    elif what == "attributes of //tmp/last_events":
        answer["json"] = {"value": {"user_attribute_keys": ["number"], "number": 19}}
    elif item["command"] == "get_operation" and not any(f'"{name}"' in what for name in WITH_STATISTICS):
        for key in ("job_statistics", "job_statistics_v2"):
            value.get("progress", {}).pop(key, None)
    elif item["command"] == "/api/millpond/events?from=1&limit=100000":
        events = [{key: part for key, part in event.items() if key != "statistics"} for event in value["events"]]
        answer["json"] = {"oldest": value["oldest"], "lost": value.get("lost", []), "events": {"$begins": events}}
    return answer


def of_ended_jobs(statistics):
    """The part of `job_statistics_v2` that does not speak of running jobs."""
    if isinstance(statistics, list):
        return [part for part in statistics if part["tags"]["job_state"] != "running"]
    parts = {key: of_ended_jobs(value) for key, value in statistics.items()}
    return {key: part for key, part in parts.items() if part}


def stop(cluster):
    """kill -9 of everything. Proxies go before their jobs, so that they see no end of them."""
    cluster.server.kill()
    for node in cluster.nodes:
        node.kill()
    for group in (cluster.proxies, cluster.pids):
        def gone():
            for pid in group():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            return not group()
        wait_for(gone, what="all processes to be gone")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--binary", required=True)
    arguments.add_argument("--out", required=True, type=pathlib.Path)
    arguments = arguments.parse_args()
    os.environ["MILLPOND_BINARY"] = str(pathlib.Path(arguments.binary).resolve())
    os.environ["MILLPOND_KEEP"] = "1"
    global wait_for
    from harness import Cluster, wait_for
    parent = pathlib.Path(tempfile.mkdtemp(prefix="millpond-make-"))
    with release_data.alone(RELEASE):
        cluster = Cluster(nodes=3, resources=RESOURCES, directory=parent / RELEASE, auth=True,
                          server_config='heartbeat_period = "300ms"\n', node_config='job_proxy_heartbeat_period = "200ms"\nrunning_job_statistics_sending_backoff = "200ms"\n')
        release_data.name_nodes(cluster, RELEASE)
        try:
            maker = Maker(cluster.start())
            for step in (maker.users, maker.settings, maker.pools, maker.nodes, maker.tree, maker.finished_operations,
                         maker.preempted, maker.transactions, maker.unfinished_operations, maker.second_node):
                print("--", step.__name__, flush=True)
                step()
            wait_for(lambda: cluster.get("//sys/scheduler/orchid/scheduler/pool_trees/physical/pools/removed/accumulated_resource_volume/cpu") > 5, what="a volume")
            maker.facts["volumes"] = {"removed": cluster.get("//sys/scheduler/orchid/scheduler/pool_trees/physical/pools/removed/accumulated_resource_volume/cpu")}
            cluster.remove("//sys/pool_trees/physical/removed")
            maker.make_questions()
            print("--", len(maker.questions), "questions", flush=True)
            first = maker.ask_all()
            volumes = maker.volumes()
            second = maker.ask_all()
            # The event log is behind the store by up to a second: these events are in the store alone.
            for number in range(20):
                cluster.set("//tmp/last_events/@number", number)
            second[-1] = release_data.ask(cluster, maker.tokens, maker.questions[-1])
            stop(cluster)
            nodes = [cluster.directory / f"node-{i}" for i in range(2)]
            for mount in reversed(cluster.mounts()):
                subprocess.run(["umount", "-l", mount], check=True)
            store = cluster.directory / "server" / "store.redb"
            records = kinds(store, nodes)
            marked, seen = [], {}
            for item, a, b in zip(maker.questions, first, second, strict=True):
                a, b = narrow(item, a, seen), narrow(item, b, seen)
                item["answer"] = b if item["what"] == "events" else release_data.mark(b, a)
                marked += [item["what"] + path for path in release_data.marked(item["answer"])]
            print("-- may change:", *marked, sep="\n   ")
            expected = {
                "made": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                "version": subprocess.run([arguments.binary, "--version"], capture_output=True, text=True, check=True).stdout.strip(),
                "boot_id": pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
                "records": records,
                "tokens": maker.tokens,
                "passwords": maker.passwords,
                "operations": maker.operations,
                "transactions": maker.transactions_open,
                "volumes": volumes,
                "resources": RESOURCES,
                "questions": maker.questions,
            }
            arguments.out.mkdir(parents=True, exist_ok=True)
            for name in ("server", "node-0", "node-1"):
                release_data.pack(cluster.directory / name, arguments.out / f"{name}.tar.xz")
            # A line for each question: differences of two versions can be read.
            questions = ",\n".join(json.dumps(q, separators=(",", ":"), sort_keys=True) for q in expected.pop("questions"))
            head = json.dumps(expected, indent=1, sort_keys=True).removesuffix("\n}")
            (arguments.out / "expected.json").write_text(f'{head},\n "questions": [\n{questions}\n]}}\n')
            for file in sorted(arguments.out.iterdir()):
                print(f"{file.stat().st_size:10} {file}")
            for name, number in records.items():
                print(f"{number:6} {name}")
        except BaseException:
            print(cluster.logs(), file=sys.stderr)
            raise
        finally:
            stop(cluster)
            cluster.clean_up()
            if "MILLPOND_KEEP_MADE" not in os.environ:
                shutil.rmtree(parent, ignore_errors=True)


if __name__ == "__main__":
    main()
