use super::*;

/// A container that can be broken.
#[derive(Default)]
struct Fake {
    guarantee: Option<Cpu>,
    cap: Option<Cpu>,
    refuses: (bool, bool),
}

fn refused() -> CageError {
    CageError::Io { action: "write", path: "cpu.weight".into(), source: std::io::ErrorKind::NotFound.into() }
}

impl Knobs for Fake {
    fn guarantee(&mut self, cores: Cpu) -> Result<(), CageError> {
        (!self.refuses.0).then(|| self.guarantee = Some(cores)).ok_or_else(refused)
    }
    fn cap(&mut self, cores: Cpu) -> Result<(), CageError> {
        (!self.refuses.1).then(|| self.cap = Some(cores)).ok_or_else(refused)
    }
}

/// Decides after two checks alike, once a second.
fn watch(sets_cap: bool) -> CpuWatch {
    let options = Options {
        enable_cpu_reclaim: true,
        smoothing_factor: 1.0,
        vote_window_size: 2,
        vote_decision_threshold: 1,
        decrease_coefficient: 0.5,
        ..Options::default()
    };
    CpuWatch::new(options, Cpu(400), sets_cap, Instant::now())
}

/// So many checks of a job that uses nothing; the last answer.
fn idle(watch: &mut CpuWatch, checks: u32, container: &mut Fake) -> Result<bool, CageError> {
    let mut last = Ok(false);
    for _ in 0..checks {
        // The proxy's own time goes on: idle is what it is, not zero.
        let at = watch.next_check().expect("a guarantee");
        last = watch.check(at, Time(7), Some(CpuUsage::default()), container);
    }
    last
}

#[test]
fn a_change_is_written_and_told() {
    let (mut watch, mut container) = (watch(true), Fake::default());
    // Baseline, seed, two votes.
    assert!(!idle(&mut watch, 3, &mut container).expect("nothing yet"));
    assert_eq!((watch.guarantee(), container.guarantee), (Cpu(400), None));
    assert!(idle(&mut watch, 1, &mut container).expect("written"));
    assert_eq!((container.guarantee, container.cap), (Some(Cpu(200)), Some(Cpu(200))));
    let report = watch.report().expect("measured");
    let change = report.last_change.expect("a decision");
    assert_eq!((change.from, change.to, change.applied, change.time), (4_000_000, 2_000_000, true, Time(7)));
    assert_eq!((report.limit, report.votes.as_str()), (2_000_000, ""));
}

/// 1.5: when the container refuses, the limit stays and the votes are gone all the same.
#[test]
fn what_cannot_be_written_does_not_count() {
    let (mut watch, mut container) = (watch(false), Fake { refuses: (true, false), ..Fake::default() });
    assert!(idle(&mut watch, 4, &mut container).is_err());
    assert_eq!(watch.guarantee(), Cpu(400));
    let report = watch.report().expect("measured");
    assert_eq!((report.limit, report.votes.as_str()), (4_000_000, ""));
    assert!(!report.last_change.expect("a decision").applied);
    assert_eq!(report.statistics.aggregated_preemptible_cpu_x100, 0);
    // It works again: the next window decides.
    container.refuses.0 = false;
    assert!(idle(&mut watch, 2, &mut container).expect("written"));
    assert_eq!(watch.guarantee(), Cpu(200));
}

/// A change is whole or is none.
#[test]
fn half_a_change_is_taken_back() {
    let (mut watch, mut container) = (watch(true), Fake { refuses: (false, true), ..Fake::default() });
    assert!(idle(&mut watch, 4, &mut container).is_err());
    assert_eq!((watch.guarantee(), container.guarantee), (Cpu(400), Some(Cpu(400))));
}

#[test]
fn a_counter_that_cannot_be_read_or_goes_back_is_no_vote() {
    let (mut watch, mut container) = (watch(false), Fake::default());
    let mut check = |used: Option<u64>| {
        let at = watch.next_check().expect("a guarantee");
        let used = used.map(|s| CpuUsage { user: Duration::from_secs(s), ..CpuUsage::default() });
        let changed = watch.check(at, Time(0), used, &mut container).expect("nothing to refuse");
        (changed, watch.report().map(|report| report.votes))
    };
    assert_eq!(check(Some(100)), (false, None), "the baseline");
    assert_eq!(check(None), (false, None));
    assert_eq!(check(Some(108)), (false, Some("+".to_owned())), "the seed, over two seconds");
    assert_eq!(check(Some(50)), (false, Some("+".to_owned())), "a new baseline");
    assert_eq!(check(Some(50)), (false, Some("-".to_owned())), "the window slides");
}

/// A proxy that slept for a minute makes one check, not sixty, and the next one in time.
#[test]
fn late_checks_are_not_made_up_for() {
    let (mut watch, mut container) = (watch(false), Fake::default());
    let first = watch.next_check().expect("a guarantee");
    let late = first + Duration::from_millis(60_300);
    watch.check(late, Time(0), Some(CpuUsage::default()), &mut container).expect("nothing to refuse");
    assert_eq!(watch.next_check(), Some(first + Duration::from_secs(61)));
}
