//! Ends of tokens, and tokens in the place of others.

use super::*;

fn issue(digit: &str, ttl: Option<Span>) -> Command {
    Command::IssueToken {
        user: "ann".into(),
        token_sha256: digit.repeat(64),
        description: Some("nightly".into()),
        ttl,
    }
}

fn rotate(old: &str, new: &str, ttl: Option<Span>, grace: Option<Span>) -> Command {
    Command::RotateToken {
        user: "ann".into(),
        old_sha256: old.repeat(64),
        token_sha256: new.repeat(64),
        ttl,
        grace,
    }
}

/// Whose the token is, or what the refusal says.
fn who(guarded: &mut Guarded, digit: &str) -> String {
    let proof = Proof::Token(digit.repeat(64));
    match guarded.ask("root", Command::Identify { proof, act_as: None }) {
        Ok(Body::Value(value)) => value.get("user").and_then(Value::as_str).unwrap_or_default().to_owned(),
        Ok(other) => panic!("{other:?}"),
        Err(failure) => {
            assert_eq!(failure.code, 111);
            failure.message
        }
    }
}

/// Facts of a token in the list.
fn facts(guarded: &mut Guarded, digit: &str) -> Option<Map> {
    let list = guarded.done("ann", Command::ListUserTokens { user: "ann".into(), with_metadata: true });
    list.get(&digit.repeat(64)).and_then(Value::as_map).cloned()
}

const HOUR: Span = Span::from_secs(3600);

#[test]
fn a_token_with_an_end_is_refused_after_it() {
    let mut guarded = Guarded::new();
    guarded.done("ann", issue("1", Some(HOUR)));
    guarded.done("ann", issue("2", None));
    let end = guarded.world.now + HOUR;
    let listed = facts(&mut guarded, "1").expect("it is there");
    let text = listed.get("valid_until").and_then(Value::as_str).expect("an end").to_owned();
    assert!(vocab::Time::parse(&text).expect("a time") <= end, "{text}");
    assert!(facts(&mut guarded, "2").is_some_and(|facts| !facts.contains("valid_until")));
    guarded.world.pass(Span::from_secs(3600 - 60));
    assert_eq!(who(&mut guarded, "1"), "ann");
    guarded.world.crash(0);
    guarded.world.restart();
    guarded.world.pass(Span::from_secs(61));
    let refused = who(&mut guarded, "1");
    assert!(refused.contains(&format!("the token has expired at {text}")), "{refused}");
    assert_eq!(who(&mut guarded, "2"), "ann", "a token without an end, as those of earlier releases");
    // A day later it is forgotten.
    guarded.world.pass(Span::from_secs(25 * 3600));
    assert!(who(&mut guarded, "1").contains("not known"));
    assert!(facts(&mut guarded, "1").is_none() && facts(&mut guarded, "2").is_some());
}

#[test]
fn an_end_is_between_now_and_a_hundred_years() {
    let mut guarded = Guarded::new();
    for ttl in [Span::ZERO, Span::from_secs(101 * 366 * 24 * 3600), Span::from_secs(u64::MAX / 1_000_000)] {
        let failure = guarded.ask("ann", issue("1", Some(ttl))).expect_err("refused");
        assert!(failure.message.starts_with("ttl: expected a time from 1 ms to 36500 d"), "{failure}");
    }
    assert!(facts(&mut guarded, "1").is_none());
    // An end that a superuser has spoilt has passed.
    guarded.done("ann", issue("1", Some(HOUR)));
    guarded.done("root", set(&format!("//sys/tokens/{}/@valid_until", "1".repeat(64)), "soon"));
    assert!(who(&mut guarded, "1").contains("expired"));
}

#[test]
fn a_rotated_token_is_replaced_at_once() {
    let mut guarded = Guarded::new();
    guarded.done("ann", issue("1", Some(HOUR)));
    guarded.world.pass(Span::from_secs(600));
    guarded.done("ann", rotate("1", "2", None, None));
    assert!(who(&mut guarded, "1").contains("not known"));
    assert_eq!(who(&mut guarded, "2"), "ann");
    // Repeated, since the answer was lost.
    guarded.done("ann", rotate("1", "2", None, None));
    let listed = facts(&mut guarded, "2").expect("it is there");
    assert_eq!(listed.get("description").and_then(Value::as_str), Some("nightly"));
    // It is valid for as long as the first one was at its beginning.
    guarded.world.pass(Span::from_secs(3600 - 60));
    assert_eq!(who(&mut guarded, "2"), "ann");
    guarded.world.pass(Span::from_secs(61));
    assert!(who(&mut guarded, "2").contains("expired"));
    let failure = guarded.ask("ann", rotate("2", "3", None, None)).expect_err("it has ended");
    assert!(failure.message.contains("expired"), "{failure}");
    assert!(facts(&mut guarded, "3").is_none());
    assert_eq!(guarded.ask("ann", rotate("7", "3", None, None)).expect_err("unknown").code, 500);
}

#[test]
fn a_rotated_token_may_stay_for_a_while() {
    let mut guarded = Guarded::new();
    guarded.done("ann", issue("1", None));
    guarded.done("ann", rotate("1", "2", None, Some(HOUR)));
    guarded.world.crash(0);
    guarded.world.restart();
    assert_eq!((who(&mut guarded, "1"), who(&mut guarded, "2")), ("ann".into(), "ann".into()));
    guarded.world.pass(HOUR + Span::from_secs(1));
    assert!(who(&mut guarded, "1").contains("expired"));
    assert_eq!(who(&mut guarded, "2"), "ann");
    assert!(facts(&mut guarded, "2").is_some_and(|facts| !facts.contains("valid_until")));
    // A grace does not make a token live longer.
    guarded.done("ann", issue("3", Some(Span::from_secs(60))));
    guarded.done("ann", rotate("3", "4", Some(HOUR), Some(HOUR)));
    guarded.world.pass(Span::from_secs(61));
    assert!(who(&mut guarded, "3").contains("expired"));
    assert_eq!(who(&mut guarded, "4"), "ann");
}

#[test]
fn tokens_are_rotated_by_those_who_may_issue_them() {
    let mut guarded = Guarded::new();
    guarded.done("ann", issue("1", None));
    let failure = guarded.ask("bob", rotate("1", "2", None, None)).expect_err("not bob's");
    assert_eq!(failure.code, 901);
    guarded.done("adm", rotate("1", "2", None, None));
    assert_eq!(who(&mut guarded, "2"), "ann");
}
