//! One pass over a map of options: typed values out, and on the way the full spec (every option
//! with its effective value, canonical names) and the part that nobody understood.
//!
//! That the three come from the same call is the point: an option cannot be understood and still be
//! shown as unrecognized, nor be in use and missing in the full spec.

use std::fmt::Display;
use std::ops::RangeInclusive;
use vocab::{Cpu, Failure, Span};
use yson::fields::{FieldError, Fields};
use yson::{Map, Value};

/// Pool trees, job shells and tmpfs volumes: more of them than any cluster or job has.
const MAX_ITEMS: usize = 1000;

/// Canonical name first, accepted aliases after it.
pub(crate) trait Names {
    fn names(&self) -> &[&'static str];
}
impl Names for &'static str {
    fn names(&self) -> &[&'static str] {
        std::slice::from_ref(self)
    }
}
impl<const N: usize> Names for [&'static str; N] {
    fn names(&self) -> &[&'static str] {
        self
    }
}

/// How an effective value is shown in the full spec.
pub(crate) trait Shown {
    fn shown(&self) -> Value;
}
macro_rules! shown {
    ($($t:ty => |$x:ident| $e:expr),* $(,)?) => { $(impl Shown for $t { fn shown(&self) -> Value { let $x = self; $e } })* };
}
shown! {
    bool => |x| (*x).into(),
    i64 => |x| (*x).into(),
    f64 => |x| (*x).into(),
    String => |x| x.into(),
    Cpu => |x| x.as_f64().into(),
    // Durations of specs are whole milliseconds (jobs-and-nodes.md 0).
    Span => |x| (x.as_millis() as i64).into(),
    Value => |x| x.clone(),
    Map => |x| x.clone().into(),
}
impl<T: Shown> Shown for Vec<T> {
    fn shown(&self) -> Value {
        Value::List(self.iter().map(Shown::shown).collect())
    }
}

/// A map of options that is being read; see the module's page.
pub(crate) struct Reader<'a> {
    input: &'a Map,
    path: String,
    used: Vec<&'static str>,
    full: Map,
    rest: Map,
    keys_are_names: bool,
}

/// An option on its way: decide with [`Taken::or`], [`Taken::optional`] or [`Taken::required`].
#[must_use]
pub(crate) struct Taken<'r, T> {
    name: &'static str,
    value: Result<Option<T>, Failure>,
    full: &'r mut Map,
    path: &'r str,
}

impl<T: Shown> Taken<'_, T> {
    /// The value or this default.
    pub fn or(self, default: T) -> Result<T, Failure> {
        let value = self.value?.unwrap_or(default);
        self.full.insert(self.name, value.shown());
        Ok(value)
    }
    /// The value if there is one; an absent option has no place in the full spec.
    pub fn optional(self) -> Result<Option<T>, Failure> {
        let value = self.value?;
        if let Some(v) = &value {
            self.full.insert(self.name, v.shown());
        }
        Ok(value)
    }
    /// The value, or an error that names the missing option.
    pub fn required(self) -> Result<T, Failure> {
        let (name, path) = (self.name, self.path.to_owned());
        self.optional()?.ok_or_else(|| {
            let path = child_path(&path, name.as_bytes());
            Failure::new(format!("Missing required option {path} of the spec")).with("path", path.as_str())
        })
    }
}

impl<'a> Reader<'a> {
    /// Starts reading a map that sits at `path` of the spec (empty for the root).
    pub fn new(input: &'a Map, path: impl Into<String>) -> Reader<'a> {
        Reader {
            input,
            path: path.into(),
            used: Vec::new(),
            full: Map::new(),
            rest: Map::new(),
            keys_are_names: false,
        }
    }

    /// The full form of what was read, and what was not understood.
    pub fn finish(mut self) -> (Map, Map) {
        let unknown = self.input.iter().filter(|_| !self.keys_are_names);
        for (key, value) in unknown {
            if !self.used.iter().any(|u| u.as_bytes() == key) {
                self.rest.insert(key, value.clone());
            }
        }
        (self.full, self.rest)
    }

    /// Where an option of this map sits in the spec.
    pub fn path_of(&self, name: &str) -> String {
        child_path(&self.path, name.as_bytes())
    }

    /// Refuses a list or map with more items than anybody needs, before they are compared with each other.
    pub fn check_count(&self, name: &str, count: usize) -> Result<(), Failure> {
        if count <= MAX_ITEMS {
            return Ok(());
        }
        Err(self
            .refuse(name, format_args!("at most {MAX_ITEMS} items are allowed, found {count}"))
            .with("limit", MAX_ITEMS))
    }

    /// An error about an option: code 1 with its path.
    pub fn refuse(&self, name: &str, why: impl Display) -> Failure {
        refuse_at(&self.path_of(name), why)
    }

    /// Shows what holds for an option that others want to know as "not said".
    pub fn show_effective(&mut self, name: &'static str, value: impl Into<Value>) {
        self.full.insert(name, value);
    }

    fn leave(&mut self, name: impl AsRef<[u8]>, rest: Map) {
        if !rest.is_empty() {
            self.rest.insert(name, rest);
        }
    }

    /// The raw value; `#` counts as absent. Giving an option under two of its names is an error,
    /// because one of them would be ignored silently.
    pub fn raw(&mut self, names: impl Names) -> Result<Option<&'a Value>, Failure> {
        let names = names.names();
        let mut found: Option<(&'static str, &'a Value)> = None;
        for name in names {
            self.used.push(name);
            let Some(value) = self.input.get(name) else { continue };
            if let Some((first, _)) = found {
                return Err(self.refuse(name, format_args!("the same option is also given as {first:?}")));
            }
            found = Some((name, value));
        }
        Ok(found.map(|(_, v)| v).filter(|v| !v.is_entity()))
    }

