//! Millpond's own questions: `/api/millpond/...`.

use crate::http::Server;

#[test]
fn questions_reach_the_kernel() {
    let server = Server::start();
    let events = |range: &str| {
        format!(
            "root GetEvents {{ {range}, filter: EventFilter {{ event: None, operation: None, user: None, \
             action: None, path: None, from_time: None, to_time: None }} }}"
        )
    };
    for (query, call) in [
        (
            "pool_history?pool=a%2Fb&pool_tree=t&start=-15m&end=2026-01-02T03:04:05Z&step=10s",
            "root GetPoolHistory { tree: Some(\"t\"), pool: \"a/b\", range: Range { start: Some(Ago(900s)), \
             end: Some(At(2026-01-02T03:04:05.000000Z)), step: Some(10s) } }",
        ),
        (
            "job_history?job_id=1-2-3-4&start=-5m",
            "root GetHistory { of: Job(1-2-3-4), range: Range { start: Some(Ago(300s)), end: None, step: None } }",
        ),
        (
            "node_history?address=n1%3A9012&step=1m",
            "root GetHistory { of: Node(\"n1:9012\"), range: Range { start: None, end: None, step: Some(60s) } }",
        ),
        (
            "pool_history?pool=p&end=now",
            "root GetPoolHistory { tree: None, pool: \"p\", \
             range: Range { start: None, end: Some(Ago(0s)), step: None } }",
        ),
        ("operation_explanation?operation_id=1-2-3-4", "root ExplainOperation { operation: Id(1-2-3-4) }"),
        (
            "preemption_log?pool_tree=t&pool=p&operation_id=1-2-3-4&limit=5",
            "root GetPreemptionLog(PreemptionQuery { tree: Some(\"t\"), operation: Some(1-2-3-4), pool: Some(\"p\"), \
             limit: Some(5) })",
        ),
        ("events?from=7&limit=2", &events("from: Number(7), limit: Some(2)")),
        ("events?last=20", &events("from: Last(20), limit: None")),
        ("events", &events("from: Oldest, limit: None")),
        (
            "events?event=audit&operation_id=1-2-3-4&user=a%26b&action=set&path=//tmp/a%20b&\
             from_time=2026-01-02T03:04:05Z&to_time=2026-01-02T03:04:06Z",
            "root GetEvents { from: Oldest, limit: None, filter: EventFilter { event: Some(\"audit\"), \
             operation: Some(1-2-3-4), user: Some(\"a&b\"), action: Some(\"set\"), path: Some(\"//tmp/a b\"), \
             from_time: Some(2026-01-02T03:04:05.000000Z), to_time: Some(2026-01-02T03:04:06.000000Z) } }",
        ),
        ("pool_explanation?pool=p", "root ExplainPool { tree: None, pool: \"p\" }"),
    ] {
        let reply = server.ask(&format!("GET /api/millpond/{query} HTTP/1.1"), b"");
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")), "{query}");
        assert_eq!(server.fake.take_calls(), [call], "{query}");
    }
}

#[test]
fn refusals_name_the_parameter() {
    let server = Server::start();
    for (method, query, status, words) in [
        ("GET", "pool_history", 400, "pool"),
        ("GET", "pool_history?pool=p&start=yesterday", 400, "yesterday"),
        ("GET", "pool_history?pool=p&step=0s", 400, "0s"),
        ("GET", "pool_history?pool=p&step=often", 400, "often"),
        ("GET", "job_history", 400, "job_id"),
        ("GET", "job_history?job_id=one", 400, "job_id"),
        ("GET", "node_history?start=-1h", 400, "address"),
        ("GET", "operation_explanation", 400, "operation_id"),
        ("GET", "preemption_log?limit=-1", 400, "limit"),
        ("GET", "events?from=first", 400, "from"),
        ("GET", "events?from_time=yesterday", 400, "from_time"),
        ("GET", "events?path=tmp", 400, "//sys/pool_trees"),
        ("GET", "events?operation_id=one", 400, "operation_id"),
        ("GET", "events?from=1&last=2", 400, "each says where to begin"),
        ("GET", "weather", 404, "pool_explanation, pool_history, preemption_log"),
        ("POST", "pool_explanation?pool=p", 405, "GET, HEAD"),
    ] {
        let reply = server.ask(&format!("{method} /api/millpond/{query} HTTP/1.1"), b"");
        assert_eq!(reply.status, status, "{query}: {}", reply.text());
        assert!(reply.text().contains(words), "{query}: {}", reply.text());
        assert!(server.fake.take_calls().is_empty(), "{query} reached the kernel");
    }
}
