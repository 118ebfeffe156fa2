//! `@effective_acl` of pools and trees, `@acl` of operations: the entries that count, nearest first, as they are there.

use super::*;

/// `subjects:permissions:mode` of each entry.
fn entries(list: &Value) -> Vec<String> {
    let words = |ace: &Value, key: &str| {
        let words = ace.get(key).and_then(Value::as_list).expect("a list");
        words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
    };
    let list = list.as_list().expect("a list");
    list.iter()
        .map(|ace| {
            let mode = ace.get("inheritance_mode").and_then(Value::as_str).expect("a mode");
            format!("{}:{}:{mode}", words(ace, "subjects"), words(ace, "permissions"))
        })
        .collect()
}

#[test]
fn pools_tell_which_entries_count() {
    let mut guarded = Guarded::new();
    let at = |pool: &str| format!("//sys/pool_trees/physical{pool}/@effective_acl");
    let above = entries(&guarded.done("root", get("//sys/pool_trees/@effective_acl")));
    assert!(above.contains(&"users:use:object_and_descendants".to_owned()), "{above:?}");
    let with = |own: &[&str], above: &[String]| -> Vec<String> {
        own.iter().map(|s| (*s).to_owned()).chain(above.iter().cloned()).collect()
    };
    let everywhere = "object_and_descendants";
    // A tree has no list of its own.
    assert_eq!(entries(&guarded.done("root", get(&at("")))), above);
    let own = format!("team:write,use:{everywhere}");
    assert_eq!(entries(&guarded.done("root", get(&at("/p")))), with(&[&own], &above));
    assert_eq!(entries(&guarded.done("root", get(&at("/p/inner")))), [""; 0], "it takes nothing from above");

    guarded.done("root", set("//sys/pool_trees/physical/p/inner/@inherit_acl", "%true"));
    let entry = |subject: &str, mode: &str| {
        format!("{{action=allow; subjects=[{subject}]; permissions=[use]; inheritance_mode={mode}}}")
    };
    let modes = ["object_only", "immediate_descendants_only", "descendants_only"];
    let list: Vec<String> = ["ann", "bob", "adm"].iter().zip(modes).map(|(s, m)| entry(s, m)).collect();
    guarded.done("root", set("//sys/pool_trees/physical/p/@acl", &format!("[{}]", list.join(";"))));
    guarded
        .done("root", create("scheduler_pool", None, "{name=leaf; pool_tree=physical; parent_name=inner}"));
    for (pool, own) in [
        ("/p", vec!["ann:use:object_only", "bob:use:immediate_descendants_only", "adm:use:descendants_only"]),
        ("/p/inner", vec!["bob:use:object_only", "adm:use:object_and_descendants"]),
        ("/p/inner/leaf", vec!["adm:use:object_and_descendants"]),
    ] {
        assert_eq!(entries(&guarded.done("root", get(&at(pool)))), with(&own, &above), "{pool}");
    }

    // Among all attributes it is not computed; by name, alone or in a list, it is.
    let all = guarded.done("root", get("//sys/pool_trees/physical/p/@"));
    assert_eq!(all.get("effective_acl"), Some(&Value::Entity));
    let asked = |attributes: &[&str]| Command::Get {
        path: path("//sys/pool_trees/physical/p/@"),
        attributes: attributes.iter().map(|a| (*a).to_owned()).collect(),
        max_size: None,
        fields: None,
    };
    let both = guarded.done("root", asked(&["acl", "effective_acl"]));
    let both = both.as_map().expect("a map");
    assert_eq!(both.len(), 2);
    assert_eq!(entries(both.get("acl").expect("its own")).len(), 3);
    assert_eq!(entries(both.get("effective_acl").expect("all")).len(), 3 + above.len());
    let dressed = guarded.done("root", get_with("//sys/pool_trees/physical/p", "effective_acl"));
    for pool in [&dressed, dressed.get("inner").expect("a child")] {
        let told = pool.attributes().and_then(|a| a.get("effective_acl")).expect("told");
        assert!(told.as_list().is_some_and(|list| list.len() > above.len()), "{told:?}");
    }
    let refused = guarded.ask("root", set(&at("/p"), "[]"));
    assert!(refused.is_err_and(|e| e.message.contains("effective_acl")), "it follows from the lists");
}

/// The attributes that the tree has of an operation, of one that is over those that are not in its record.
fn in_tree(guarded: &mut Guarded, at: &str, attributes: &[&str]) -> Map {
    let command = Command::Get {
        path: path(&format!("{at}/@")),
        attributes: attributes.iter().map(|a| (*a).to_owned()).collect(),
        max_size: None,
        fields: None,
    };
    match guarded.ask("bob", command) {
        Ok(Body::Value(Value::Map(map))) | Ok(Body::ArchivedOperation { node: map, .. }) => map,
        other => panic!("{other:?}"),
    }
}

