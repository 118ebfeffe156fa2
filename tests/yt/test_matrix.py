"""Users x pools x operations x commands: who may do what, for every command that the server lists.

A row is one thing to do, done by each of the users in turn, over HTTP. `+`: it was done; `-`: error 901. Anything
else is a mistake of the row. A command without a row fails the last test.

| user | what is special |
|---|---|
| bob | nothing: a user like many. The operation `bobs` is his, and `ann` may read it |
| ann | pool `anns` is hers (`use`, `write`, nothing inherited), pool `common` she may write to. The operation `anns` is hers |
| adm | in `admins` |
| sup | in `superusers` |
| root | |
"""

import functools
import hashlib
import itertools
import json
import urllib.error
import urllib.request

import pytest
from harness import ServerError, cluster as make_cluster

USERS = ("bob", "ann", "adm", "sup", "root")
ALL, ANNS, BOBS, ADMINS, SUPERUSERS = "+++++", "-++++", "+-+++", "--+++", "---++"
POOLS = "//sys/pool_trees/physical"
MD5 = hashlib.md5(b"content").hexdigest()
DIGEST = hashlib.sha256(b"password").hexdigest()
numbers = itertools.count(1)


class World:
    """The cluster, and things of it that rows speak about."""

    def __init__(self, cluster):
        self.cluster = cluster
        for user in ("bob", "ann", "adm", "sup", "eve"):
            self.root("create", type="user", attributes={"name": user})
        self.root("create", type="group", attributes={"name": "team"})
        self.root("add_member", group="admins", member="adm")
        self.root("add_member", group="superusers", member="sup")
        self.tokens = {user: self.root("issue_token", user=user) for user in USERS}
        self.secrets = list(self.tokens.values())

        def allow(user, *permissions):
            return [{"action": "allow", "subjects": [user], "permissions": list(permissions)}]
        cluster.create_pool("open")
        cluster.create_pool("common", acl=allow("ann", "write"))
        cluster.create_pool("anns", acl=allow("ann", "use", "write"), inherit_acl=False)
        own = allow("ann", "read", "write", "remove", "administer")
        self.root("create", type="map_node", path="//home/ann", attributes={"inherit_acl": False, "acl": own})
        for name, kind in (("kept", "document"), ("file", "file"), ("table", "table"), ("empty", "table")):
            self.root("create", type=kind, path=f"//home/ann/{name}")
        spec = {"acl": allow("ann", "read")}
        self.operations = {"anns": self.start("ann", "anns"), "bobs": self.start("bob", "open", spec)}

    def root(self, command, **parameters):
        return self.cluster.command(command, **parameters)

    def start(self, user, pool, spec=None):
        tasks = {"t": {"command": "echo said >&2; sleep 1000", "job_count": 1, "cpu_limit": 0.1, "memory_limit": 64 << 20}}
        spec = {"pool": pool, "tasks": tasks, "max_failed_job_count": 100, **(spec or {})}
        return self.cluster.command("start_operation", operation_type="vanilla", spec=spec,
                                    token=self.tokens[user])["operation_id"]

    def fresh(self, whose):
        """An operation that may come to its end."""
        return self.start("ann", "anns") if whose == "anns" else self.start("bob", "open")

    def job(self, whose):
        """The job that runs at this moment, with its stderr written."""
        operation = self.operations[whose]
        return self.cluster.wait_jobs(operation)[0]

    @functools.cache
    def failed_map(self, whose):
        """A map of `ann`, or one of `bob` that `ann` may read, and a job of it that has failed with its rows."""
        operation = self.start_map(whose, "exit 1")
        self.cluster.wait_state(operation, "failed")
        return operation, self.cluster.jobs(operation, state="failed")[0]["id"]

    @functools.cache
    def running_map(self, whose):
        """A job that goes on reading."""
        return self.cluster.wait_jobs(self.start_map(whose, "sleep 1000"))[0]

    def start_map(self, whose, command):
        table = self.node("table", "//tmp")
        self.ask("root", "write_table", {"path": table, "body": b"{a=1};"})
        user, spec = {"anns": ("ann", {"pool": "anns"}), "bobs": ("bob", {"pool": "open"})}[whose]
        reader = [{"action": "allow", "subjects": ["ann"], "permissions": ["read"]}]
        mapper = {"command": command, "cpu_limit": 0.1, "memory_limit": 64 << 20}
        spec = {**spec, "input_table_paths": [table], "output_table_paths": [],
                "mapper": mapper, "max_failed_job_count": 1, "acl": reader}
        return self.cluster.command("start_operation", operation_type="map", spec=spec,
                                    token=self.tokens[user])["operation_id"]

    def node(self, kind="document", at="//home/ann"):
        """Something that may be removed."""
        path = f"{at}/{next(numbers)}"
        self.root("create", type=kind, path=path)
        return path

    def transaction(self, user):
        return self.cluster.start_transaction(token=self.tokens[user])

    def summed(self, at):
        """A file whose checksum is known."""
        path = self.node("file", at)
        self.ask("root", "write_file", {"path": path, "compute_md5": True, "body": b"content"})
        return path

    def pool(self, parent):
        name = f"pool{next(numbers)}"
        self.cluster.create_pool(name, parent_name=parent)
        return name

    def tried(self, user, command, parameters):
        """`+`, `-` or what else was the answer."""
        try:
            self.ask(user, command, dict(parameters))
            return "+"
        except ServerError as error:
            return "-" if error.error["code"] == 901 else json.dumps(error.error)

    def ask(self, user, command, parameters):
        body = parameters.pop("body", None)
        if body is None and command not in ("run_job_shell_command", "read_file", "read_table", "get_job_trace"):
            return self.cluster.command(command, token=self.tokens[user], **parameters)
        method = "POST" if body is None else "PUT"
        headers = {"X-YT-Parameters": json.dumps(parameters), "Authorization": f"OAuth {self.tokens[user]}"}
        request = urllib.request.Request(f"http://{self.cluster.address}/api/v4/{command}", data=body or b"",
                                         method=method, headers=headers)
        try:
            return urllib.request.urlopen(request, timeout=180).read()
        except urllib.error.HTTPError as error:
            raise ServerError(json.loads(error.read())) from None


