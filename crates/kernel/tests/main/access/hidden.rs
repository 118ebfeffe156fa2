//! What may not be looked at gives nothing away: not by other commands, not by links, not by asking about it.

use super::*;

fn link(target: &str, at: &str, force: bool) -> Command {
    Command::Link {
        target: path(target),
        link: path(at),
        recursive: true,
        ignore_existing: false,
        force,
        attributes: Map::new(),
    }
}

fn make_unless_there(at: &str) -> Command {
    match create("document", Some(at), "{}") {
        Command::Create { object_type, path, attributes, recursive, force, .. } => Command::Create {
            object_type,
            path,
            attributes,
            recursive,
            ignore_existing: true,
            force,
            ignore_type_mismatch: false,
            lock_existing: false,
        },
        other => other,
    }
}

fn permission(user: &str, at: &str) -> Command {
    Command::CheckPermission { user: user.into(), permission: "read".into(), path: path(at), columns: None }
}

/// What is closed to `bob` and is there answers as what is closed and is not.
#[test]
fn what_is_there_answers_as_what_is_not() {
    let mut guarded = Guarded::new();
    // What has a list of its own is no exception.
    let own = "[{action=deny; subjects=[bob]; permissions=[read; write]}]";
    guarded.done("root", set("//home/ann/secret/@acl", own));
    // Nor is a link, wherever it leads to.
    let id = guarded.done("root", get("//home/ann/secret/@id")).as_str().expect("a string").to_owned();
    guarded.done("root", link(&format!("#{id}"), "//home/ann/way", true));
    guarded.done("root", link("#1-2-3-4", "//home/ann/lost-way", true));
    type Ask = fn(&str) -> Command;
    let asks: [(&str, Ask); 6] = [
        ("get", |at| get(at)),
        ("set", |at| set(&format!("{at}/@title"), "1")),
        ("no attributes", |at| multiset(at, "{}")),
        ("a link", |at| link(at, "//tmp/plain", false)),
        ("his own permission", |at| permission("bob", at)),
        ("somebody's permission", |at| permission("ann", at)),
    ];
    for (name, ask) in asks {
        let mut answer = |at: &str| match guarded.ask("bob", ask(at)) {
            Ok(Body::Value(value)) => format!("{value:?}"),
            Ok(_) => "something".to_owned(),
            Err(failure) => format!("{} {failure}", failure.code).replace(at, "PATH"),
        };
        let there = answer("//home/ann/secret");
        assert_eq!(there, answer("//home/ann/nothing"), "{name}");
        assert_eq!(there, answer("//home/ann/secret/inside"), "{name}");
        assert_eq!(there, answer("//home/ann/way"), "{name}");
        assert_eq!(there, answer("//home/ann/lost-way"), "{name}");
        assert_eq!(there, answer("//home/ann/lost-way/inside"), "{name}");
        assert!(!there.contains("home"), "{name}: {there}");
    }
    // Who may look is told as before.
    assert_eq!(guarded.ask("ann", permission("bob", "//home/ann/nothing")).expect_err("missing").code, 500);
    let told = guarded.done("ann", permission("ann", "//home/ann/secret"));
    assert_eq!(told.get("action").and_then(Value::as_str), Some("allow"));
    assert_eq!(told.get("object_name").and_then(Value::as_str), Some("//home/ann"));
}

