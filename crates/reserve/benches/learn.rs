//! Cost of learning. The promises: a sample in at most 100 ns, a quantile in at most 2 us, a digest in
//! at most 4 KB (that one is a test), a check of the monitor in well under a microsecond.

use divan::{Bencher, black_box};
use reserve::cpu_monitor::{Monitor, Options};
use reserve::memory_digest::{
    Bases, Bounds, ClusterOptions, JobProxyOptions, LogDigest, Peaks, Reserves, ScriptOptions, Settings,
};

fn main() {
    divan::main();
}

const USER: Bounds = Bounds { lower: 0.05, default: 0.5, upper: 1.0, precision: 0.01 };

/// Samples all over the range, not in order.
fn samples() -> Vec<f64> {
    (0..4_096u32)
        .map(|i| 0.05 * 20f64.powf(f64::from(i.wrapping_mul(2_654_435_761) >> 20) / 4_096.0))
        .collect()
}

/// A digest with something in every bucket.
fn full() -> LogDigest {
    let mut digest = LogDigest::new(USER);
    samples().into_iter().for_each(|x| digest.add(x));
    digest
}

/// 4,096 samples at a time: one alone is shorter than the clock.
#[divan::bench]
fn add(bencher: Bencher<'_, '_>) {
    let (samples, mut digest) = (samples(), full());
    bencher
        .counter(divan::counter::ItemsCount::new(samples.len()))
        .bench_local(|| samples.iter().for_each(|x| digest.add(black_box(*x))));
}

#[divan::bench(args = [0.05, 0.5, 0.95, 1.0])]
fn quantile(bencher: Bencher<'_, '_>, p: f64) {
    let digest = full();
    bencher.bench_local(|| black_box(&digest).quantile(black_box(p)));
}

fn task() -> Reserves {
    let proxy = JobProxyOptions::default();
    let bases = Bases { footprint: 1 << 27, io_estimate: 0, memory_limit: 1 << 29, tmpfs_size: 0 };
    let (cluster, script) = (ClusterOptions::default(), ScriptOptions::default());
    let mut task = Reserves::new(Settings::new(bases, &cluster, &script, &proxy, (&proxy, None)));
    for x in samples() {
        task.completed(Peaks { user_job: Some((x * 5e8) as i64), job_proxy: Some((x * 2e8) as i64) });
    }
    task
}

/// Both digests learn from a job and are asked what the next one needs.
#[divan::bench]
fn a_job_of_a_task(bencher: Bencher<'_, '_>) {
    let mut task = task();
    let peaks = Peaks { user_job: Some(123_456_789), job_proxy: Some(100_000_000) };
    bencher.bench_local(|| {
        task.completed(black_box(peaks));
        task.factors(black_box(7))
    });
}

#[divan::bench]
fn encode_a_task(bencher: Bencher<'_, '_>) {
    let task = task();
    bencher.bench_local(|| black_box(&task).encode());
}

#[divan::bench]
fn check(bencher: Bencher<'_, '_>) {
    let mut monitor = Monitor::new(Options { enable_cpu_reclaim: true, ..Options::default() }, 4.0);
    let (mut now, mut cpu) = (0.0, 0.0);
    bencher.bench_local(|| {
        now += 1.0;
        cpu += if now % 200.0 < 100.0 { 4.0 } else { 0.0 };
        monitor.check_at(black_box(now), Some(black_box(cpu)), |_| true)
    });
}
