//! How many nodes are idle, in part or wholly taken, over time: what jobs hold by the rows of `allocations`,
//! of what the scenario gives to each node.

use super::series::{Line, value};
use crate::scenario::Scenario;
use std::collections::BTreeMap;
use std::path::Path;
use yson::{Map, Value};

/// See the module page. None if the scenario of the run cannot be read any more.
pub(super) struct Nodes {
    width: f64,
    count: usize,
    /// Place and cores by name.
    nodes: BTreeMap<String, (usize, f64)>,
    /// Core-seconds by node and stretch of time.
    held: Vec<f32>,
}

/// Stretches of time: of ten thousand nodes this is twelve megabytes.
const STRETCHES: usize = 300;

/// Up to this part of the cores, and what that is called.
const BANDS: [(f64, &str); 4] =
    [(0.0, "idle"), (0.5, "up to half"), (0.95, "more than half"), (f64::INFINITY, "full (95 %)")];

impl Nodes {
    /// Of a run that ends after so many seconds.
    pub fn new(folder: &Path, end: f64) -> Option<Nodes> {
        let scenario = Scenario::load(&folder.join("scenario.json"), &[]).ok()?;
        let each = scenario.groups.iter().flat_map(|group| {
            (0..group.count).map(move |number| (group.node_name(number), group.limits.cpu.as_f64()))
        });
        let nodes: BTreeMap<_, _> = each.enumerate().map(|(i, (name, cores))| (name, (i, cores))).collect();
        let count = nodes.len();
        let width = (end / STRETCHES as f64).max(1e-3);
        Some(Nodes { width, count, nodes, held: vec![0.0; count * STRETCHES] })
    }

    /// A job held cores of a node from a time to another one.
    pub fn add(&mut self, node: &str, from: f64, to: f64, cores: f64) {
        let Some((place, _)) = self.nodes.get(node) else { return };
        let last = STRETCHES - 1;
        let (a, b) = ((from / self.width) as usize, (to / self.width) as usize);
        for stretch in a.min(last)..=b.min(last) {
            let begins = stretch as f64 * self.width;
            let inside = to.min(begins + self.width) - from.max(begins);
            self.held[place * STRETCHES + stretch] += (inside.max(0.0) * cores) as f32;
        }
    }

    /// Numbers of nodes by band.
    pub fn to_map(&self) -> Map {
        let mut bands = vec![Line::new(); BANDS.len()];
        for stretch in 0..STRETCHES {
            let mut counts = [0u32; BANDS.len()];
            for (place, cores) in self.nodes.values() {
                let part = f64::from(self.held[place * STRETCHES + stretch]) / (cores * self.width).max(1e-9);
                // Sums of single precision: idle is what is less than a thousandth.
                let band = BANDS.iter().position(|(most, _)| part <= most.max(1e-3));
                counts[band.unwrap_or(BANDS.len() - 1)] += 1;
            }
            let at = stretch as f64 * self.width;
            bands.iter_mut().zip(counts).for_each(|(band, count)| band.push((at, f64::from(count))));
        }
        // The last stretch has an end.
        let end = STRETCHES as f64 * self.width;
        for band in &mut bands {
            band.extend(band.last().map(|(_, count)| (end, *count)));
        }
        let named = BANDS.iter().zip(&bands).map(|((_, name), band)| (*name, value(band)));
        yson::map! {"nodes" => self.count, "bands" => named.collect::<Map>(), "stretch_s" => Value::from(self.width)}
    }
}
