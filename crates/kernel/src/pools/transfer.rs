//! `transfer_pool_resources` (http-api.md 8.8).

use super::ROOT;
use crate::Kernel;
use cypress::failures::no_child;
use std::collections::BTreeMap;
use vocab::Failure;
use yson::{Map, Value};

impl Kernel {
    /// `transfer_pool_resources`: down from the source's chain, up along the destination's, at once.
    pub(crate) fn transfer_pool_resources(
        &mut self,
        tree: &str,
        source: &str,
        destination: &str,
        delta: &Map,
    ) -> Result<(), Failure> {
        let lineage = |pool: &str| -> Result<Vec<String>, Failure> {
            let mut line = Vec::new();
            let mut here = pool.to_owned();
            while here != ROOT {
                let object = self
                    .pools
                    .pool(tree, &here)
                    .ok_or_else(|| no_child(&format!("//sys/pool_trees/{tree}"), here.as_bytes()))?;
                line.push(here);
                here = object.parent.clone();
            }
            Ok(line)
        };
        let (from, to) = (lineage(source)?, lineage(destination)?);
        // Nobody has less after a transfer to oneself; what is asked for must be there all the same.
        if let (true, Some(pool)) = (source == destination, from.first()) {
            return add_delta(&mut self.pool_options(tree, pool)?, delta, -1.0);
        }
        let mut changes: BTreeMap<String, Map> = BTreeMap::new();
        for pool in from.iter().filter(|p| !to.contains(p)) {
            let mut options = self.pool_options(tree, pool)?;
            add_delta(&mut options, delta, -1.0)?;
            changes.insert(pool.clone(), options);
        }
        for pool in to.iter().filter(|p| !from.contains(p)) {
            let mut options = self.pool_options(tree, pool)?;
            add_delta(&mut options, delta, 1.0)?;
            changes.insert(pool.clone(), options);
        }
        let list: Vec<(&str, &Map)> =
            changes.iter().map(|(name, options)| (name.as_str(), options)).collect();
        self.scheduler.set_options_of_pools(tree, &list)?;
        for pool in changes.keys() {
            self.persist_pool(tree, pool);
        }
        self.pools_changed();
        Ok(())
    }
}

/// Adds `sign x delta` to the options of a pool; what would become negative is refused.
fn add_delta(options: &mut Map, delta: &Map, sign: f64) -> Result<(), Failure> {
    for (key, amount) in delta.iter() {
        let name = String::from_utf8_lossy(key).into_owned();
        let refuse = |why: &str| {
            Err(Failure::new(format!("resource_delta/{name}: {why}")).with("path", name.as_str()))
        };
        match name.as_str() {
            "max_operation_count" | "max_running_operation_count" => {
                let Some(change) = amount.as_i64().filter(|c| *c >= 0) else {
                    return refuse("expected an int64 of at least 0");
                };
                // A limit that nobody has set stays unset: 0 would let nothing in.
                if change == 0 {
                    continue;
                }
                let old = options.get(&name).and_then(Value::as_i64).unwrap_or(0);
                let new = old + if sign < 0.0 { -change } else { change };
                if new < 0 {
                    return refuse(&format!("the pool has {old}, {change} were to be taken"));
                }
                options.insert(&name, new);
            }
            "strong_guarantee_resources" | "burst_guarantee_resources" | "resource_flow" => {
                let Some(amounts) = amount.as_map() else {
                    return refuse("expected a map from resource to amount");
                };
                let map = match name.as_str() {
                    "strong_guarantee_resources" => options.entry_or_insert(&name, || Map::new().into()),
                    inner => {
                        let integral = options.entry_or_insert("integral_guarantees", || Map::new().into());
                        match integral.as_map_mut() {
                            Some(map) => map.entry_or_insert(inner, || Map::new().into()),
                            None => return refuse("the pool's integral_guarantees are not a map"),
                        }
                    }
                };
                let Some(map) = map.as_map_mut() else { return refuse("the pool's value is not a map") };
                for (resource, change) in amounts.iter() {
                    let shown = String::from_utf8_lossy(resource).into_owned();
                    let Some(by) = change.as_f64().filter(|c| *c >= 0.0) else {
                        return refuse(&format!("{shown}: expected an amount of at least 0"));
                    };
                    let old = map.get(resource).and_then(Value::as_f64).unwrap_or(0.0);
                    let new = old + sign * by;
                    if new < 0.0 {
                        return refuse(&format!("{shown}: the pool has {old}, {by} were to be taken"));
                    }
                    let new: Value = if resource == b"cpu" { new.into() } else { (new as i64).into() };
                    map.insert(resource, new);
                }
            }
            _ => {
                return refuse(
                    "expected one of burst_guarantee_resources, max_operation_count, max_running_operation_count, \
                     resource_flow, strong_guarantee_resources",
                );
            }
        }
    }
    Ok(())
}
