//! Promises about size and speed, in numbers that do not depend on the machine.

use crate::script::{Bench, done};

#[test]
fn state_stays_small_while_a_large_operation_runs() {
    let mut b = Bench::new("{tasks={t={job_count=20000; command=x}}}");
    let mut largest = 0;
    for job in 0..20_000u32 {
        b.settle(0).expect("a pending unit");
        // A thousand at work, ending out of order.
        if job >= 1_000 {
            let victim = if job % 2 == 0 { job - 1_000 } else { job - 998 };
            b.finish(victim, done());
        }
        if job % 500 == 0 {
            largest = largest.max(b.controller.take_dirty().iter().map(|p| p.bytes.len()).sum::<usize>());
        }
    }
    assert!(largest < 8_000, "{largest} bytes");
}
