//! `pool ...`.

use super::Session;
use crate::args::{PoolCommand, PoolMode, PoolOptions, PoolTreeArgs};
use crate::error::{CliError, nearest};
use crate::views::{Done, POOL_FIELDS, PoolExplanation, PoolForest, PoolTable, ROOT};
use client::Client;
use vocab::code;
use yson::ypath::escape_literal;
use yson::{Map, Value, map};

pub fn run(session: &Session, command: PoolCommand) -> Result<(), CliError> {
    let (client, screen) = (&session.client, &session.screen);
    match command {
        PoolCommand::List(args) => screen.show(&PoolTable(forest(client, &tree_name(client, &args)?)?)),
        PoolCommand::Tree(args) => screen.show(&forest(client, &tree_name(client, &args)?)?),
        PoolCommand::Explain { name, tree } => {
            let tree = tree_name(client, &tree)?;
            let (tree_step, pool_step) = (escape_literal(&tree), escape_literal(&name));
            let path = format!(
                "//sys/scheduler/orchid/scheduler/pool_trees/{tree_step}/pool_explanations/{pool_step}"
            );
            let explanation = client.get(&path, &[]).map_err(|error| {
                let missing = error.contains_code(code::RESOLVE_ERROR);
                missing.then(|| no_such_pool(client, &tree, &name)).flatten().unwrap_or_else(|| error.into())
            })?;
            match explanation.into_bare() {
                Value::Map(map) => screen.show(&PoolExplanation(map)),
                other => Err(CliError::failed(format!(
                    "the server's explanation is {}, expected a map",
                    other.type_name()
                ))),
            }
        }
        PoolCommand::Create { name, parent, ignore_existing, tree, options } => {
            let tree = tree_name(client, &tree)?;
            let mut attributes = map! {"name" => name.as_str(), "pool_tree" => tree.as_str()}
                .with_some("parent_name", parent.as_deref());
            for (path, value) in settings(&options) {
                insert(&mut attributes, &path, value)?;
            }
            client.create_object("scheduler_pool", attributes, ignore_existing).map_err(|error| {
                let missing = parent.as_deref().filter(|_| error.contains_code(code::RESOLVE_ERROR));
                match missing {
                    Some(parent) => no_such_pool(client, &tree, parent).unwrap_or_else(|| error.into()),
                    None if error.contains_code(code::ALREADY_EXISTS) => CliError::from(error)
                        .with_hint("change it with `millpond pool set`, or create it with --ignore-existing"),
                    None => error.into(),
                }
            })?;
            screen.show(&Done { verb: "created", names: vec![name] })
        }
        PoolCommand::Set { name, tree, options } => {
            let tree = tree_name(client, &tree)?;
            let path = pool_path(client, &tree, &name)?;
            let changes = settings(&options);
            if changes.is_empty() {
                return Err(CliError::usage("nothing to set").with_hint("e.g. --weight 2, or weight=2"));
            }
            client.set_attributes(&path, merged(client, &path, changes)?)?;
            screen.show(&Done { verb: "changed", names: vec![name] })
        }
        PoolCommand::Remove { names, recursive, tree } => {
            let tree = tree_name(client, &tree)?;
            for name in &names {
                let path = pool_path(client, &tree, name)?;
                client.remove(&path, recursive, false).map_err(|error| {
                    let error = CliError::from(error);
                    if recursive { error } else { error.with_hint("--recursive removes the pools below too") }
                })?;
            }
            screen.show(&Done { verb: "removed", names })
        }
    }
}

/// The tree that is meant.
pub(crate) fn tree_name(client: &Client, args: &PoolTreeArgs) -> Result<String, CliError> {
    match &args.tree {
        Some(tree) => Ok(tree.clone()),
        None => {
            let value = client.get("//sys/pool_trees/@default_tree", &[])?;
            value
                .as_str()
                .map(str::to_owned)
                .ok_or_else(|| CliError::failed("the cluster has no default tree"))
        }
    }
}

