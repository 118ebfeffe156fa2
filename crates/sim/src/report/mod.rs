//! Runs as one page for people (simulator.md 10): a file without anything from outside, charts with a
//! common zoom, and runs side by side with common axes.
//!
//! ```text
//! directories of runs --> [run: what is on the page, at most 2,000 points a line] --> page.html with the data in it
//! ```

mod attempts;
mod nodes;
mod rows;
mod run;
mod series;

use crate::effects::OperationFate;
use crate::error::SimError;
use crate::output::cannot_write;
pub(crate) use rows::each;
use std::path::{Path, PathBuf};
use yson::{JsonFormat, Map, Value};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Writes the page of runs. `checks`: what they are compared with; broken ones are on the page.
pub fn report(folders: &[PathBuf], checks: Option<&Path>, out: &Path) -> Result<(), SimError> {
    let mut runs = Vec::new();
    for folder in folders {
        let broken = match checks {
            Some(checks) => crate::check::check(folder, checks)?,
            None => Vec::new(),
        };
        runs.push(Value::Map(run::read(folder, &broken)?));
    }
    let comparison = comparison(folders);
    let moved = if folders.len() > 1 { moved(folders)? } else { Vec::new() };
    let data = Map::new().with("runs", runs).with("moved", moved).with_some("comparison", comparison);
    let text = yson::json::to_json(&data.into(), &JsonFormat::utf8());
    // Within a script nothing may look like its end.
    let text = String::from_utf8_lossy(&text).replace("</", "<\\/").replace("<!--", "<\\!--");
    let page = PAGE.replace("/*STYLE*/", STYLE).replace("/*SCRIPT*/", SCRIPT).replace("/*DATA*/", &text);
    std::fs::write(out, page).map_err(|e| cannot_write(out, &e))
}

/// Operations that move most on the page.
const MOVED: usize = 40;

/// Operations whose start or end moves from the first run to another one, most of all first.
fn moved(folders: &[PathBuf]) -> Result<Vec<Value>, SimError> {
    let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
    let (_, operations) = crate::effects::effects(&folders)?;
    let moved = operations.iter().filter(|operation| operation.change() > 0).take(MOVED);
    let rows = moved.map(|operation| {
        let of_run = |fate: &Option<OperationFate>| match fate {
            Some(fate) => Value::Map(yson::map! {
                "state" => fate.state.as_str(),
                "wait_ms" => fate.wait_ms,
                "lasts_ms" => fate.lasts_ms,
                "preempted" => fate.preempted,
            }),
            None => Value::Entity,
        };
        let runs: Vec<Value> = operation.runs.iter().map(of_run).collect();
        yson::map! {"id" => operation.id.as_str(), "runs" => runs}.into()
    });
    Ok(rows.collect())
}

/// Of runs of one what-if: its figures side by side.
fn comparison(folders: &[PathBuf]) -> Option<Value> {
    let parent = folders.first()?.parent()?;
    let same = folders.len() > 1 && folders.iter().all(|folder| folder.parent() == Some(parent));
    same.then(|| crate::scenario::read_value(&parent.join("comparison.json")).ok())?
}
