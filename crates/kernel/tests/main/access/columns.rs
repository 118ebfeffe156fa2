//! Lists that speak of columns of tables.

use super::*;

fn located(guarded: &mut Guarded, user: &str, at: &str) -> Vec<String> {
    let told = guarded.done(user, Command::LocateTable { path: path(at), to_write: false });
    let closed = told.get("closed_columns").and_then(Value::as_list).expect("a list");
    closed.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn copied(from: &str, to: &str) -> Command {
    Command::Concatenate { sources: vec![path(from)], destination: path(to), append: false, joined: None }
}

#[test]
fn columns_are_for_whom_their_entries_let_in() {
    let mut guarded = Guarded::new();
    let acl = "[{action=allow;subjects=[ann];permissions=[read];columns=[pay;name]};\
               {action=deny;subjects=[bob];permissions=[read];columns=[name]};\
               {action=allow;subjects=[users];permissions=[read];columns=[name]}]";
    guarded.done("root", create("map_node", Some("//tmp/hr"), &format!("{{acl={acl}}}")));
    guarded.done("root", create("table", Some("//tmp/hr/t"), "{}"));
    guarded.done("root", create("table", Some("//tmp/hr/out"), "{}"));
    // Who is let in, who is kept out, who is not spoken of, who may everything.
    for (user, closed) in [("ann", &[][..]), ("bob", &["name", "pay"]), ("adm", &["pay"]), ("root", &[])] {
        assert_eq!(located(&mut guarded, user, "//tmp/hr/t"), closed, "{user}");
    }
    for (user, code) in [("ann", None), ("bob", Some(901)), ("root", None)] {
        for command in
            [copy("//tmp/hr/t", &format!("//tmp/copy-{user}")), copied("//tmp/hr/t", "//tmp/hr/out")]
        {
            let shown = format!("{user}: {command:?}");
            assert_eq!(guarded.ask(user, command).err().map(|failure| failure.code), code, "{shown}");
        }
    }
    // What is closed is not read by jobs either, and what is open is.
    let map = |columns: &str| Command::StartOperation {
        operation_type: OperationType::Map,
        spec: map(&format!(
            "{{pool=p; mapper={{command=cat}}; input_table_paths=[\"//tmp/hr/t{columns}\"]; \
             output_table_paths=[\"//tmp/hr/out\"]}}"
        )),
    };
    let failure = guarded.ask("adm", map("{name,pay}")).expect_err("closed");
    assert!(failure.to_string().contains("column \"pay\" of"), "{failure}");
    guarded.done("adm", map("{name}"));
    assert!(guarded.ask("adm", map("")).is_err(), "all columns are more than are open");
    let ask = |user: &str, columns: &[&str]| Command::CheckPermission {
        user: user.into(),
        permission: "read".into(),
        path: path("//tmp/hr/t"),
        columns: Some(columns.iter().map(|c| (*c).to_owned()).collect()),
    };
    let told = guarded.done("root", ask("bob", &["name", "other"]));
    let actions: Vec<_> = told.get("columns").and_then(Value::as_list).expect("a list").iter().collect();
    let actions: Vec<_> = actions.iter().map(|c| c.get("action").and_then(Value::as_str)).collect();
    assert_eq!(actions, [Some("deny"), Some("allow")]);
    // A file in the same map has no columns; who was let in leaves the column closed behind him.
    guarded.done("root", create("file", Some("//tmp/hr/script"), "{}"));
    let task = "t={job_count=1; command=\"true\"; file_paths=[\"//tmp/hr/script\"]}";
    let spec = super::map(&format!("{{pool=p; tasks={{{task}}}}}"));
    guarded.done("adm", Command::StartOperation { operation_type: OperationType::Vanilla, spec });
    guarded.done("root", remove("//sys/users/ann"));
    assert_eq!(located(&mut guarded, "adm", "//tmp/hr/t"), ["pay"]);
    let odd = set("//tmp/hr/t/@acl", "[{action=allow;subjects=[bob];permissions=[write];columns=[a]}]");
    assert!(guarded.ask("root", odd).expect_err("no such thing").to_string().contains("\"read\""));
}