/// Nor does its id say that it is there: of a node, of a pool, whatever is asked, and through links as well.
#[test]
fn an_id_is_no_way_around() {
    let mut guarded = Guarded::new();
    let closed = "[{action=deny; subjects=[bob]; permissions=[read; write; administer; remove; manage]}]";
    let pool = format!("{{name=hidden; pool_tree=physical; acl={closed}}}");
    let pool = guarded.done("root", create("scheduler_pool", None, &pool));
    let pool = pool.get("object_id").or(Some(&pool)).and_then(Value::as_str).expect("an id").to_owned();
    let node = guarded.done("ann", get("//home/ann/secret/@id")).as_str().expect("a string").to_owned();
    // With what is open to him, the operations that are asked for below do start.
    for at in ["//tmp/in", "//tmp/out"] {
        guarded.done("root", create("table", Some(at), "{}"));
    }
    for operation in operations("//tmp/in", "//tmp/out") {
        guarded.done("bob", operation);
    }
    let table = guarded.done("root", create("table", Some("//home/ann/table"), "{}"));
    let table = table.get("node_id").and_then(Value::as_str).expect("an id").to_owned();
    for id in [node, pool, table] {
        let nobody: vocab::ObjectId =
            id.chars().rev().collect::<String>().parse().expect("an id backwards is one");
        let nobody = nobody.to_string();
        for through_links in [false, true] {
            let base = |id: &str| if through_links { format!("//tmp/to-{id}") } else { format!("#{id}") };
            let questions = questions(&base(&id)).into_iter().zip(questions(&base(&nobody)));
            for (number, (hidden, missing)) in questions.enumerate() {
                let shown = format!("{number}: {hidden:?}");
                let mut answer = |command: Command, id: &str| {
                    // It may be there no more since the last question.
                    guarded.done("bob", link(&format!("#{id}"), &format!("//tmp/to-{id}"), true));
                    match guarded.ask("bob", command) {
                        Ok(Body::Value(value)) => without_ids(&format!("{value:?}"), id),
                        Ok(_) => "something".to_owned(),
                        Err(failure) => without_ids(&format!("{} {failure}", failure.code), id),
                    }
                };
                let hidden = answer(hidden, &id);
                assert_eq!(hidden, answer(missing, &nobody), "{shown}");
                assert!(!hidden.contains("901"), "{shown}: {hidden}");
            }
        }
        guarded.done("root", get(&format!("#{id}/@type")));
    }
    // What may be known is refused by its list as before.
    let known = guarded.done("root", get("//sys/users/ann/@id")).as_str().expect("a string").to_owned();
    guarded.done("bob", get(&format!("#{known}/@name")));
    assert_eq!(guarded.ask("bob", remove(&format!("#{known}"))).expect_err("no").code, 901);
    // What is open below something closed is found from there.
    guarded.done("root", create("map_node", Some("//home/ann/shut"), &format!("{{acl={closed}}}")));
    let open = "{inherit_acl=%false; acl=[{action=allow; subjects=[bob]; permissions=[read]}]}";
    guarded.done("root", create("document", Some("//home/ann/shut/open"), open));
    let shut = guarded.done("root", get("//home/ann/shut/@id")).as_str().expect("a string").to_owned();
    for (rest, there) in [("/open", true), ("/inside", false), ("", false)] {
        let exists = Command::Exists { path: path(&format!("#{shut}{rest}")) };
        assert_eq!(guarded.done("bob", exists), there.into(), "{rest}");
    }
}

/// Without the id that was asked for, and without those that objects get when they are made.
fn without_ids(text: &str, id: &str) -> String {
    let text = text.replace(id, "ID");
    let is_id =
        |word: &str| word.split('-').count() == 4 && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    text.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .map(
            |word| {
                if is_id(word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric())) { "NEW" } else { word }
            },
        )
        .collect()
}

