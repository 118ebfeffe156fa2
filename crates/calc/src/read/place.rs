//! Places in a line: of a syntax error, and of a key that an object has twice, which a map would not show.

use std::borrow::Cow;
use std::collections::BTreeSet;

/// JSON pointer of what stands at an offset, as far as the text before it says.
///
/// The text before the offset is well-formed, up to being unfinished.
pub(super) fn pointer_at(line: &[u8], offset: usize) -> String {
    let open = walk(&line[..offset.min(line.len())], &mut |_, _| true).unwrap_or_default();
    let mut pointer = String::new();
    for level in &open {
        match level {
            Level::List(index) => pointer.push_str(&format!("/{index}")),
            Level::Object { key: Some(key), value: true, .. } => {
                let name = name_of(&line[key.clone()]);
                let name = String::from_utf8_lossy(&name);
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            }
            Level::Object { .. } => {}
        }
    }
    pointer
}

/// Offset and name of the first key that its object has already; the line is well-formed.
pub(super) fn repeated_key(line: &[u8]) -> Option<(usize, String)> {
    // By depth; deeper ones belong to objects that were closed.
    let mut seen: Vec<(usize, BTreeSet<Cow<'_, [u8]>>)> = Vec::new();
    let mut found = None;
    walk(line, &mut |object, key| {
        while seen.last().is_some_and(|(start, _)| *start > object) {
            seen.pop();
        }
        if seen.last().is_none_or(|(start, _)| *start != object) {
            seen.push((object, BTreeSet::new()));
        }
        let name = name_of(&line[key.clone()]);
        let text = String::from_utf8_lossy(&name).into_owned();
        let new = seen.last_mut().is_some_and(|(_, names)| names.insert(name));
        if !new {
            found = Some((key.start, text));
        }
        new
    });
    found
}

/// The containers that are open at the end. For each key `on_key` gets where its object begins and where it is, quotes
/// included; when it says no, that is the end, and there is no answer.
fn walk(line: &[u8], on_key: &mut dyn FnMut(usize, std::ops::Range<usize>) -> bool) -> Option<Vec<Level>> {
    let mut open: Vec<Level> = Vec::new();
    let mut at = 0;
    while at < line.len() {
        match line[at] {
            b'{' => open.push(Level::Object { start: at, key: None, value: false }),
            b'[' => open.push(Level::List(0)),
            b'}' | b']' => drop(open.pop()),
            b',' => match open.last_mut() {
                Some(Level::List(index)) => *index += 1,
                Some(Level::Object { key, value, .. }) => (*key, *value) = (None, false),
                None => {}
            },
            b':' => {
                if let Some(Level::Object { value, .. }) = open.last_mut() {
                    *value = true;
                }
            }
            b'"' => {
                let end = string_end(line, at);
                if let Some(Level::Object { start, key, value: false }) = open.last_mut() {
                    *key = Some(at..end);
                    if !on_key(*start, at..end) {
                        return None;
                    }
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    Some(open)
}

/// A container that is open at the offset.
enum Level {
    /// Number of the item.
    List(usize),
    /// Where it begins, bytes of the key, quotes included, and whether its colon has been seen.
    Object { start: usize, key: Option<std::ops::Range<usize>>, value: bool },
}

/// What a key is called; two ways to write it are one name.
fn name_of(key: &[u8]) -> Cow<'_, [u8]> {
    match key.strip_prefix(b"\"").and_then(|key| key.strip_suffix(b"\"")) {
        Some(plain) if !plain.contains(&b'\\') => Cow::Borrowed(plain),
        _ => {
            let read = yson::json::from_json(key, &yson::JsonFormat::utf8());
            Cow::Owned(read.ok().and_then(|v| v.as_bytes().map(<[u8]>::to_vec)).unwrap_or_default())
        }
    }
}

/// End of the string that begins at `at`, behind its closing quote if it has one.
fn string_end(line: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < line.len() && line[end] != b'"' {
        end += if line[end] == b'\\' { 2 } else { 1 };
    }
    (end + 1).min(line.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_there_twice() {
        let check = |line: &str, expected: Option<(usize, &str)>| {
            let found = repeated_key(line.as_bytes());
            assert_eq!(found.as_ref().map(|(at, name)| (*at, name.as_str())), expected, "{line}");
        };
        check(r#"{"a":1,"b":{"a":1},"c":[{"a":1},{"a":2}]}"#, None);
        check(r#"{"a":"b","b":"a"}"#, None);
        check(r#"{"a":1,"b":2,"a":3}"#, Some((13, "a")));
        check(r#"{"a":{"x":1,"y":[{"x":1}],"x":2}}"#, Some((26, "x")));
        check(r#"{"a":1,"b":[{"c":1}],"\u0061":3}"#, Some((21, "a")));
        check(r#"[{"a":{}},{"a":{"a":1,"a":1}}]"#, Some((22, "a")));
        check("7", None);
    }

    #[test]
    fn pointers_of_unfinished_text() {
        let check = |line: &str, expected: &str| {
            assert_eq!(pointer_at(line.as_bytes(), line.len()), expected, "{line}");
        };
        check("", "");
        check("{", "");
        check(r#"{"a""#, "");
        check(r#"{"a":"#, "/a");
        check(r#"{"a":{"b":[1,{"c":2},"#, "/a/b/2");
        check(r#"{"a":{"b":[1,{"c":2,"d":"#, "/a/b/1/d");
        check(r#"{"a":[1],"x/~\n":"#, "/x~1~0\n");
        check(r#"{"a":"}{]\"","b":"#, "/b");
        check(r#"{"a":"\"#, "/a");
        check("]}]", "");
    }
}
