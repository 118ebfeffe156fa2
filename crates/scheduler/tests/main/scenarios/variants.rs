//! The variants of `burst-and-relaxed`: the same two processes with strong guarantees only. They have no
//! file of curves; without volumes what is due changes with the demand alone and can be said in a line.
//!
//! The update period is a minute here: shares do not depend on time.

use super::scenario::Scenario;
use super::world::{Numbers, World};
use vocab::Span;

/// What one pool gets, in cores.
struct Due {
    strong: f64,
    free: f64,
}

/// While the first process has no demand, and while it has.
fn check(variant: &str, cores: f64, quiet: [Due; 2], peak: [Due; 2]) {
    let scenario = Scenario::variant("burst-and-relaxed", variant);
    assert_eq!(scenario.total().cpu.as_f64(), cores);
    let names: Vec<&str> = scenario.pools.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["burst", "relaxed"]);
    let mut world = World::new(&scenario);
    let mut compared = [0, 0];
    let mut elapsed = Span::ZERO;
    while elapsed < scenario.duration {
        world.advance_to(elapsed);
        let half_day = elapsed.as_millis() / 43_200_000;
        let has_demand = half_day % 2 == 1;
        compared[usize::from(has_demand)] += 1;
        let due = if has_demand { &peak } else { &quiet };
        for ((n, due), name) in world.numbers().iter().zip(due).zip(&names) {
            let Numbers { strong, integral, free, fair_share, .. } = *n;
            let close = |got: f64, want: f64| (got - want).abs() < 1e-6;
            assert!(
                close(strong, due.strong)
                    && close(free, due.free)
                    && close(fair_share, due.strong + due.free),
                "{variant}, {name} after {} h: {n:?}",
                elapsed.as_secs_f64() / 3600.0
            );
            assert_eq!(integral, 0.0);
        }
        elapsed = elapsed + Span::from_secs(60);
    }
    world.check();
    assert_eq!(compared, [2160, 2160], "every minute of three days");
}

/// 3000 cores: each process has its guarantee, and a third of the cluster idles when the first rests.
#[test]
fn strong_3000() {
    check(
        "strong-3000",
        3000.0,
        [Due { strong: 0.0, free: 0.0 }, Due { strong: 1000.0, free: 1000.0 }],
        [Due { strong: 2000.0, free: 0.0 }, Due { strong: 1000.0, free: 0.0 }],
    );
}

/// Guarantees cut to fit 2000 cores: the peak of the first process is served with 1333 of them.
#[test]
fn strong_2000() {
    check(
        "strong-2000",
        2000.0,
        [Due { strong: 0.0, free: 0.0 }, Due { strong: 667.0, free: 1333.0 }],
        [Due { strong: 1333.0, free: 0.0 }, Due { strong: 667.0, free: 0.0 }],
    );
}
