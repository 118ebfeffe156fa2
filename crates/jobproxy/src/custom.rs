//! Custom statistics: what a job writes to descriptor 5 (jobs-and-nodes.md 5.2, 7.1, 7.2).
//!
//! A YSON list fragment of maps, `{rows=5; phases={read=17}};`: numbers are samples, maps nest. The
//! stream may be endless, so complete items are taken out as they come and only an unfinished one is
//! kept.

use std::collections::BTreeMap;
use vocab::Summary;
use yson::Value;

/// Longest name, in characters.
const MAX_NAME: usize = 512;
/// Longest single item; a statistics record is small.
const MAX_ITEM: usize = 1 << 20;

/// What is wrong with what the job wrote; fails the job.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CustomError {
    /// Not YSON.
    #[error("Custom statistics are not a YSON list fragment: {0}")]
    Malformed(String),
    /// An item is not a map, or a leaf is not a number.
    #[error("Custom statistics: {path:?} is of type {found}, expected {expected}")]
    WrongType {
        /// Where.
        path: String,
        /// What was found.
        found: &'static str,
        /// What is allowed.
        expected: &'static str,
    },
    /// A key that is reserved, empty or too long.
    #[error(
        "Custom statistics: name {0:?} is not allowed: 1 to {MAX_NAME} characters, not starting with \"$\""
    )]
    BadName(String),
    /// Too many paths.
    #[error("Custom statistics: more than {0} statistics (custom_statistics_count_limit)")]
    TooMany(u32),
    /// Leaf here, map there.
    #[error("Custom statistics: {0:?} is used both as a number and as a map")]
    LeafAndMap(String),
    /// One item is endless.
    #[error("Custom statistics: an item is longer than {MAX_ITEM} bytes")]
    TooLong,
}

/// Collects samples. After the first error everything else is dropped.
#[derive(Debug)]
pub struct CustomStatistics {
    limit: u32,
    pending: Vec<u8>,
    scanned: Scanner,
    /// By key path: names may contain `/`, so the joined text is made at the end only.
    samples: BTreeMap<Vec<String>, Summary>,
    error: Option<CustomError>,
}

impl CustomStatistics {
    /// With `custom_statistics_count_limit`.
    pub fn new(limit: u32) -> CustomStatistics {
        CustomStatistics {
            limit,
            pending: Vec::new(),
            scanned: Scanner::default(),
            samples: BTreeMap::new(),
            error: None,
        }
    }

    /// Adds bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.error.is_some() {
            return;
        }
        self.pending.extend_from_slice(bytes);
        let end = self.scanned.last_separator(&self.pending);
        if end > 0 {
            let rest = self.pending.split_off(end);
            let items = std::mem::replace(&mut self.pending, rest);
            self.scanned.shift(end);
            self.take(&items);
        }
        if self.pending.len() > MAX_ITEM {
            self.fail(CustomError::TooLong);
        }
    }

    /// The stream has ended: the last item need not have a separator.
    pub fn finish(&mut self) {
        let rest = std::mem::take(&mut self.pending);
        if self.error.is_none() && !rest.is_empty() {
            self.take(&rest);
        }
    }

    /// The first thing that was wrong.
    pub fn error(&self) -> Option<&CustomError> {
        self.error.as_ref()
    }

    /// Names joined by `/` and their summaries, in order.
    pub fn summaries(&self) -> Vec<(String, Summary)> {
        self.samples.iter().map(|(path, s)| (path.join("/"), *s)).collect()
    }

    fn fail(&mut self, e: CustomError) {
        self.error = self.error.take().or(Some(e));
        self.pending = Vec::new();
    }

    fn take(&mut self, items: &[u8]) {
        let parsed = match yson::parse_list_fragment(items) {
            Ok(list) => list,
            Err(e) => return self.fail(CustomError::Malformed(e.to_string())),
        };
        for item in parsed {
            let added = match item.as_map() {
                Some(_) => self.add(&mut Vec::new(), &item),
                None => Err(CustomError::WrongType {
                    path: String::new(),
                    found: item.type_name(),
                    expected: "map",
                }),
            };
            if let Err(e) = added {
                return self.fail(e);
            }
        }
    }

    fn add(&mut self, path: &mut Vec<String>, value: &Value) -> Result<(), CustomError> {
        if let Some(map) = value.as_map() {
            for (key, child) in map.iter() {
                let name = String::from_utf8_lossy(key).into_owned();
                if name.is_empty() || name.starts_with('$') || name.chars().count() > MAX_NAME {
                    return Err(CustomError::BadName(name.chars().take(MAX_NAME).collect()));
                }
                path.push(name);
                self.add(path, child)?;
                path.pop();
            }
            return Ok(());
        }
        let sample = match value.as_bool() {
            Some(b) => i64::from(b),
            None => value.as_i64().ok_or_else(|| CustomError::WrongType {
                path: path.join("/"),
                found: value.type_name(),
                expected: "int64, boolean or a map of them",
            })?,
        };
        self.add_sample(path, sample)
    }

    fn add_sample(&mut self, path: &[String], sample: i64) -> Result<(), CustomError> {
        if let Some(summary) = self.samples.get_mut(path) {
            summary.add(sample);
            return Ok(());
        }
        if self.samples.len() >= self.limit as usize {
            return Err(CustomError::TooMany(self.limit));
        }
        // A new leaf: no part of its path may be a leaf, and it may be no part of another's. The
        // ones below it come right after it in the order.
        let above = (1..path.len()).any(|n| self.samples.contains_key(&path[..n]));
        let next = self.samples.range(path.to_vec()..).next();
        if above || next.is_some_and(|(other, _)| other.starts_with(path)) {
            return Err(CustomError::LeafAndMap(path.join("/")));
        }
        self.samples.insert(path.to_vec(), Summary::of(sample));
        Ok(())
    }
}