/// Pools of a tree as the scheduler sees them.
///
/// The scheduler's snapshot may be older than the caller's last command: pools that were created since then are added
/// with their settings, and removed ones left out.
pub(crate) fn forest(client: &Client, tree: &str) -> Result<PoolForest, CliError> {
    let path = format!("//sys/scheduler/orchid/scheduler/pool_trees/{}/pools", escape_literal(tree));
    let parameters = map! {"path" => path, "fields" => POOL_FIELDS.to_vec(), "return_only_value" => true};
    let reply = client.command("get", parameters, None).map_err(|error| {
        let unknown = error.contains_code(code::RESOLVE_ERROR);
        let names = client.list("//sys/pool_trees", &[]).unwrap_or_default();
        let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        let error = CliError::from(error);
        if unknown { error.with_hint(format!("pool trees are {}", names.join(", "))) } else { error }
    })?;
    match reply.into_bare() {
        Value::Map(mut pools) => {
            if let Ok(configured) =
                client.get(&format!("//sys/pool_trees/{}", escape_literal(tree)), &CONFIGURED)
            {
                bring_up_to_date(&mut pools, &configured);
            }
            Ok(PoolForest::new(tree, pools))
        }
        other => {
            Err(CliError::failed(format!("the server's pools are {}, expected a map", other.type_name())))
        }
    }
}

/// Settings that are shown of a pool that the scheduler has not looked at yet.
const CONFIGURED: [&str; 4] = ["mode", "weight", "max_operation_count", "max_running_operation_count"];

/// Makes a snapshot's pools those that `configured`, the pool tree in `//sys/pool_trees`, has now.
fn bring_up_to_date(pools: &mut Map, configured: &Value) {
    let mut now = Map::new();
    collect_settings(configured, ROOT, &mut now);
    let is_there = |name: &[u8], pool: &Value| {
        let is_ephemeral = || pool.as_map().and_then(|pool| pool.get("is_ephemeral")?.as_bool());
        name == ROOT.as_bytes() || now.contains(name) || is_ephemeral() == Some(true)
    };
    let mut current: Map =
        std::mem::take(pools).into_iter().filter(|(name, pool)| is_there(name, pool)).collect();
    for (name, pool) in now {
        current.entry_or_insert(name, || pool);
    }
    *pools = current;
}

fn collect_settings(configured: &Value, parent: &str, into: &mut Map) {
    for (name, below) in configured.as_map().into_iter().flat_map(Map::iter) {
        let settings = below.attributes().cloned().unwrap_or_default();
        into.insert(name, settings.with("parent", parent));
        collect_settings(below, &String::from_utf8_lossy(name), into);
    }
}

/// Where a pool is. Names are unique in a tree, so nobody should have to type paths.
pub(crate) fn pool_path(client: &Client, tree: &str, name: &str) -> Result<String, CliError> {
    let root = format!("//sys/pool_trees/{}", escape_literal(tree));
    let tree_value = client.get(&root, &[])?;
    if let Some(path) = find_pool(&tree_value, name, &root) {
        return Ok(path);
    }
    Err(unknown_pool(name, tree, &tree_value))
}

/// The error for a pool that is not there, if it is indeed not there.
pub(crate) fn no_such_pool(client: &Client, tree: &str, name: &str) -> Option<CliError> {
    let tree_value = client.get(&format!("//sys/pool_trees/{}", escape_literal(tree)), &[]).ok()?;
    match find_pool(&tree_value, name, "") {
        Some(_) => None,
        None => Some(unknown_pool(name, tree, &tree_value)),
    }
}

fn find_pool(value: &Value, name: &str, path: &str) -> Option<String> {
    value.as_map()?.iter().find_map(|(key, below)| {
        let path = format!("{path}/{}", escape_literal(key));
        if key == name.as_bytes() { Some(path) } else { find_pool(below, name, &path) }
    })
}

fn unknown_pool(name: &str, tree: &str, pools: &Value) -> CliError {
    let mut names = Vec::new();
    collect(pools, &mut names);
    let close = nearest(name, names.iter().map(String::as_str));
    let hint = match (close.as_slice(), names.is_empty()) {
        (_, true) => format!("the tree has no pools; create it with `millpond pool create {name}`"),
        ([], false) => "`millpond pool list` shows them".to_owned(),
        (close, false) => format!("did you mean {}?", close.join(" or ")),
    };
    CliError::failed(format!("there is no pool {name:?} in tree {tree}")).with_hint(hint)
}

fn collect(value: &Value, names: &mut Vec<String>) {
    for (key, below) in value.as_map().into_iter().flat_map(Map::iter) {
        names.push(String::from_utf8_lossy(key).into_owned());
        collect(below, names);
    }
}

