//! Distributions of the workload format (simulator.md 4, DIST).

use crate::random::Draw;
use yson::fields::{FieldError, Fields};
use yson::{Map, Value};

/// See the module page. Values outside of `min` and `max` are clamped.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)] // names are those of the format
pub enum Dist {
    Const(f64),
    Uniform(f64, f64),
    Exp {
        mean: f64,
        bounds: (f64, f64),
    },
    Lognormal {
        median: f64,
        sigma: f64,
        bounds: (f64, f64),
    },
    Beta {
        a: f64,
        b: f64,
        max: f64,
    },
    Pareto {
        min: f64,
        alpha: f64,
        max: f64,
    },
    /// Points (probability, value), linear in between.
    Quantiles(Vec<(f64, f64)>),
    /// By the index of the job, over and over.
    List(Vec<f64>),
}

const EXPECTED: &str = "a number >= 0, or a map with one of \"const\", \"uniform\", \"exp\", \"lognormal\", \
                        \"beta\", \"pareto\", \"quantiles\", \"list\"";

impl Dist {
    /// Reads a distribution of values that are not negative.
    pub fn read(path: &str, value: &Value) -> Result<Dist, FieldError> {
        let wrong = || FieldError::expected(path, EXPECTED, value);
        if let Some(x) = value.as_f64() {
            return if x.is_finite() && x >= 0.0 { Ok(Dist::Const(x)) } else { Err(wrong()) };
        }
        let map = value.as_map().filter(|m| m.len() == 1).ok_or_else(wrong)?;
        let (name, inner) = map.iter().next().ok_or_else(wrong)?;
        let name = String::from_utf8_lossy(name).into_owned();
        let at = format!("{path}/{name}");
        match name.as_str() {
            "const" => match inner.as_f64().filter(|x| x.is_finite() && *x >= 0.0) {
                Some(x) => Ok(Dist::Const(x)),
                None => Err(FieldError::expected(at, "a number >= 0", inner)),
            },
            "uniform" => match numbers(&at, inner)?[..] {
                [a, b] if a <= b => Ok(Dist::Uniform(a, b)),
                _ => Err(FieldError::new(at, "expected two numbers [a, b] with a <= b")),
            },
            "exp" => {
                read_map(&at, inner, |f| Ok(Dist::Exp { mean: positive(f, "mean")?, bounds: bounds(f)? }))
            }
            "lognormal" => read_map(&at, inner, |f| {
                let sigma = f.take_f64("sigma").within(0.0..=20.0).required()?;
                Ok(Dist::Lognormal { median: positive(f, "median")?, sigma, bounds: bounds(f)? })
            }),
            "beta" => read_map(&at, inner, |f| {
                let max = f.take_f64("max").within(0.0..=1e18).or(1.0)?;
                Ok(Dist::Beta { a: positive(f, "a")?, b: positive(f, "b")?, max })
            }),
            "pareto" => read_map(&at, inner, |f| {
                let max = f.take_f64("max").within(0.0..=1e18).or(1e18)?;
                Ok(Dist::Pareto { min: positive(f, "min")?, alpha: positive(f, "alpha")?, max })
            }),
            "quantiles" => quantiles(&at, inner),
            "list" => {
                let list = numbers(&at, inner)?;
                if list.is_empty() {
                    return Err(FieldError::new(at, "expected at least one number"));
                }
                Ok(Dist::List(list))
            }
            _ => Err(FieldError::new(at, &format!("unknown distribution, expected {EXPECTED}"))),
        }
    }

    /// The value of an entity; `index` is the number of its job.
    pub fn draw(&self, draw: &mut Draw, index: u64) -> f64 {
        match self {
            Dist::Const(x) => *x,
            Dist::Uniform(a, b) => a + (b - a) * draw.unit(),
            Dist::Exp { mean, bounds } => (-mean * draw.unit().ln()).clamp(bounds.0, bounds.1),
            Dist::Lognormal { median, sigma, bounds } => {
                (median * (sigma * draw.normal()).exp()).clamp(bounds.0, bounds.1)
            }
            Dist::Beta { a, b, max } => max * draw.beta(*a, *b),
            Dist::Pareto { min, alpha, max } => (min * draw.unit().powf(-1.0 / alpha)).min(*max),
            Dist::Quantiles(points) => interpolate(points, draw.unit()),
            Dist::List(list) => list[(index % list.len() as u64) as usize],
        }
    }
}

fn interpolate(points: &[(f64, f64)], p: f64) -> f64 {
    let after = points.partition_point(|(q, _)| *q < p);
    match (after.checked_sub(1).map(|i| points[i]), points.get(after)) {
        (Some((p0, x0)), Some((p1, x1))) if *p1 > p0 => x0 + (x1 - x0) * (p - p0) / (p1 - p0),
        (_, Some((_, x))) => *x,
        (Some((_, x)), None) => x,
        (None, None) => 0.0,
    }
}

