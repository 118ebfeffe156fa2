//! How large requests may be. Checked where requests are read: the kernel's thread, which everybody waits for, sees none
//! that is larger.

use crate::commands::Params;
use vocab::Failure;
use yson::{Map, Value};

/// See the fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestLimits {
    /// Bytes of a request that starts an operation or changes one's specification.
    pub spec_size: usize,
    /// Values in one request: scalars, lists, maps, and what is in them.
    pub values: usize,
    /// Requests of one batch.
    pub batch_requests: usize,
}

impl Default for RequestLimits {
    fn default() -> RequestLimits {
        RequestLimits { spec_size: 16 << 20, values: 100_000, batch_requests: 10_000 }
    }
}

/// Values of options that were given in words: each of them may be read many times before its type is known.
const VALUES_IN_WORDS: usize = 1_000;

impl RequestLimits {
    /// Refuses a request with too many values.
    pub(crate) fn check_values(&self, params: &Params, input: Option<&Value>) -> Result<(), Failure> {
        let mut left = self.values;
        let fits = params.values().all(|value| count(value, &mut left))
            && input.is_none_or(|input| count(input, &mut left));
        if fits {
            return Ok(());
        }
        let limit = self.values;
        let text =
            format!("The request has more than {limit} values, which is the limit (max_values_per_request)");
        Err(Failure::new(text).with("limit", limit))
    }

    /// Refuses a map of options in a query string with too many values.
    pub(crate) fn check_words(&self, name: &str, options: Option<&Value>) -> Result<(), Failure> {
        let mut left = VALUES_IN_WORDS;
        if options.is_none_or(|options| count(options, &mut left)) {
            return Ok(());
        }
        let text = format!(
            "Parameter \"{name}\" in the query string has more than {VALUES_IN_WORDS} values, which is the limit: send it in \
             the body of the request"
        );
        Err(Failure::new(text).with("parameter", name).with("limit", VALUES_IN_WORDS))
    }

    /// Refuses a batch of too many requests.
    pub(crate) fn check_batch(&self, requests: usize) -> Result<(), Failure> {
        if requests <= self.batch_requests {
            return Ok(());
        }
        let limit = self.batch_requests;
        let text = format!(
            "Parameter \"requests\" has {requests} requests, more than the limit of {limit} (max_batch_requests): send several \
             batches"
        );
        Err(Failure::new(text).with("parameter", "requests").with("limit", limit).with("found", requests))
    }

    /// Refuses a specification that is too large, when it did not come in a body of its own.
    pub(crate) fn check_spec(&self, params: &Params) -> Result<(), Failure> {
        let size: usize = params.values().map(bytes).sum();
        if size <= self.spec_size {
            return Ok(());
        }
        let limit = self.spec_size;
        let text = format!(
            "The specification of the operation has {size} bytes, more than the limit of {limit} (max_spec_size)"
        );
        Err(Failure::new(text).with("parameter", "spec").with("limit", limit).with("found", size))
    }
}

/// Takes the values of one from what is left; false if there are more.
fn count(value: &Value, left: &mut usize) -> bool {
    let Some(rest) = left.checked_sub(1) else { return false };
    *left = rest;
    match value {
        Value::List(items) => items.iter().all(|item| count(item, left)),
        Value::Map(map) => count_map(map, left),
        Value::Attributed(both) => count_map(&both.0, left) && count(&both.1, left),
        _ => true,
    }
}

fn count_map(map: &Map, left: &mut usize) -> bool {
    map.iter().all(|(_, value)| count(value, left))
}

/// Bytes of a value, about as many as its binary form has.
fn bytes(value: &Value) -> usize {
    let of_map = |map: &Map| map.iter().map(|(key, value)| key.len() + 4 + bytes(value)).sum::<usize>();
    match value {
        Value::String(text) => text.len() + 2,
        Value::List(items) => 2 + items.iter().map(|item| 1 + bytes(item)).sum::<usize>(),
        Value::Map(map) => 2 + of_map(map),
        Value::Attributed(both) => 2 + of_map(&both.0) + bytes(&both.1),
        _ => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(text: &str) -> Params {
        let value = yson::parse(text.as_bytes()).expect("YSON");
        Params::new(value.as_map().expect("a map").clone())
    }

    /// S13.
    #[test]
    fn values_are_counted_wherever_they_are() {
        let limits = RequestLimits { values: 6, ..RequestLimits::default() };
        let check = |text: &str, input: Option<&Value>| limits.check_values(&params(text), input);
        let two = Value::List(vec![1.into()]);
        assert_eq!(check("{a=1; b=[1; {c=1}]}", None), Ok(()));
        assert_eq!(check("{a=1; b=[1; 2]}", Some(&two)), Ok(()));
        for (text, input) in
            [("{a=1; b=[1; {c=1; d=1; e=1}]}", None), ("{a=1; b=[1; {c=<x=1>1}]}", Some(&two))]
        {
            let refused = check(text, input).expect_err("too many");
            let expected = "The request has more than 6 values, which is the limit (max_values_per_request)";
            assert_eq!(refused.message, expected);
        }
    }

    /// S13.
    #[test]
    fn words_and_batches_have_limits_of_their_own() {
        let limits = RequestLimits { batch_requests: 2, ..RequestLimits::default() };
        assert_eq!(limits.check_batch(2), Ok(()));
        assert!(
            limits.check_batch(3).expect_err("too many").message.contains("limit of 2 (max_batch_requests)")
        );
        let many: Value = vec![1; VALUES_IN_WORDS].into();
        let refused = limits.check_words("spec", Some(&many)).expect_err("too many");
        assert!(refused.message.starts_with("Parameter \"spec\" in the query string"), "{refused}");
        assert_eq!(limits.check_words("spec", Some(&vec![1; VALUES_IN_WORDS - 1].into())), Ok(()));
    }

    /// S15.
    #[test]
    fn specifications_have_a_size() {
        let limits = RequestLimits { spec_size: 100, ..RequestLimits::default() };
        assert_eq!(limits.check_spec(&params("{spec={a=xxxxxxxxxx}}")), Ok(()));
        let refused =
            limits.check_spec(&params(&format!("{{spec={{a={}}}}}", "x".repeat(100)))).expect_err("large");
        assert!(refused.message.contains("limit of 100 (max_spec_size)"), "{refused}");
    }
}
