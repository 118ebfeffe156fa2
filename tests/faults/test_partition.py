"""A node that is cut off from the server (S19): no unit of exclusive work runs twice at once.

Node 0 is in a network namespace of its own. A cut is a wrong neighbour entry on one side of the link: frames of that side
reach nobody, in silence, as behind a broken switch. Leases are short; the same rules hold for long ones.
"""

import contextlib
import json
import os
import signal
import subprocess
import time

import pytest
from harness import Cluster, moment, wait_for

LEASE = 3.0
# Margin of the server for a lease of 3 s (docs/operator-guide.md): four grace periods of 1 s and a thousandth of the lease.
MARGIN = 4.003
HEARTBEAT = 0.2
NOWHERE = "02:00:00:00:00:99"
# Each run of a unit says every 50 ms that it lives, in a file of its own.
LIVES = 'while :; do echo $EPOCHREALTIME >> "{shared}/$YT_JOB_COOKIE.$YT_JOB_ID"; sleep 0.05; done'
LIMITS = {"cpu_limit": 0.1, "memory_limit": 64 << 20}


def ip(*arguments):
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr.strip()}"
    return done.stdout


class Link:
    """A namespace with one end of a link, the other end of which is on the host."""

    def __init__(self):
        number = os.getpid() % 4096
        self.namespace, self.near, self.far = f"mp-cut-{number}", f"mpc{number}a", f"mpc{number}b"
        network = f"10.{64 + number % 64}.{number // 64 % 256}"
        self.host, self.node = f"{network}.1", f"{network}.2"

    def open(self):
        ip("netns", "add", self.namespace)
        ip("link", "add", self.near, "type", "veth", "peer", "name", self.far, "netns", self.namespace)
        ip("addr", "add", f"{self.host}/30", "dev", self.near)
        ip("link", "set", self.near, "up")
        ip("-n", self.namespace, "addr", "add", f"{self.node}/30", "dev", self.far)
        ip("-n", self.namespace, "link", "set", self.far, "up")
        ip("-n", self.namespace, "link", "set", "lo", "up")
        self.macs = {side: json.loads(ip(*at, "-j", "link", "show", device))[0]["address"]
                     for side, at, device in (("host", [], self.near), ("node", ["-n", self.namespace], self.far))}

    def close(self):
        for arguments in (["link", "del", self.near], ["netns", "del", self.namespace]):
            subprocess.run(["ip", *arguments], capture_output=True, check=False)

    def neighbour(self, at, address, mac, device):
        ip(*at, "neigh", "replace", address, "lladdr", mac, "dev", device, "nud", "permanent")

    def cut(self, to_server=True, to_node=True):
        if to_server:
            self.neighbour(["-n", self.namespace], self.host, NOWHERE, self.far)
        if to_node:
            self.neighbour([], self.node, NOWHERE, self.near)

    def heal(self):
        self.neighbour(["-n", self.namespace], self.host, self.macs["host"], self.far)
        self.neighbour([], self.node, self.macs["node"], self.near)


@pytest.fixture(scope="module")
def net():
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    link = Link()
    try:
        link.open()
    except (AssertionError, OSError) as error:
        link.close()
        pytest.skip(f"no network namespaces here: {error}")
    # The server listens on the host's end of the link, which nothing but the namespace can reach.
    cluster = Cluster(nodes=2, resources="cpu=2,memory=2GiB,user_slots=8", server_arguments=["--no-auth"],
                      server_config=f'heartbeat_period = "{int(HEARTBEAT * 1000)}ms"\n')
    host = f"{link.host}:{cluster.port}"
    for process in (cluster.server, *cluster.nodes):
        process.arguments = [host if argument == cluster.address else argument for argument in process.arguments]
    cluster.address = host
    # Not on this host by its address: the nodes must be told which server to trust.
    for number, node in enumerate(cluster.nodes):
        node.arguments = [*node.arguments, "--join-token-file", cluster.directory / f"node-{number}.join-token"]
    # The agent in the namespace is the process itself: nothing stands between it and our signals.
    far = cluster.nodes[0]
    far.arguments = ["nsenter", f"--net=/run/netns/{link.namespace}", *far.arguments]
    try:
        cluster.start()
        cluster.set("//sys/scheduler/config", {
            "node_heartbeat_timeout": 1000, "max_node_unseen_period_to_abort_allocations": int(LEASE * 1000)})
        cluster.create_pool("p")
        yield cluster, link
        link.heal()
    except BaseException:
        print(cluster.logs())
        cluster.clean_up()
        link.close()
        raise
    with contextlib.suppress(ProcessLookupError):
        os.kill(cluster.nodes[0].popen.pid, signal.SIGCONT)
    cluster.stop()
    link.close()


def runs(cluster, cookie):
    """Runs of a unit by their first word: first and last time at which each was seen to live."""
    found = []
    for file in cluster.shared.glob(f"{cookie}.*"):
        times = [float(line) for line in file.read_text().split()]
        if times:
            found.append((min(times), max(times), file.name))
    return sorted(found)


def forget_runs(cluster):
    for file in cluster.shared.iterdir():
        file.unlink()


def start_exclusive(cluster, **spec):
    """One unit, on the node that will be cut off."""
    forget_runs(cluster)
    near, far = cluster.nodes[1].name, cluster.nodes[0].name
    cluster.set(f"//sys/cluster_nodes/{near}/@disable_scheduler_jobs", True)
    operation = cluster.start_vanilla(LIVES.format(shared=cluster.shared), pool="p", spec=spec, **LIMITS)
    [job] = cluster.wait_jobs(operation, 1)
    assert cluster.command("get_job", operation_id=operation, job_id=job)["address"] == far
    wait_for(lambda: runs(cluster, 0), what="the job to say that it lives")
    cluster.set(f"//sys/cluster_nodes/{near}/@disable_scheduler_jobs", False)
    return operation


