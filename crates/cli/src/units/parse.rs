//! What users type.

use crate::args::FileArg;
use std::net::SocketAddr;
use std::path::PathBuf;
use vocab::{Cpu, RESOURCES, Resource, Resources, Span};
use yson::{Map, Value};

/// Bytes: `1GiB`, `512MiB`, `16G`, `1.5g`, `1000`. One letter means powers of 1024, as in cgroups;
/// `KB`, `MB`, ... are the powers of 1000 that they are by standard.
pub fn parse_size(text: &str) -> Result<i64, String> {
    const HELP: &str = "expected a number of bytes, with or without a unit: K, M, G, T, P (or KiB, MiB, ...: powers of 1024), \
         KB, MB, GB, TB, PB (powers of 1000)";
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..split].parse().map_err(|_| HELP.to_owned())?;
    let unit = match text[split..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024f64.powi(2),
        "g" | "gib" => 1024f64.powi(3),
        "t" | "tib" => 1024f64.powi(4),
        "p" | "pib" => 1024f64.powi(5),
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        "pb" => 1e15,
        _ => return Err(HELP.to_owned()),
    };
    let bytes = number * unit;
    // Beyond 2^53 the number is no longer what was typed; nobody has so much.
    if bytes > 9e15 {
        return Err("more than 8 PiB".to_owned());
    }
    Ok(bytes.round() as i64)
}

/// Cores: `2`, `0.5`, `0.25`.
pub fn parse_cores(text: &str) -> Result<Cpu, String> {
    let cores: f64 =
        text.trim().parse().map_err(|_| "expected a number of cores, e.g. 2 or 0.5".to_owned())?;
    if !(0.0..=1e6).contains(&cores) {
        return Err("expected a number of cores from 0 to 1000000".to_owned());
    }
    if (cores * 100.0 - (cores * 100.0).round()).abs() > 1e-6 {
        return Err("cores are counted in hundredths: at most two decimals".to_owned());
    }
    Ok(Cpu::from_f64(cores))
}

/// Time: `500ms`, `30s`, `10m`, `2h`, `1d`. A unit is required, since a bare number means
/// milliseconds in specifications and seconds to everybody else.
pub fn parse_span(text: &str) -> Result<Span, String> {
    const HELP: &str = "expected a time with a unit: ms, s, m, h or d, e.g. 30s";
    let text = text.trim();
    if text.ends_with(|c: char| c.is_ascii_digit()) {
        return Err(HELP.to_owned());
    }
    match Span::parse(text).ok_or_else(|| HELP.to_owned())? {
        Span::ZERO => Err("expected a time longer than 0, e.g. 30s".to_owned()),
        span => Ok(span),
    }
}

/// Amounts of some resources; what was not named stays open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts(Vec<(Resource, i64)>);

impl Amounts {
    /// The named ones over `defaults`.
    pub fn over(&self, defaults: Resources) -> Resources {
        let mut all = defaults;
        for (resource, raw) in &self.0 {
            all.set_raw(*resource, *raw);
        }
        all
    }

    /// The named ones as options are written: `cpu` a double, the others integers.
    pub fn to_map(&self) -> Map {
        let natural = |resource: Resource, raw: i64| match resource {
            Resource::Cpu => Value::from(Cpu(raw).as_f64()),
            _ => Value::from(raw),
        };
        self.0.iter().map(|(resource, raw)| (resource.as_str(), natural(*resource, *raw))).collect()
    }
}

/// As `parse_resources` reads it.
impl std::fmt::Display for Amounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, (resource, raw)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match resource {
                Resource::Cpu => write!(f, "{comma}cpu={}", Cpu(*raw))?,
                other => write!(f, "{comma}{other}={raw}")?,
            }
        }
        Ok(())
    }
}