@pytest.fixture(scope="module")
def world():
    # Operations that nobody was allowed to end go on to the end of the tests.
    with make_cluster(auth=True, resources="cpu=16,memory=16GiB,user_slots=100") as cluster:
        yield World(cluster)


def of_operations(command, needs="manage", fresh=False, before=None, **more):
    """Two rows: the operation of `ann` and that of `bob`, which `ann` may read."""
    for whose in ("anns", "bobs"):
        def parameters(w, user, whose=whose):
            operation = w.fresh(whose) if fresh else w.operations[whose]
            if before:
                w.root(before, operation_id=operation)
            return {"operation_id": operation, **more}
        expected = {"anns": ANNS, "bobs": ALL if needs == "read" else BOBS}[whose]
        yield command, f"operation of {whose}", parameters, ALL if needs is None else expected


def of_jobs(name, needs="manage", **more):
    for whose in ("anns", "bobs"):
        def parameters(w, user, whose=whose):
            return {"operation_id": w.operations[whose], "job_id": w.job(whose), **more}
        expected = {"anns": ANNS, "bobs": ALL if needs == "read" else BOBS}[whose]
        yield name, f"job of {whose}", parameters, ALL if needs is None else expected


def of_failed_jobs(command, anns=ANNS):
    for whose, expected in (("anns", anns), ("bobs", ALL)):
        def parameters(w, user, whose=whose):
            operation, job = w.failed_map(whose)
            return {"operation_id": operation, "job_id": job}
        yield command, f"failed job of {whose}", parameters, expected


def row(command, about, expected, **parameters):
    return command, about, lambda w, user: parameters, expected