/// Finds separators outside of strings and brackets, in text and binary YSON. What is malformed is
/// found by the parser later.
#[derive(Debug, Default)]
struct Scanner {
    at: usize,
    depth: usize,
    separator: usize,
}

impl Scanner {
    /// Position after the last separator between items in what has been seen so far, or 0.
    fn last_separator(&mut self, bytes: &[u8]) -> usize {
        while let Some(next) = self.token_end(bytes) {
            match bytes[self.at] {
                b'[' | b'{' | b'<' => self.depth += 1,
                b']' | b'}' | b'>' => self.depth = self.depth.saturating_sub(1),
                b';' if self.depth == 0 => self.separator = next,
                _ => {}
            }
            self.at = next;
        }
        self.separator
    }

    /// The first `n` bytes are gone.
    fn shift(&mut self, n: usize) {
        self.at -= n;
        self.separator -= n;
    }

    /// End of the string, binary scalar or single byte at `at`; none if it is not whole yet.
    fn token_end(&self, bytes: &[u8]) -> Option<usize> {
        let rest = bytes.get(self.at..)?;
        let length = match *rest.first()? {
            b'"' => {
                let mut i = 1;
                loop {
                    match rest.get(i)? {
                        b'"' => break i + 1,
                        b'\\' => i += 2,
                        _ => i += 1,
                    }
                }
            }
            // Binary: string, int64, double, uint64.
            1 => {
                let (n, used) = varint(&rest[1..])?;
                // Zigzag; a negative length is for the parser to refuse.
                (1 + used).checked_add(usize::try_from(n >> 1).ok()?)?
            }
            2 | 6 => 1 + varint(&rest[1..])?.1,
            3 => 9,
            _ => 1,
        };
        (length <= rest.len()).then_some(self.at + length)
    }
}

fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (i, b) in bytes.iter().take(10).enumerate() {
        value |= u64::from(b & 0x7f).checked_shl(7 * i as u32).unwrap_or(0);
        if b & 0x80 == 0 {
            return Some((value, i + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(text: &[u8], step: usize) -> CustomStatistics {
        let mut c = CustomStatistics::new(3);
        text.chunks(step).for_each(|chunk| c.push(chunk));
        c.finish();
        c
    }

    #[test]
    fn samples_of_any_cut() {
        let binary = [&b"{\x01\x02a=\x02\x04;};"[..], b"{\"x;}\"={y=-3}};{a=%true; \"x;}\"={y=5}}"].concat();
        for step in 1..binary.len() + 1 {
            let c = collect(&binary, step);
            assert_eq!(c.error(), None, "step {step}");
            let want = |samples: [i64; 2]| {
                let mut s = Summary::of(samples[0]);
                s.add(samples[1]);
                s
            };
            assert_eq!(
                c.summaries(),
                [("a".to_owned(), want([2, 1])), ("x;}/y".to_owned(), want([-3, 5]))],
                "step {step}"
            );
        }
    }

    #[test]
    fn what_is_refused() {
        let long = format!("{{{}=1}}", "n".repeat(513));
        let many = "{a=1;b=1;c=1};{d=1}";
        for (text, want) in [
            ("{a=1}; {", "not a YSON"),
            ("5;", "type int64, expected map"),
            ("{a=text};", "type string, expected int64"),
            ("{a=1.5};", "type double"),
            ("{\"$a\"=1};", "not allowed"),
            ("{\"\"=1};", "not allowed"),
            (&long, "not allowed"),
            (many, "more than 3"),
            ("{a=1};{a={b=1}};", "both as a number and as a map"),
            ("{a={b=1}};{a=1};", "both as a number and as a map"),
        ] {
            let c = collect(text.as_bytes(), 4);
            let error = c.error().map(ToString::to_string).unwrap_or_default();
            assert!(error.contains(want), "{text}: {error}");
        }
    }

    #[test]
    fn siblings_with_a_common_beginning_are_no_conflict() {
        let c = collect(b"{\"a-\"=1; a={b=2}; ab=3}", 100);
        assert_eq!(c.error(), None);
        assert_eq!(c.summaries().len(), 3);
    }
}
