//! The durable form: it comes back, it is small, and broken bytes are refused.

use crate::reserves::{job, lived, lives, task};
use proptest::prelude::*;
use reserve::memory_digest::{
    Bases, BrokenDigest, ClusterOptions, Ended, Peaks, Reserves, ScriptOptions, VERSION,
};

fn learned(samples: i64) -> Reserves {
    let bases = Bases { footprint: 1 << 27, io_estimate: 0, memory_limit: 1_000_000, tmpfs_size: 0 };
    let mut task = task(bases, &ClusterOptions::default(), &ScriptOptions::default());
    for i in 0..samples {
        let spread = 20f64.powf(i as f64 / samples as f64) * 50_000.0;
        task.completed(Peaks { user_job: Some(spread as i64), job_proxy: Some((1 << 26) + (i << 10)) });
    }
    task
}

#[test]
fn stored_forms_are_small() {
    let size = |samples: i64| learned(samples).encode().len();
    assert_eq!(size(0), 88);
    assert!(size(1) < 100, "{}", size(1));
    // A hundred thousand jobs, spread over every bucket there is.
    assert!(size(100_000) < 2_048, "{}", size(100_000));
}

#[test]
fn other_versions_are_refused() {
    let task = learned(3);
    let mut bytes = task.encode();
    assert_eq!(bytes[0], VERSION);
    bytes[0] = VERSION + 1;
    let refused = Reserves::decode(task.settings().clone(), &bytes);
    assert_eq!(refused, Err(BrokenDigest::Version(VERSION + 1)));
    let text = refused.expect_err("refused").to_string();
    assert_eq!(text, "version 2 of stored memory digests is not known, expected 1");
    assert_eq!(Reserves::decode(task.settings().clone(), &[]), Err(BrokenDigest::Malformed(0)));
}

/// A new precision acts on new digests only.
#[test]
fn bounds_of_stored_digests_stay() {
    let old = learned(50);
    let cluster = ClusterOptions { user_job_memory_digest_precision: 0.2, ..ClusterOptions::default() };
    let bases = old.settings().bases;
    let fresh = task(bases, &cluster, &ScriptOptions::default());
    let revived = Reserves::decode(fresh.settings().clone(), &old.encode()).expect("own bytes");
    assert_eq!(revived.current_factors(), old.current_factors());
    assert_eq!((revived.user_job().buckets(), fresh.user_job().buckets()), (302, 17));
}

/// Edges that do not lead from the lower bound to the upper one would make reserves of any size.
#[test]
fn impossible_edges_are_refused() {
    let task = learned(3);
    let good = task.encode();
    // Of the first digest: lower, default, upper, precision and step, then the number of buckets.
    let with = |place: usize, x: f64| {
        let mut bytes = good.clone();
        bytes[1 + 8 * place..][..8].copy_from_slice(&x.to_le_bytes());
        Reserves::decode(task.settings().clone(), &bytes)
    };
    assert!(with(4, 1.01).is_ok(), "as it was");
    for step in [1e300, 2.0, 1.02, 1.001, 1.0, 0.5, -1.01, f64::NAN, f64::INFINITY] {
        assert!(with(4, step).is_err(), "step {step}");
    }
    for lower in [1e-300, 0.01, 0.2, 0.0, -0.05, f64::NAN] {
        assert!(with(0, lower).is_err(), "lower bound {lower}");
    }
    for upper in [1e300, 2.0, 0.51, f64::INFINITY] {
        assert!(with(2, upper).is_err(), "upper bound {upper}");
    }
    let fewer: Vec<u8> = [&good[..41], &[0x10], &good[43..]].concat();
    assert!(Reserves::decode(task.settings().clone(), &fewer).is_err(), "16 buckets for 302");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_stored_comes_back((multiplier, steps) in lives()) {
        let task = lived(multiplier, &steps);
        let bytes = task.encode();
        prop_assert_eq!(Reserves::decode(task.settings().clone(), &bytes), Ok(task.clone()));
        for cut in 0..bytes.len() {
            let refused = Reserves::decode(task.settings().clone(), &bytes[..cut]);
            prop_assert!(refused.is_err(), "{cut} of {} bytes", bytes.len());
        }
        let longer = [bytes, vec![0]].concat();
        prop_assert!(Reserves::decode(task.settings().clone(), &longer).is_err());
    }

    /// Anything else is refused or is a state that can be worked with.
    #[test]
    fn broken_bytes_do_no_harm(
        (multiplier, steps) in lives(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        let task = lived(multiplier, &steps);
        let mut bytes = task.encode();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(mut task) = Reserves::decode(task.settings().clone(), &bytes) {
            let peaks = Peaks { user_job: Some(1 << 20), job_proxy: Some(1 << 20) };
            task.completed(peaks);
            let factors = task.factors(3);
            let reserve = task.request(factors);
            task.overdrafted(&Ended { job_id: job(3), cookie: 3, factors, reserve, peaks });
            let factors = task.factors(3);
            prop_assert!(factors.user_job.is_finite() && factors.job_proxy.is_finite());
            for digest in [task.user_job(), task.job_proxy()] {
                let edge = digest.quantile(0.95);
                let bounds = digest.bounds();
                prop_assert!(edge >= bounds.lower && edge <= bounds.upper * (1.0 + 1e-9), "{edge} in {bounds:?}");
            }
            prop_assert_eq!(Reserves::decode(task.settings().clone(), &task.encode()), Ok(task));
        }
    }
}