ROWS = [
    # --- the tree
    row("get", "what everybody may read", ALL, path="//sys/@cluster_name"),
    row("get", "what is ann's", "-+-++", path="//home/ann/kept"),
    row("get", "a pool", ALL, path=f"{POOLS}/open/@"),
    row("get", "a pool that inherits nothing", SUPERUSERS, path=f"{POOLS}/anns/@"),
    row("get", "tokens", SUPERUSERS, path="//sys/tokens"),
    row("list", "what everybody may read", ALL, path="//sys"),
    row("list", "what is ann's", "-+-++", path="//home/ann"),
    row("exists", "what is ann's", "-+-++", path="//home/ann/kept"),
    row("set", "something in tmp", ALL, path="//tmp/x", value=1),
    row("set", "an attribute of what is ann's", "-+-++", path="//home/ann/kept/@x", value=1),
    row("set", "the weight of common", ANNS, path=f"{POOLS}/common/@weight", value=1.5),
    row("set", "the weight of anns", "-+-++", path=f"{POOLS}/anns/@weight", value=1.5),
    row("set", "the weight of open", ADMINS, path=f"{POOLS}/open/@weight", value=1.5),
    row("set", "a guarantee of common", ADMINS, path=f"{POOLS}/common/@integral_guarantees/guarantee_type", value="none"),
    row("set", "the configuration of the tree", ADMINS, path=f"{POOLS}/@config/max_operation_count", value=1000),
    row("set", "the options of the scheduler", ADMINS, path="//sys/scheduler/config/watchers_update_period", value=3000),
    row("set", "whether somebody is banned", ADMINS, path="//sys/users/eve/@banned", value=False),
    row("set", "whether a superuser is banned", SUPERUSERS, path="//sys/users/sup/@banned", value=False),
    row("multiset_attributes", "of something in tmp", ALL, path="//tmp", body=b'{"y": 1}'),
    row("multiset_attributes", "options of common", ANNS, path=f"{POOLS}/common", body=b'{"weight": 2.5}'),
    row("multiset_attributes", "options of common that are not hers", ADMINS, path=f"{POOLS}/common",
        body=b'{"weight": 2.5, "enable_lightweight_operations": false}'),
    ("create", "a node in tmp", lambda w, u: {"type": "map_node", "path": f"//tmp/{next(numbers)}"}, ALL),
    ("create", "a node of ann's", lambda w, u: {"type": "map_node", "path": f"//home/ann/{next(numbers)}"}, "-+-++"),
    *[("create", f"a pool in {parent}", lambda w, u, parent=parent: {
        "type": "scheduler_pool", "attributes": {"name": f"pool{next(numbers)}", "pool_tree": "physical", "parent_name": parent}},
       expected) for parent, expected in (("<Root>", ADMINS), ("open", ADMINS), ("common", ANNS), ("anns", "-+-++"))],
    ("create", "a pool with a path", lambda w, u: {
        "type": "scheduler_pool", "path": "//tmp/p", "attributes": {"name": f"pool{next(numbers)}", "pool_tree": "physical"}}, ADMINS),
    ("create", "a user", lambda w, u: {"type": "user", "attributes": {"name": f"user{next(numbers)}"}}, ADMINS),
    ("create", "a group", lambda w, u: {"type": "group", "attributes": {"name": f"group{next(numbers)}"}}, ADMINS),
    ("remove", "a node in tmp", lambda w, u: {"path": w.node(at="//tmp")}, ALL),
    ("remove", "a node of ann's", lambda w, u: {"path": w.node()}, "-+-++"),
    ("remove", "a pool in common", lambda w, u: {"path": f"{POOLS}/common/{w.pool('common')}"}, ANNS),
    ("remove", "a pool in anns", lambda w, u: {"path": f"{POOLS}/anns/{w.pool('anns')}"}, "-+-++"),
    ("copy", "from ann to tmp", lambda w, u: {"source_path": w.node(), "destination_path": f"//tmp/{next(numbers)}"}, "-+-++"),
    ("copy", "from tmp to ann", lambda w, u: {"source_path": w.node(at="//tmp"), "destination_path": f"//home/ann/{next(numbers)}"}, "-+-++"),
    ("move", "from ann to tmp", lambda w, u: {"source_path": w.node(), "destination_path": f"//tmp/{next(numbers)}"}, "-+-++"),
    ("move", "a pool from common to the top", lambda w, u: (lambda name: {
        "source_path": f"{POOLS}/common/{name}", "destination_path": f"{POOLS}/{name}"})(w.pool("common")), ADMINS),
    ("link", "in tmp", lambda w, u: {"target_path": "//sys", "link_path": f"//tmp/{next(numbers)}"}, ALL),
    ("link", "in what is ann's", lambda w, u: {"target_path": "//sys", "link_path": f"//home/ann/{next(numbers)}"}, "-+-++"),
    row("parse_ypath", "", ALL, path="//a"),
    # --- files
    row("start_transaction", "", ALL),
    *((command, "of ann", lambda w, u: {"transaction_id": w.transaction("ann")}, "-+-++")
      for command in ("ping_transaction", "commit_transaction", "abort_transaction")),
    ("start_transaction", "in one of ann", lambda w, u: {"transaction_id": w.transaction("ann")}, "-+-++"),
    ("get", "through one of ann", lambda w, u: {"path": "//tmp", "transaction_id": w.transaction("ann")}, "-+-++"),
    ("lock", "a node of ann", lambda w, u: {"path": w.node(), "transaction_id": w.transaction(u)}, "-+-++"),
    ("lock", "a snapshot of a node of ann", lambda w, u: {
        "path": w.node(), "mode": "snapshot", "transaction_id": w.transaction(u)}, "-+-++"),
    ("lock", "a snapshot of what all may read", lambda w, u: {
        "path": "//sys", "mode": "snapshot", "transaction_id": w.transaction(u)}, ALL),
    ("unlock", "what one has not locked", lambda w, u: {"path": "//tmp", "transaction_id": w.transaction(u)}, ALL),
    row("get_file_from_cache", "of ann's", "-+-++", md5="0" * 32, cache_path="//home/ann/cache"),
    ("put_file_to_cache", "from ann to tmp", lambda w, u: {
        "path": w.summed("//home/ann"), "md5": MD5, "cache_path": "//tmp/cache"}, "-+-++"),
    ("put_file_to_cache", "from tmp to ann", lambda w, u: {
        "path": w.summed("//tmp"), "md5": MD5, "cache_path": "//home/ann/cache"}, "-+-++"),
    row("write_file", "of ann's", "-+-++", path="//home/ann/file", body=b"content"),
    row("read_file", "of ann's", "-+-++", path="//home/ann/file"),
    # --- tables
    row("write_table", "of ann's", "-+-++", path="//home/ann/table", body=b"{a=1}"),
    row("read_table", "of ann's", "-+-++", path="//home/ann/table"),
    row("alter_table", "of ann's", "-+-++", path="//home/ann/empty", schema=[{"name": "a", "type": "int64"}]),
    ("concatenate", "from ann to tmp", lambda w, u: {
        "source_paths": ["//home/ann/table"], "destination_path": w.node("table", "//tmp")}, "-+-++"),
    ("concatenate", "from tmp to ann", lambda w, u: {
        "source_paths": [w.node("table", "//tmp")], "destination_path": w.node("table")}, "-+-++"),
    ("concatenate", "of files from ann to tmp", lambda w, u: {
        "source_paths": ["//home/ann/file"], "destination_path": w.node("file", "//tmp")}, "-+-++"),
    ("concatenate", "of files from tmp to ann", lambda w, u: {
        "source_paths": [w.node("file", "//tmp")], "destination_path": w.node("file")}, "-+-++"),
    row("get_table_columnar_statistics", "of ann's", "-+-++", paths=["//home/ann/table"]),
    # --- operations
    *[("start_operation", f"in {pool}", lambda w, u, pool=pool: {
        "operation_type": "vanilla", "spec": {"pool": pool, "tasks": {"t": {"job_count": 1, "command": "true"}}}},
       expected) for pool, expected in (("open", ALL), ("common", ALL), ("anns", "-+-++"))],
    *of_operations("abort_operation", fresh=True),
    *of_operations("suspend_operation"),
    *of_operations("resume_operation", before="suspend_operation"),
    *of_operations("complete_operation", fresh=True),
    *of_operations("update_operation_parameters", parameters={"weight": 2.0}),
    *[("update_operation_parameters", f"move to {pool}", lambda w, u, pool=pool: {
        "operation_id": w.operations["anns"], "parameters": {"pool": pool}}, expected)
      for pool, expected in (("common", ANNS), ("anns", "-+-++"))],
    *of_operations("patch_operation_spec", patches=[{"path": "/max_failed_job_count", "value": 99}]),
    *of_operations("get_operation", needs=None),
    row("list_operations", "", ALL),
    *of_operations("list_operation_events", needs=None),
    # --- jobs
    *of_operations("list_jobs", needs=None),
    *of_jobs("get_job", needs=None),
    *of_jobs("get_job_stderr", needs="read"),
    *of_failed_jobs("get_job_input"),
    *of_failed_jobs("get_job_input_paths"),
    *of_failed_jobs("get_job_fail_context"),
    *of_failed_jobs("get_job_spec"),
    *of_failed_jobs("list_job_traces", ALL),
    *of_failed_jobs("get_job_trace", ALL),
    *[("dump_job_context", f"running job of {whose}", lambda w, u, whose=whose: {
        "job_id": w.running_map(whose), "path": f"//tmp/{next(numbers)}"}, expected)
      for whose, expected in (("anns", ANNS), ("bobs", BOBS))],
    ("dump_job_context", "into what is ann's", lambda w, u: {
        "job_id": w.running_map("anns"), "path": f"//home/ann/{next(numbers)}"}, "-+-++"),
    *of_jobs("poll_job_shell", parameters={"operation": "spawn", "term": "xterm", "command": "true", "height": 1, "width": 1}),
    *of_jobs("run_job_shell_command", command="true"),
    *[(command, f"job of {whose}", lambda w, u, whose=whose: (lambda operation: {
        "job_id": w.cluster.wait_jobs(operation)[0]})(w.fresh(whose)), expected)
      for command in ("abort_job", "abandon_job") for whose, expected in (("anns", ANNS), ("bobs", BOBS))],
    # --- users and permissions
    row("check_permission", "", ALL, user="bob", permission="read", path="//tmp"),
    row("check_permission_by_acl", "", ALL, user="bob", permission="read", acl=[]),
    *of_operations("check_operation_permission", needs=None, user="bob", permission="read"),
    ("add_member", "to a team", lambda w, u: (w.cluster.command("remove_member", group="team", member="eve")
     if "eve" in w.cluster.get("//sys/groups/team/@members") else None, {"group": "team", "member": "eve"})[1], ADMINS),
    row("add_member", "to the superusers", "---+e", group="superusers", member="eve"),
    row("remove_member", "from the superusers", "---+e", group="superusers", member="eve"),
    ("remove_member", "from a team", lambda w, u: (w.cluster.command("add_member", group="team", member="eve")
     if "eve" not in w.cluster.get("//sys/groups/team/@members") else None, {"group": "team", "member": "eve"})[1], ADMINS),
    row("issue_token", "for ann", ANNS, user="ann"),
    row("issue_token", "for root", SUPERUSERS, user="root"),
    ("revoke_token", "of ann", lambda w, u: {"user": "ann", "token_sha256": hashlib.sha256(
        w.root("issue_token", user="ann").encode()).hexdigest()}, ANNS),
    ("rotate_token", "of ann", lambda w, u: {"user": "ann", "token_sha256": hashlib.sha256(
        w.root("issue_token", user="ann").encode()).hexdigest()}, ANNS),
    row("list_user_tokens", "of ann", ANNS, user="ann"),
    row("list_user_tokens", "of root", SUPERUSERS, user="root"),
    row("set_user_password", "of ann", ANNS, user="ann", new_password_sha256=DIGEST),
    row("set_user_password", "of root", SUPERUSERS, user="root", new_password_sha256=DIGEST),
    row("get_current_user", "", ALL),
    # --- pools
    *[row("transfer_pool_resources", f"from {a} to {b}", expected, source_pool=a, destination_pool=b, pool_tree="physical",
          resource_delta={"strong_guarantee_resources": {"cpu": 0.0}})
      for a, b, expected in (("open", "common", ADMINS), ("common", "open", ADMINS), ("common", "anns", "-+-++"))],
    row("transfer_account_resources", "of nothing", ADMINS, source_account="tmp", destination_account="intermediate",
        resource_delta={}),
    # --- the server itself: nothing waits for a confirmation here, which only those hear who may give it
    row("gc_collect", "", "--eee"),
    row("extend_leases", "by a moment", ADMINS, period=1),
    row("remove_node", "that is not there", "--eee", address="nobody:1"),
    # --- identities of nodes; nothing with these names is there
    row("create_join_token", "", ADMINS),
    row("list_node_identities", "", ADMINS),
    row("revoke_join_token", "that is not there", "--eee", token_sha256=DIGEST),
    row("approve_node", "that does not wait", "--eee", name="nobody"),
    row("revoke_node", "that is not there", "--eee", name="nobody"),
    # --- the rest; what is in a batch is asked for one by one
    row("execute_batch", "of nothing", ALL, requests=[]),
    row("get_version", "", ALL),
    row("get_supported_features", "", ALL),
    row("generate_timestamp", "", ALL),
    row("discover_proxies", "", ALL),
]