fn quantiles(at: &str, value: &Value) -> Result<Dist, FieldError> {
    let wrong = || {
        FieldError::new(at, "expected pairs [p, x], p from 0 to 1 and ascending, x ascending and at least 0")
    };
    let pair = |v: &Value| match v.as_list()? {
        [p, x] => Some((p.as_f64()?, x.as_f64()?)),
        _ => None,
    };
    let list = value.as_list().ok_or_else(wrong)?;
    let points: Vec<(f64, f64)> = list.iter().map(pair).collect::<Option<_>>().ok_or_else(wrong)?;
    let is_good = |(p, x): &(f64, f64)| (0.0..=1.0).contains(p) && x.is_finite() && *x >= 0.0;
    let ascends = points.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 <= w[1].1);
    if points.is_empty() || !points.iter().all(is_good) || !ascends {
        return Err(wrong());
    }
    Ok(Dist::Quantiles(points))
}

fn numbers(at: &str, value: &Value) -> Result<Vec<f64>, FieldError> {
    let list = value.as_list().ok_or_else(|| FieldError::expected(at, "a list of numbers >= 0", value))?;
    let number = |(i, v): (usize, &Value)| match v.as_f64() {
        Some(x) if x.is_finite() && x >= 0.0 => Ok(x),
        _ => Err(FieldError::expected(format!("{at}/{i}"), "a number >= 0", v)),
    };
    list.iter().enumerate().map(number).collect()
}

fn read_map(
    at: &str,
    value: &Value,
    read: impl FnOnce(&mut Fields<'_>) -> Result<Dist, FieldError>,
) -> Result<Dist, FieldError> {
    let map: &Map = value.as_map().ok_or_else(|| FieldError::expected(at, "map", value))?;
    let mut fields = Fields::new(map, at);
    let dist = read(&mut fields)?;
    fields.finish()?;
    Ok(dist)
}

fn positive(f: &mut Fields<'_>, name: &str) -> Result<f64, FieldError> {
    f.take_f64(name).check("a number greater than 0", |x| x.is_finite() && *x > 0.0).required()
}

fn bounds(f: &mut Fields<'_>) -> Result<(f64, f64), FieldError> {
    let min = f.take_f64("min").within(0.0..=1e18).or(0.0)?;
    let max = f.take_f64("max").within(min..=1e18).or(1e18)?;
    Ok((min, max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Kind;

    fn read(text: &str) -> Result<Dist, FieldError> {
        Dist::read("x", &yson::json::from_json(text.as_bytes(), &yson::JsonFormat::utf8()).expect("JSON"))
    }

    #[test]
    fn all_forms() {
        let mean = |text: &str| {
            let dist = read(text).expect(text);
            let draw = |i| dist.draw(&mut Draw::new(1, Kind::Duration, 5, i), i);
            (0..10_000).map(draw).sum::<f64>() / 10_000.0
        };
        for (text, want, off) in [
            ("7", 7.0, 0.0),
            (r#"{"const":7}"#, 7.0, 0.0),
            (r#"{"uniform":[2,4]}"#, 3.0, 0.02),
            (r#"{"exp":{"mean":10}}"#, 10.0, 0.3),
            (r#"{"exp":{"mean":10,"max":5,"min":5}}"#, 5.0, 0.0),
            (r#"{"lognormal":{"median":10,"sigma":0}}"#, 10.0, 1e-9),
            (r#"{"beta":{"a":2,"b":2,"max":4}}"#, 2.0, 0.05),
            (r#"{"pareto":{"min":1,"alpha":3}}"#, 1.5, 0.05),
            (r#"{"quantiles":[[0,1],[1,3]]}"#, 2.0, 0.02),
            (r#"{"list":[1,2,3,4]}"#, 2.5, 0.0),
        ] {
            let found = mean(text);
            assert!((found - want).abs() <= off, "{text}: {found}");
        }
    }

    #[test]
    fn refusals_say_where_and_what() {
        let found: Vec<String> = [
            r#"-1"#,
            r#"{"norm":1}"#,
            r#"{"uniform":[4,2]}"#,
            r#"{"exp":{"mean":0}}"#,
            r#"{"exp":{"mean":1,"median":2}}"#,
            r#"{"quantiles":[[0.5,3],[0.2,4]]}"#,
            r#"{"list":[1,"x"]}"#,
        ]
        .into_iter()
        .map(|text| read(text).expect_err(text).to_string())
        .collect();
        expect_test::expect![[r#"
            option "x": expected a number >= 0, or a map with one of "const", "uniform", "exp", "lognormal", "beta", "pareto", "quantiles", "list", found -1
            option "x/norm": unknown distribution, expected a number >= 0, or a map with one of "const", "uniform", "exp", "lognormal", "beta", "pareto", "quantiles", "list"
            option "x/uniform": expected two numbers [a, b] with a <= b
            option "x/exp/mean": expected a number greater than 0, found 0
            option "x/exp/median": unknown option
            option "x/quantiles": expected pairs [p, x], p from 0 to 1 and ascending, x ascending and at least 0
            option "x/list/1": expected a number >= 0, found string "x""#]].assert_eq(&found.join("\n"));
    }
}
