//! `pools.csv` or `pools.jsonl` of a run.

use crate::error::SimError;
use std::collections::BTreeMap;
use std::path::Path;

/// Values by second and pool, then by column.
pub(super) type Rows = BTreeMap<u64, BTreeMap<String, BTreeMap<String, f64>>>;

pub(super) fn pools(folder: &Path) -> Result<Rows, SimError> {
    let csv = folder.join("pools.csv");
    if csv.exists() { read_csv(&csv, "t_ms", 1000) } else { read_jsonl(&folder.join("pools.jsonl")) }
}

fn text(path: &Path) -> Result<String, SimError> {
    std::fs::read_to_string(path).map_err(|e| SimError::file(path, format!("cannot be read: {e}")))
}

fn at(path: &Path, line: usize, message: String) -> SimError {
    let file = path.display().to_string();
    SimError { file, line: Some(line as u64), pointer: String::new(), message }
}

/// A table with a column of time, one `pool`, and numbers.
pub(super) fn read_csv(path: &Path, time: &str, per_second: u64) -> Result<Rows, SimError> {
    let text = text(path)?;
    let mut lines = text.lines().enumerate();
    let header: Vec<&str> = lines.next().map(|(_, line)| line.split(',').collect()).unwrap_or_default();
    let place = |name: &str| {
        let found = header.iter().position(|column| *column == name);
        found.ok_or_else(|| at(path, 1, format!("no column {name:?} in the header")))
    };
    let (time, pool) = (place(time)?, place("pool")?);
    let mut rows = Rows::new();
    for (number, line) in lines {
        let cells: Vec<&str> = line.split(',').collect();
        if cells.len() != header.len() {
            let what = format!("expected {} columns, found {}", header.len(), cells.len());
            return Err(at(path, number + 1, what));
        }
        let when: u64 = cells[time]
            .parse()
            .map_err(|_| at(path, number + 1, format!("expected a whole number, found {:?}", cells[time])))?;
        let numbers = header.iter().zip(&cells);
        let numbers = numbers.filter_map(|(name, cell)| Some(((*name).to_owned(), cell.parse().ok()?)));
        let row = rows.entry(when / per_second).or_default();
        row.insert(cells[pool].to_owned(), numbers.collect());
    }
    Ok(rows)
}

fn read_jsonl(path: &Path) -> Result<Rows, SimError> {
    let mut rows = Rows::new();
    for (number, line) in text(path)?.lines().enumerate() {
        let value = yson::json::from_json(line.as_bytes(), &yson::JsonFormat::utf8())
            .map_err(|e| at(path, number + 1, e.to_string()))?;
        let when = value.get("t_ms").and_then(yson::Value::as_u64);
        let pool = value.get("pool").and_then(yson::Value::as_str);
        let (Some(when), Some(pool), Some(map)) = (when, pool, value.as_map()) else {
            return Err(at(path, number + 1, "expected \"t_ms\" and \"pool\"".to_owned()));
        };
        let numbers = map
            .iter()
            .filter_map(|(name, v)| Some((String::from_utf8_lossy(name).into_owned(), v.as_f64()?)));
        rows.entry(when / 1000).or_default().insert(pool.to_owned(), numbers.collect());
    }
    Ok(rows)
}
