use super::*;

fn id(n: u32) -> JobId {
    format!("1-2-10384-{n:x}").parse().expect("an id")
}

/// Runs until all is done; when each job ended, and what it came to.
fn play(cores: f64, jobs: &[(f64, f64, f64)]) -> Vec<(f64, Figures)> {
    capped(cores, Cap::None, jobs)
}

fn capped(cores: f64, cap: Cap, jobs: &[(f64, f64, f64)]) -> Vec<(f64, Figures)> {
    let start = Time::from_secs(1000);
    let mut division = Division::new(cores, None);
    for (number, (hard, wish, seconds)) in jobs.iter().enumerate() {
        let curve = Arc::new(Curve::constant(*wish));
        let runs_for = Span::from_micros((seconds * 1e6) as u64);
        division.start(start, id(number as u32), curve, runs_for, (Cpu::from_f64(*hard), cap), &Map::new());
    }
    let mut out = vec![(0.0, Figures::default()); jobs.len()];
    let mut now = start;
    while let Some((at, version)) = division.settle(now) {
        now = at;
        for ended in division.wake(now, version).ended {
            let number = (0..jobs.len()).find(|n| id(*n as u32) == ended).expect("a job of the test");
            let figures = division.stop(now, ended).expect("it runs");
            out[number] = (now.since(start).as_secs_f64(), figures);
        }
    }
    out
}

#[test]
fn enough_for_all() {
    let ends = play(8.0, &[(4.0, 4.0, 10.0), (4.0, 2.0, 20.0)]);
    assert!((ends[0].0 - 10.0).abs() < 1e-4 && (ends[1].0 - 20.0).abs() < 1e-4, "{ends:?}");
    assert!((ends[1].1.used - 40.0).abs() < 1e-3 && ends[1].1.missing == 0.0);
}

#[test]
fn too_little_prolongs() {
    // Guarantees 3 and 1 of four cores, both want four: parts are 3 and 1 until the first one ends.
    let ends = play(4.0, &[(3.0, 4.0, 3.0), (1.0, 4.0, 3.0)]);
    assert!((ends[0].0 - 4.0).abs() < 1e-4, "{ends:?}");
    assert!((ends[1].0 - 6.0).abs() < 1e-4, "{ends:?}");
    assert!((ends[0].1.missing - 4.0).abs() < 1e-3 && (ends[1].1.at_risk - 18.0).abs() < 1e-3, "{ends:?}");
}

#[test]
fn who_wants_little_gets_it() {
    // One core is wanted of a guarantee of two: the others share seven by their guarantees.
    let ends = play(8.0, &[(2.0, 1.0, 10.0), (4.0, 8.0, 10.0), (2.0, 8.0, 10.0)]);
    assert!((ends[0].0 - 10.0).abs() < 1e-4, "{ends:?}");
    let work: f64 = ends.iter().map(|(_, f)| f.used).sum();
    assert!((work - 170.0).abs() < 1e-2, "{work}");
}

#[test]
fn nobody_gets_more_than_its_cap() {
    // Both want four of eight cores: there is room, but each may use two only.
    for cap in [Cap::Cores(2.0), Cap::Guarantee] {
        let ends = capped(8.0, cap, &[(2.0, 4.0, 10.0), (2.0, 4.0, 10.0)]);
        assert!(ends.iter().all(|(end, _)| (end - 20.0).abs() < 1e-4), "{cap:?}: {ends:?}");
        assert!((ends[0].1.used - 40.0).abs() < 1e-3 && (ends[0].1.missing - 40.0).abs() < 1e-3);
    }
    // What one may not use is the other's.
    let ends = capped(5.0, Cap::Cores(3.0), &[(1.0, 1.0, 10.0), (1.0, 9.0, 10.0), (1.0, 9.0, 10.0)]);
    assert!((ends[1].1.used - 90.0).abs() < 1e-2 && (ends[0].0 - 10.0).abs() < 1e-4, "{ends:?}");
}

#[test]
fn the_shipped_monitor_takes_what_is_idle() {
    let start = Time::from_secs(1000);
    let options = yson::map! {"enable_cpu_reclaim" => true};
    let mut division = Division::new(16.0, None);
    let curve = Arc::new(Curve::constant(1.0));
    division.start(start, id(1), curve, Span::from_secs(3600), (Cpu::from_f64(16.0), Cap::None), &options);
    let (mut now, mut moves) = (start, Vec::new());
    while let Some((at, version)) = division.settle(now) {
        now = at;
        let happened = division.wake(now, version);
        moves.extend(happened.moved);
        if !happened.ended.is_empty() {
            break;
        }
    }
    let figures = division.stop(now, id(1)).expect("it runs");
    assert_eq!(figures.changes as usize, moves.len());
    // It stops where one core is 60 % of the guarantee.
    let last = moves.last().expect("a move").1.as_f64();
    assert!((1.0 / 0.62..1.0 / 0.58).contains(&last), "{last}");
    assert!(figures.guaranteed < 0.3 * figures.specified, "{figures:?}");
    assert_eq!(figures.at_risk, 0.0);
}
