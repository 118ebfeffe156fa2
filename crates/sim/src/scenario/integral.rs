//! What pools without an integral guarantee of their own pass on to their children.
//!
//! Production wants bursts and flows to be said at every level (fair-share.md 11.1), though only its checks
//! look at those of a pool of type `none`: they give nobody anything (6.3). A scenario may leave them out;
//! then they are the sums over the children.

use super::Pool;
use std::collections::BTreeMap;
use yson::{Map, Value};

const OPTIONS: [&str; 2] = ["burst_guarantee_resources", "resource_flow"];
/// Both spellings that production takes.
const KEYS: [&str; 2] = ["integral_guarantees", "integral-guarantees"];

/// Sums over the children by option and resource.
type Sums<'a> = BTreeMap<(&'a str, Vec<u8>), f64>;

/// Fills in what pools leave out. Parents stand before their children.
pub(super) fn pass_on(pools: &mut [Pool]) {
    let mut sums: BTreeMap<String, Sums<'_>> = BTreeMap::new();
    for pool in pools.iter_mut().rev() {
        fill(&mut pool.attributes, sums.remove(&pool.name).unwrap_or_default());
        let (Some(parent), Some(own)) = (&pool.parent, guarantees(&pool.attributes)) else { continue };
        let of_parent = sums.entry(parent.clone()).or_default();
        for option in OPTIONS {
            let amounts = own.get(option).and_then(Value::as_map);
            for (resource, amount) in amounts.into_iter().flat_map(Map::iter) {
                let sum = of_parent.entry((option, resource.to_vec())).or_default();
                // What is no number is refused with the pool.
                *sum += amount.as_f64().unwrap_or_default();
            }
        }
    }
}

fn guarantees(attributes: &Map) -> Option<&Map> {
    KEYS.into_iter().find_map(|key| attributes.get(key))?.as_map()
}

/// A pool that has an integral guarantee itself may have no such children: that is for production to say.
fn fill(attributes: &mut Map, sums: Sums<'_>) {
    let kind = guarantees(attributes).and_then(|own| own.get("guarantee_type")?.as_str());
    if sums.is_empty() || kind.is_some_and(|kind| kind != "none") {
        return;
    }
    let key = KEYS.into_iter().find(|key| attributes.contains(key)).unwrap_or(KEYS[0]);
    let Some(own) = attributes.entry_or_insert(key, || Map::new().into()).as_map_mut() else { return };
    for ((option, resource), sum) in sums {
        if let Some(amounts) = own.entry_or_insert(option, || Map::new().into()).as_map_mut() {
            amounts.entry_or_insert(resource, || sum.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yson::JsonFormat;

    fn pool(name: &str, parent: Option<&str>, attributes: &str) -> Pool {
        let attributes = yson::json::from_json(attributes.as_bytes(), &JsonFormat::utf8());
        let attributes = attributes.ok().and_then(|value| value.as_map().cloned()).expect("a map");
        Pool { name: name.into(), parent: parent.map(str::to_owned), attributes, ratio_volume: None }
    }

    fn told(pool: &Pool) -> String {
        guarantees(&pool.attributes).map_or("-".to_owned(), |own| {
            String::from_utf8_lossy(&yson::json::to_json(&own.clone().into(), &JsonFormat::utf8()))
                .into_owned()
        })
    }

    #[test]
    fn sums_go_up_and_what_is_said_stays() {
        let flow = |x: u32| {
            format!(
                r#"{{"integral_guarantees":{{"guarantee_type":"relaxed","resource_flow":{{"cpu":{x}}}}}}}"#
            )
        };
        let mut pools = [
            pool("top", None, "{}"),
            pool("said", Some("top"), r#"{"integral-guarantees":{"resource_flow":{"cpu":90}}}"#),
            pool("a", Some("said"), &flow(10)),
            pool("left out", Some("top"), r#"{"weight":2}"#),
            pool("b", Some("left out"), &flow(3)),
            pool("c", Some("left out"), &flow(4)),
            pool("alone", None, "{}"),
            pool("wrong", None, &flow(1)),
            pool("below", Some("wrong"), &flow(1)),
        ];
        pass_on(&mut pools);
        let told: Vec<String> = [0, 1, 3, 6, 7].map(|i: usize| told(&pools[i])).into();
        assert_eq!(told[0], r#"{"resource_flow":{"cpu":97.0}}"#);
        assert_eq!(told[1], r#"{"resource_flow":{"cpu":90}}"#);
        assert_eq!(told[2], r#"{"resource_flow":{"cpu":7.0}}"#);
        assert_eq!(told[3], "-");
        assert_eq!(told[4], r#"{"guarantee_type":"relaxed","resource_flow":{"cpu":1}}"#);
    }
}
