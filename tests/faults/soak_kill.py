"""`make soak-kill MINUTES=10`: kill -9 of server, agents, spawners and proxies under load, with a checker of every
acknowledged change.

Writers change documents, pools, transactions and operations without a pause and keep what was acknowledged. A change without
an answer may have happened or not; one with an answer holds from then on. Readers compare all the time, and at the end
everything is compared once more:

- a document has the last acknowledged value, or a later one that was sent;
- two documents that change in one transaction never differ;
- a pool that was made is there with its weight, and one that was removed is not;
- an operation whose start was acknowledged is there and completes, each of its units is counted once and came to its end;
  one whose abort was acknowledged is aborted;
- no two processes of a unit run at a time.
"""

import collections
import contextlib
import http.client
import pathlib
import random
import sys
import threading
import time
import urllib.error

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from test_kill_matrix import JOB, Cell  # noqa: E402
from harness import Cluster, ServerError, wait_for  # noqa: E402

NODES = 3
UNITS = 3  # of an operation
# Answers that say that the server cannot tell: it is starting, or was stopped meanwhile.
PASSING = ("starting", "stopp", "unavailable", "cannot be reached", "not ready")
HOME = "//tmp/soak"


class Unknown(Exception):
    """No answer: the change may have happened or not."""


def ask(cluster, name, **parameters):
    """A command that is sent once. Gives its reply, or raises `Unknown` or the server's refusal."""
    try:
        return cluster.command(name, timeout=20, **parameters)
    except ServerError as error:
        if any(word in error.text().lower() for word in PASSING):
            raise Unknown(error.text()) from None
        raise
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        raise Unknown(str(error)) from None


class Worker(threading.Thread):
    """Does `step` again and again. The first violation ends the soak."""

    def __init__(self, soak, number):
        super().__init__(name=f"{type(self).__name__}-{number}", daemon=True)
        self.soak, self.cluster, self.number = soak, soak.cluster, number
        self.random = random.Random(f"{soak.seed} {self.name}")
        self.acknowledged = self.unknown = 0

    def run(self):
        try:
            while not self.soak.over.is_set():
                try:
                    self.step()
                except Unknown:
                    self.unknown += 1
                    time.sleep(0.05)
        except BaseException as error:
            self.soak.fail(error)

    def change(self, name, **parameters):
        reply = ask(self.cluster, name, **parameters)
        self.acknowledged += 1
        return reply

    def check(self):
        """At the end, when all is quiet."""


class Documents(Worker):
    """One document with a number that grows."""

    def __init__(self, soak, number):
        super().__init__(soak, number)
        self.path = f"{HOME}/document-{number}"
        self.sent = self.kept = 0

    def step(self):
        self.sent += 1
        self.change("set", path=self.path, value=f"{self.sent} {'x' * self.random.randrange(4000)}", recursive=True)
        self.kept = self.sent
        if self.random.random() < 0.3:
            self.compare()

    def compare(self):
        kept = self.kept
        number = int(ask(self.cluster, "get", path=self.path)["value"].split()[0])
        assert kept <= number <= self.sent, f"{self.path} is {number}: acknowledged {kept}, sent {self.sent}"

    def check(self):
        if self.kept:
            self.compare()


class Pairs(Worker):
    """Two documents that change in one transaction."""

    def __init__(self, soak, number):
        super().__init__(soak, number)
        self.path = f"{HOME}/pair-{number}"
        self.sent = self.kept = 0

    def step(self):
        self.sent += 1
        transaction = ask(self.cluster, "start_transaction")["transaction_id"]
        try:
            for side in ("left", "right"):
                ask(self.cluster, "set", path=f"{self.path}/{side}", value=self.sent, recursive=True, transaction_id=transaction)
            self.change("commit_transaction", transaction_id=transaction)
        except ServerError:
            # The transaction has ended while nobody renewed it, or holds a lock of one that has not ended yet.
            with contextlib.suppress(ServerError):
                ask(self.cluster, "abort_transaction", transaction_id=transaction, force=True)
            return
        self.kept = self.sent
        self.compare()

    def compare(self):
        kept = self.kept
        pair = ask(self.cluster, "get", path=self.path)["value"]
        assert pair["left"] == pair["right"], f"{self.path} is torn: {pair}"
        assert kept <= pair["left"] <= self.sent, f"{self.path} is {pair}: acknowledged {kept}, sent {self.sent}"

    def check(self):
        if self.kept:
            self.compare()


class Pools(Worker):
    """Pools that are made, changed and removed."""

    def __init__(self, soak, number):
        super().__init__(soak, number)
        self.made = 0
        # Weights by pool; pools about which nothing is known are left out of both.
        self.there, self.gone = {}, set()

    def step(self):
        if self.there and self.random.random() < 0.4:
            name = self.random.choice(sorted(self.there))
            del self.there[name]
            self.change("remove", path=f"//sys/pool_trees/physical/{name}")
            self.gone.add(name)
            return
        self.made += 1
        name, weight = f"soak-{self.number}-{self.made}", float(self.random.randrange(1, 100))
        self.change("create", type="scheduler_pool", attributes={"name": name, "pool_tree": "physical", "weight": weight})
        self.there[name] = weight
        time.sleep(0.02)

    def check(self):
        found = ask(self.cluster, "list", path="//sys/pool_trees/physical", attributes=["weight"])["value"]
        weights = {pool["$value"]: pool["$attributes"].get("weight") for pool in found if isinstance(pool, dict)}
        for name, weight in self.there.items():
            assert weights.get(name) == weight, f"pool {name}: weight {weight} acknowledged, found {weights.get(name)}"
        back = self.gone & weights.keys()
        assert not back, f"removed pools are there: {sorted(back)}"


