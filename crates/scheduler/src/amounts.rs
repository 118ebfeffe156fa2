//! Amounts of *some* resources: absent is not the same as zero in guarantees and limits.

use vocab::{Cpu, RESOURCES, Resource, Resources};
use yson::{Map, Value};

/// Configured components of a resource map, in integer units; `None` = not configured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Amounts(pub [Option<i64>; 5]);

impl Amounts {
    /// Nothing is configured.
    pub const NONE: Amounts = Amounts([None; 5]);

    /// All components are configured.
    pub fn all(resources: Resources) -> Amounts {
        Amounts(RESOURCES.map(|r| Some(resources.raw(r))))
    }
    /// One component in integer units.
    pub fn get(&self, r: Resource) -> Option<i64> {
        self.0[r as usize]
    }
    /// Sets a component in integer units.
    pub fn set(&mut self, r: Resource, raw: Option<i64>) {
        self.0[r as usize] = raw;
    }
    /// No component is configured.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }
    /// Fills what is absent.
    pub fn or(&self, default: Resources) -> Resources {
        Resources::from_raw(|r| self.get(r).unwrap_or(default.raw(r)))
    }
    /// As limits: absent is infinite.
    pub fn as_limits(&self) -> Resources {
        self.or(Resources::INFINITE)
    }
    /// As a guarantee: absent is nothing.
    pub fn or_zero(&self) -> Resources {
        self.or(Resources::ZERO)
    }
    /// The configured components by configuration name.
    pub fn to_map(&self) -> Map {
        let mut map = Map::new();
        for r in RESOURCES {
            if let Some(raw) = self.get(r) {
                map.insert(r.as_str(), amount_value(r, raw));
            }
        }
        map
    }
}

/// One amount as users write it: `cpu` a double in cores, others int64.
pub(crate) fn amount_value(r: Resource, raw: i64) -> Value {
    match r {
        Resource::Cpu => Value::Double(Cpu(raw).as_f64()),
        _ => Value::Int(raw),
    }
}