/// All that can be asked about a path.
fn questions(base: &str) -> Vec<Command> {
    let at = |rest: &str| format!("{base}{rest}");
    let place = || path(base);
    let with_force = |command: Command| match command {
        Command::Create { object_type, path, attributes, .. } => Command::Create {
            object_type,
            path,
            attributes,
            recursive: true,
            ignore_existing: false,
            force: true,
            ignore_type_mismatch: false,
            lock_existing: false,
        },
        other => other,
    };
    let moved = |command: Command| match command {
        Command::CopyMove { source, destination, options, .. } => {
            Command::CopyMove { source, destination, remove_source: true, options }
        }
        other => other,
    };
    let mut questions = vec![
        get(&at("")),
        get(&at("/@type")),
        get(&at("/inside")),
        get_with(&at(""), "id"),
        Command::List { path: place(), attributes: Vec::new(), max_size: None },
        Command::Exists { path: place() },
        Command::Exists { path: path(&at("/@id")) },
        Command::Exists { path: path(&at("/inside")) },
        set(&at("/@title"), "1"),
        set_force(&at(""), "{}"),
        multiset(&at(""), "{a=1}"),
        multiset(&at(""), "{}"),
        remove(&at("")),
        remove(&at("/inside")),
        Command::Remove { path: place(), recursive: true, force: true },
        Command::Remove { path: path(&at("/inside")), recursive: true, force: true },
        create("document", Some(&at("")), "{}"),
        create("document", Some(&at("/new")), "{}"),
        create("user", Some(&at("/new")), "{name=new}"),
        create("scheduler_pool", Some(&at("/new")), "{name=new; pool_tree=physical}"),
        with_force(create("document", Some(&at("/new")), "{}")),
        make_unless_there(&at("")),
        copy(&at(""), "//tmp/copy"),
        moved(copy(&at(""), "//tmp/copy")),
        copy("//tmp/plain", &at("/copy")),
        link(&at(""), "//tmp/way", false),
        link(&at("/inside"), "//tmp/way", true),
        link("//tmp", &at("/way"), true),
        permission("bob", &at("")),
        permission("ann", &at("")),
        permission("ann", &at("/@name")),
        Command::LocateFile { path: place(), to_write: true },
        Command::LocateTable { path: place(), to_write: false },
        Command::AlterTable { path: place(), schema: value("[]") },
        Command::FileWritten { path: place(), blob: 1, size: 1, md5: None, behind: None },
        Command::GetTableColumnarStatistics { paths: vec![place()] },
        Command::Concatenate {
            sources: vec![place()],
            destination: path("//tmp/plain"),
            append: false,
            joined: None,
        },
        Command::GetFileFromCache { md5: "0".repeat(32), cache_path: place() },
        Command::PutFileToCache {
            path: place(),
            md5: "0".repeat(32),
            cache_path: path("//tmp"),
            preserve_expiration_timeout: false,
        },
        Command::Authorize(Box::new(get(&at("")))),
    ];
    questions.push(vanilla(base));
    questions.extend(operations(base, "//tmp/out"));
    questions.extend(operations("//tmp/in", base));
    questions
}

fn operation(operation_type: OperationType, more: &str) -> Command {
    Command::StartOperation { operation_type, spec: map(&format!("{{pool=p; {more}}}")) }
}

fn vanilla(file: &str) -> Command {
    let task = format!("t={{job_count=1; command=\"true\"; file_paths=[\"{file}\"]}}");
    operation(OperationType::Vanilla, &format!("tasks={{{task}}}"))
}

/// Every way to read one table and write another one.
fn operations(from: &str, to: &str) -> Vec<Command> {
    let map =
        format!("mapper={{command=cat}}; input_table_paths=[\"{from}\"]; output_table_paths=[\"{to}\"]");
    let merge = |more: &str| {
        let more = format!("input_table_paths=[\"{from}\"]; output_table_path=\"{to}\"; {more}");
        operation(OperationType::Merge, &more)
    };
    vec![
        operation(OperationType::Map, &map),
        merge("mode=unordered"),
        merge("mode=ordered"),
        merge("mode=unordered; force_transform=%true"),
        merge("mode=sorted; merge_by=[a]"),
    ]
}

/// The id of what a link leads to is an answer, too.
#[test]
fn a_link_opens_nothing() {
    let mut guarded = Guarded::new();
    guarded.done("bob", link("//home/ann/paper", "//tmp/door", true));
    assert_eq!(guarded.ask("bob", make_unless_there("//tmp/door")).expect_err("closed").code, 901);
    assert_eq!(guarded.ask("bob", get("//tmp/door")).expect_err("closed").code, 901);
    guarded.done("ann", make_unless_there("//tmp/door"));
}

