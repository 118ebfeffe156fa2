//! Rules about pools: scheduling.md 2, fair-share.md 11.1.

use crate::common::*;
use vocab::code;

/// `name parent options` of existing pools, then the same for a refused one, then parts of the error.
#[track_caller]
fn refuses(existing: &[(&str, &str, &str)], new: (&str, &str, &str), parts: &[&str]) -> i64 {
    let mut world = World::new();
    for (name, parent, options) in existing {
        world.pool(name, parent, options).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    let before = format!("{:?}", world.s.pool_options(TREE, "<Root>"));
    let failure = refused(world.pool(new.0, new.1, new.2), parts);
    assert_eq!(before, format!("{:?}", world.s.pool_options(TREE, "<Root>")));
    failure.code
}

#[test]
fn names() {
    for bad in ["", "<Root>", "a$b", "a b", "a/b", &"x".repeat(101)] {
        refuses(&[], (bad, "", ""), &["Bad pool name", "1 to 100"]);
    }
    let mut world = World::new();
    world.pool(&"x".repeat(100), "", "").expect("100 characters are allowed");
    let code = refuses(&[("a", "", ""), ("b", "", "")], ("a", "b", ""), &["Pool \"a\" already exists"]);
    assert_eq!(code, code::ALREADY_EXISTS);
    assert_eq!(refuses(&[], ("a", "no", ""), &["No such pool \"no\""]), code::RESOLVE_ERROR);
}

#[test]
fn depth() {
    let mut world = World::new();
    let mut parent = String::new();
    for level in 1..=30 {
        let name = format!("p{level}");
        world.pool(&name, &parent, "").expect("30 levels");
        parent = name;
    }
    refused(world.pool("deep", "p30", ""), &["31 levels", "at most 30"]);
    world.pool("a", "", "").expect("first level");
    world.pool("b", "a", "").expect("second level");
    refused(world.s.move_pool(TREE, "a", "p29"), &["31 levels"]);
    world.s.move_pool(TREE, "a", "p28").expect("30 levels");
    refused(world.s.move_pool(TREE, "p1", "p5"), &["inside of it"]);
}

#[test]
fn guarantees_of_children() {
    refuses(
        &[("p", "", "")],
        ("c", "p", "strong_guarantee_resources={cpu=5}"),
        &["Strong guarantee is explicitly configured at child pool \"c\"", "parent \"p\"", "cpu"],
    );
    refuses(
        &[("p", "", "strong_guarantee_resources={cpu=10}"), ("c", "p", "strong_guarantee_resources={cpu=6}")],
        ("d", "p", "strong_guarantee_resources={cpu=5}"),
        &["Strong guarantee of resource for pool \"p\" is less than the sum", "10.0 < 11.0"],
    );
    refuses(
        &[("p", "", "integral_guarantees={guarantee_type=none;resource_flow={cpu=1}}")],
        ("c", "p", "integral_guarantees={resource_flow={cpu=2}}"),
        &["Resource flow", "1.0 < 2.0"],
    );
    refuses(
        &[("p", "", "integral_guarantees={burst_guarantee_resources={cpu=1}}")],
        ("c", "p", "integral_guarantees={burst_guarantee_resources={cpu=2}}"),
        &["Burst guarantee", "1.0 < 2.0"],
    );
    refuses(
        &[("p", "", "integral_guarantees={guarantee_type=burst;resource_flow={cpu=5}}")],
        ("c", "p", "integral_guarantees={resource_flow={cpu=1}}"),
        &["Integral pool \"p\" cannot have children with integral resources"],
    );
    refuses(
        &[("p", "", "integral_guarantees={guarantee_type=burst}"), ("m", "p", "")],
        ("c", "m", "integral_guarantees={guarantee_type=relaxed}"),
        &["Integral pool \"p\" cannot have integral pool \"c\" inside"],
    );
}

#[test]
fn own_rules() {
    for (options, parts) in [
        ("strong_guarantee_resources={memory=5}", &["Main resource guarantee", "\"cpu\""][..]),
        (
            "integral_guarantees={guarantee_type=relaxed;burst_guarantee_resources={cpu=1}}",
            &["Burst guarantees cannot be specified", "relaxed"],
        ),
        ("mode=fifo;create_ephemeral_subpools=%true", &["Fifo pool cannot create ephemeral subpools"]),
        ("max_operation_count=3;max_running_operation_count=4", &["greater than or equal to", "3 < 4"]),
        ("weight=0.0", &["\"weight\"", "67108864"]),
        ("weight=-1", &["\"weight\""]),
        ("weight=%nan", &["\"weight\""]),
        ("max_operation_count=-1", &["\"max_operation_count\"", "0..="]),
        ("max_operation_count=1.0", &["\"max_operation_count\"", "integer", "double"]),
        ("mode=lifo", &["\"mode\"", "\"fair_share\", \"fifo\""]),
        ("fifo_sort_parameters=[]", &["non-empty list"]),
        ("fifo_sort_parameters=[weight;age]", &["non-empty list"]),
        ("resource_limits={cpu=-1}", &["\"resource_limits/cpu\"", "0..=", "-1"]),
        ("resource_limits={cpus=1}", &["Unknown pool option \"resource_limits/cpus\""]),
        ("resource_limits=5", &["\"resource_limits\"", "a map"]),
        ("integral_guarantees={relaxed_share_multiplier_limit=11}", &["1..=10"]),
        ("integral_guarantees={kind=burst}", &["Unknown pool option \"integral_guarantees/kind\""]),
        ("scheduling_tag_filter=\"a &\"", &["scheduling_tag_filter", "offset 3"]),
        ("config_preset=fast", &["No such pool config preset \"fast\"", "none"]),
        ("config_preset=fast;config_presets=[slow]", &["cannot be specified together"]),
        ("metering_tags={a=b}", &["only together with \"abc\""]),
        ("weight=1;min_share_resources={cpu=1};strong_guarantee_resources={cpu=2}", &["twice", "cpu"]),
        ("max-operation-count=1;max_operation_count=2", &["twice"]),
    ] {
        refuses(&[], ("p", "", options), parts);
    }
    refuses(&[("f", "", "mode=fifo")], ("c", "f", ""), &["cannot have subpools", "FIFO"]);
}

#[test]
fn changes_are_all_or_nothing() {
    let mut world = World::new();
    world.pool("p", "", "strong_guarantee_resources={cpu=10}").expect("good");
    world.pool("c", "p", "strong_guarantee_resources={cpu=6}").expect("good");
    refused(
        world.s.set_pool_options(TREE, "p", &map("strong_guarantee_resources={cpu=5}")),
        &["less than the sum", "5.0 < 6.0"],
    );
    refused(
        world.s.set_pool_options(TREE, "p", &map("mode=fifo;strong_guarantee_resources={cpu=10}")),
        &["FIFO"],
    );
    refused(
        world.s.set_pool_options(TREE, "c", &map("strong_guarantee_resources={cpu=11}")),
        &["10.0 < 11.0"],
    );
    let (options, _) = world.s.pool_options(TREE, "p").expect("there");
    assert_eq!(options, &map("strong_guarantee_resources={cpu=10.0}"));
    // Both at once are possible where one after the other is not.
    let (p, c) = (map("strong_guarantee_resources={cpu=20}"), map("strong_guarantee_resources={cpu=20}"));
    refused(world.s.set_options_of_pools(TREE, &[("c", &c)]), &["less than"]);
    world.s.set_options_of_pools(TREE, &[("c", &c), ("p", &p)]).expect("good together");
    world.check();
}

#[test]
fn canonical_options_and_custom_attributes() {
    let mut world = World::new();
    let given =
        "min-share-resources={user_memory=5;cpu=2};fair_share_preemption_timeout=\"10s\";owner=me;weight=2";
    world.pool("p", "", given).expect("good");
    let (options, custom) = world.s.pool_options(TREE, "p").expect("there");
    assert_eq!(
        options,
        &map("strong_guarantee_resources={cpu=2.0;memory=5};fair_share_starvation_timeout=10000;weight=2.0")
    );
    assert_eq!(custom, &map("owner=me"));
}

#[test]
fn presets() {
    let mut world = World::with(&map(""), &map("pool_config_presets={big={weight=5;max_operation_count=7}}"));
    world.pool("p", "", "config_preset=big;max_operation_count=9").expect("good");
    let snapshot = world.update();
    let p = snapshot.tree(TREE).unwrap().pool_attributes("p", Some(&["weight", "max_operation_count"]));
    assert_eq!(p, Some(map("weight=5.0;max_operation_count=9")));
    let error = world.s.set_tree_config(TREE, &map(""));
    refused(error, &["Pool \"p\"", "No such pool config preset \"big\""]);
    refused(
        world.s.set_tree_config(TREE, &map("pool_config_presets={big={speed=1}}")),
        &["Unknown pool tree option \"pool_config_presets/big/speed\""],
    );
}

#[test]
fn removed_pool_keeps_its_operations() {
    let mut world = World::new();
    world.pool("parent", "", "").unwrap();
    world.pool("p", "parent", "max_running_operation_count=1;resource_limits={cpu=3}").unwrap();
    world.node("n", 10.0, 10);
    world.run(1, "p", 1.0, 5);
    world.register(2, "p").unwrap();
    world.update();
    assert_eq!(world.schedule("n").len(), 3, "the limit of the pool");
    refused(world.s.remove_pool(TREE, "parent"), &["child pool \"p\""]);
    world.s.remove_pool(TREE, "p").expect("operations do not matter");
    world.check();
    assert_eq!(world.standing(2), "running", "the limit went with the options");
    let snapshot = world.update();
    let p = snapshot
        .tree(TREE)
        .unwrap()
        .pool_attributes("p", Some(&["is_ephemeral", "parent", "operation_count"]));
    assert_eq!(p, Some(map("parent=\"<Root>\";is_ephemeral=%true;operation_count=2")));
    // Created again: it takes the operations over.
    world.pool("p", "parent", "max_running_operation_count=1").unwrap();
    assert_eq!(world.counts("parent"), (2, 2, 0));
    world.unregister(1);
    world.unregister(2);
    world.s.remove_pool(TREE, "p").unwrap();
    assert!(world.update().tree(TREE).unwrap().pool("p").is_none());
}

#[test]
fn renamed_pool_leaves_its_operations_behind() {
    let mut world = World::new();
    world.pool("p", "", "weight=3").unwrap();
    world.register(1, "p").unwrap();
    world.s.rename_pool(TREE, "p", "q").unwrap();
    world.check();
    assert_eq!(world.counts("q"), (0, 0, 0));
    assert_eq!(world.counts("p"), (1, 1, 0));
    world.register(2, "q").unwrap();
    // Back again: "q" keeps what it has, "p" finds its operation.
    world.s.rename_pool(TREE, "q", "p").unwrap();
    world.check();
    assert_eq!(world.counts("p"), (1, 1, 0));
    assert_eq!(world.counts("q"), (1, 1, 0));
    world.unregister(2);
    assert!(world.update().tree(TREE).unwrap().pool("q").is_none(), "empty, so it is gone");
}

#[test]
fn moved_pool_takes_counts_and_usage_along() {
    let mut world = World::new();
    world.pool("a", "", "resource_limits={cpu=100}").unwrap();
    world.pool("b", "", "resource_limits={cpu=4}").unwrap();
    world.pool("p", "a", "").unwrap();
    world.node("n", 10.0, 10);
    world.run(1, "p", 1.0, 100);
    world.update();
    assert_eq!(world.schedule("n").len(), 10);
    world.s.move_pool(TREE, "p", "b").unwrap();
    world.check();
    assert_eq!((world.counts("a"), world.counts("b")), ((0, 0, 0), (1, 1, 0)));
    // Over the limit of its new parent: nothing more is started there.
    world.node("m", 10.0, 10);
    world.update();
    assert!(world.schedule("m").is_empty());
}

#[test]
fn volumes_follow_the_pool() {
    let mut world = World::new();
    let flow = "integral_guarantees={guarantee_type=relaxed;resource_flow={cpu=5}}";
    world.pool("p", "", flow).unwrap();
    world.node("n", 10.0, 10);
    world.update();
    for _ in 0..50 {
        world.update();
    }
    let volume = |w: &World| w.s.export_volumes(None);
    let saved = volume(&world);
    assert_eq!(saved.len(), 1);
    assert!(saved[0].2.cpu.0 > 0, "it has accumulated: {saved:?}");
    world.s.rename_pool(TREE, "p", "q").unwrap();
    assert_eq!(volume(&world), saved);
    world.s.remove_pool(TREE, "q").unwrap();
    assert!(volume(&world).is_empty());
    world.pool("q", "", flow).unwrap();
    assert_eq!(volume(&world)[0].2, saved[0].2, "created again under the same name");
    world.s.update(world.now + vocab::Span::from_secs(1), scheduler::UpdateKind::Extra);
    assert_eq!(volume(&world)[0].2, saved[0].2, "an extra update does not count");
}
