//! Memory and CPU of all attempts together (simulator.md 9).

use super::cpu::Figures;
use super::ledger::Attempt;
use crate::metrics::round;
use vocab::Span;
use yson::Map;

const GIB: f64 = (1u64 << 30) as f64;

/// See the module page.
#[derive(Default)]
pub struct Usage {
    /// GiB-hours of attempts: by limit, as reserved (with the proxies), at the peak.
    limit: f64,
    reserved: f64,
    peak: f64,
    /// Of the proxies alone: as reserved, and in use.
    proxies: [f64; 2],
    /// The same of those that completed, whose peaks are known.
    completed: [f64; 3],
    /// Reserve of a completed job by its peak, in hundredths; the last one: and more.
    ratios: Vec<u64>,
    cpu: Figures,
    /// Prolongation of a job in hundredths of its work; the last one: and more.
    prolonged: Vec<u64>,
}

/// Ratios are counted up to this, in hundredths.
const MOST: usize = 10_000;

fn count(list: &mut Vec<u64>, ratio: f64) {
    if list.is_empty() {
        list.resize(MOST + 1, 0);
    }
    list[((ratio * 100.0).round().max(0.0) as usize).min(MOST)] += 1;
}

fn percentiles(list: &[u64]) -> Map {
    let total: u64 = list.iter().sum();
    let at = |p: f64| {
        let want = (total as f64 * p).ceil() as u64;
        let mut seen = 0;
        let place = list.iter().position(|count| {
            seen += count;
            seen >= want.max(1)
        });
        round(place.unwrap_or(0) as f64 / 100.0)
    };
    yson::map! {"p50" => at(0.5), "p90" => at(0.9), "p99" => at(0.99), "max" => at(1.0)}
}

impl Usage {
    /// An attempt is over.
    pub(super) fn add(
        &mut self,
        attempt: &Attempt,
        limit: Option<i64>,
        peak: Option<i64>,
        ran: Span,
        outcome: &str,
        cpu: Option<&Figures>,
    ) {
        let hours = ran.as_secs_f64() / 3600.0 / GIB;
        let peak = peak.unwrap_or(0) as f64;
        let parts = [limit.unwrap_or(0) as f64 * hours, attempt.reserve as f64 * hours, peak * hours];
        self.limit += parts[0];
        self.reserved += parts[1];
        self.peak += parts[2];
        if outcome == "completed" {
            self.completed.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
            if peak > 0.0 {
                count(&mut self.ratios, attempt.reserve as f64 / peak);
            }
        }
        if let Some(figures) = cpu {
            self.cpu.add(figures);
            if figures.work > 0.0 {
                count(&mut self.prolonged, figures.ran / figures.work);
            }
        }
    }

    /// The proxy of that attempt: bytes reserved, and in use.
    pub(super) fn add_proxy(&mut self, (reserved, used): (i64, i64), ran: Span) {
        let hours = ran.as_secs_f64() / 3600.0 / GIB;
        self.proxies[0] += reserved as f64 * hours;
        self.proxies[1] += used as f64 * hours;
    }

    /// `memory` of the summary.
    pub(super) fn memory(&self) -> Map {
        let of_limit = |gib_h: f64| round(if self.limit > 0.0 { gib_h / self.limit } else { 0.0 });
        yson::map! {
            "limit_gib_h" => round(self.limit),
            "reserved_gib_h" => round(self.reserved),
            "peak_gib_h" => round(self.peak),
            "user_job_reserved_by_limit" => of_limit(self.reserved - self.proxies[0]),
            "user_job_peak_by_limit" => of_limit(self.peak),
            "job_proxies" => yson::map! {
                "reserved_gib_h" => round(self.proxies[0]),
                "used_gib_h" => round(self.proxies[1]),
            },
            "completed" => yson::map! {
                "limit_gib_h" => round(self.completed[0]),
                "reserved_gib_h" => round(self.completed[1]),
                "peak_gib_h" => round(self.completed[2]),
                "reserve_by_peak" => percentiles(&self.ratios),
            },
        }
    }

    /// `cpu` of the summary; nothing, if it is not modelled.
    pub(super) fn cpu(&self) -> Map {
        let f = &self.cpu;
        if f.ran == 0.0 {
            return Map::new();
        }
        let hours = |core_s: f64| round(core_s / 3600.0);
        yson::map! {
            "specified_core_h" => hours(f.specified),
            "guaranteed_core_h" => hours(f.guaranteed),
            "reclaimed_core_h" => hours(f.specified - f.guaranteed),
            "used_core_h" => hours(f.used),
            "wanted_above_guarantee_core_h" => hours(f.at_risk),
            "not_received_core_h" => hours(f.missing),
            "changes" => f.changes,
            "changes_per_job_hour" => round(f.changes as f64 / (f.ran / 3600.0)),
            "prolongation" => percentiles(&self.prolonged),
        }
    }
}