/// Nor does it tell whether there is anything behind it.
#[test]
fn a_link_does_not_tell_what_is_behind_it() {
    let mut guarded = Guarded::new();
    guarded.done("bob", link("//home/ann/paper", "//tmp/links/there", true));
    guarded.done("bob", link("//home/ann/nothing", "//tmp/links/missing", true));
    guarded.done("bob", create("document", Some("//tmp/paper"), "{}"));
    guarded.done("bob", link("//tmp/paper", "//tmp/links/open", true));
    guarded.done("bob", link("//tmp/nothing", "//tmp/links/lost", true));
    let asks = |name: &str| {
        let at = format!("//tmp/links/{name}&");
        [
            get(&format!("{at}/@broken")),
            get(&format!("{at}/@")),
            with_broken(&at, true),
            with_broken(&at, false),
        ]
    };
    for (number, (there, missing)) in asks("there").into_iter().zip(asks("missing")).enumerate() {
        let mut told = |command: Command| match guarded.ask("bob", command) {
            Ok(Body::Value(value)) => broken_in(&value),
            Ok(_) => panic!("a value"),
            Err(failure) => panic!("{failure}"),
        };
        assert_eq!((told(there), told(missing)), (vec![true], vec![true]), "question {number}");
    }
    let all = |command: Command, guarded: &mut Guarded, user: &str| broken_in(&guarded.done(user, command));
    for deep in [true, false] {
        // Sorted by name: lost, missing, open, there.
        let ask = || with_broken("//tmp/links", deep);
        assert_eq!(all(ask(), &mut guarded, "bob"), [true, true, false, true], "deep: {deep}");
        assert_eq!(all(ask(), &mut guarded, "ann"), [true, true, false, false], "deep: {deep}");
    }
}

fn with_broken(at: &str, deep: bool) -> Command {
    let attributes = vec!["broken".to_owned()];
    // What is no map is not listed, but asked for as it is.
    match deep || at.ends_with('&') {
        true => Command::Get { path: path(at), attributes, max_size: None, fields: None },
        false => Command::List { path: path(at), attributes, max_size: None },
    }
}

/// What is said of `broken` anywhere in an answer.
fn broken_in(value: &Value) -> Vec<bool> {
    let of = |value: &Value| value.attributes().and_then(|a| a.get("broken")).and_then(Value::as_bool);
    let mut found: Vec<bool> = of(value).or(value.as_bool()).into_iter().collect();
    found.extend(value.get("broken").filter(|v| !v.is_entity()).and_then(Value::as_bool));
    found.extend(value.as_list().into_iter().flatten().filter_map(of));
    found.extend(value.as_map().into_iter().flat_map(|m| m.iter()).filter_map(|(_, v)| of(v)));
    found
}

/// Who may write a file or a table needs not be one who may read it.
#[test]
fn to_write_is_not_to_read() {
    let mut guarded = Guarded::new();
    guarded.done("root", create("file", Some("//tmp/box"), "{}"));
    guarded.done("root", create("table", Some("//tmp/rows"), "{}"));
    for at in ["//tmp/box", "//tmp/rows"] {
        guarded.done(
            "root",
            set(&format!("{at}/@acl"), "[{action=deny;subjects=[bob];permissions=[read]};{action=allow;subjects=[bob];permissions=[write]}]"),
        );
    }
    let file = |to_write| Command::LocateFile { path: path("//tmp/box"), to_write };
    let table = |to_write| Command::LocateTable { path: path("//tmp/rows"), to_write };
    for (to_write, to_read) in [(file(true), file(false)), (table(true), table(false))] {
        assert_eq!(guarded.ask("bob", to_read).expect_err("not to be read").code, 901);
        guarded.done("bob", to_write);
    }
}

