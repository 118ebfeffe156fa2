//! What the metrics tell to whom.

use super::*;
use std::collections::BTreeSet;

/// All values of labels, of all families.
fn labels(guarded: &mut Guarded, user: &str) -> BTreeSet<String> {
    let Ok(Body::Metrics(metrics)) = guarded.ask(user, Command::GetMetrics) else { panic!("no metrics") };
    let samples = metrics.families().into_iter().flat_map(|family| family.samples);
    samples.flat_map(|(values, _)| values).collect()
}

/// Ephemeral pools, also those of the savings, were told to users who may not read the pool that they are in.
#[test]
fn metrics_tell_of_no_pool_that_the_user_may_not_read() {
    let mut guarded = Guarded::new();
    let not_bob = "acl=[{action=deny; subjects=[bob]; permissions=[read]}]";
    let closed = format!("{{name=closed; pool_tree=physical; create_ephemeral_subpools=%true; {not_bob}}}");
    guarded.done("root", create("scheduler_pool", None, &closed));
    guarded.done("ann", start("closed", "title=\"planted title\""));
    let limits = Resources { user_slots: 4, cpu: Cpu::from_f64(4.0), memory: 4 << 30, ..Resources::ZERO };
    guarded.world.nodes.insert("n1".into(), Node::new("n1", limits));
    guarded.world.connect("n1");
    guarded.world.pass(Span::from_secs(30));
    let (of_root, of_bob) = (labels(&mut guarded, "root"), labels(&mut guarded, "bob"));
    assert!(of_root.contains("closed") && of_root.contains("closed$ann"), "{of_root:?}");
    assert!(of_bob.contains("p") && of_bob.contains("physical"), "{of_bob:?}");
    assert!(!of_bob.iter().any(|label| label.contains("closed")), "{of_bob:?}");
    // Nor does anybody find titles and ids.
    let operation = guarded.operation.to_string();
    assert!(
        !of_root.iter().any(|label| label.contains("planted") || label.contains(&operation)),
        "{of_root:?}"
    );
}

/// A tree that the user may not read.
#[test]
fn metrics_tell_of_no_tree_that_the_user_may_not_read() {
    let mut guarded = Guarded::new();
    let deny = "{action=deny; subjects=[bob]; permissions=[read]}";
    guarded.done("root", set("//sys/pool_trees/@acl/end", deny));
    guarded.world.pass(Span::from_secs(5));
    assert!(labels(&mut guarded, "root").contains("physical"));
    assert!(!labels(&mut guarded, "bob").contains("physical"));
}
