//! `execute_batch` (http-api.md 8.9).

use crate::http::{Reply, Server, check_error};
use std::time::{Duration, Instant};
use yson::Value;

const HEAD: &str = "POST /api/v4/execute_batch HTTP/1.1\nContent-Type: application/x-yt-yson-text\n\
                    X-YT-Header-Format: <format=text>yson\nX-YT-Output-Format: <format=text>yson";

fn results(reply: &Reply) -> Vec<Value> {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let value = yson::parse(&reply.body).expect("good YSON");
    value.get("results").and_then(Value::as_list).expect("a list").to_vec()
}

#[test]
fn results_come_in_the_order_of_requests() {
    let server = Server::start();
    let body = br#"{mutation_id="1-2-3-4"; requests=[
        {command=get; parameters={path="//slow"; return_only_value=%true}};
        {command=get; parameters={path="//a"}};
        {command=set; parameters={path="//x"}; input={k=5}};
        {command=get; parameters={path="//x"; return_only_value=%true}};
        {command=create; parameters={type=map_node; path="//y"}};
        {command=get_version};
        {command=exists; parameters=#};
    ]}"#;
    let results = results(&server.ask(HEAD, body));
    let text = |i: usize| String::from_utf8(yson::to_text(&results[i])).expect("UTF-8");
    assert_eq!(text(0), r#"{"output"="//slow";}"#);
    assert_eq!(text(1), r#"{"output"={"value"="//a";};}"#);
    assert_eq!(text(2), r#"{"output"={};}"#);
    assert_eq!(text(3), r#"{"output"={"k"=5;};}"#, "items take effect in order");
    assert_eq!(text(4), r#"{"output"={"node_id"="1-1-1012f-1";};}"#);
    assert_eq!(text(5), r#"{"output"={"version"="1.2.3";};}"#);
    assert!(results[6].get("error").is_some());
    let calls = server.fake.take_calls();
    assert!(calls[2].starts_with("root [4-2-3-4] Set"), "derived from the batch's mutation id: {}", calls[2]);
    assert!(calls[1].starts_with("root Get"), "{}", calls[1]);
}

#[test]
fn a_failing_item_harms_nobody_else() {
    let server = Server::start();
    let body = br#"{requests=[
        {command=get; parameters={path="//missing"}};
        {command=no_such_command};
        {command=get_job_stderr; parameters={job_id="1-2-3-4"}};
        {command=write_file; parameters={path="//a"}};
        {command=execute_batch; parameters={requests=[]}};
        {command=get; parameters={path=17}};
        {command=set; parameters={path="//a"}};
        {command=get; parameters={path="//panic_later"}};
        {parameters={}};
        17;
        {command=get; parameters={path="//fine"; return_only_value=%true}};
    ]}"#;
    let results = results(&server.ask(HEAD, body));
    let codes: Vec<Option<i64>> = results
        .iter()
        .map(|r| {
            let error = r.get("error")?;
            check_error(error);
            error.get("code").and_then(Value::as_i64)
        })
        .collect();
    let one = Some(1);
    assert_eq!(codes, [Some(500), Some(103), one, one, one, one, one, one, one, one, None]);
    assert_eq!(results[10].get("output").and_then(Value::as_str), Some("//fine"));
}

#[test]
fn items_wait_together() {
    let server = Server::start();
    let item = "{command=get; parameters={path=\"//slow\"; return_only_value=%true}};";
    let body = format!("{{concurrency=10; requests=[{}]}}", item.repeat(20));
    assert_eq!(results(&server.ask(HEAD, body.as_bytes())).len(), 20);
    // As many at a time as were allowed, and not more.
    assert_eq!(server.fake.lock().most_waiting, 10);
    for bad in ["{}", "{requests=17}"] {
        assert_eq!(server.ask(HEAD, bad.as_bytes()).code(), (400, 1), "{bad}");
    }
    assert!(results(&server.ask(HEAD, b"{requests=[]}")).is_empty());
}

/// S14. Each of the results is small; the batch ends where their bytes would exceed what one user's replies may take.
#[test]
fn results_of_a_batch_are_counted_one_by_one() {
    let server = Server::start();
    let text = "x".repeat(60_000);
    let set = format!("{{requests=[{{command=set; parameters={{path=\"//x\"}}; input=\"{text}\"}}]}}");
    assert!(results(&server.ask(HEAD, set.as_bytes()))[0].get("error").is_none());
    server.fake.take_calls();
    let get = "{command=get; parameters={path=\"//x\"; return_only_value=%true}};";
    let body = format!("{{requests=[{}]}}", get.repeat(1_500));
    let results = results(&server.ask(HEAD, body.as_bytes()));
    assert_eq!(results.len(), 1_500);
    let given = results.iter().filter(|result| result.get("output").is_some()).count();
    let most = (64 << 20) / text.len();
    assert!((most - 10..=most).contains(&given), "{given} of {most}");
    // Up to fifty are under way at a time, and the order in which they end is not theirs.
    let code =
        |result: &Value| result.get("error").and_then(|error| error.get("code")).and_then(Value::as_i64);
    assert!(
        results[given + 50..].iter().all(|result| code(result) == Some(904)),
        "{:?}",
        results[given + 50]
    );
    let asked = server.fake.take_calls().len();
    assert!(asked < given + 100, "{asked} requests were begun, {given} of them were answered");
    // The reply was read: soon nothing of it counts any more.
    let again = format!("{{requests=[{}]}}", get.repeat(10));
    let patience = Instant::now() + Duration::from_secs(60);
    while !crate::batch::results(&server.ask(HEAD, again.as_bytes()))
        .iter()
        .all(|result| result.get("output").is_some())
    {
        assert!(Instant::now() < patience, "what was read still counts");
    }
}
