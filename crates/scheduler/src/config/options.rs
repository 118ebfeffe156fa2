//! Reads options out of a map: aliases, ranges, canonical form, leftovers.

use crate::amounts::{Amounts, amount_value};
use crate::formula::TagFilter;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use vocab::{Cpu, Failure, Resource, Span};
use yson::{Map, Value};

/// A map of options being read. Names are compared with `-` read as `_` (http-api.md 8.8).
pub(crate) struct Options<'a> {
    /// What the options belong to, for messages: `pool option`.
    what: &'static str,
    /// Place inside nested maps, with a trailing `/`; empty at the top.
    prefix: String,
    left: BTreeMap<String, &'a Value>,
    /// Order of the source, for what is left at the end.
    order: Vec<(String, String)>,
    specified: Map,
    /// What was asked for, if somebody wants to know.
    asked: Option<Vec<OptionInfo>>,
}

/// An option as its reader knows it, for the list of all options.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OptionInfo {
    /// The canonical name, then the older ones.
    pub names: Vec<String>,
    /// What is allowed, in the words of refusals; empty if the option is not looked at.
    pub allowed: String,
}

impl<'a> Options<'a> {
    pub fn new(what: &'static str, map: &'a Map) -> Result<Options<'a>, Failure> {
        Options::nested(what, String::new(), map)
    }

    /// Reads nothing, and remembers what was asked for.
    pub fn recorder(what: &'static str) -> Options<'a> {
        Options {
            what,
            prefix: String::new(),
            left: BTreeMap::new(),
            order: Vec::new(),
            specified: Map::new(),
            asked: Some(Vec::new()),
        }
    }

    /// What was asked for, in that order.
    pub fn recorded(self) -> Vec<OptionInfo> {
        self.asked.unwrap_or_default()
    }

    fn ask(&mut self, names: &[&str], allowed: &str) {
        if let Some(asked) = &mut self.asked {
            let names = names.iter().map(|n| (*n).to_owned()).collect();
            asked.push(OptionInfo { names, allowed: allowed.to_owned() });
        }
    }

    fn nested(what: &'static str, prefix: String, map: &'a Map) -> Result<Options<'a>, Failure> {
        let mut options = Options {
            what,
            prefix,
            left: BTreeMap::new(),
            order: Vec::new(),
            specified: Map::new(),
            asked: None,
        };
        for (key, value) in map.iter() {
            let original = String::from_utf8_lossy(key).into_owned();
            options.add(original.replace('-', "_"), original, value)?;
        }
        Ok(options)
    }

    /// A map whose keys are names that somebody has made up: they stay as they are.
    fn of_names(what: &'static str, prefix: String, map: &'a Map) -> Result<Options<'a>, Failure> {
        let mut options = Options {
            what,
            prefix,
            left: BTreeMap::new(),
            order: Vec::new(),
            specified: Map::new(),
            asked: None,
        };
        for (key, value) in map.iter() {
            let name = String::from_utf8_lossy(key).into_owned();
            options.add(name.clone(), name, value)?;
        }
        Ok(options)
    }

    fn add(&mut self, name: String, original: String, value: &'a Value) -> Result<(), Failure> {
        match self.left.insert(name.clone(), value) {
            None => self.order.push((name, original)),
            Some(other) if other == value => {}
            Some(other) => return Err(self.twice((&name, other), (&original, value))),
        }
        Ok(())
    }

    /// Two names of one option: fine with one value, as in a configuration that was read in one form and
    /// written back with a change in the other; with two, nobody can say which is meant.
    fn twice(&self, (a, first): (&str, &Value), (b, second): (&str, &Value)) -> Failure {
        Failure::new(format!(
            "The {} \"{}{a}\" is given twice with different values: as \"{a}\" it is {first:?}, as \"{b}\" it \
             is {second:?}",
            self.what, self.prefix
        ))
        .with("option", a)
    }

    /// The refusal of one value.
    pub fn refuse(&self, name: &str, value: &Value, expected: &str) -> Failure {
        let mut found = format!("{value:?}");
        if found.len() > 200 {
            found = found.chars().take(200).collect::<String>() + "...";
        }
        Failure::new(format!(
            "Bad value of the {} \"{}{name}\": expected {expected}, found {} {found}",
            self.what,
            self.prefix,
            value.type_name(),
        ))
        .with("option", format!("{}{name}", self.prefix))
    }

    /// Takes an option by any of its names; the first one is canonical. An entity means "not set".
    fn take(&mut self, names: &[&str]) -> Result<Option<&'a Value>, Failure> {
        let given = self.take_all(names);
        match given.as_slice() {
            [] => Ok(None),
            [first, rest @ ..] => match rest.iter().find(|other| other.1 != first.1) {
                Some(other) => Err(self.twice(*first, *other)),
                None => Ok(Some(first.1)),
            },
        }
    }

    /// Everything that is given under one of the names, in their order.
    fn take_all<'n>(&mut self, names: &[&'n str]) -> Vec<(&'n str, &'a Value)> {
        let given = names.iter().filter_map(|name| Some((*name, self.left.remove(*name)?)));
        given.filter(|(_, value)| !value.is_entity()).collect()
    }

    fn read<T>(
        &mut self,
        names: &[&str],
        expected: &str,
        parse: impl Fn(&Value) -> Option<T>,
        canonical: impl Fn(&T) -> Value,
    ) -> Result<Option<T>, Failure> {
        self.ask(names, expected);
        let mut found: Option<((&str, &Value), T)> = None;
        for (name, value) in self.take_all(names) {
            let parsed = parse(value).ok_or_else(|| self.refuse(name, value, expected))?;
            match &found {
                None => found = Some(((name, value), parsed)),
                // Compared as they are understood: 10000 and "10s" are one duration.
                Some((first, kept)) if canonical(kept) != canonical(&parsed) => {
                    return Err(self.twice(*first, (name, value)));
                }
                Some(_) => {}
            }
        }
        let Some((_, parsed)) = found else { return Ok(None) };
        self.specified.insert(names[0], canonical(&parsed));
        Ok(Some(parsed))
    }

    pub fn boolean(&mut self, names: &[&str]) -> Result<Option<bool>, Failure> {
        self.read(names, "a boolean", Value::as_bool, |b| (*b).into())
    }

    pub fn int(&mut self, names: &[&str], range: RangeInclusive<i64>) -> Result<Option<i64>, Failure> {
        let expected = match *range.end() {
            i64::MAX => format!("an integer of at least {}", range.start()),
            end => format!("an integer in {}..={end}", range.start()),
        };
        self.read(names, &expected, |v| v.as_i64().filter(|i| range.contains(i)), |i| (*i).into())
    }

    pub fn double(&mut self, names: &[&str], range: RangeInclusive<f64>) -> Result<Option<f64>, Failure> {
        let (low, high) = (*range.start(), *range.end());
        let expected = if low == f64::MIN_POSITIVE {
            "a finite number greater than 0".to_owned()
        } else if high.is_infinite() {
            format!("a finite number of at least {}", number(low))
        } else {
            format!("a number in {}..={}", number(low), number(high))
        };
        let good = |x: &f64| x.is_finite() && range.contains(x);
        self.read(names, &expected, |v| v.as_f64().filter(good), |x| (*x).into())
    }

    pub fn text(&mut self, names: &[&str]) -> Result<Option<String>, Failure> {
        self.read(names, "a string", |v| v.as_str().map(str::to_owned), |s| s.into())
    }

    /// Milliseconds as an integer, or a string with a unit.
    pub fn span(&mut self, names: &[&str], range: RangeInclusive<Span>) -> Result<Option<Span>, Failure> {
        let expected = if *range.end() == FOREVER {
            format!("a duration of at least {} (milliseconds, or a string such as \"10s\")", range.start())
        } else {
            format!(
                "a duration in {}..={} (milliseconds, or a string such as \"10s\")",
                range.start(),
                range.end()
            )
        };
        let parse = |v: &Value| {
            let span = match v.as_u64() {
                Some(ms) => ms.checked_mul(1_000).map(Span),
                None => v.as_str().and_then(Span::parse),
            };
            span.filter(|s| range.contains(s))
        };
        self.read(names, &expected, parse, |s| (s.as_millis() as i64).into())
    }

    pub fn choice<T: Copy + PartialEq>(
        &mut self,
        names: &[&str],
        allowed: &[(&'static str, T)],
    ) -> Result<Option<T>, Failure> {
        let list: Vec<String> = allowed.iter().map(|(n, _)| format!("\"{n}\"")).collect();
        let parse = |v: &Value| {
            let text = v.as_str()?;
            allowed.iter().find(|(n, _)| *n == text).map(|(_, t)| *t)
        };
        let print = |t: &T| allowed.iter().find(|(_, x)| x == t).map_or(Value::Entity, |(n, _)| (*n).into());
        self.read(names, &format!("one of {}", list.join(", ")), parse, print)
    }

    pub fn formula(&mut self, names: &[&str]) -> Result<Option<TagFilter>, Failure> {
        let expected = "a boolean formula over node tags";
        self.ask(names, expected);
        let Some(value) = self.take(names)? else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| self.refuse(names[0], value, expected))?;
        let filter = TagFilter::parse(text)
            .map_err(|e| self.refuse(names[0], value, expected).because(Failure::new(e)))?;
        self.specified.insert(names[0], filter.as_str());
        Ok(Some(filter))
    }

    /// A list of strings, each of which is understood by `parse`.
    pub fn list<T>(
        &mut self,
        names: &[&str],
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
        print: impl Fn(&T) -> String,
    ) -> Result<Option<Vec<T>>, Failure> {
        self.read(
            names,
            expected,
            |v| v.as_list()?.iter().map(|item| parse(item.as_str()?)).collect(),
            |list: &Vec<T>| list.iter().map(&print).collect::<Vec<_>>().into(),
        )
    }

    /// A map of amounts, each at least 0; an unknown resource is refused.
    pub fn amounts(&mut self, names: &[&str]) -> Result<Option<Amounts>, Failure> {
        self.ask(names, "a map of resources to amounts of at least 0");
        let Some((amounts, map)) = self.map_of(names, Options::all_amounts)? else { return Ok(None) };
        self.specified.insert(names[0], map);
        Ok(Some(amounts))
    }

    fn all_amounts(&mut self) -> Result<Amounts, Failure> {
        let mut amounts = Amounts::NONE;
        for (r, names) in [
            (Resource::UserSlots, &["user_slots"][..]),
            (Resource::Cpu, &["cpu"]),
            (Resource::Gpu, &["gpu"]),
            (Resource::Memory, &["memory", "user_memory"]),
            (Resource::Network, &["network"]),
        ] {
            let raw = match r {
                // Above this, hundredths of a core would leave the range of "infinite" amounts.
                Resource::Cpu => self.double(names, 0.0..=1e15)?.map(|x| Cpu::from_f64(x).0),
                _ => self.int(names, 0..=i64::MAX / 4)?,
            };
            amounts.set(r, raw);
            if let Some(raw) = raw {
                self.specified.insert(r.as_str(), amount_value(r, raw));
            }
        }
        Ok(amounts)
    }

    /// A nested map whose unknown keys are refused.
    pub fn map<T>(
        &mut self,
        names: &[&str],
        parse: impl FnOnce(&mut Options<'a>) -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        self.ask(names, "a map");
        let Some((parsed, map)) = self.map_of(names, parse)? else { return Ok(None) };
        self.specified.insert(names[0], map);
        Ok(Some(parsed))
    }

    /// A nested map whose keys are names, not options: no spelling of them is changed.
    pub fn map_by_name<T>(
        &mut self,
        names: &[&str],
        parse: impl FnOnce(&mut Options<'a>) -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        self.ask(names, "a map");
        let Some(value) = self.take(names)? else { return Ok(None) };
        let map = value.as_map().ok_or_else(|| self.refuse(names[0], value, "a map"))?;
        let mut inner = Options::of_names(self.what, format!("{}{}/", self.prefix, names[0]), map)?;
        let parsed = parse(&mut inner)?;
        let specified = inner.finish()?;
        self.specified.insert(names[0], specified);
        Ok(Some(parsed))
    }

    fn map_of<T>(
        &mut self,
        names: &[&str],
        parse: impl FnOnce(&mut Options<'a>) -> Result<T, Failure>,
    ) -> Result<Option<(T, Map)>, Failure> {
        let Some(value) = self.take(names)? else { return Ok(None) };
        let map = value.as_map().ok_or_else(|| self.refuse(names[0], value, "a map"))?;
        let mut inner = Options::nested(self.what, format!("{}{}/", self.prefix, names[0]), map)?;
        let parsed = parse(&mut inner)?;
        let specified = inner.finish()?;
        Ok(Some((parsed, specified)))
    }

    /// Takes an option as it is, for options whose meaning lies elsewhere.
    pub fn opaque(&mut self, name: &str) -> Result<Option<&'a Value>, Failure> {
        self.ask(&[name], "");
        let value = self.take(&[name])?;
        if let Some(v) = value {
            self.specified.insert(name, v.clone());
        }
        Ok(value)
    }

    /// Is the option among those that nobody has taken yet?
    pub fn contains(&self, name: &str) -> bool {
        self.left.get(name).is_some_and(|v| !v.is_entity())
    }

    /// Is the option given as `#`?
    pub fn is_null(&self, name: &str) -> bool {
        self.left.get(name).is_some_and(|v| v.is_entity())
    }

    /// Names of the options that nobody has taken yet, in order of the source.
    pub fn names(&self) -> Vec<String> {
        self.order.iter().map(|(name, _)| name.clone()).filter(|n| self.left.contains_key(n)).collect()
    }

    /// Canonical form of an option that has been read.
    pub fn specified(&self, name: &str) -> Option<&Value> {
        self.specified.get(name)
    }

    /// Ends the reading: what was specified, or the refusal of the first unknown key.
    pub fn finish(self) -> Result<Map, Failure> {
        match self.order.iter().find(|(name, _)| self.left.contains_key(name)) {
            None => Ok(self.specified),
            Some((_, original)) => {
                Err(Failure::new(format!("Unknown {} \"{}{original}\"", self.what, self.prefix))
                    .with("option", format!("{}{original}", self.prefix)))
            }
        }
    }

    /// Ends the reading: what was specified, and the rest under its original names.
    pub fn finish_with_rest(self) -> (Map, Map) {
        let rest = self
            .order
            .iter()
            .filter_map(|(name, original)| Some((original, (*self.left.get(name)?).clone())))
            .collect();
        (self.specified, rest)
    }
}

/// A number for a message: the shortest form that a person would write, not 300 digits.
pub(crate) fn number(x: f64) -> String {
    if x == 0.0 || (1e-4..1e12).contains(&x.abs()) { format!("{x}") } else { format!("{x:e}") }
}

/// Longest duration that an option may have: far away, and its sums with instants do not saturate.
pub(crate) const FOREVER: Span = Span(u64::MAX / 4);

/// Any duration.
pub(crate) const ANY_SPAN: RangeInclusive<Span> = Span::ZERO..=FOREVER;
