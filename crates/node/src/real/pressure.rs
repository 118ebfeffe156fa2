//! The kernel's own word on memory (jobs-and-nodes.md 3.5): the ledger counts what jobs are seen with, and a
//! host can run out of memory for other reasons.

use std::time::Duration;

use nodecore::NodeInput;
use tokio::sync::mpsc::UnboundedSender;

use super::RealNews;
use crate::agent::News;

const FILE: &str = "/proc/pressure/memory";
/// The figure is a mean of ten seconds and moves slowly.
const PERIOD: Duration = Duration::from_secs(1);

/// Tells the core of each second in which the pressure is above the threshold. Ends with the agent, or at
/// once where the kernel does not keep the figure.
pub(crate) async fn watch(threshold: f64, news: UnboundedSender<News<RealNews>>) {
    loop {
        let Some(pressure) = std::fs::read_to_string(FILE).ok().as_deref().and_then(full_avg10) else {
            return tracing::warn!("memory_pressure_abort_threshold has no effect: {FILE} cannot be read");
        };
        if pressure > threshold && news.send(News::Hands(RealNews::Input(NodeInput::MemoryPressure))).is_err()
        {
            return;
        }
        tokio::time::sleep(PERIOD).await;
    }
}

const MEMINFO: &str = "/proc/meminfo";

/// Tells the core each second how much memory the host could give to new processes. Ends with the agent.
pub(crate) async fn watch_free(news: UnboundedSender<News<RealNews>>) {
    loop {
        let Some(free) = std::fs::read_to_string(MEMINFO).ok().as_deref().and_then(available) else {
            return tracing::error!("free_memory_watermark: {MEMINFO} cannot be read, no job will start");
        };
        if news.send(News::Hands(RealNews::Input(NodeInput::FreeMemory(free)))).is_err() {
            return;
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// Bytes: free, or taken by what can be dropped.
fn available(text: &str) -> Option<i64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<i64>().ok()?.checked_mul(1024)
}

/// Percent.
fn full_avg10(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("full "))?;
    line.split_ascii_whitespace().find_map(|field| field.strip_prefix("avg10="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_found() {
        let text = "MemTotal:       32000 kB\nMemFree:        1000 kB\nMemAvailable:   2000 kB\n";
        assert_eq!(available(text), Some(2_048_000));
        assert_eq!(available("MemFree: 1000 kB"), None);
        assert!(std::fs::read_to_string(MEMINFO).ok().as_deref().and_then(available).is_some_and(|n| n > 0));
    }

    #[test]
    fn the_figure_is_found() {
        let text = "some avg10=3.00 avg60=2.00 avg300=1.00 total=5\nfull avg10=12.50 avg60=0.10 avg300=0.00 total=4\n";
        assert_eq!(full_avg10(text), Some(12.5));
        assert_eq!(full_avg10("some avg10=3.00"), None);
        assert_eq!(full_avg10(""), None);
    }
}
