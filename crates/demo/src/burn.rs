//! What a job of the demo does: hold memory and burn CPU for a given time.
//!
//! The wall clock decides when it ends: a machine with fewer cores than the cluster advertises must
//! not stretch the replay. CPU is metered by the process's own CPU clock, so a job burns the fraction
//! that it was told and no more, however often it is interrupted.

use std::time::{Duration, Instant};

use anyhow::ensure;
use rustix::time::{ClockId, clock_gettime};

/// How long a burst of burning and the pause after it are together.
const PERIOD: Duration = Duration::from_millis(20);
/// Memory is touched once per page: what is not touched is not there.
const PAGE: usize = 4096;

/// Arguments of `millpond burn`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurnConfig {
    /// Seconds by the wall clock.
    pub seconds: f64,
    /// Bytes to hold.
    pub memory: u64,
    /// Fraction of a core to burn, 0 to 1.
    pub cpu: f64,
}

/// Burns; gives a line about it.
pub fn burn(config: BurnConfig) -> anyhow::Result<String> {
    ensure!(
        config.seconds.is_finite() && (0.0..=1e9).contains(&config.seconds),
        "seconds must be between 0 and 1e9, got {}",
        config.seconds
    );
    ensure!((0.0..=1.0).contains(&config.cpu), "cpu must be between 0 and 1, got {}", config.cpu);
    let start = Instant::now();
    let cpu_before = cpu_time();
    let end = start + Duration::from_secs_f64(config.seconds);
    let held = hold(usize::try_from(config.memory)?);
    let mut spun = 0u64;
    loop {
        let now = Instant::now();
        if now >= end {
            break;
        }
        let stop = end.min(now + PERIOD);
        // The debt counts from the start: a period in which the machine was busy is made up for later.
        while Instant::now() < stop && cpu_time() - cpu_before < (stop - start).mul_f64(config.cpu) {
            spun = spun.wrapping_add(spin());
        }
        std::thread::sleep(stop.saturating_duration_since(Instant::now()));
    }
    std::hint::black_box((&held, spun));
    let burnt = cpu_time() - cpu_before;
    Ok(format!(
        "burnt {:.3} s of CPU in {:.3} s, held {} KiB",
        burnt.as_secs_f64(),
        start.elapsed().as_secs_f64(),
        config.memory >> 10
    ))
}

fn hold(bytes: usize) -> Vec<u8> {
    let mut memory = vec![0u8; bytes];
    memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    memory
}

/// About a tenth of a millisecond of work.
fn spin() -> u64 {
    (0..50_000u64)
        .fold(1, |x, i| std::hint::black_box(x).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i))
}

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_really_touched() {
        let held = hold(3 * PAGE + 1);
        assert_eq!(held.len(), 3 * PAGE + 1);
        assert_eq!(held.iter().map(|byte| u32::from(*byte)).sum::<u32>(), 4);
    }

    #[test]
    fn it_lasts_as_long_as_it_was_told_and_burns_what_it_was_told() {
        let start = Instant::now();
        let line = burn(BurnConfig { seconds: 0.2, memory: 1 << 20, cpu: 0.0 }).expect("burn");
        assert!(start.elapsed() >= Duration::from_millis(200));
        assert!(line.contains("held 1024 KiB"), "{line}");
        // How much depends on what else the machine does; that it burns does not.
        let before = cpu_time();
        burn(BurnConfig { seconds: 0.3, memory: 0, cpu: 1.0 }).expect("burn");
        assert!(cpu_time() - before >= Duration::from_millis(1));
    }

    #[test]
    fn arguments_that_make_no_sense() {
        for (seconds, cpu, complaint) in
            [(-1.0, 0.5, "seconds"), (f64::NAN, 0.5, "seconds"), (1.0, 1.5, "cpu"), (1.0, -0.1, "cpu")]
        {
            let error = burn(BurnConfig { seconds, memory: 0, cpu }).expect_err("refused").to_string();
            assert!(error.starts_with(complaint), "{error}");
        }
    }
}
