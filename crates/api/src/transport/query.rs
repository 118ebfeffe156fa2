//! Parameters in the query string (http-api.md 2.4): `path=//tmp&attributes[]=type&spec[weight]=2`.

use vocab::Failure;
use yson::{Map, Value};

/// Deeper brackets are refused.
const MAX_DEPTH: usize = 32;

/// All values are strings, for the parser of parameters to convert by type, except inside brackets:
/// there nobody knows the type later, so integers are recognised.
pub(super) fn parse(query: &str) -> Result<Map, Failure> {
    let mut root = Value::Map(Map::new());
    for pair in query.split('&').filter(|p| !p.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (key, value) = (decode(key)?, decode(value)?);
        let keys = split_key(&key)?;
        let nested = keys.len() > 1;
        put(&mut root, &keys, scalar(value, nested)).map_err(|()| {
            let key = String::from_utf8_lossy(&key).into_owned();
            Failure::new(format!("Query parameter {key:?} is used both as a value and as a container"))
        })?;
    }
    match with_attributes(root) {
        Value::Map(map) => Ok(map),
        _ => Err(Failure::new("Query parameters must be named, not \"$value\"")),
    }
}

fn scalar(value: Vec<u8>, nested: bool) -> Value {
    let integer = std::str::from_utf8(&value).ok().and_then(|text| {
        let parsed: i64 = text.parse().ok()?;
        // Only what prints back the same: not `007`, not `+1`.
        (parsed.to_string() == text).then_some(parsed)
    });
    match integer {
        Some(i) if nested => Value::Int(i),
        _ => Value::String(value),
    }
}

/// `a[b][]` is `a`, `b` and an empty key, which stands for "the next item of a list".
fn split_key(key: &[u8]) -> Result<Vec<&[u8]>, Failure> {
    let bad = || {
        let key = String::from_utf8_lossy(key);
        Failure::new(format!("Malformed query parameter {key:?}: expected a name like a, a[b] or a[]"))
    };
    let open = key.iter().position(|b| *b == b'[').unwrap_or(key.len());
    let (name, mut rest) = key.split_at(open);
    if name.is_empty() {
        return Err(bad());
    }
    let mut keys = vec![name];
    while let [b'[', inside @ ..] = rest {
        let close = inside.iter().position(|b| *b == b']').ok_or_else(bad)?;
        keys.push(&inside[..close]);
        rest = &inside[close + 1..];
    }
    if !rest.is_empty() || keys.len() > MAX_DEPTH {
        return Err(bad());
    }
    Ok(keys)
}

/// Puts a value at the place that the keys name; fails if a scalar is in the way.
fn put(place: &mut Value, keys: &[&[u8]], value: Value) -> Result<(), ()> {
    let Some((key, rest)) = keys.split_first() else {
        *place = value;
        return Ok(());
    };
    if place.is_entity() {
        *place = if key.is_empty() { Value::List(Vec::new()) } else { Value::Map(Map::new()) };
    }
    match (place, key.is_empty()) {
        (Value::List(items), true) => {
            items.push(Value::Entity);
            put(items.last_mut().ok_or(())?, rest, value)
        }
        (Value::Map(map), false) => put(map.entry_or_insert(key, || Value::Entity), rest, value),
        _ => Err(()),
    }
}

/// `{$value=x; $attributes={...}}` as browsers write a value with attributes.
fn with_attributes(value: Value) -> Value {
    match value {
        Value::List(items) => Value::List(items.into_iter().map(with_attributes).collect()),
        Value::Map(mut map) => {
            if let Some(inner) = map.remove("$value") {
                let attributes = match map.remove("$attributes").map(with_attributes) {
                    Some(Value::Map(attributes)) => attributes,
                    _ => Map::new(),
                };
                return with_attributes(inner).with_attributes(attributes);
            }
            let mut out = Map::new();
            for (key, inner) in map {
                out.insert_owned(key, with_attributes(inner));
            }
            Value::Map(out)
        }
        scalar => scalar,
    }
}

/// Percent-decoding; `+` is a space.
fn decode(text: &str) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let mut digit = || bytes.next().and_then(|b| (b as char).to_digit(16));
                let (Some(high), Some(low)) = (digit(), digit()) else {
                    return Err(Failure::new(format!(
                        "Malformed query string: \"%\" must be followed by two hexadecimal digits in {text:?}"
                    )));
                };
                out.push((high * 16 + low) as u8);
            }
            byte => out.push(byte),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expected: &str) {
        let found = parse(query).map(|m| String::from_utf8_lossy(&yson::to_text(&m.into())).into_owned());
        let expected = yson::parse(expected.as_bytes()).expect("good YSON");
        assert_eq!(found, Ok(String::from_utf8_lossy(&yson::to_text(&expected)).into_owned()), "{query}");
    }

    #[test]
    fn queries() {
        check("", "{}");
        check("path=//tmp/a%20b+c&force=true", "{path=\"//tmp/a b c\"; force=\"true\"}");
        check("max_size=17", "{max_size=\"17\"}");
        check("attributes[]=type&attributes[]=count", "{attributes=[type; count]}");
        check("parameters[weight]=2&parameters[pool]=p", "{parameters={weight=2; pool=p}}");
        check("a[b][c][]=007&a[b][c][]=-1", "{a={b={c=[\"007\"; -1]}}}");
        check("a%5Bb%5D=%D1%8B", "{a={b=\"\\xd1\\x8b\"}}");
        check(
            "output_format[$value]=json&output_format[$attributes][encode_utf8]=false",
            "{output_format=<encode_utf8=\"false\">json}",
        );
        check("flag", "{flag=\"\"}");
        check("a=1&a=2", "{a=\"2\"}");
    }

    #[test]
    fn malformed_queries() {
        for bad in ["a=%2", "a=%zz", "[x]=1", "a[b=1", "a[b]c=1", "a=1&a[b]=2", "a[]=1&a[b]=2", "=1"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        let deep = format!("a{}=1", "[b]".repeat(1000));
        assert!(parse(&deep).is_err());
    }
}