/// Flags and `SETTING=VALUE`s as one list; what was written last wins.
fn settings(options: &PoolOptions) -> Vec<(String, Value)> {
    let mode = options.mode.map(|mode| match mode {
        PoolMode::FairShare => "fair_share",
        PoolMode::Fifo => "fifo",
    });
    let flags: [(&str, Option<Value>); 7] = [
        ("weight", options.weight.map(Value::from)),
        ("mode", mode.map(Value::from)),
        ("strong_guarantee_resources", options.guarantee.as_ref().map(|a| a.to_map().into())),
        ("resource_limits", options.limits.as_ref().map(|a| a.to_map().into())),
        ("max_running_operation_count", options.max_running.map(|n| i64::from(n).into())),
        ("max_operation_count", options.max_operations.map(|n| i64::from(n).into())),
        (
            "fair_share_starvation_timeout",
            options.starvation_timeout.map(|t| i64::try_from(t.as_millis()).unwrap_or(i64::MAX).into()),
        ),
    ];
    let flags = flags.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    flags.chain(options.settings.iter().cloned()).collect()
}

/// Changes as whole attributes, so that one request changes all or none.
fn merged(client: &Client, path: &str, changes: Vec<(String, Value)>) -> Result<Map, CliError> {
    let mut attributes = Map::new();
    for (name, value) in changes {
        let top = name.split('/').next().unwrap_or_default();
        if name != top && !attributes.contains(top) {
            let attribute = format!("{path}/@{}", escape_literal(top));
            match client.get(&attribute, &[]) {
                Ok(old) => drop(attributes.insert(top, old)),
                Err(error) if error.contains_code(code::RESOLVE_ERROR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        insert(&mut attributes, &name, value)?;
    }
    Ok(attributes)
}

/// Sets `a/b/c`, making maps on the way.
fn insert(map: &mut Map, path: &str, value: Value) -> Result<(), CliError> {
    let Some((first, rest)) = path.split_once('/') else {
        map.insert(path, value);
        return Ok(());
    };
    let inner = map.entry_or_insert(first, || Map::new().into());
    match inner.as_map_mut() {
        Some(inner) => insert(inner, rest, value),
        None => Err(CliError::usage(format!("{first} is not a map: {path} cannot be set"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Value {
        yson::parse(text.as_bytes()).expect("good YSON")
    }

    #[test]
    fn pools_are_found_at_any_depth() {
        let tree = parse("{prod={web={}; batch={nightly={}}}; research={}}");
        let check = |name: &str, expected: Option<&str>| {
            assert_eq!(find_pool(&tree, name, "//t").as_deref(), expected, "{name}");
        };
        check("research", Some("//t/research"));
        check("nightly", Some("//t/prod/batch/nightly"));
        check("x", None);
    }

    #[test]
    fn unknown_pools_have_suggestions() {
        let check = |tree: &str, name: &str, expected: &str| {
            let text = unknown_pool(name, "physical", &parse(tree)).render(false).unwrap_or_default();
            assert_eq!(text.lines().last(), Some(expected));
        };
        check("{prod={web={}}; research={}}", "reserch", "hint: did you mean research?");
        check("{prod={}}", "zzz", "hint: `millpond pool list` shows them");
        check("{}", "a", "hint: the tree has no pools; create it with `millpond pool create a`");
    }

    #[test]
    fn nested_settings_make_maps() {
        let mut map = Map::new();
        insert(&mut map, "strong_guarantee_resources/cpu", 2.0.into()).expect("fine");
        insert(&mut map, "strong_guarantee_resources/memory", 5i64.into()).expect("fine");
        insert(&mut map, "weight", 1i64.into()).expect("fine");
        assert_eq!(Value::Map(map.clone()), parse("{strong_guarantee_resources={cpu=2.;memory=5};weight=1}"));
        assert!(insert(&mut map, "weight/x", 1i64.into()).is_err());
    }

    #[test]
    fn pools_created_or_removed_since_the_snapshot() {
        let check = |snapshot: &str, configured: &str, expected: &str| {
            let Value::Map(mut pools) = parse(snapshot) else { panic!("a map") };
            bring_up_to_date(&mut pools, &parse(configured));
            assert_eq!(Value::Map(pools), parse(expected));
        };
        check(
            r#"{"<Root>"={}; old={parent="<Root>"; weight=5.}; gone={parent="<Root>"}}"#,
            "{old={new=<weight=2.; mode=fifo>{}}}",
            r#"{"<Root>"={}; old={parent="<Root>"; weight=5.}; new={weight=2.; mode=fifo; parent=old}}"#,
        );
        // The scheduler's own pools are in no configuration.
        let ephemeral = r#"{"<Root>"={}; "research$ann"={parent=research; is_ephemeral=%true}}"#;
        check(ephemeral, "{}", ephemeral);
    }
}