def given_away(cluster, operation, cut_at):
    """Waits for the second run, and checks that the first had ended before and that the lease was over."""
    wait_for(lambda: len(runs(cluster, 0)) == 2, what="the unit to run on the other node", timeout=60,
             seen=lambda: (runs(cluster, 0), cluster.counters(operation)))
    # The first would go on writing if it lived.
    begin = time.monotonic()
    wait_for(lambda: time.monotonic() - begin > 0.5, what="half a second", timeout=5)
    first, second = runs(cluster, 0)
    assert first[1] < second[0], f"the unit ran twice at once: {first}, {second}"
    assert second[0] - cut_at >= LEASE, "given away before the end of the lease"


def back_again(cluster, link, operation):
    link.heal()
    cluster.command("abort_operation", operation_id=operation)
    cluster.wait_nodes()
    wait_for(lambda: not cluster.job_processes(), what="the end of all jobs", timeout=60)


@pytest.mark.parametrize("directions", ["both ways", "to the server", "to the node"])
def test_cut_off(net, directions):
    """S19: while the node was cut off its units ran elsewhere as well."""
    cluster, link = net
    operation = start_exclusive(cluster)
    cut_at = time.time()
    link.cut(to_server=directions != "to the node", to_node=directions != "to the server")
    given_away(cluster, operation, cut_at)
    back_again(cluster, link, operation)


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_an_agent_that_does_nothing(net, how):
    """S19: the job proxy has the lease, not the agent."""
    cluster, link = net
    operation = start_exclusive(cluster)
    agent = cluster.nodes[0]
    cut_at = time.time()
    if how == "stopped":
        os.kill(agent.popen.pid, signal.SIGSTOP)
    else:
        agent.kill()
    try:
        given_away(cluster, operation, cut_at)
    finally:
        if how == "stopped":
            os.kill(agent.popen.pid, signal.SIGCONT)
        else:
            agent.start()
    back_again(cluster, link, operation)


def test_a_short_cut_costs_no_job(net):
    """S19: the server is not heard for less than the lease. The agent opens a new connection when half of it is over: the old one
    would wait longer than the rest of the lease before it sends again."""
    cluster, link = net
    lease = 4 * LEASE
    operation = start_exclusive(cluster, job_lease_period=int(lease * 1000))
    link.cut()
    begin = time.monotonic()
    wait_for(lambda: time.monotonic() - begin > lease / 2, what="half a lease", timeout=10)
    link.heal()
    cluster.wait_nodes()
    before = runs(cluster, 0)
    wait_for(lambda: runs(cluster, 0)[0][1] > before[0][1] + lease, what="the job to go on", timeout=60)
    assert len(runs(cluster, 0)) == 1 and cluster.counters(operation)["aborted"] == 0
    log = cluster.nodes[0].log.read_text(errors="replace")
    assert "has not confirmed for half of the lease" in log
    back_again(cluster, link, operation)


def test_what_is_told_while_a_unit_waits(net):
    """S19: `explain`, `op get`, `node list` and the alerts name the node and the time; `node remove --lost` ends the wait."""
    cluster, link = net
    operation = start_exclusive(cluster, job_lease_period=60_000)
    far = cluster.nodes[0].name
    link.cut()
    wait_for(lambda: far not in cluster.online(), what="the loss of the node")

    def waits():
        return cluster.operation(operation, "progress")["progress"].get("lease_waits")
    [wait] = wait_for(waits, what="a unit that waits")
    assert (wait["reason"], wait["node"], wait["job_cookie"]) == ("node_offline", far, 0) and wait["until"]
    for arguments in (["op", "explain", operation], ["op", "get", operation], ["node", "list"]):
        told = cluster.millpond(*arguments)[1]
        assert far in told and wait["until"][:10] in told, (arguments, told)
    alerts = {alert["attributes"]["alert_type"]: alert for alert in cluster.get("//sys/scheduler/@alerts")}
    assert f"millpond node remove {far} --lost" in alerts["exclusive_work_waits"]["message"]
    code, _, refused = cluster.millpond("node", "remove", far, check=False)
    assert code != 0 and "waits for the end of its lease" in refused, refused
    assert len(runs(cluster, 0)) == 1
    # It is off for certain: its processes are killed here, as a power cut would have done.
    cluster.nodes[0].kill()
    for pid in [*cluster.proxies(), *cluster.job_processes()]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    cluster.millpond("node", "remove", far, "--lost")
    wait_for(lambda: len(runs(cluster, 0)) == 2, what="the unit to run on the other node")
    first, second = runs(cluster, 0)
    assert first[1] < second[0]
    cluster.nodes[0].start()
    back_again(cluster, link, operation)


def test_a_pause_before_planned_work(net):
    """S19: the server is away for longer than the lease, the agent is updated meanwhile, and no job is lost."""
    cluster, link = net
    operation = start_exclusive(cluster)
    until = moment(cluster.millpond("server", "pause", "--for", "30s")[1].strip())
    assert 25 < until - time.time() <= 30
    cluster.server.kill()
    cluster.nodes[0].kill()
    cluster.nodes[0].start()
    begin = time.monotonic()
    wait_for(lambda: time.monotonic() - begin > 2 * LEASE + MARGIN, what="an outage of more than the lease", timeout=30)
    cluster.restart()
    assert cluster.wait_jobs(operation, 1)
    assert len(runs(cluster, 0)) == 1 and cluster.counters(operation)["aborted"] == 0
    back_again(cluster, link, operation)
