//! Pool trees as `get //sys/pool_trees` with attributes has them (simulator.md 3.2, a): trees and pools are
//! maps of what is below them, what they are set to stands in their attributes.

use kernel::COMMON_ATTRIBUTES;
use yson::fields::FieldError;
use yson::{Map, Value};

/// Attributes of trees and pools that every one has, and that are no options.
const OF_OBJECTS: &[&str] = &["name", "parent_name", "pool_tree", "count"];

/// Takes out of the attributes of a pool what is no option.
pub(crate) fn keep_options(attributes: &mut Map) {
    for name in COMMON_ATTRIBUTES.iter().chain(OF_OBJECTS) {
        attributes.remove(name);
    }
}

/// The same in the form of scenarios; none, if it is no export.
pub(super) fn as_scenario(value: &Value) -> Result<Option<Value>, FieldError> {
    let Some(trees) = value.as_map() else { return Ok(None) };
    let attributes = value.attributes();
    if trees.contains("trees") || attributes.is_none() && !trees.iter().any(|(_, v)| v.attributes().is_some())
    {
        return Ok(None);
    }
    let told = attributes.and_then(|all| all.get("default_tree")).and_then(Value::as_str);
    let only = trees.key_strings().next().filter(|_| trees.len() == 1);
    let default = told.map(str::to_owned).or(only).ok_or_else(|| {
        let names: Vec<String> = trees.key_strings().collect();
        let what = format!("an export of several trees ({names:?}) needs the attribute \"default_tree\"");
        FieldError::new("pool_trees", &what)
    })?;
    let mut out = Map::new();
    for (name, tree) in trees.iter() {
        let at = format!("pool_trees/{}", String::from_utf8_lossy(name));
        let config = tree.attributes().and_then(|all| all.get("config")).cloned();
        let config = config.unwrap_or_else(|| Map::new().into());
        out.insert(name, yson::map! {"config" => config, "pools" => pools(&at, tree)?});
    }
    Ok(Some(yson::map! {"default_tree" => default, "trees" => out}.into()))
}

fn pools(at: &str, above: &Value) -> Result<Map, FieldError> {
    // Nothing below it: a map without keys, or nothing at all.
    if above.bare().is_entity() {
        return Ok(Map::new());
    }
    let wrong = || FieldError::expected(at, "a map of pools", above.bare());
    let mut out = Map::new();
    for (name, pool) in above.as_map().ok_or_else(wrong)?.iter() {
        let mut options = pool.attributes().cloned().unwrap_or_default();
        keep_options(&mut options);
        let below = pools(&format!("{at}/{}", String::from_utf8_lossy(name)), pool)?;
        if !below.is_empty() {
            options.insert("pools", below);
        }
        out.insert(name, options);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use yson::JsonFormat;

    fn told(text: &str) -> String {
        let value = yson::parse(text.as_bytes()).expect("YSON");
        match as_scenario(&value) {
            Ok(Some(value)) => {
                String::from_utf8_lossy(&yson::json::to_json(&value, &JsonFormat::utf8())).into()
            }
            Ok(None) => "no export".into(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn attributes_become_options() {
        let export = "<default_tree=physical;type=scheduler_pool_tree_map>{
            physical=<id=\"1-2\";config={max_operation_count=7}>{
                a=<weight=2.;id=\"1-3\";parent_name=\"<Root>\">{b=<mode=fifo>{};c=<weight=3.>#}; d={}};
            gpu=<config={}>{}}";
        assert_eq!(
            told(export),
            r#"{"default_tree":"physical","trees":{"physical":{"config":{"max_operation_count":7},"pools":{"a":{"weight":2.0,"pools":{"b":{"mode":"fifo"},"c":{"weight":3.0}}},"d":{}}},"gpu":{"config":{},"pools":{}}}}"#
        );
        assert_eq!(told("{default_tree=t;trees={t={}}}"), "no export");
        assert_eq!(
            told("{t=<config={}>{a=<weight=1.>{}}}"),
            r#"{"default_tree":"t","trees":{"t":{"config":{},"pools":{"a":{"weight":1.0}}}}}"#
        );
        assert!(told("{t=<config={}>{};u={}}").contains("needs the attribute \"default_tree\""));
        assert!(
            told("{t=<config={}>{a=5}}").contains("expected a map of pools"),
            "{}",
            told("{t=<config={}>{a=5}}")
        );
    }
}
