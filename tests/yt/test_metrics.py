"""What Prometheus is told, and what the dashboard that comes with Millpond asks it for."""

import json
import pathlib
import re
import urllib.error
import urllib.request

import pytest
from harness import cluster as make_cluster, wait_for
from prometheus_client.openmetrics.parser import text_string_to_metric_families

ROOT = pathlib.Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "deploy" / "grafana" / "millpond.json"


def scrape(cluster, token=None):
    """Families by name; the parser refuses what is not in the form."""
    request = urllib.request.Request(f"http://{cluster.address}/metrics")
    if token or cluster.token:
        request.add_header("Authorization", f"Bearer {token or cluster.token}")
    with urllib.request.urlopen(request, timeout=180) as reply:
        assert reply.headers["Content-Type"].startswith("application/openmetrics-text")
        return {family.name: family for family in text_string_to_metric_families(reply.read().decode())}


def value(families, family, sample=None, **labels):
    found = [s.value for s in families[family].samples
             if s.name == (sample or s.name) and labels.items() <= s.labels.items()]
    return sum(found) if found else None


def test_numbers_are_those_of_the_cluster(cluster, pool):
    before = scrape(cluster)
    operation = cluster.start_vanilla("sleep 1000", job_count=2, pool=pool, cpu_limit=0.5)
    cluster.wait_jobs(operation, 2)
    place = {"tree": "physical", "pool": pool}
    wait_for(lambda: value(scrape(cluster), "millpond_pool_resource_usage", **place, resource="cpu") == 1.0,
             what="usage to be known")
    seen = scrape(cluster)
    assert value(seen, "millpond_pool_resource_usage", **place, resource="user_slots") == 2
    assert value(seen, "millpond_pool_running_operations", **place) == 1
    assert 0 < value(seen, "millpond_pool_usage_ratio", **place) <= 1
    assert value(seen, "millpond_operations", state="running") >= 1
    assert value(seen, "millpond_nodes", state="online") == 1
    cluster.command("abort_operation", operation_id=operation)

    def grown(family, sample, **labels):
        return (value(after, family, sample, **labels) or 0) - (value(before, family, sample, **labels) or 0)
    # What is written and what nodes say comes some time after the answer.
    after = None

    def late_ones():
        nonlocal after
        after = scrape(cluster)
        return grown("millpond_archived_operations", None), grown("millpond_heartbeats", "millpond_heartbeats_total", tree="physical")
    wait_for(lambda: min(late_ones()) >= 1, what="an archived operation and a heartbeat", seen=late_ones)
    assert grown("millpond_started_operations", "millpond_started_operations_total") >= 1
    assert grown("millpond_ended_operations", "millpond_ended_operations_total", state="aborted") >= 1
    assert grown("millpond_ended_jobs", "millpond_ended_jobs_total", state="aborted",
                 abort_reason="operation_aborted") == 2
    assert grown("millpond_archived_operations", None) >= 1
    assert grown("millpond_heartbeats", "millpond_heartbeats_total", tree="physical") > 0
    assert grown("millpond_fair_share_updates", "millpond_fair_share_updates_total") > 0
    for phase in ("inputs", "operations", "fair_share_update", "heartbeats", "records"):
        assert grown("millpond_kernel_phase_seconds", "millpond_kernel_phase_seconds_count", phase=phase) > 0
    assert grown("millpond_commit_seconds", "millpond_commit_seconds_count") > 0
    assert grown("millpond_requests", "millpond_requests_total", command="start_operation", status="200") == 1
    assert grown("millpond_request_seconds", "millpond_request_seconds_count", command="start_operation") == 1


