//! Accounts that nodes are charged to, and lists that are long: what they cost those who may use them.

use super::*;
use vocab::code::{ACCESS_DENIED, ACCOUNT_LIMIT};

/// S15. Permission `use` is asked for in every way in which a user gives a node an account.
#[test]
fn accounts_are_for_those_who_may_use_them() {
    let mut guarded = Guarded::new();
    guarded.done("root", create("account", None, "{name=rich}"));
    guarded.done("root", set("//sys/accounts/rich/@inherit_acl", "%false"));
    guarded.done("root", create("map_node", Some("//home/common/rich"), "{account=rich}"));
    guarded.done("root", create("document", Some("//home/common/paper"), "{value={}}"));
    let link = |attributes: &str| Command::Link {
        target: path("//home/common/note"),
        link: path("//home/common/link"),
        recursive: false,
        ignore_existing: false,
        force: false,
        attributes: map(attributes),
    };
    let preserving = |preserve_account: bool| Command::CopyMove {
        source: path("//home/common/rich"),
        destination: path("//home/common/richer"),
        remove_source: false,
        options: CopyOptions { preserve_account, ..CopyOptions::default() },
    };
    let ways = [
        create("map_node", Some("//home/common/new"), "{account=rich}"),
        create("map_node", Some("//home/common/new"), "{account=sys}"),
        set("//home/common/note/@account", "rich"),
        set("//home/common/new", "<account=rich>{}"),
        set("//home/common/new", "{a={b=<account=rich>1}}"),
        set("//home/common/new", "[<account=rich>1]"),
        link("{account=rich}"),
        preserving(true),
    ];
    for way in ways {
        let refused = guarded.ask("bob", way.clone()).expect_err("there is no permission to use it");
        assert_eq!(refused.code, ACCESS_DENIED, "{way:?}: {refused}");
        assert!(refused.message.contains("\"use\" permission for account"), "{way:?}: {refused}");
    }
    // In a document it is an attribute of a value.
    guarded.done("bob", set("//home/common/paper/a", "<account=rich>1"));
    guarded.done("bob", link("{}"));
    guarded.done("bob", preserving(false));
    guarded.done("bob", create("map_node", Some("//home/common/new"), "{account=default}"));
}

/// S15. Owners pay in accounts that all users share.
#[test]
fn nobody_makes_another_user_pay() {
    let mut guarded = Guarded::new();
    let preserving = |from: &str| Command::CopyMove {
        source: path(from),
        destination: path("//home/common/copy"),
        remove_source: false,
        options: CopyOptions { preserve_owner: true, ..CopyOptions::default() },
    };
    let ways = [
        create("map_node", Some("//home/common/new"), "{owner=root}"),
        set("//home/common/new", "<owner=ann>{}"),
        set("//home/common/new", "{a=<owner=ann>1}"),
        preserving("//home/common/note"),
    ];
    for way in ways {
        let refused = guarded.ask("bob", way.clone()).expect_err("bob does not administer it");
        assert_eq!(refused.code, ACCESS_DENIED, "{way:?}: {refused}");
        assert!(refused.message.contains("\"administer\" permission"), "{way:?}: {refused}");
    }
    guarded.done("bob", create("map_node", Some("//home/common/new"), "{owner=bob}"));
    guarded.done("bob", preserving("//home/common/new"));
    guarded.done("adm", create("map_node", Some("//home/common/anns"), "{owner=ann}"));
}

/// S15. Users cannot fill the account of the system, and what is in it does not stop the system.
#[test]
fn tokens_are_issued_however_full_the_accounts_are() {
    let mut guarded = Guarded::new();
    for account in ["sys", "default", "tmp"] {
        let limits = "{node_count=1; master_memory={total=1}; disk_space=0}";
        guarded.done("root", set(&format!("//sys/accounts/{account}/@resource_limits"), limits));
    }
    let refused = guarded.ask("ann", set("//home/ann/more", "1")).expect_err("the account is full");
    assert_eq!(refused.code, ACCOUNT_LIMIT);
    let issue = Command::IssueToken {
        user: "ann".into(),
        token_sha256: DIGEST.into(),
        description: Some("nightly".into()),
        ttl: None,
    };
    guarded.done("ann", issue);
    let alerts = guarded.done("root", get("//sys/scheduler/@alerts"));
    let alerts = alerts.as_list().expect("a list").iter().filter_map(|alert| {
        let attributes = alert.get("attributes")?;
        let of_account = attributes.get("alert_type")?.as_str()? == "account_over_limit";
        of_account.then(|| attributes.get("account")?.as_str().map(str::to_owned))?
    });
    assert_eq!(alerts.collect::<Vec<_>>(), ["default", "sys", "tmp"]);
}

/// S13. Nodes below one list have the decisions of that list; lists of their own count by their names.
#[test]
fn long_lists_on_many_nodes_are_not_all_looked_at() {
    let mut guarded = Guarded::with(|config| config.limits.max_values_per_read = 500);
    let entry = "{action=allow; subjects=[users]; permissions=[read; write; remove]};";
    let list = format!("{{acl=[{}]}}", entry.repeat(50));
    guarded.done("root", create("map_node", Some("//home/common/many"), &list));
    let children: String = (0..200).map(|n| format!("k{n}={n};")).collect();
    guarded.done("root", set("//home/common/many/m", &format!("{{{children}}}")));
    guarded.done("bob", get("//home/common/many"));
    for n in 0..100 {
        let own = "[{action=allow; subjects=[bob]; permissions=[read]}]";
        guarded.done("root", set(&format!("//home/common/many/m/k{n}/@acl"), own));
    }
    let many = |destination: &str| Command::CopyMove {
        source: path("//home/common/many"),
        destination: path(destination),
        remove_source: false,
        options: CopyOptions::default(),
    };
    for command in [get("//home/common/many"), remove("//home/common/many"), many("//home/common/more")] {
        let refused = guarded.ask("bob", command.clone()).expect_err("a hundred chains of fifty entries");
        assert!(refused.message.contains("whose permissions are looked at"), "{command:?}: {refused}");
    }
    guarded.done("root", get("//home/common/many"));
}

/// S13. A name that is given twice means nothing else than once.
#[test]
fn subjects_of_an_entry_are_kept_once() {
    let mut guarded = Guarded::new();
    let own = "[{action=allow; subjects=[ann; bob; ann; ann]; permissions=[read]}]";
    guarded.done("root", set("//home/common/note/@acl", own));
    let kept = guarded.done("root", get("//home/common/note/@acl/0/subjects"));
    assert_eq!(kept, value("[ann; bob]"));
}
