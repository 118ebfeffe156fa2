//! The place of a syntax error, for lines that are not JSON.

/// JSON pointer of what stands at an offset, as far as the text before it says.
///
/// The text before the offset is well-formed, up to being unfinished.
pub(super) fn pointer_at(line: &[u8], offset: usize) -> String {
    let mut open: Vec<Level> = Vec::new();
    let mut at = 0;
    while at < offset.min(line.len()) {
        match line[at] {
            b'{' => open.push(Level::Object { key: None, value: false }),
            b'[' => open.push(Level::List(0)),
            b'}' | b']' => drop(open.pop()),
            b',' => match open.last_mut() {
                Some(Level::List(index)) => *index += 1,
                Some(Level::Object { key, value }) => (*key, *value) = (None, false),
                None => {}
            },
            b':' => {
                if let Some(Level::Object { value, .. }) = open.last_mut() {
                    *value = true;
                }
            }
            b'"' => {
                let end = string_end(line, at);
                if let Some(Level::Object { key, value: false }) = open.last_mut() {
                    *key = Some(at..end);
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    let mut pointer = String::new();
    for level in &open {
        match level {
            Level::List(index) => pointer.push_str(&format!("/{index}")),
            Level::Object { key: Some(key), value: true } => {
                let name = yson::json::from_json(&line[key.clone()], &yson::JsonFormat::utf8());
                let name = name.ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default();
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            }
            Level::Object { .. } => {}
        }
    }
    pointer
}

/// A container that is open at the offset.
enum Level {
    /// Number of the item.
    List(usize),
    /// Bytes of the key, quotes included, and whether its colon has been seen.
    Object { key: Option<std::ops::Range<usize>>, value: bool },
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