/// What was appended to the content of somebody else would hide what came meanwhile.
#[test]
fn nothing_is_appended_to_what_was() {
    let mut guarded = Guarded::new();
    guarded.done("root", create("file", Some("//tmp/log"), "{}"));
    let written =
        |blob, behind| Command::FileWritten { path: path("//tmp/log"), blob, size: blob, md5: None, behind };
    guarded.done("root", written(1, Some(0)));
    guarded.done("root", written(2, Some(1)));
    let refused = guarded.ask("root", written(3, Some(1))).expect_err("it has content 2 by now");
    assert_eq!(refused.code, vocab::code::LOCK_CONFLICT);
    assert_eq!(guarded.done("root", get("//tmp/log/@uncompressed_data_size")).as_u64(), Some(2));
    guarded.done("root", written(4, None));
}

/// Whoever may write users must not let in one who may do everything.
#[test]
fn who_may_do_everything_stays_banned() {
    let mut guarded = Guarded::new();
    guarded.done("root", set("//sys/users/sup/@banned", "%true"));
    let wipes =
        [set("//sys/users/sup/@", "{}"), remove("//sys/users/sup/@*"), multiset("//sys/users/sup", "{}")];
    for wipe in wipes {
        assert!(
            guarded.ask("adm", wipe.clone()).is_err() || matches!(wipe, Command::MultisetAttributes { .. })
        );
        let banned = guarded.done("root", get("//sys/users/sup/@banned"));
        assert_eq!(banned.as_bool(), Some(true), "{wipe:?}");
    }
}

/// A cache is a place as any other: what it leads to, and what would be replaced, has its own lists.
#[test]
fn a_cache_is_no_way_around() {
    const MD5: &str = "900150983cd24fb0d6963f7d28e17f72";
    let mut guarded = Guarded::new();
    let put = || Command::PutFileToCache {
        path: path("//tmp/file"),
        md5: MD5.to_owned(),
        cache_path: path("//tmp/cache"),
        preserve_expiration_timeout: false,
    };
    guarded.done("root", create("file", Some("//tmp/file"), "{}"));
    let written = Command::FileWritten {
        path: path("//tmp/file"),
        blob: 1,
        size: 3,
        md5: Some(MD5.to_owned()),
        behind: None,
    };
    guarded.done("root", written);
    guarded.done("root", create("map_node", Some("//tmp/cache"), "{}"));
    guarded.done("root", link("//home/ann", "//tmp/cache/72", true));
    assert_eq!(guarded.ask("bob", put()).expect_err("ann's").code, 901);
    guarded.done("root", remove("//tmp/cache/72"));
    guarded.done("root", set("//tmp/cache/72", &format!("{{\"{MD5}\"={{inside=1}}}}")));
    guarded.done(
        "root",
        set(&format!("//tmp/cache/72/{MD5}/@acl"), "[{action=deny;subjects=[bob];permissions=[remove]}]"),
    );
    assert_eq!(guarded.ask("bob", put()).expect_err("not to be removed").code, 901);
    guarded.done("root", remove("//tmp/cache/72"));
    guarded.done("bob", put());
    // It is there now: to have it again is no change of it.
    guarded.done("bob", put());
}

/// All tokens share one map.
#[test]
fn nobody_fills_the_map_of_tokens() {
    let mut guarded = Guarded::new();
    let issue = |number: usize| Command::IssueToken {
        user: "bob".into(),
        token_sha256: format!("{number:064x}"),
        description: None,
        ttl: None,
    };
    for number in 0..1000 {
        guarded.done("bob", issue(number));
    }
    let refused = guarded.ask("bob", issue(1000)).expect_err("too many").to_string();
    assert!(refused.contains("has 1000 tokens, at most 1000"), "{refused}");
    guarded.done("bob", Command::RevokeToken { user: "bob".into(), token_sha256: format!("{:064x}", 7) });
    guarded.done("bob", issue(1000));
}
