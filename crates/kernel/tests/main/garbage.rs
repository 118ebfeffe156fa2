//! S17: garbage that the start of the server has not removed.

use crate::console::Console;
use kernel::{Body, Command, GarbageDecision, HeldGarbage, Input};
use yson::Value;

/// `garbage_collection_held`, if it is there.
fn alert(c: &mut Console) -> Option<Value> {
    let path = yson::ypath::YPath::parse(b"//sys/scheduler/@alerts").expect("a path");
    let get = Command::Get { path, attributes: Vec::new(), max_size: None, fields: None };
    let body = c.world.ask("root", get).expect("an answer").expect("alerts");
    let Body::Value(alerts) = body else { panic!("a value") };
    let kind = |alert: &Value| alert.get("attributes")?.get("alert_type")?.as_str().map(str::to_owned);
    let mut alerts = alerts.as_list().expect("a list").iter();
    alerts.find(|alert| kind(alert).as_deref() == Some("garbage_collection_held")).cloned()
}

fn decision(c: &Console) -> Option<GarbageDecision> {
    c.world.kernel().garbage_decision()
}

fn held(c: &mut Console) {
    let held = HeldGarbage { blobs: 50, total: 60, newer: 3 };
    c.world.inputs.push_back(Input::GarbageHeld(held));
    c.run("tick 1s");
}

/// S17: the alert is there until somebody confirms, and the answer is kept over restarts until it is carried out.
#[test]
fn it_waits_for_a_confirmation() {
    let mut c = Console::new();
    let refused =
        c.world.ask("root", Command::CollectGarbage).expect("an answer").expect_err("nothing waits");
    assert!(refused.message.contains("No garbage collection waits"), "{refused}");
    assert_eq!((decision(&c), alert(&mut c)), (None, None));

    held(&mut c);
    let text = alert(&mut c).expect("an alert");
    let text = text.get("message").and_then(Value::as_str).expect("a text").to_owned();
    for word in ["50 of 60 blobs", "3 are newer", "millpond server gc --confirm"] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    // The next start counts again, and is told not to decide by the count alone.
    c.run("crash\nrestart");
    assert_eq!(decision(&c), Some(GarbageDecision::Held));
    held(&mut c);

    let body = c.world.ask("root", Command::CollectGarbage).expect("an answer").expect("confirmed");
    let Body::Value(body) = body else { panic!("a value") };
    assert_eq!(body.get("blob_count").and_then(Value::as_u64), Some(50));
    assert_eq!(alert(&mut c), None);
    assert!(format!("{:?}", c.world.events).contains("garbage"), "the edge removes it: {:?}", c.world.events);
    c.world.ask("root", Command::CollectGarbage).expect("an answer").expect_err("it is confirmed already");
    c.run("crash\nrestart");
    assert_eq!(decision(&c), Some(GarbageDecision::Confirmed), "a confirmation survives a crash");

    c.world.inputs.push_back(Input::GarbageCollected);
    c.run("tick 1s\ncrash\nrestart");
    assert_eq!((decision(&c), alert(&mut c)), (None, None));
}
