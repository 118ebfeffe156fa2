"""What a cluster says at its start of who may do everything, or what its jobs may do (S8): a line, and an alert."""

import contextlib
import json
import os
import subprocess

import pytest
from harness import BINARY, cluster as make_cluster, free_port, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not root: the tests need mount and network namespaces")

ROOT_ALONE = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
WITH_ANN = f"{ROOT_ALONE}service:x:1001:1001::/:/usr/sbin/nologin\nann:x:1002:1002:Ann:/home/ann:/bin/bash\n"
OFF = "authentication_off"


class Started:
    """A process of `millpond` on a host with these accounts, and with `own_network` in a network of its own."""

    def __init__(self, tmp_path, *arguments, accounts, listen, own_network=False):
        self.listen, self.log = listen, tmp_path / "log"
        passwd = tmp_path / "passwd"
        passwd.write_text(accounts)
        script = 'set -e; mount --make-rprivate /; mount --bind "$1" /etc/passwd; shift; '
        script += "ip link set lo up; " if own_network else ""
        namespaces = ["--mount", *(["--net"] if own_network else [])]
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen(
                ["unshare", *namespaces, "sh", "-c", f'{script} exec "$@"', "sh", str(passwd), str(BINARY), *arguments,
                 "--listen", listen, "--data", str(tmp_path / "data")], stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def alerts(self):
        """Messages of the alerts of the scheduler by type; `None` while there is no answer."""
        address = f"127.0.0.1:{self.listen.rsplit(':', 1)[1]}"
        done = subprocess.run(["nsenter", f"--net=/proc/{self.process.pid}/ns/net", str(BINARY), "get", "//sys/scheduler/@alerts", "--json"],
                              capture_output=True, text=True, timeout=60, env={**os.environ, "MILLPOND_PROXY": address})
        if done.returncode != 0:
            assert self.process.poll() is None, self.log.read_text()
            return None
        return [{alert["attributes"]["alert_type"]: alert["message"] for alert in json.loads(done.stdout)}]

    def wait_alerts(self):
        [alerts] = wait_for(self.alerts, what="the answer of the server", seen=self.log.read_text)
        return alerts


@contextlib.contextmanager
def started(*arguments, **options):
    """`Started` for a `with` statement."""
    it = Started(*arguments, **options)
    try:
        yield it
    finally:
        it.process.terminate()
        it.process.wait(120)


@pytest.mark.parametrize("option", [[], ["--no-auth"]], ids=["default", "no-auth"])
@pytest.mark.parametrize("kind", [["server"], ["up", "--nodes", "1"]], ids=["server", "up"])
def test_s8_other_accounts_of_the_host_are_told(kind, option, tmp_path):
    """S8: `--no-auth` silenced line and alert, and whoever starts a cluster so need not know the accounts of the host."""
    words = "other accounts of this host, ann for one, may do everything"
    with started(tmp_path, *kind, *option, accounts=WITH_ANN, listen=f"127.0.0.1:{free_port()}") as it:
        alerts = it.wait_alerts()
        assert words in alerts.get(OFF, ""), alerts
        assert it.log.read_text().count(words) == 1, it.log.read_text()


def test_s8_a_host_without_other_accounts_has_nothing_to_tell(tmp_path):
    """S8: who is alone on the host is not bothered."""
    with started(tmp_path, "server", accounts=ROOT_ALONE, listen=f"127.0.0.1:{free_port()}") as it:
        assert OFF not in it.wait_alerts()
        assert "Authentication is off" not in it.log.read_text(), it.log.read_text()


def test_s8_no_auth_on_an_address_of_the_network_is_told(tmp_path):
    """S8: everybody who reaches the address may do everything."""
    listen = f"0.0.0.0:{free_port()}"
    words = f"everybody who reaches {listen} may do everything"
    with started(tmp_path, "server", "--no-auth", accounts=ROOT_ALONE, listen=listen, own_network=True) as it:
        alerts = it.wait_alerts()
        assert words in alerts.get(OFF, ""), alerts
        assert it.log.read_text().count(words) == 1, it.log.read_text()


def alerts_of(cluster):
    """Alerts of the only node."""
    return cluster.get(f"//sys/cluster_nodes/{cluster.nodes[0].name}/@alerts")


@pytest.mark.parametrize("option, uid_of_jobs, words", [
    ('isolation = "none"', 0, "as --isolation none says"),
    ("do_not_set_user_id = true\nisolation = \"full\"", 0, "as do_not_set_user_id says"),
])
def test_s8_jobs_as_root_are_told(option, uid_of_jobs, words):
    """S8: an operator can have jobs run as root of the host, and is told so by the node."""
    words = f"Jobs run as root of this host, {words}"
    with make_cluster(nodes=1, environment="simple", node_config=f"{option}\n") as cluster:
        [node] = cluster.nodes
        alerts = {alert["attributes"].get("alert_type"): alert["message"] for alert in alerts_of(cluster)}
        assert words in alerts.get("jobs_run_as_root", ""), alerts
        lines = [line for line in node.tail(1000).splitlines() if words in line]
        assert len(lines) == 1 and "WARN" in lines[0], node.tail()
        [not_enforced] = [alert["message"] for alert in alerts_of(cluster) if "not_enforced" in alert["attributes"]]
        assert "memory limit" in not_enforced and node.tail(1000).count(not_enforced) == 1, node.tail()
        cluster.create_pool("p")
        operation = cluster.run_vanilla("id -u >&2", pool="p")
        [job] = cluster.jobs(operation)
        assert int(cluster.stderr(operation, job["id"])) == uid_of_jobs, "it is as the alert says"