@pytest.mark.parametrize("command", sorted({command for command, *_ in ROWS}))
def test_who_may(world, command):
    wrong = []
    for _, about, parameters, expected in (row for row in ROWS if row[0] == command):
        for user, wanted in zip(USERS, expected, strict=True):
            found = world.tried(user, command, parameters(world, user))
            # `e`: it may be done, but it is done already.
            if found != wanted and not (wanted == "e" and found not in "+-"):
                wrong.append(f"{user}: {command} {about}: expected {wanted}, found {found}")
    assert not wrong, "\n".join(wrong)


def test_a_batch_asks_for_each(world):
    requests = [{"command": "get", "parameters": {"path": path}} for path in ("//home/ann/kept", "//tmp/@type")]
    for user, expected in (("bob", [901, 0]), ("ann", [0, 0])):
        results = world.ask(user, "execute_batch", {"requests": requests})["results"]
        assert [result.get("error", {"code": 0})["code"] for result in results] == expected, user


def test_files_of_jobs_are_read_as_who_starts_them(world):
    world.ask("ann", "write_file", {"path": "//home/ann/file", "body": b"content"})
    spec = {"pool": "open", "tasks": {"t": {"job_count": 1, "command": "cat file >&2", "file_paths": ["//home/ann/file"]}}}

    def start(user):
        return world.ask(user, "start_operation", {"operation_type": "vanilla", "spec": spec})["operation_id"]
    world.cluster.wait_state(start("ann"), "completed")
    with pytest.raises(ServerError) as refused:
        start("bob")
    assert 901 in refused.value.codes(), "with the call, not after it"