/// Resources: `cpu=8,memory=16GiB,user_slots=32`.
pub fn parse_resources(text: &str) -> Result<Amounts, String> {
    let mut amounts = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, value) =
            part.split_once('=').ok_or_else(|| format!("{part:?}: expected KEY=AMOUNT, e.g. cpu=8"))?;
        let (name, value) = (name.trim(), value.trim());
        let resource = Resource::parse(name.as_bytes()).ok_or_else(|| {
            let known = RESOURCES.map(Resource::as_str).join(", ");
            format!("there is no resource {name:?}: expected one of {known}")
        })?;
        if amounts.iter().any(|(known, _)| *known == resource) {
            return Err(format!("{resource} is given twice"));
        }
        let raw = match resource {
            Resource::Cpu => parse_cores(value).map(|cpu| cpu.0),
            Resource::Memory => parse_size(value),
            _ => value.parse::<u32>().map(i64::from).map_err(|_| "expected a whole number".to_owned()),
        };
        amounts.push((resource, raw.map_err(|e| format!("{resource}={value}: {e}"))?));
    }
    match amounts.is_empty() {
        true => Err("expected KEY=AMOUNT,..., e.g. cpu=8,memory=16GiB,user_slots=32".to_owned()),
        false => Ok(Amounts(amounts)),
    }
}

/// Address to listen on: `127.0.0.1:8000`, `localhost:8000`, `:8000`, `[::1]:8000`.
pub fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let full = match text.rsplit_once(':') {
        Some(("" | "localhost", port)) => format!("127.0.0.1:{port}"),
        _ => text.to_owned(),
    };
    full.parse().map_err(|_| {
        "expected IP:PORT, e.g. 127.0.0.1:8000; 0.0.0.0:8000 listens on all interfaces, port 0 takes a free one"
            .to_owned()
    })
}

/// Address of a server: `HOST:PORT`, with or without `http://`.
pub fn parse_server(text: &str) -> Result<String, String> {
    let bare = text.trim().strip_prefix("http://").unwrap_or(text.trim()).trim_end_matches('/');
    let (scheme, bare) = bare.strip_prefix("https://").map_or(("", bare), |bare| ("https://", bare));
    match bare.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() && !host.contains(['/', ' ']) => {
            let bare = if host.is_empty() { format!("127.0.0.1:{port}") } else { bare.to_owned() };
            Ok(format!("{scheme}{bare}"))
        }
        _ => Err("expected HOST:PORT or https://HOST:PORT, e.g. 10.0.0.1:8000".to_owned()),
    }
}

/// Variable of the environment: `KEY=VALUE`, or `KEY` for the value that it has here.
pub fn parse_env(text: &str) -> Result<(String, String), String> {
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key, value.to_owned()),
        None => {
            (text, std::env::var(text).map_err(|_| format!("{text} is not set here: write {text}=VALUE"))?)
        }
    };
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if key.is_empty() || !key.chars().all(good) || key.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("{key:?} is not a name of a variable: letters, digits and _ are"));
    }
    Ok((key.to_owned(), value))
}

/// File for the sandbox: `PATH` or `PATH:NAME`.
pub fn parse_file(text: &str) -> Result<FileArg, String> {
    let (path, name) = match text.rsplit_once(':') {
        // A colon may belong to the path.
        Some((path, name)) if !name.is_empty() && !std::path::Path::new(text).exists() => (path, Some(name)),
        _ => (text, None),
    };
    let path = PathBuf::from(path);
    let name = match name {
        Some(name) => name.to_owned(),
        None => match path.file_name().and_then(|n| n.to_str()) {
            Some(name) => name.to_owned(),
            None => return Err("expected a file, PATH or PATH:NAME".to_owned()),
        },
    };
    if name.starts_with('/') || name.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(format!("{name:?} must be a path inside the sandbox"));
    }
    Ok(FileArg { path, name })
}

/// Setting of a pool: `weight=2`, `strong_guarantee_resources/cpu=10`. A value that is a bare word is
/// a string, as in all YSON.
pub fn parse_option(text: &str) -> Result<(String, Value), String> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| "expected SETTING=VALUE, e.g. weight=2".to_owned())?;
    let name = name.trim().trim_start_matches('@');
    if name.is_empty() || name.split('/').any(str::is_empty) {
        return Err("expected SETTING=VALUE, e.g. strong_guarantee_resources/cpu=10".to_owned());
    }
    let value = yson::parse(value.as_bytes()).map_err(|e| format!("the value of {name} is not YSON: {e}"))?;
    Ok((name.to_owned(), value))
}

/// A map in YSON: `{a=1; b=text}`.
pub fn parse_yson_map(text: &str) -> Result<Map, String> {
    match yson::parse(text.as_bytes()).map_err(|e| format!("not YSON: {e}"))? {
        Value::Map(map) => Ok(map),
        other => Err(format!("expected a map, {{key=value; ...}}, found {}", other.type_name())),
    }
}
