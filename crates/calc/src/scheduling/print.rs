//! Answers as JSON and as a transcript for people.

use crate::write::{comma, number, put, text};
use yson::{Map, Value};

/// One line of JSON, with its line feed.
pub(super) fn json(answer: &Map) -> Vec<u8> {
    let mut out = Vec::new();
    object(answer, &mut out);
    out.push(b'\n');
    out
}

fn object(map: &Map, out: &mut Vec<u8>) {
    out.push(b'{');
    for (i, (key, value)) in map.iter().enumerate() {
        comma(i, out);
        text(&String::from_utf8_lossy(key), out);
        out.push(b':');
        json_value(value, out);
    }
    out.push(b'}');
}

fn json_value(value: &Value, out: &mut Vec<u8>) {
    match value.bare() {
        Value::Map(map) => object(map, out),
        Value::List(list) => {
            out.push(b'[');
            for (i, item) in list.iter().enumerate() {
                comma(i, out);
                json_value(item, out);
            }
            out.push(b']');
        }
        Value::String(bytes) => text(&String::from_utf8_lossy(bytes), out),
        Value::Double(x) => number(*x, out),
        Value::Int(i) => put(out, format_args!("{i}")),
        Value::Uint(u) => put(out, format_args!("{u}")),
        Value::Bool(b) => put(out, format_args!("{b}")),
        _ => out.extend_from_slice(b"null"),
    }
}

/// The same as paragraphs: a heading, then one thing a line.
pub(super) fn transcript(answer: &Map) -> Vec<u8> {
    let mut out = Vec::new();
    let field = |name: &str| answer.get(name).map(plain).unwrap_or_default();
    put(&mut out, format_args!("[{}] {} s  {}\n", field("event"), field("t"), field("did")));
    for (key, value) in answer.iter() {
        section(&String::from_utf8_lossy(key), value, &field("t"), &mut out);
    }
    out
}

/// One field of an answer; `now` is its time.
fn section(key: &str, value: &Value, now: &str, out: &mut Vec<u8>) {
    let list = value.as_list().unwrap_or_default();
    match key {
        "event" | "t" | "did" => {}
        "note" => put(out, format_args!("    # {}\n", plain(value))),
        "explanation" => list.iter().for_each(|line| put(out, format_args!("    {}\n", plain(line)))),
        "refused" => {
            for failure in list.iter().filter_map(Value::as_map) {
                let get = |name: &str| failure.get(name).map(plain).unwrap_or_default();
                put(out, format_args!("    refused (code {}): {}\n", get("code"), get("message")));
            }
        }
        "starvation" => decisions(list, "!", now, &["operation", "pool", "status"], out),
        "starts" => decisions(list, "+", now, &["allocation", "node", "resources", "stage"], out),
        "preemptions" => {
            decisions(list, "-", now, &["allocation", "node", "kind", "timeout", "reason"], out);
        }
        "aborts" => decisions(list, "- abort", now, &["allocation", "reason"], out),
        "ends" => decisions(list, ".", now, &["allocation", "outcome"], out),
        "failures" => decisions(list, "x", now, &["operation", "reason"], out),
        "operations" | "pools" | "nodes" => elements(key, value, "    ", out),
        "shown" => {
            for (key, value) in value.as_map().into_iter().flat_map(Map::iter) {
                elements(&String::from_utf8_lossy(key), value, "    = ", out);
            }
        }
        _ => put(out, format_args!("    {key}: {}\n", plain(value))),
    }
}

/// `+ 5 s  A.1  n  user_slots 1, cpu 2  regular_medium_priority`
fn decisions(list: &[Value], sign: &str, now: &str, fields: &[&str], out: &mut Vec<u8>) {
    for map in list.iter().filter_map(Value::as_map) {
        let time = map.get("t").map_or(now.to_owned(), plain);
        put(out, format_args!("    {sign} {time} s"));
        for value in fields.iter().filter_map(|f| Some((f, map.get(f)?))) {
            match value {
                (&"timeout", value) => put(out, format_args!("  within {} s", plain(value))),
                (&kind @ ("operation" | "pool"), name) => put(out, format_args!("  {kind} {}", plain(name))),
                (_, value) => put(out, format_args!("  {}", plain(value))),
            }
        }
        out.push(b'\n');
    }
}

/// `operation A  state running, running 3, ...`
fn elements(key: &str, value: &Value, indent: &str, out: &mut Vec<u8>) {
    let what = key.strip_suffix('s').unwrap_or(key);
    for (name, fields) in value.as_map().into_iter().flat_map(Map::iter) {
        let line = format!("{indent}{what} {}  {}", String::from_utf8_lossy(name), plain(fields));
        put(out, format_args!("{}\n", line.trim_end()));
    }
}

/// A value without quotes and braces.
fn plain(value: &Value) -> String {
    match value.bare() {
        Value::Map(map) => {
            let fields = map.iter().map(|(key, value)| {
                let key = String::from_utf8_lossy(key);
                match value {
                    Value::Entity => format!("no {key}"),
                    Value::Map(inner) if !inner.is_empty() => format!("{key} ({})", plain(value)),
                    Value::Map(_) => format!("{key} none"),
                    other => format!("{key} {}", plain(other)),
                }
            });
            fields.collect::<Vec<_>>().join(", ")
        }
        Value::List(list) => list.iter().map(plain).collect::<Vec<_>>().join("/"),
        Value::String(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => {
            let mut out = Vec::new();
            json_value(other, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        }
    }
}
