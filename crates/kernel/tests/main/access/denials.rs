//! Refused changes and refused sign-ins in the audit log.

use super::*;
use kernel::{Input, RefusedSignIn};

/// `user action what` of every denied record, oldest first.
fn denials(guarded: &Guarded) -> Vec<String> {
    let denied = guarded.world.log.iter().filter(|event| event.get("denied").is_some());
    denied
        .map(|event| {
            let word = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or("-").to_owned();
            assert_eq!(word("event"), "audit");
            assert!(event.get("error").and_then(|error| error.get("message")).is_some(), "{event:?}");
            let about = ["path", "pool", "of", "operation", "transaction_id", "address"];
            let about = about.into_iter().find(|key| event.contains(*key)).map_or("-".to_owned(), word);
            format!("{} {} {about}", word("user"), word("action"))
        })
        .collect()
}

/// S11.
#[test]
fn changes_that_are_denied_are_in_the_audit_log() {
    let mut guarded = Guarded::new();
    let transaction = guarded.done("ann", Command::StartTransaction(Box::default()));
    let transaction: vocab::ObjectId =
        transaction.get("transaction_id").and_then(|id| id.as_str()?.parse().ok()).expect("an id");
    let hash = || Command::SetUserPassword { user: "ann".into(), hash: "planted".into() };
    let operation = OperationRef::Id(guarded.operation);
    let refused = [
        set("//sys/@x", "1"),
        remove("//home/ann/secret"),
        start("q", ""),
        Command::LocateFile { path: path("//home/ann/secret"), to_write: true },
        Command::Authorize(Box::new(hash())),
        hash(),
        Command::AbortOperation { operation, message: None },
        Command::CommitTransaction { transaction },
        set("//tmp/x", "1").under(Some(transaction), Vec::new()),
    ];
    for command in refused {
        let failure = guarded.ask("bob", command.clone()).expect_err("denied");
        assert_eq!(failure.code, 901, "{command:?}");
    }
    // Questions, and changes that fail for other reasons, are no denied changes.
    for (command, code) in [(get("//home/ann/secret"), 901), (remove("//tmp/nothing"), 500)] {
        assert_eq!(guarded.ask("bob", command).expect_err("refused").code, code);
    }
    guarded.done("ann", set("//home/ann/secret", "8"));
    let operation = guarded.operation;
    let expected = [
        "bob set //sys/@x".to_owned(),
        "bob remove //home/ann/secret".into(),
        "bob start_operation q".into(),
        "bob write_file //home/ann/secret".into(),
        "bob set_user_password ann".into(),
        "bob set_user_password ann".into(),
        format!("bob abort_operation {operation}"),
        format!("bob commit_transaction {transaction}"),
        "bob set //tmp/x".into(),
    ];
    assert_eq!(denials(&guarded), expected);
    let texts = guarded.world.log.iter().map(|event| yson::to_text(&Value::Map(event.clone())));
    assert!(texts.into_iter().all(|text| !String::from_utf8_lossy(&text).contains("planted")));
    guarded.world.crash(0);
    guarded.world.restart();
    assert_eq!(denials(&guarded), expected);
}

/// S11: an object that is hidden from the user, named by its id.
#[test]
fn a_change_of_something_hidden_is_in_the_audit_log() {
    let mut guarded = Guarded::new();
    let id = guarded.done("root", get("//home/ann/secret/@id"));
    let hidden = format!("#{}", id.as_str().expect("an id"));
    assert_eq!(guarded.ask("bob", set(&hidden, "1")).expect_err("hidden").code, 500);
    assert_eq!(guarded.ask("bob", get(&hidden)).expect_err("hidden").code, 500);
    assert_eq!(denials(&guarded), [format!("bob set {hidden}")]);
}

/// S11.
#[test]
fn sign_ins_that_are_refused_are_in_the_audit_log() {
    let mut guarded = Guarded::new();
    let refused = |shown, user: Option<&str>, unreported| {
        Input::SignInRefused(Box::new(RefusedSignIn {
            shown,
            user: user.map(str::to_owned),
            address: "10.0.0.7".parse().ok(),
            error: Failure::coded(111, "Invalid credentials"),
            retry_after: Some(Span::from_secs(4)),
            unreported,
        }))
    };
    guarded.world.inputs.push_back(refused("password", Some("ann"), 0));
    guarded.world.inputs.push_back(refused("token", None, 17));
    guarded.world.settle();
    guarded.world.crash(0);
    guarded.world.restart();
    assert_eq!(denials(&guarded), ["ann sign_in 10.0.0.7", "- sign_in 10.0.0.7"]);
    let last = guarded.world.log.last().expect("a record");
    let number = |key: &str| last.get(key).and_then(Value::as_i64);
    assert_eq!((number("retry_after"), number("unreported")), (Some(4_000), Some(17)));
    assert_eq!(last.get("shown").and_then(Value::as_str), Some("token"));
}
