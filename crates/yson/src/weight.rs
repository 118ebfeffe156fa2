//! How much a value takes, in memory and written out.

use crate::{Map, Value};

/// Counted for each value and for each key, beside their bytes.
const EACH: usize = 8;

impl Value {
    /// Bytes of all strings and keys in the value, attributes included, and eight more for each value and each key. A reply
    /// with the value has about as many bytes.
    pub fn weight(&self) -> usize {
        let mut left = usize::MAX;
        take(self, &mut left);
        usize::MAX - left
    }

    /// Is [`Value::weight`] above the limit? The count ends there, however large the value is.
    pub fn weighs_more_than(&self, limit: usize) -> bool {
        !take(self, &mut { limit })
    }
}

/// Takes the weight of a value from a budget; false if it does not suffice.
fn take(value: &Value, left: &mut usize) -> bool {
    match value {
        Value::String(text) => take_bytes(text, left),
        Value::List(items) => take_bytes(b"", left) && items.iter().all(|item| take(item, left)),
        Value::Map(map) => take_bytes(b"", left) && take_map(map, left),
        Value::Attributed(both) => take_map(&both.0, left) && take(&both.1, left),
        _ => take_bytes(b"", left),
    }
}

fn take_map(map: &Map, left: &mut usize) -> bool {
    map.iter().all(|(key, value)| take_bytes(key, left) && take(value, left))
}

fn take_bytes(bytes: &[u8], left: &mut usize) -> bool {
    match left.checked_sub(EACH + bytes.len()) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        crate::parse(text.as_bytes()).expect("YSON")
    }

    /// S14.
    #[test]
    fn keys_weigh_as_much_as_strings_wherever_they_are() {
        let key = "k".repeat(1000);
        for (text, weight) in [
            ("#".to_owned(), 8),
            (format!("\"{key}\""), 1008),
            (format!("[{key}; 1; %true]"), 8 + 1008 + 16),
            (format!("{{{key}=#}}"), 8 + 1008 + 8),
            (format!("{{a={{{key}=[]}}}}"), 8 + 9 + 8 + 1008 + 8),
            (format!("<{key}=1>text"), 1008 + 8 + 12),
            (format!("[<a={{{key}=1}}>#]"), 8 + 9 + 8 + 1008 + 8 + 8),
        ] {
            let value = value(&text);
            assert_eq!(value.weight(), weight, "{text}");
            assert!(value.weighs_more_than(weight - 1) && !value.weighs_more_than(weight), "{text}");
        }
    }

    /// S14. A document of keys alone was taken for 32 kilobytes.
    #[test]
    fn a_map_of_long_keys_is_heavy() {
        let map: Map = (0..4000).map(|i| (format!("{i:04096}"), Value::Entity)).collect();
        let value = Value::Map(map);
        assert!(value.weighs_more_than(16_000_000));
        assert_eq!(value.weight(), 8 + 4000 * (8 + 4096 + 8));
    }

    /// S14. Values without bytes take memory, too.
    #[test]
    fn many_empty_values_are_heavy() {
        assert!(value(&format!("[{}]", "\"\";".repeat(10_000))).weighs_more_than(80_000));
    }
}
