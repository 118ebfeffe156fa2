//! `@effective_acl` of pools and trees: the entries that count, nearest first, as they are there.

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
