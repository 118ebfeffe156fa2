//! The data model: one tree type for everything that is not a typed struct.

use crate::key_hash::KeyHash;
use std::fmt;

/// Byte string. YSON strings need not be UTF-8; most of ours are.
pub type Bytes = Vec<u8>;

/// A YSON value, possibly with attributes.
///
/// Attributes are rare, so they live in the [`Value::Attributed`] variant: code that does not care
/// about them calls [`Value::bare`]. The inner value of `Attributed` is never itself `Attributed`,
/// and its attribute map is never empty ([`Value::with_attributes`] keeps both rules).
#[derive(Clone, PartialEq, Default)]
pub enum Value {
    /// `#`: nothing, or "something opaque that is not shown here".
    #[default]
    Entity,
    /// `%true`, `%false`.
    Bool(bool),
    /// Signed integer.
    Int(i64),
    /// Unsigned integer (`17u`).
    Uint(u64),
    /// Double; printed always with a point, an exponent or as `%nan`/`%inf`/`%-inf`.
    Double(f64),
    /// Byte string.
    String(Bytes),
    /// List.
    List(Vec<Value>),
    /// Map; keeps insertion order.
    Map(Map),
    /// A value with attributes in front of it: `<a=1>x`.
    Attributed(Box<(Map, Value)>),
}

impl Value {
    /// The value without its attributes.
    pub fn bare(&self) -> &Value {
        match self {
            Value::Attributed(b) => &b.1,
            other => other,
        }
    }

    /// The value without its attributes, mutable.
    pub fn bare_mut(&mut self) -> &mut Value {
        match self {
            Value::Attributed(b) => &mut b.1,
            other => other,
        }
    }

    /// Drops the attributes.
    pub fn into_bare(self) -> Value {
        match self {
            Value::Attributed(b) => b.1,
            other => other,
        }
    }

    /// Levels of lists, maps and attributes: 0 for a scalar.
    pub fn nesting(&self) -> usize {
        let map = |m: &Map| m.iter().map(|(_, v)| v.nesting()).max().unwrap_or(0);
        match self {
            Value::List(l) => 1 + l.iter().map(Value::nesting).max().unwrap_or(0),
            Value::Map(m) => 1 + map(m),
            Value::Attributed(b) => (1 + map(&b.0)).max(b.1.nesting()),
            _ => 0,
        }
    }

    /// The attributes, if there are any.
    pub fn attributes(&self) -> Option<&Map> {
        match self {
            Value::Attributed(b) => Some(&b.0),
            _ => None,
        }
    }

    /// One attribute by name.
    pub fn attribute(&self, name: &str) -> Option<&Value> {
        self.attributes().and_then(|a| a.get(name))
    }

    /// Splits into attributes (possibly empty) and the bare value.
    pub fn split(self) -> (Map, Value) {
        match self {
            Value::Attributed(b) => *b,
            other => (Map::new(), other),
        }
    }

    /// Puts `attributes` in front of the value, replacing those it has; an empty map removes them.
    pub fn with_attributes(self, attributes: Map) -> Value {
        let inner = self.into_bare();
        if attributes.is_empty() { inner } else { Value::Attributed(Box::new((attributes, inner))) }
    }

    /// The string's bytes, if it is a string (attributes are ignored, as in all `as_*`).
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self.bare() {
            Value::String(s) => Some(s),
            _ => None,
        }
    }

    /// The string, if it is one and UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        self.as_bytes().and_then(|b| std::str::from_utf8(b).ok())
    }

    /// Boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self.bare() {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// Integer of either signedness that fits `i64`.
    pub fn as_i64(&self) -> Option<i64> {
        match self.bare() {
            Value::Int(i) => Some(*i),
            Value::Uint(u) => i64::try_from(*u).ok(),
            _ => None,
        }
    }

    /// Integer of either signedness that fits `u64`.
    pub fn as_u64(&self) -> Option<u64> {
        match self.bare() {
            Value::Int(i) => u64::try_from(*i).ok(),
            Value::Uint(u) => Some(*u),
            _ => None,
        }
    }

    /// Double, or an integer where a double is expected.
    pub fn as_f64(&self) -> Option<f64> {
        match self.bare() {
            Value::Double(d) => Some(*d),
            Value::Int(i) => Some(*i as f64),
            Value::Uint(u) => Some(*u as f64),
            _ => None,
        }
    }

    /// List.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self.bare() {
            Value::List(l) => Some(l),
            _ => None,
        }
    }

    /// Map.
    pub fn as_map(&self) -> Option<&Map> {
        match self.bare() {
            Value::Map(m) => Some(m),
            _ => None,
        }
    }

    /// Map, mutable.
    pub fn as_map_mut(&mut self) -> Option<&mut Map> {
        match self.bare_mut() {
            Value::Map(m) => Some(m),
            _ => None,
        }
    }

    /// Is it `#` (with or without attributes)?
    pub fn is_entity(&self) -> bool {
        matches!(self.bare(), Value::Entity)
    }

    /// Name of the type as users know it: `entity`, `boolean`, `int64`, `uint64`, `double`,
    /// `string`, `list`, `map`.
    pub fn type_name(&self) -> &'static str {
        match self.bare() {
            Value::Entity => "entity",
            Value::Bool(_) => "boolean",
            Value::Int(_) => "int64",
            Value::Uint(_) => "uint64",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Attributed(_) => unreachable!("bare() never yields an attributed value"),
        }
    }

    /// The child of a map.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_map().and_then(|m| m.get(key))
    }
}

