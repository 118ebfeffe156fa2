//! A number of the summary by its path: keys with dots between them, `pools.TREE.POOL...` or, if only one
//! tree has such a pool, `pools.POOL...`. Names may have dots themselves.

use yson::{Map, Value};

/// The number, or what is wrong with the path.
pub(super) fn find(summary: &Value, path: &str) -> Result<f64, String> {
    let keys: Vec<&str> = path.split('.').collect();
    let mut deepest = (0, Vec::new());
    if let Some(number) = walk(summary, &keys, 0, &mut deepest) {
        return Ok(number);
    }
    let trees = summary.get("pools").and_then(Value::as_map).unwrap_or(Map::EMPTY);
    if keys.first() == Some(&"pools") {
        let of_tree = trees.iter().filter_map(|(name, tree)| {
            let number = walk(tree, &keys, 1, &mut deepest)?;
            Some((String::from_utf8_lossy(name).into_owned(), number))
        });
        let found: Vec<(String, f64)> = of_tree.collect();
        match found.as_slice() {
            [] => {}
            [(_, number)] => return Ok(*number),
            more => {
                let names: Vec<&str> = more.iter().map(|(name, _)| name.as_str()).collect();
                return Err(format!("several trees have it, say which: pools.TREE.POOL with {names:?}"));
            }
        }
    }
    let (known, names) = deepest;
    let so_far = keys[..known].join(".");
    let there = if so_far.is_empty() { "the summary".to_owned() } else { format!("{so_far:?}") };
    Err(format!("the summary has no number at {path:?}; in {there} there is {names:?}"))
}

/// `deepest`: how many keys were found at most, and what stands there.
fn walk(value: &Value, keys: &[&str], from: usize, deepest: &mut (usize, Vec<String>)) -> Option<f64> {
    if from == keys.len() {
        return value.as_f64();
    }
    let map = value.as_map()?;
    if from > deepest.0 || deepest.1.is_empty() {
        let names = map.iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned());
        *deepest = (from, names.take(40).collect());
    }
    (from + 1..=keys.len()).find_map(|to| {
        let inner = map.get(keys[from..to].join("."))?;
        walk(inner, keys, to, deepest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Value {
        let text = r#"{"seed":3,"pools":{"one":{"prod":{"wait_s":{"p95":7}},"a.b":{"x":1},"both":{"x":1}},"two":{"dev":{"x":2},"both":{"x":2}}}}"#;
        yson::json::from_json(text.as_bytes(), &yson::JsonFormat::utf8()).expect("json")
    }

    #[test]
    fn paths() {
        let found = |path: &str| find(&summary(), path);
        assert_eq!(found("seed"), Ok(3.0));
        assert_eq!(found("pools.one.prod.wait_s.p95"), Ok(7.0));
        assert_eq!(found("pools.prod.wait_s.p95"), Ok(7.0));
        assert_eq!(found("pools.a.b.x"), Ok(1.0));
        assert_eq!(found("pools.dev.x"), Ok(2.0));
        assert_eq!(found("pools.two.both.x"), Ok(2.0));
        let told: Vec<String> = ["pools.both.x", "pools.prod.wait_s.p50", "speed", "pools.prod", "seed.x"]
            .iter()
            .map(|path| found(path).expect_err(path))
            .collect();
        expect_test::expect![[r#"
            several trees have it, say which: pools.TREE.POOL with ["one", "two"]
            the summary has no number at "pools.prod.wait_s.p50"; in "pools.prod.wait_s" there is ["p95"]
            the summary has no number at "speed"; in the summary there is ["seed", "pools"]
            the summary has no number at "pools.prod"; in "pools" there is ["one", "two"]
            the summary has no number at "seed.x"; in the summary there is ["seed", "pools"]"#]]
        .assert_eq(&told.join("\n"));
    }
}
