//! Operations that are stuck (scheduling.md 20).

use crate::common::*;
use vocab::*;

fn stuck(w: &mut World) -> Vec<Failure> {
    w.wait(60.0);
    w.s.stuck_operations(w.now).into_iter().map(|(_, error)| error).collect()
}

#[test]
fn limits_below_one_allocation() {
    let mut w = World::new();
    w.pool("top", "", "resource_limits={cpu=2}").unwrap();
    w.pool("p", "top", "").unwrap();
    w.node("n", 10.0, 10);
    w.run(1, "p", 3.0, 5);
    w.run(2, "p", 1.0, 5);
    w.update();
    for _ in 0..6 {
        assert_eq!(stuck(&mut w), [], "5 min are not over");
    }
    let errors = stuck(&mut w);
    assert_eq!(errors.len(), 1);
    let text = errors[0].to_string();
    assert!(text.contains("is stuck") && text.contains("pool \"top\""), "{text}");
    let short = errors[0].find_attribute("violated_resources").cloned();
    assert_eq!(short, Some(map("cpu={limit=2.0;needed=3.0}").into()));
    // Room for one: the clock starts anew.
    w.s.set_pool_options(TREE, "top", &map("resource_limits={cpu=3}")).unwrap();
    assert_eq!(stuck(&mut w), []);
    w.s.set_pool_options(TREE, "top", &map("resource_limits={cpu=2}")).unwrap();
    assert_eq!(stuck(&mut w), []);
    // The tree or the operation may switch the check off.
    let off = scheduler::OperationOptions { enable_limiting_ancestor_check: false, ..Default::default() };
    w.s.set_operation_options(op(1), off).unwrap();
    for _ in 0..10 {
        assert_eq!(stuck(&mut w), []);
    }
}

#[test]
fn refused_again_and_again() {
    let scheduler =
        "operation_hangup_min_schedule_allocation_attempts=20;operation_hangup_safe_timeout=600000";
    let mut w = World::with(&map(scheduler), &map(""));
    w.pool("p", "", "").unwrap();
    w.node("n", 10.0, 10);
    w.run(1, "p", 11.0, 1);
    w.run(2, "p", 1.0, 1);
    w.update();
    // One of the two gets what it wants.
    assert_eq!(w.schedule("n").len(), 1);
    for minute in 0..10 {
        w.update();
        for _ in 0..3 {
            w.schedule("n");
        }
        assert_eq!(stuck(&mut w), [], "minute {minute}");
    }
    w.update();
    let mut errors = Vec::new();
    for _ in 0..3 {
        w.update();
        errors.extend(stuck(&mut w));
    }
    assert!(!errors.is_empty());
    assert!(errors[0].to_string().contains("although it starves"), "{}", errors[0]);
    assert!(errors[0].find_attribute("deactivation_count").and_then(|v| v.as_i64()).unwrap() > 20);
    // It has an allocation: not stuck.
    w.place(1, 1, "n", 1.0);
    assert_eq!(stuck(&mut w), []);
}