macro_rules! from {
    ($($t:ty => |$x:ident| $e:expr),* $(,)?) => { $(impl From<$t> for Value { fn from($x: $t) -> Value { $e } })* };
}
from! {
    bool => |x| Value::Bool(x),
    i32 => |x| Value::Int(i64::from(x)),
    i64 => |x| Value::Int(x),
    u32 => |x| Value::Uint(u64::from(x)),
    u64 => |x| Value::Uint(x),
    usize => |x| Value::Int(x as i64), // counts are shown as int64 (http-api.md 4.2)
    f64 => |x| Value::Double(x),
    &str => |x| Value::String(x.as_bytes().to_vec()),
    &String => |x| Value::String(x.as_bytes().to_vec()),
    String => |x| Value::String(x.into_bytes()),
    &[u8] => |x| Value::String(x.to_vec()),
    Map => |x| Value::Map(x),
}
impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(x: Vec<T>) -> Value {
        Value::List(x.into_iter().map(Into::into).collect())
    }
}
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(x: Option<T>) -> Value {
        x.map_or(Value::Entity, Into::into)
    }
}

type Inner = indexmap::IndexMap<Bytes, Value, KeyHash>;

/// Map with byte-string keys that keeps insertion order.
///
/// Equality does not depend on the order.
#[derive(Clone, PartialEq, Default)]
pub struct Map(Inner);

impl Map {
    /// An empty map to refer to.
    pub const EMPTY: &'static Map = &Map(Inner::with_hasher(KeyHash));

    /// Empty map; does not allocate.
    pub fn new() -> Map {
        Map::default()
    }
    /// Sets a key without copying it: for parsers, which own the key already.
    pub fn insert_owned(&mut self, key: Bytes, value: Value) -> Option<Value> {
        self.0.insert(key, value)
    }
    /// Number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// No keys at all?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Value of a key.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<&Value> {
        self.0.get(key.as_ref())
    }
    /// Position and value of a key.
    pub fn get_full(&self, key: impl AsRef<[u8]>) -> Option<(usize, &Value)> {
        self.0.get_full(key.as_ref()).map(|(at, _, value)| (at, value))
    }
    /// Value of a key, mutable.
    pub fn get_mut(&mut self, key: impl AsRef<[u8]>) -> Option<&mut Value> {
        self.0.get_mut(key.as_ref())
    }
    /// Is the key there?
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.0.contains_key(key.as_ref())
    }
    /// Sets a key (a new one goes to the end); gives the old value back.
    pub fn insert(&mut self, key: impl AsRef<[u8]>, value: impl Into<Value>) -> Option<Value> {
        self.0.insert(key.as_ref().to_vec(), value.into())
    }
    /// Sets a key and returns the map, for building in one expression.
    pub fn with(mut self, key: impl AsRef<[u8]>, value: impl Into<Value>) -> Map {
        self.insert(key, value);
        self
    }
    /// Sets a key if there is a value.
    pub fn with_some<T: Into<Value>>(self, key: impl AsRef<[u8]>, value: Option<T>) -> Map {
        match value {
            Some(v) => self.with(key, v),
            None => self,
        }
    }
    /// Removes a key; the others keep their order.
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Option<Value> {
        self.0.shift_remove(key.as_ref())
    }
    /// The value of a key, created as an empty map when missing.
    pub fn entry_or_insert(&mut self, key: impl AsRef<[u8]>, default: impl FnOnce() -> Value) -> &mut Value {
        self.0.entry(key.as_ref().to_vec()).or_insert_with(default)
    }
    /// Pairs in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &Value)> {
        self.0.iter().map(|(k, v)| (k.as_slice(), v))
    }
    /// Pairs in order, values mutable.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&[u8], &mut Value)> {
        self.0.iter_mut().map(|(k, v)| (k.as_slice(), v))
    }
    /// Keys in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.0.keys().map(Vec::as_slice)
    }
    /// Keys in order, as text; bytes that are not UTF-8 are replaced.
    pub fn key_strings(&self) -> impl Iterator<Item = String> {
        self.0.keys().map(|k| String::from_utf8_lossy(k).into_owned())
    }
    /// Sorts by key.
    pub fn sort_keys(&mut self) {
        self.0.sort_keys();
    }
}

impl IntoIterator for Map {
    type Item = (Bytes, Value);
    type IntoIter = indexmap::map::IntoIter<Bytes, Value>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
impl<K: AsRef<[u8]>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(iter: I) -> Map {
        Map(iter.into_iter().map(|(k, v)| (k.as_ref().to_vec(), v.into())).collect())
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(k, v)| (String::from_utf8_lossy(k), v))).finish()
    }
}
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Entity => f.write_str("#"),
            Value::Bool(b) => write!(f, "%{b}"),
            Value::Int(i) => write!(f, "{i}"),
            Value::Uint(u) => write!(f, "{u}u"),
            Value::Double(d) => write!(f, "{d:?}"),
            Value::String(s) => write!(f, "{:?}", String::from_utf8_lossy(s)),
            Value::List(l) => f.debug_list().entries(l).finish(),
            Value::Map(m) => m.fmt(f),
            Value::Attributed(b) => write!(f, "<{:?}>{:?}", b.0, b.1),
        }
    }
}

/// Builds a [`Map`]: `map! {"a" => 1, "b" => "x"}`.
#[macro_export]
macro_rules! map {
    ($($k:expr => $v:expr),* $(,)?) => {{
        #[allow(unused_mut)]
        let mut m = $crate::Map::new();
        $( m.insert($k, $v); )*
        m
    }};
}
