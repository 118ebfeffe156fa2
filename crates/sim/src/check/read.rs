//! Tables of pools: of a run, and expected ones.

use crate::error::SimError;
use crate::output::pools::COLUMNS;
use crate::report::each;
use std::collections::BTreeMap;
use std::path::Path;

/// Values by second and pool, then by column.
pub(super) type Rows = BTreeMap<u64, BTreeMap<String, BTreeMap<String, f64>>>;

/// The pools of a run, whatever the form of its tables is.
pub(super) fn pools(folder: &Path) -> Result<Rows, SimError> {
    let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
    let place = |name: &str| names.iter().position(|n| *n == name).unwrap_or_default();
    let (time, pool) = (place("t_ms"), place("pool"));
    let mut rows = Rows::new();
    let there = each(folder, "pools", &names, |row| {
        let numbers = names.iter().enumerate();
        let numbers = numbers.filter_map(|(at, name)| Some(((*name).to_owned(), row.number(at)?)));
        let second = row.number(time).unwrap_or_default() as u64 / 1000;
        rows.entry(second).or_default().insert(row.text(pool).to_owned(), numbers.collect());
    })?;
    match there {
        true => Ok(rows),
        false => {
            Err(SimError::file(folder, "there is no table \"pools\" in it: expected the directory of a run"))
        }
    }
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