class Operations(Worker):
    """Operations of a few units each; some are aborted."""

    def __init__(self, soak, number):
        super().__init__(soak, number)
        self.directory = soak.cluster.shared / f"operations-{number}"
        self.directory.mkdir()
        self.directory.chmod(0o777)
        self.started, self.aborted, self.unsure = {}, set(), set()

    def step(self):
        if len(self.started) - len(self.aborted) > self.soak.operations_at_most(self):
            time.sleep(0.2)
            return
        directory = self.directory / f"{len(self.started)}-{self.acknowledged + self.unknown}"
        directory.mkdir()
        directory.chmod(0o777)
        command = JOB.format(d=directory, work=f"sleep {self.random.choice([0.01, 0.1, 0.5, 2])}")
        task = {"command": command, "job_count": UNITS, "cpu_limit": 0.1, "memory_limit": 32 << 20}
        reply = self.change("start_operation", operation_type="vanilla", spec={
            "pool": "work", "tasks": {"t": task}, "max_failed_job_count": 1000})
        operation = reply["operation_id"]
        self.started[operation] = directory
        if self.random.random() < 0.2:
            self.unsure.add(operation)
            with contextlib.suppress(ServerError):
                self.change("abort_operation", operation_id=operation)
                self.aborted.add(operation)

    def check(self):
        for operation, directory in self.started.items():
            state = self.cluster.wait_state(operation, "completed", "aborted", timeout=600)
            violations = directory / "violations"
            assert not violations.exists(), f"two processes of one unit at a time: {violations.read_text()}"
            if operation in self.aborted:
                # It may have been completed before the order came.
                assert state == "aborted", f"operation {operation} is {state}, its abort was acknowledged"
            elif operation not in self.unsure:
                assert state == "completed", f"operation {operation} is {state}"
                self.check_units(operation, directory)

    def check_units(self, operation, directory):
        counters = self.cluster.counters(operation)
        assert counters["completed"] == UNITS and counters["lost"] == 0, f"{operation}: {counters}"
        events = [line.split() for line in (directory / "events").read_text().splitlines()]
        ended = {cookie for kind, cookie, _ in events if kind == "end"}
        assert ended == {str(cookie) for cookie in range(UNITS)}, f"{operation}: {events}"


class Soak:
    """A cluster, its writers and its killer."""

    def __init__(self, seconds, seed):
        self.seconds, self.seed = seconds, seed
        self.random = random.Random(f"{seed} kills")
        self.over = threading.Event()
        self.failure = None
        self.kills = collections.Counter()
        self.cluster = Cluster(nodes=NODES, resources="cpu=4,memory=4GiB,user_slots=8")

    def fail(self, error):
        self.failure = self.failure or error
        self.over.set()

    def operations_at_most(self, worker):
        """So many in a run: the cluster must get through them."""
        return 5 + int((time.monotonic() - self.began) * 2)

    def kill(self):
        cluster = self.cluster
        victim = self.random.choice(["server", "server", "node", "node", "proxies", "spawner", "all"])
        processes = {"server": [cluster.server], "node": [self.random.choice(cluster.nodes)],
                     "all": [cluster.server, *cluster.nodes]}.get(victim, [])
        pids = [process.popen.pid for process in processes]
        if victim in ("spawner", "all"):
            pids += cluster.spawners()
        if victim in ("proxies", "all"):
            proxies = cluster.proxies()
            pids += self.random.sample(proxies, (len(proxies) + 1) // 2) if victim == "proxies" else proxies
        for pid in pids:
            Cell.kill_pid(pid)
        for process in processes:
            process.popen.wait()
        self.kills[victim] += 1
        time.sleep(self.random.choice([0, 0, 0.3, 1]))
        cluster.restart()

    def run(self):
        """Raises at the first violation; gives one line about the run."""
        try:
            self.cluster.start()
            self.cluster.create_pool("work")
            self.began = time.monotonic()
            workers = [kind(self, number) for kind in (Documents, Pairs, Pools, Operations) for number in range(2)]
            for worker in workers:
                worker.start()
            while not self.over.is_set() and time.monotonic() < self.began + self.seconds:
                self.over.wait(self.random.uniform(0.2, 4))
                self.kill()
            self.over.set()
            for worker in workers:
                worker.join()
            if self.failure:
                raise self.failure
            self.cluster.restart()
            for worker in workers:
                wait_for(lambda worker=worker: self.checked(worker), what=f"the answers for {worker.name}")
            self.cluster.stop()
        except BaseException as error:
            self.over.set()
            error.add_note(f"seed {self.seed}, kills {dict(self.kills)}\n{self.cluster.logs()}")
            self.cluster.clean_up()
            raise
        acknowledged, unknown = (sum(getattr(worker, kind) for worker in workers) for kind in ("acknowledged", "unknown"))
        operations = sum(len(worker.started) for worker in workers if isinstance(worker, Operations))
        return (f"{sum(self.kills.values())} kills {dict(sorted(self.kills.items()))}, {acknowledged} acknowledged changes, "
                f"{unknown} without an answer, {operations} operations: no violation")

    @staticmethod
    def checked(worker):
        try:
            worker.check()
            return True
        except Unknown:
            return False


if __name__ == "__main__":
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    print(f"kill -9 for {minutes:g} minutes, seed {seed}", flush=True)
    print(Soak(60 * minutes, seed).run())
