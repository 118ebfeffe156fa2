//! A small generator of random numbers, values and damaged inputs, and the escapes of corpora.

use yson::{Map, Value};

/// SplitMix64: enough for tests, and the same everywhere.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// What [`value`] may contain.
#[derive(Clone, Copy)]
pub struct Kind {
    pub attributes: bool,
    pub special_doubles: bool,
    /// uint64 below 2^63 reads back from JSON as int64.
    pub small_uints: bool,
    pub utf8_only: bool,
}

impl Kind {
    pub const ALL: Kind =
        Kind { attributes: true, special_doubles: true, small_uints: true, utf8_only: false };
}

pub fn string(rng: &mut Rng, kind: Kind) -> Vec<u8> {
    const TRICKY: &[&str] =
        &["\"", "\\", "\n", "\0", "0", "7", "8", "f", "$", "=", "\t", "é", "ж", "漢", "/", ";"];
    let length = rng.below(10);
    if kind.utf8_only || rng.one_in(2) {
        return (0..length).flat_map(|_| rng.pick(TRICKY).bytes()).collect();
    }
    (0..length).map(|_| rng.next() as u8).collect()
}

pub fn double(rng: &mut Rng, kind: Kind) -> f64 {
    let d = match rng.below(4) {
        0 => f64::from_bits(rng.next()),
        1 => rng.next() as i64 as f64 / 4096.0,
        2 => (rng.below(2001) as f64 - 1000.0) / 8.0,
        _ => *rng.pick(&[0.0, -0.0, 1e21, 1e20, 1e-10, 1e-11, f64::INFINITY, f64::NEG_INFINITY]),
    };
    // NaN is not equal to itself: it has its own tests.
    if d.is_nan() || (d.is_infinite() && !kind.special_doubles) { 0.5 } else { d }
}

fn map(rng: &mut Rng, depth: usize, kind: Kind) -> Map {
    (0..rng.below(4)).map(|_| (string(rng, kind), value(rng, depth, kind))).collect()
}

pub fn value(rng: &mut Rng, depth: usize, kind: Kind) -> Value {
    let bare = match rng.below(if depth == 0 { 6 } else { 10 }) {
        0 => Value::Entity,
        1 => Value::Bool(rng.one_in(2)),
        2 => Value::Int(rng.next() as i64 >> rng.below(64)),
        3 => {
            let u = rng.next() >> rng.below(64);
            Value::Uint(if kind.small_uints { u } else { u | 1 << 63 })
        }
        4 => Value::Double(double(rng, kind)),
        5 => Value::String(string(rng, kind)),
        6 | 7 => Value::List((0..rng.below(4)).map(|_| value(rng, depth - 1, kind)).collect()),
        _ => Value::Map(map(rng, depth - 1, kind)),
    };
    if kind.attributes && depth > 0 && rng.one_in(6) {
        return bare.with_attributes(map(rng, depth - 1, kind));
    }
    bare
}

/// A copy with a few bytes inserted, removed, changed, repeated or cut off.
pub fn damage(rng: &mut Rng, seed: &[u8], alphabet: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=rng.below(4) {
        let at = rng.below(bytes.len() + 1);
        match rng.below(6) {
            0 | 1 => bytes.insert(at, *rng.pick(alphabet)),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 if at < bytes.len() => bytes[at] = rng.next() as u8,
            4 if at < bytes.len() => {
                let end = at + rng.below(bytes.len() - at).min(20);
                let piece = bytes[at..end].to_vec();
                let to = rng.below(bytes.len());
                bytes.splice(to..to, piece);
            }
            5 => bytes.truncate(at),
            _ => {}
        }
    }
    bytes
}

/// Undoes the escapes of the files in `tests/data`.
pub fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&b, tail)) = rest.split_first() {
        rest = tail;
        if b != b'\\' {
            out.push(b);
            continue;
        }
        let letter = rest[0];
        rest = &rest[1..];
        out.push(match letter {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'\\' => b'\\',
            b'x' => {
                let hex = std::str::from_utf8(&rest[..2]).unwrap();
                rest = &rest[2..];
                u8::from_str_radix(hex, 16).unwrap()
            }
            other => panic!("bad escape {} in {text}", other as char),
        });
    }
    out
}

pub fn show(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