def test_tables_of_merges_are_used_as_who_starts_them(world):
    def start(user, source, target):
        spec = {"pool": "open", "input_table_paths": [source], "output_table_path": target}
        return world.ask(user, "start_operation", {"operation_type": "merge", "spec": spec})["operation_id"]
    own, other = world.node("table"), world.node("table", "//tmp")
    world.cluster.wait_state(start("ann", own, other), "completed")
    for source, target in ((own, other), (other, own)):
        refused = start("bob", source, target)
        world.cluster.wait_state(refused, "failed")
        assert '"code": 901' in json.dumps(world.cluster.result(refused))


def test_our_own_questions(world):
    for question, expected in (("events?last=1", ADMINS), ("preemption_log", ALL), ("pool_explanation?pool=anns", ALL),
                               (f"operation_explanation?operation_id={world.operations['anns']}", ALL),
                               ("pool_history?pool=anns", ALL)):
        for user, wanted in zip(USERS, expected, strict=True):
            request = urllib.request.Request(f"http://{world.cluster.address}/api/millpond/{question}",
                                             headers={"Authorization": f"OAuth {world.tokens[user]}"})
            try:
                found = "+" if urllib.request.urlopen(request, timeout=180).status == 200 else "?"
            except urllib.error.HTTPError as error:
                found = "-" if json.loads(error.read())["code"] == 901 else "?"
            assert found == wanted, (user, question)


def test_every_command_has_a_row(world):
    with urllib.request.urlopen(f"http://{world.cluster.address}/api/v4", timeout=180) as reply:
        served = {descriptor["name"] for descriptor in json.load(reply)}
    assert served == {command for command, *_ in ROWS}, "each command that is served, and no other, needs rows above"


def test_nobody_gets_in_without_a_token(world):
    with urllib.request.urlopen(f"http://{world.cluster.address}/api/v4", timeout=180) as reply:
        descriptors = json.load(reply)
    for descriptor in descriptors:
        method = "PUT" if descriptor["input_type"] else "POST" if descriptor["is_volatile"] else "GET"
        request = urllib.request.Request(f"http://{world.cluster.address}/api/v4/{descriptor['name']}", method=method,
                                         data=None if method == "GET" else b"{}")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=180)
        assert (refused.value.code, json.loads(refused.value.read())["code"]) == (401, 111), descriptor["name"]