def test_the_dashboard_asks_for_what_there_is(cluster):
    dashboard = json.loads(DASHBOARD.read_text())
    text = json.dumps([t["expr"] for p in dashboard["panels"] for t in p.get("targets", [])])
    text += json.dumps([v.get("query") for v in dashboard["templating"]["list"]])
    asked = set(re.findall(r"millpond_[a-z_]+", text))
    assert len(asked) > 25
    families = scrape(cluster)
    served = set()
    for name, family in families.items():
        endings = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}.get(family.type, [""])
        served |= {name + ending for ending in endings}
    assert asked <= served, f"nobody serves {sorted(asked - served)}"
    # Labels that the panels group and filter by are there.
    for family, labels in (("millpond_pool_usage_ratio", {"tree", "pool"}), ("millpond_heartbeats", {"tree", "kind"}),
                           ("millpond_tree_resource_limits", {"tree", "resource"})):
        assert set(families[family].samples[0].labels) == labels


def test_without_a_token_there_is_nothing_but_health():
    """Neither numbers, nor the process and the address of the server."""
    with make_cluster(nodes=0, auth=True) as cluster:
        for path, token, status in (("/metrics", None, 401), ("/metrics", "wrong", 401), ("/health", None, 200), ("/health", "wrong", 200)):
            request = urllib.request.Request(f"http://{cluster.address}{path}", headers={"Authorization": f"OAuth {token}"} if token else {})
            try:
                reply = urllib.request.urlopen(request, timeout=180)
            except urllib.error.HTTPError as error:
                reply = error
            with reply:
                told = json.loads(reply.read())
                assert reply.status == status, path
                assert told == {"status": "ok"} if status == 200 else told["attributes"] == {} and told["code"] == 111, told
                assert "millpond" not in json.dumps(told)


def test_who_may_see_what():
    with make_cluster(nodes=1, auth=True) as cluster:
        cluster.command("create", type="user", attributes={"name": "bob"})
        bob = cluster.command("issue_token", user="bob")
        cluster.create_pool("open")
        cluster.create_pool("secret", acl=[{"action": "deny", "subjects": ["bob"], "permissions": ["read"]}])

        def pools(token):
            samples = scrape(cluster, token)["millpond_pool_usage_ratio"].samples
            return {s.labels["pool"] for s in samples}
        wait_for(lambda: {"open", "secret"} <= pools(cluster.token), what="root to see both")
        # Ephemeral pools are as closed as the pool that they are in, in every family.
        deny = {"action": "deny", "subjects": ["bob"], "permissions": ["read"]}
        cluster.create_pool("closed", acl=[deny], create_ephemeral_subpools=True)
        operation = cluster.start_vanilla("sleep 1000", pool="closed", spec={"title": "planted title"})
        cluster.wait_jobs(operation)

        def labels(token):
            return {(name, text) for name, family in scrape(cluster, token).items() for s in family.samples for text in s.labels.values()}
        wait_for(lambda: ("millpond_pool_ordered_core_seconds", "closed$root") in labels(cluster.token), what="savings of the ephemeral pool",
                 seen=lambda: labels(cluster.token))
        assert not [label for label in labels(bob) if "closed" in label[1]]
        assert not [label for label in labels(cluster.token) if "planted" in label[1] or operation in label[1]]
        cluster.command("abort_operation", operation_id=operation)
        assert "open" in pools(bob) and "secret" not in pools(bob)
        # The tree tells as much as the metrics do: that there is such a pool, and no more.
        tree = cluster.command("get", token=bob, path="//sys/pool_trees/physical", attributes=["name"])["value"]
        shown = tree["$value"]
        assert shown["secret"] is None and shown["open"]["$attributes"]["name"] == "open"
        listed = cluster.command("list", token=bob, path="//sys/pool_trees/physical", attributes=["name"])["value"]
        assert "secret" in listed and {"$value": "open", "$attributes": {"name": "open"}} in listed
        deny = {"action": "deny", "subjects": ["bob"], "permissions": ["read"]}
        cluster.set("//sys/scheduler/@acl", [deny])
        with pytest.raises(urllib.error.HTTPError) as refused:
            scrape(cluster, bob)
        assert refused.value.code == 400 and json.loads(refused.value.read())["code"] == 901