#[test]
fn operations_tell_which_entries_count() {
    let mut guarded = Guarded::new();
    let operation = guarded.operation;
    let at = format!("#{operation}");
    let of_all = entries(&guarded.done("root", get("//sys/operations/@acl")));
    assert!(!of_all.is_empty(), "admins");
    let everywhere = "object_and_descendants";
    let expected = |own: &[&str]| -> Vec<String> {
        own.iter().map(|entry| format!("{entry}:{everywhere}")).chain(of_all.iter().cloned()).collect()
    };
    let whole = expected(&["ann:read,manage", "adm:read"]);
    let all = in_tree(&mut guarded, &at, &[]);
    assert_eq!(entries(all.get("acl").expect("told")), whole);
    assert_eq!(all.get("effective_acl"), Some(&Value::Entity), "not among all of them");
    let named = in_tree(&mut guarded, &at, &["acl", "effective_acl"]);
    assert_eq!(named.get("acl"), named.get("effective_acl"));
    assert_eq!(entries(&guarded.done("bob", get(&format!("{at}/@effective_acl")))), whole);
    let dressed = guarded.done("bob", get_with(&at, "acl"));
    assert_eq!(entries(dressed.attributes().and_then(|a| a.get("acl")).expect("told")), whole);

    let parameters = map("{acl=[{action=allow; subjects=[team]; permissions=[manage]}]; owners=[bob]}");
    let operation = OperationRef::Id(operation);
    guarded.done("ann", Command::UpdateOperationParameters { operation: operation.clone(), parameters });
    let changed = expected(&["ann:read,manage", "team:manage", "bob:read,manage"]);
    assert_eq!(entries(&guarded.done("bob", get(&format!("{at}/@acl")))), changed);
    guarded.done("ann", Command::AbortOperation { operation, message: None });
    for life in 0..2 {
        let over = in_tree(&mut guarded, &at, &["acl", "effective_acl"]);
        assert_eq!(entries(over.get("acl").expect("told")), changed, "life {life}");
        assert_eq!(over.get("acl"), over.get("effective_acl"), "life {life}");
        guarded.world.crash(usize::MAX);
        guarded.world.restart();
    }
}

/// By whatever path: the answer is that of `check_operation_permission`, and says whose entry it was.
#[test]
fn check_permission_of_operations() {
    let mut guarded = Guarded::new();
    let operation = guarded.operation;
    let place = guarded.done("bob", get(&format!("#{operation}/@path")));
    let place = place.as_str().expect("a path").to_owned();
    let check = |guarded: &mut Guarded, user: &str, permission: &str, at: &str| {
        let command = Command::CheckPermission {
            user: user.into(),
            permission: permission.into(),
            path: path(at),
            columns: None,
        };
        guarded.ask("bob", command)
    };
    let paths = [place.clone(), format!("//sys/operations/{operation}"), format!("#{operation}")];
    for life in 0..3 {
        for user in ["ann", "bob", "adm", "sup", "root"] {
            for permission in ["read", "manage"] {
                let command = Command::CheckOperationPermission {
                    user: user.into(),
                    permission: permission.into(),
                    operation: OperationRef::Id(operation),
                };
                let expected = guarded.done("bob", command);
                for at in paths.iter().flat_map(|at| [at.clone(), format!("{at}/@state")]) {
                    let Ok(Body::Value(told)) = check(&mut guarded, user, permission, &at) else {
                        panic!("{user} {permission} {at}")
                    };
                    assert_eq!(told.get("action"), expected.get("action"), "{user} {permission} {at} {life}");
                }
            }
        }
        match life {
            0 => {
                let operation = OperationRef::Id(operation);
                guarded.done("ann", Command::AbortOperation { operation, message: None });
            }
            _ => {
                guarded.world.crash(usize::MAX);
                guarded.world.restart();
            }
        }
    }
    let Ok(Body::Value(told)) = check(&mut guarded, "ann", "manage", &paths[1]) else { panic!("an answer") };
    assert_eq!(
        (told.get("object_id"), told.get("object_name"), told.get("subject_name")),
        (Some(&operation.into()), Some(&place.as_str().into()), Some(&"ann".into()))
    );
    // The map itself is a node like any other, and what is not there has no list.
    let Ok(Body::Value(told)) = check(&mut guarded, "bob", "read", "//sys/operations") else {
        panic!("an answer")
    };
    assert_eq!(told.get("action"), Some(&"allow".into()));
    for nothing in [format!("{place}/nothing"), "//sys/operations/1-2-103e8-9".to_owned()] {
        let refused = check(&mut guarded, "bob", "read", &nothing).expect_err("nothing is there");
        assert_eq!(refused.code, 500, "{nothing}: {refused}");
    }
}

/// Options that are shown though others decide about them.
#[test]
fn the_full_spec_of_an_operation() {
    let mut guarded = Guarded::new();
    let operation = OperationRef::Id(guarded.operation);
    let existence = "require_specified_pools_existence";
    let shown = |guarded: &mut Guarded| {
        let attributes = Some(vec!["full_spec".to_owned(), "unrecognized_spec".to_owned()]);
        let told = guarded.done("bob", Command::GetOperation { operation: operation.clone(), attributes });
        assert_eq!(told.get("unrecognized_spec"), Some(&Map::new().into()));
        let full = told.get("full_spec").expect("told").clone();
        (full.get(existence).and_then(Value::as_bool), full.get("add_authenticated_user_to_acl").cloned())
    };
    assert_eq!(shown(&mut guarded), (Some(false), Some(true.into())));
    guarded.done("root", set("//sys/scheduler/config/require_specified_operation_pools_existence", "%true"));
    assert_eq!(shown(&mut guarded).0, Some(true));
}