    /// An option with a reading function of its own; the error of `read` says what was expected.
    pub fn with<T>(
        &mut self,
        names: impl Names,
        read: impl FnOnce(&'a Value) -> Result<T, String>,
    ) -> Taken<'_, T> {
        let name = names.names()[0];
        let value = self
            .raw(names)
            .and_then(|raw| raw.map(|v| read(v).map_err(|why| self.refuse(name, why))).transpose());
        Taken { name, value, full: &mut self.full, path: &self.path }
    }

    pub fn bool(&mut self, names: impl Names) -> Taken<'_, bool> {
        self.with(names, |v| v.as_bool().ok_or_else(|| expected("boolean", v)))
    }
    pub fn string(&mut self, names: impl Names) -> Taken<'_, String> {
        self.with(names, |v| v.as_str().map(str::to_owned).ok_or_else(|| expected("UTF-8 string", v)))
    }
    pub fn int(&mut self, names: impl Names, range: RangeInclusive<i64>) -> Taken<'_, i64> {
        self.with(names, |v| {
            v.as_i64().filter(|x| range.contains(x)).ok_or_else(|| expected(&int_words(&range), v))
        })
    }
    /// A finite number in a closed range.
    pub fn number(&mut self, names: impl Names, range: RangeInclusive<f64>) -> Taken<'_, f64> {
        self.with(names, |v| number_in(v, &range))
    }
    /// A finite number greater than zero, up to `max`.
    pub fn positive(&mut self, names: impl Names, max: f64) -> Taken<'_, f64> {
        self.with(names, |v| {
            v.as_f64()
                .filter(|x| x.is_finite() && *x > 0.0 && *x <= max)
                .ok_or_else(|| expected(&format!("number greater than 0{}", at_most(max)), v))
        })
    }
    /// Cores: a number >= 0, kept with two decimals.
    pub fn cores(&mut self, names: impl Names) -> Taken<'_, Cpu> {
        // Far above any machine, far below what overflows sums.
        self.with(names, |v| number_in(v, &(0.0..=1e9)).map(Cpu::from_f64))
    }
    /// A duration: integer milliseconds, or text with a unit.
    pub fn span(&mut self, names: impl Names, range: RangeInclusive<Span>) -> Taken<'_, Span> {
        self.with(names, |v| {
            let span = match v.as_u64() {
                Some(ms) => ms.checked_mul(1_000).map(Span),
                None => v.as_str().and_then(Span::parse),
            };
            span.filter(|s| range.contains(s)).ok_or_else(|| {
                let mut words =
                    format!("duration (milliseconds, or text like \"10s\") of at least {}", range.start());
                if range.end().as_micros() < u64::MAX {
                    words += &format!(" and at most {}", range.end());
                }
                expected(&words, v)
            })
        })
    }
    pub fn strings(&mut self, names: impl Names) -> Taken<'_, Vec<String>> {
        self.with(names, |v| {
            let list = v.as_list().ok_or_else(|| expected("list of strings", v))?;
            list.iter()
                .map(|x| x.as_str().map(str::to_owned).ok_or_else(|| expected("list of strings", x)))
                .collect()
        })
    }
    pub fn map(&mut self, names: impl Names) -> Taken<'_, Map> {
        self.with(names, |v| v.as_map().cloned().ok_or_else(|| expected("map", v)))
    }
    pub fn list(&mut self, names: impl Names) -> Taken<'_, Vec<Value>> {
        self.with(names, |v| v.as_list().map(<[Value]>::to_vec).ok_or_else(|| expected("list", v)))
    }
    /// Anything: accepted and shown as it is.
    pub fn any(&mut self, names: impl Names) -> Taken<'_, Value> {
        self.with(names, |v| Ok(v.clone()))
    }

    /// A section that is always there: a missing one is read as an empty map, so that its defaults
    /// show in the full spec.
    pub fn section<T>(
        &mut self,
        names: impl Names,
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let name = names.names()[0];
        let empty = Map::new();
        let map = self.section_map(names)?.unwrap_or(&empty);
        self.descend(name, map, read)
    }

    /// Options of this map whose reader is not one of ours. It takes what it knows, `names` in all, and
    /// says how the effective values are shown.
    pub fn options<T>(
        &mut self,
        names: &[&'static str],
        read: impl FnOnce(&mut Fields<'_>) -> Result<T, FieldError>,
        shown: impl FnOnce(&T) -> Map,
    ) -> Result<T, Failure> {
        self.used.extend(names);
        let options = read(&mut Fields::new(self.input, "")).map_err(|e| {
            let (name, why) = reserve::error_parts(&e);
            self.refuse(name, why)
        })?;
        for (name, value) in shown(&options).iter() {
            self.full.insert(name, value.clone());
        }
        Ok(options)
    }

    /// A section that may be missing.
    pub fn optional_section<T>(
        &mut self,
        names: impl Names,
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        let name = names.names()[0];
        match self.section_map(names)? {
            Some(map) => self.descend(name, map, read).map(Some),
            None => Ok(None),
        }
    }

    /// All pairs of a map whose keys are names of the user's (tasks, trees), `#` left out.
    pub fn entries(&mut self) -> Vec<(String, &'a Value)> {
        self.keys_are_names = true;
        let pairs = self.input.iter().filter(|(_, v)| !v.is_entity());
        pairs.map(|(k, v)| (String::from_utf8_lossy(k).into_owned(), v)).collect()
    }

    /// Files what a reader of one of these [`entries`](Reader::entries) found under its name.
    pub fn keep(&mut self, name: &str, inner: Reader<'_>) {
        let (full, rest) = inner.finish();
        self.full.insert(name, full);
        self.leave(name, rest);
    }

    fn section_map(&mut self, names: impl Names) -> Result<Option<&'a Map>, Failure> {
        let name = names.names()[0];
        match self.raw(names)? {
            None => Ok(None),
            Some(v) => v.as_map().map(Some).ok_or_else(|| self.refuse(name, expected("map", v))),
        }
    }

    fn descend<T>(
        &mut self,
        name: &str,
        map: &Map,
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut inner = Reader::new(map, self.path_of(name));
        let out = read(&mut inner)?;
        self.keep(name, inner);
        Ok(out)
    }
}

/// An error about the option at a path: code 1.
pub(crate) fn refuse_at(path: &str, why: impl Display) -> Failure {
    Failure::new(format!("Invalid value of spec option {path}: {why}")).with("path", path)
}

/// `expected ..., found ...`
pub(crate) fn expected(what: &str, found: &Value) -> String {
    let shown = match found.bare() {
        Value::String(s) => {
            format!("string {:?}", String::from_utf8_lossy(s).chars().take(100).collect::<String>())
        }
        v @ (Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Bool(_)) => {
            format!("{} {v:?}", v.type_name())
        }
        v => v.type_name().to_owned(),
    };
    format!("expected {what}, found {shown}")
}

/// A child's YPath; characters with a meaning there are escaped (http-api.md 5.1).
pub(crate) fn child_path(parent: &str, name: &[u8]) -> String {
    let mut out = format!("{parent}/");
    for c in String::from_utf8_lossy(name).chars() {
        if matches!(c, '\\' | '/' | '@' | '&' | '*' | '[' | '{') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn number_in(v: &Value, range: &RangeInclusive<f64>) -> Result<f64, String> {
    v.as_f64()
        .filter(|x| x.is_finite() && range.contains(x))
        .ok_or_else(|| expected(&format!("number of at least {}{}", range.start(), at_most(*range.end())), v))
}

fn at_most(max: f64) -> String {
    if max < 1e9 { format!(" and at most {max}") } else { String::new() }
}

fn int_words(range: &RangeInclusive<i64>) -> String {
    match (*range.start(), *range.end()) {
        (i64::MIN, i64::MAX) => "int64".to_owned(),
        (low, i64::MAX) => format!("int64 of at least {low}"),
        (low, high) => format!("int64 in {low}..={high}"),
    }
}
