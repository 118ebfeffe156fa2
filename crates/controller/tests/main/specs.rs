//! Parsing of specs: every option's default, range and type; the public forms.

use crate::script::{at, map, parse, show};
use controller::ControllerOptions;
use controller::spec::{self, PreemptionMode, SchemaInference};
use expect_test::{Expect, expect};
use vocab::{Cpu, OperationType, Resource, Span};
use yson::Value;

/// A spec with these options at the root.
fn root(options: &str) -> String {
    format!("{{tasks={{t={{job_count=1; command=\"true\"}}}}; {options}}}")
}
/// A spec with these options in its task.
fn task(options: &str) -> String {
    format!("{{tasks={{t={{job_count=1; command=\"true\"; {options}}}}}}}")
}

fn full(text: &str) -> Value {
    parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).full.into()
}

fn error(text: &str) -> String {
    match parse(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(e) => {
            assert_eq!(e.code, 1, "{e}");
            e.to_string()
        }
    }
}

/// Options with default, values that are accepted (given, shown) and values that are refused.
struct Option_ {
    name: &'static str,
    default: &'static str,
    good: &'static [(&'static str, &'static str)],
    bad: &'static [&'static str],
}

const fn option(
    name: &'static str,
    default: &'static str,
    good: &'static [(&'static str, &'static str)],
    bad: &'static [&'static str],
) -> Option_ {
    Option_ { name, default, good, bad }
}

const BOOL: &[(&str, &str)] = &[("%true", "%true"), ("%false", "%false")];
const NOT_BOOL: &[&str] = &["1", "\"true\"", "{}"];

/// `-`: absent without a value.
const ROOT: &[Option_] = &[
    option(
        "max_failed_job_count",
        "10",
        &[("0", "0"), ("10000", "10000"), ("5u", "5")],
        &["-1", "10001", "1.0", "x"],
    ),
    option("max_aborts_before_start", "20", &[("1", "1"), ("10000", "10000")], &["0", "10001"]),
    option("max_stderr_count", "10", &[("0", "0"), ("150", "150")], &["-1", "151", "%true"]),
    option("max_core_info_count", "10", &[("150", "150")], &["151"]),
    option("fail_on_job_restart", "%false", BOOL, NOT_BOOL),
    option("suspend_on_job_failure", "%false", BOOL, NOT_BOOL),
    option("ban_nodes_with_failed_jobs", "%false", BOOL, NOT_BOOL),
    option("ignore_job_failures_at_banned_nodes", "%false", BOOL, NOT_BOOL),
    option("fail_on_all_nodes_banned", "%true", BOOL, NOT_BOOL),
    option(
        "time_limit",
        "-",
        &[("1500", "1500"), ("\"10s\"", "10000")],
        &["0", "-5", "1.5", "\"10 s\"", "{}"],
    ),
    option("time_limit_job_fail_timeout", "120000", &[("0", "0"), ("\"1m\"", "60000")], &["-1"]),
    option("waiting_job_timeout", "-", &[("10000", "10000"), ("\"10m\"", "600000")], &["9999", "600001"]),
    option(
        "job_proxy_resource_overdraft_memory_multiplier",
        "-",
        &[("1", "1."), ("10.0", "10.")],
        &["0.9", "10.1"],
    ),
    option("job_proxy_memory_overcommit_limit", "-", &[("0", "0")], &["-1", "1.5"]),
    option("max_speculative_job_count_per_task", "10", &[("3", "3")], &["-1"]),
    option("try_avoid_duplicating_jobs", "%false", BOOL, NOT_BOOL),
    option("allow_concurrent_attempts", "%false", BOOL, NOT_BOOL),
    option("job_lease_period", "-", &[("1000", "1000"), ("\"7d\"", "604800000")], &["999", "\"8d\"", "x"]),
    option("enable_job_splitting", "%true", BOOL, NOT_BOOL),
    option("enable_secure_vault_variables_in_job_shell", "%true", BOOL, NOT_BOOL),
    option("debug_artifacts_account", "\"tmp\"", &[("a", "\"a\"")], &["1"]),
    option("suspend_operation_if_account_limit_exceeded", "%false", BOOL, NOT_BOOL),
    option("suspend_operation_after_materialization", "%false", BOOL, NOT_BOOL),
    option("title", "-", &[("x", "\"x\"")], &["1"]),
    option("alias", "-", &[("\"*x\"", "\"*x\"")], &["x", "1", "\"\""]),
    option("annotations", "{}", &[("{a=1}", "{\"a\"=1;}")], &["[]"]),
    option("secure_vault", "-", &[], &["1", "{\"a b\"=1}"]),
    option("acl", "[]", &[("[]", "[]")], &["{}"]),
    option("add_authenticated_user_to_acl", "%true", BOOL, NOT_BOOL),
    option("owners", "[]", &[("[me]", "[\"me\";]")], &["me", "[1]"]),
    option("pool", "-", &[("p", "\"p\"")], &["1"]),
    option("pool_trees", "-", &[("[a;b]", "[\"a\";\"b\";]")], &["a", "[]", "[1]"]),
    option("weight", "1.", &[("2", "2."), ("0.5", "0.5")], &["0", "-1", "%nan", "%inf", "x"]),
    option(
        "resource_limits",
        "{}",
        &[("{cpu=1.5;user_memory=7}", "{\"cpu\"=1.5;\"memory\"=7;}")],
        &["{cpu=-1}", "{memory=1.5}", "{disk=1}", "1"],
    ),
    option("scheduling_tag_filter", "\"\"", &[("\"a & b\"", "\"a & b\"")], &["1"]),
    option("preemption_mode", "\"normal\"", &[("graceful", "\"graceful\"")], &["rude", "1"]),
    option("fair_share_starvation_timeout", "-", &[("30000", "30000")], &["-1"]),
    option("fair_share_starvation_tolerance", "-", &[("0.8", "0.8")], &["1.1", "-0.1"]),
    option(
        "non_preemptible_resource_usage_threshold",
        "{}",
        &[("{user_slots=3}", "{\"user_slots\"=3;}")],
        &["{cpu=-1}", "1"],
    ),
    option("max_unpreemptible_allocation_count", "-", &[("0", "0"), ("5", "5")], &["-1"]),
    option("schedule_in_single_tree", "%false", BOOL, NOT_BOOL),
    option("tentative_pool_trees", "[]", &[("[a]", "[\"a\";]")], &["a"]),
    option("use_default_tentative_pool_trees", "%false", BOOL, NOT_BOOL),
    option("erase_trees_with_pool_limit_violations", "%false", BOOL, NOT_BOOL),
    option("apply_specified_resource_limits_to_demand", "%false", BOOL, NOT_BOOL),
    option("enable_limiting_ancestor_check", "%true", BOOL, NOT_BOOL),
    option("is_gang", "%false", BOOL, NOT_BOOL),
    option("require_specified_pools_existence", "-", BOOL, NOT_BOOL),
    option(
        "job_shells",
        "[]",
        &[("[{name=a}]", "[{\"name\"=\"a\";};]")],
        &["[{}]", "[{name=a};{name=a}]", "1"],
    ),
    option("enable_cuda_gpu_core_dump", "%false", &[], &["%true", "1"]),
];

const ELIGIBILITY: &[Option_] = &[
    option("sample_job_count", "10", &[("1", "1")], &["0", "1.5"]),
    option("max_tentative_job_duration_ratio", "10.", &[("0.5", "0.5")], &["0", "%nan"]),
    option("min_job_duration", "30000", &[("0", "0"), ("\"1m\"", "60000")], &["-1", "x"]),
    option("ignore_missing_pool_trees", "%false", BOOL, NOT_BOOL),
];

const ALLOCATION: &[Option_] = &[option("enable_multiple_jobs", "%false", BOOL, NOT_BOOL)];

const MONITOR: &[Option_] = &[
    option("enable_cpu_reclaim", "%false", BOOL, NOT_BOOL),
    option("check_period", "1000", &[("1", "1"), ("\"5s\"", "5000")], &["0", "-1", "x"]),
    option("start_delay", "0", &[("7", "7")], &["-1"]),
    option("smoothing_factor", "0.1", &[("0", "0."), ("1", "1.")], &["-0.1", "1.1", "%nan"]),
    option("relative_upper_bound", "0.9", &[("1", "1.")], &["1.01"]),
    option("relative_lower_bound", "0.6", &[("0", "0.")], &["-0.01"]),
    option("increase_coefficient", "1.45", &[("1", "1."), ("2", "2.")], &["0.99", "2.01"]),
    option("decrease_coefficient", "0.97", &[("0", "0."), ("1", "1.")], &["1.01"]),
    option("vote_window_size", "5", &[("1", "1")], &["0", "1.5"]),
    option("vote_decision_threshold", "3", &[("1", "1")], &["0"]),
    option("min_cpu_limit", "1.", &[("0", "0."), ("0.5", "0.5")], &["1.01", "-0.1"]),
];

const TASK: &[Option_] = &[
    option(
        "file_paths",
        "[]",
        &[("[<file_name=\"a/b\">\"//x\"]", "[<\"file_name\"=\"a/b\";>\"//x\";]")],
        &[
            "x",
            "[1]",
            "[<file_name=\"../b\">\"//x\"]",
            "[<file_name=\"/b\">\"//x\"]",
            "[<file_name=\"\">\"//x\"]",
            "[<file_name=\"a\\0\">\"//x\"]",
            // S1, S4: names with a second spelling, and names that exclude each other.
            "[<file_name=\"./b\">\"//x\"]",
            "[<file_name=\"b/\">\"//x\"]",
            "[<file_name=\"d//b\">\"//x\"]",
            "[<file_name=\"d/./b\">\"//x\"]",
            "[<file_name=b>\"//x\"; <file_name=b>\"//y\"]",
            "[<file_name=\"f/g\">\"//x\"; <file_name=f>\"//y\"]",
            "[<executable=1>\"//x\"]",
        ],
    ),
    option(
        "environment",
        "{}",
        &[("{A_1=x}", "{\"A_1\"=\"x\";}")],
        &["{A=1}", "{\"1A\"=x}", "{\"A-B\"=x}", "{\"\"=x}", "[]"],
    ),
    option(
        "cpu_limit",
        "1.",
        &[("0", "0."), ("1.5", "1.5"), ("2", "2."), ("0.126", "0.13")],
        &["-1", "%nan", "%inf", "x"],
    ),
    option("gpu_limit", "0", &[("8", "8")], &["-1", "0.5"]),
    option(
        "memory_limit",
        "536870912",
        &[("1", "1"), ("17592186044416", "17592186044416")],
        &["0", "17592186044417", "1.0"],
    ),
    option("memory_reserve_factor", "-", &[("1", "1."), ("0.3", "0.3")], &["0", "1.01"]),
    option("user_job_memory_digest_default_value", "0.5", &[("1", "1.")], &["0", "1.1"]),
    option("user_job_memory_digest_lower_bound", "0.05", &[("1", "1.")], &["0", "1.1"]),
    option("ignore_memory_reserve_factor_less_than_one", "%false", BOOL, NOT_BOOL),
    option("user_job_resource_overdraft_memory_multiplier", "-", &[("1.5", "1.5")], &["0.5", "11"]),
    option("include_memory_mapped_files", "%true", BOOL, NOT_BOOL),
    option("use_smaps_memory_tracker", "%false", BOOL, NOT_BOOL),
    option("use_porto_memory_tracking", "%false", BOOL, NOT_BOOL),
    option(
        "tmpfs_path",
        "-",
        &[("tmpfs", "\"tmpfs\""), ("\".\"", "\".\"")],
        &["1", "\"/abs\"", "\"a/../b\"", "\"\""],
    ),
    option("tmpfs_size", "-", &[], &["10", "0"]),
    option(
        "tmpfs_volumes",
        "[]",
        &[(
            "[{path=a;size=5};{path=b;size=6}]",
            "[{\"path\"=\"a\";\"size\"=5;};{\"path\"=\"b\";\"size\"=6;};]",
        )],
        &[
            "[{path=a}]",
            "[{size=1}]",
            "[{path=a;size=0}]",
            "[{path=a;size=1};{path=\"a/b\";size=1}]",
            "[{path=\".\";size=1};{path=a;size=1}]",
            "[{path=a;size=600000000}]",
            "{}",
        ],
    ),
    option(
        "disk_request",
        "-",
        &[("{disk_space=5}", "{\"disk_space\"=5;}")],
        &["{}", "{disk_space=-1}", "{disk_space=1;account=a}"],
    ),
    option("disk_space_limit", "-", &[("5", "5")], &["-1"]),
    option("inode_limit", "-", &[], &["5"]),
    option("job_time_limit", "-", &[("1000", "1000")], &["999", "x"]),
    option("prepare_time_limit", "2700000", &[("60000", "60000")], &["59999"]),
    option("max_stderr_size", "5242880", &[("1", "1"), ("1073741824", "1073741824")], &["0", "1073741825"]),
    option("custom_statistics_count_limit", "128", &[("1", "1"), ("1024", "1024")], &["0", "1025"]),
    option("port_count", "0", &[("50", "50")], &["-1", "51"]),
    option("copy_files", "%false", BOOL, NOT_BOOL),
    option("check_input_fully_consumed", "%false", BOOL, NOT_BOOL),
    option("use_yamr_descriptors", "%false", BOOL, NOT_BOOL),
    option("redirect_stdout_to_stderr", "%false", BOOL, NOT_BOOL),
    option("set_container_cpu_limit", "%false", BOOL, NOT_BOOL),
    option("force_core_dump", "%false", BOOL, NOT_BOOL),
    option("fail_job_on_core_dump", "%true", BOOL, NOT_BOOL),
    option("interruption_signal", "-", &[("SIGTERM", "\"SIGTERM\"")], &["TERM", "15"]),
    option("signal_root_process_only", "%false", BOOL, NOT_BOOL),
    option("restart_exit_code", "-", &[("42", "42")], &["0", "256", "-1"]),
    option("layer_paths", "[]", &[("[\"//l\"]", "[\"//l\";]")], &["[1]", "x"]),
    option("docker_image", "-", &[], &["1", "x"]),
    option("make_rootfs_writable", "%false", &[("%false", "%false")], &["%true", "1"]),
    option("format", "\"yson\"", &[("json", "\"json\"")], &[]),
    option("fail_on_job_restart", "%false", BOOL, NOT_BOOL),
    option(
        "monitoring",
        "{\"enable\"=%false;\"sensor_names\"=[];}",
        &[(
            "{enable=%true;sensor_names=[\"cpu/user\"]}",
            "{\"enable\"=%true;\"sensor_names\"=[\"cpu/user\";];}",
        )],
        &["{sensor_names=[\"cpu/imaginary\"]}", "1"],
    ),
    option("job_count", "1", &[], &["0", "-1", "100001", "1.5", "x"]),
    option("job_io", "{}", &[("{a=1}", "{\"a\"=1;}")], &["1"]),
    option("output_table_paths", "[]", &[("[\"//a\"]", "[\"//a\";]")], &["[\"//a\";\"//a\"]", "x", "[1]"]),
    option("restart_completed_jobs", "%false", BOOL, NOT_BOOL),
    option("gang_options", "-", &[("{}", "{\"size\"=1;}")], &["{size=2}", "{size=0}", "1"]),
];

const PROXY_DIGEST: &[Option_] = &[
    option("lower_bound", "0.5", &[("0.1", "0.1")], &["0", "-1", "3"]),
    option("default_value", "1.", &[("2", "2.")], &["0", "0.4", "2.1"]),
    option("upper_bound", "2.", &[("1", "1.")], &["0", "x"]),
    option("relative_precision", "0.01", &[("0.5", "0.5")], &["0"]),
];

/// Checks a table of options that sit at `path`, in the map that `place` puts them into.
fn check_table(table: &[Option_], path: &str, place: impl Fn(&str) -> String) {
    let defaults = full(&place(""));
    let whole = |v: &Value| if path.is_empty() { v.clone() } else { at(v, path).clone() };
    for o in table {
        let shown = whole(&defaults).get(o.name).map_or("-".to_owned(), |v| show(v.clone()));
        assert_eq!(shown, o.default, "default of {}", o.name);
        for (given, expected) in o.good {
            let text = place(&format!("{}={given}", o.name));
            let parsed = parse(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
            let shown = whole(&parsed.full.clone().into());
            assert_eq!(show(shown.get(o.name).expect(o.name).clone()), *expected, "{text}");
            assert!(parsed.unrecognized.is_empty(), "{text}: {:?}", parsed.unrecognized);
        }
        for given in o.bad {
            let text = match o.name {
                "job_count" => format!("{{tasks={{t={{command=x; job_count={given}}}}}}}"),
                _ => place(&format!("{}={given}", o.name)),
            };
            let message = error(&text);
            assert!(
                message.contains(&format!("/{}", o.name)) || o.name.starts_with("tmpfs"),
                "{text}: {message}"
            );
        }
        // `#` is an absent value.
        if o.name != "job_count" {
            assert_eq!(full(&place(&format!("{}=#", o.name))), defaults, "{}", o.name);
        }
    }
}

#[test]
fn root_options() {
    check_table(ROOT, "", root);
    check_table(MONITOR, "job_cpu_monitor", |o| root(&format!("job_cpu_monitor={{{o}}}")));
    check_table(PROXY_DIGEST, "job_proxy_memory_digest", |o| {
        root(&format!("job_proxy_memory_digest={{{o}}}"))
    });
    check_table(ELIGIBILITY, "tentative_tree_eligibility", |o| {
        root(&format!("tentative_tree_eligibility={{{o}}}"))
    });
    check_table(ALLOCATION, "allocation", |o| root(&format!("allocation={{{o}}}")));
}

/// What is not said of a tree is as at the root, so it is shown there only; both spellings of one thing are one.
#[test]
fn effective_values() {
    let given = "weight=3; max_unpreemptible_allocation_count=4; \
                 non_preemptible_resource_usage_threshold={user_slots=9; cpu=1}; \
                 scheduling_options_per_pool_tree={a={}}; tentative_tree_eligibility={sample_job_count=5}";
    let full = full(&root(given));
    assert_eq!(show(at(&full, "scheduling_options_per_pool_tree").clone()), "{\"a\"={};}");
    assert_eq!(
        show(at(&full, "non_preemptible_resource_usage_threshold").clone()),
        "{\"user_slots\"=4;\"cpu\"=1.;}"
    );
    assert_eq!(at(&full, "tentative_tree_eligibility/min_job_duration").as_i64(), Some(30_000));
}

/// With several tables the mapper is told where rows of another one begin, unless it does not want that.
#[test]
fn marks_of_tables() {
    let shown = |inputs: &str, more: &str| {
        let text = format!(
            "{{input_table_paths=[{inputs}]; output_table_paths=[\"//o\"]; mapper={{command=x; {more}}}}}"
        );
        let parsed = spec::parse(OperationType::Map, &map(&text), &ControllerOptions::default());
        let full: Value = parsed.expect("a good spec").full.into();
        ["mapper/enable_input_table_index", "job_io/control_attributes/enable_table_index"]
            .map(|path| at(&full, path).as_bool().expect("a boolean"))
    };
    assert_eq!(shown("\"//a\"", ""), [false; 2]);
    assert_eq!(shown("\"//a\";\"//b\"", ""), [true; 2]);
    assert_eq!(shown("\"//a\";\"//b\"", "enable_input_table_index=%false"), [false; 2]);
}

#[test]
fn task_options() {
    check_table(TASK, "tasks/t", task);
    let place = |o: &str| task(&format!("job_proxy_memory_digest={{{o}}}"));
    check_table(PROXY_DIGEST, "tasks/t/job_proxy_memory_digest", place);
}

#[test]
fn aliases_are_shown_under_the_canonical_name() {
    let cases = [
        (
            root("\"job-cpu-monitor\"={votes_decision_threshold=4}"),
            "job_cpu_monitor/vote_decision_threshold",
            "4",
        ),
        (root("scheduling_tag=x"), "scheduling_tag_filter", "\"x\""),
        (root("job_node_account=x"), "debug_artifacts_account", "\"x\""),
        (root("max_unpreemptable_job_count=3"), "max_unpreemptible_allocation_count", "3"),
        (
            root("fair_share_options_per_pool_tree={a={weight=2}}"),
            "scheduling_options_per_pool_tree/a/weight",
            "2.",
        ),
        (task("exec_time_limit=5000"), "tasks/t/job_time_limit", "5000"),
        (task("output_paths=[\"//a\"]"), "tasks/t/output_table_paths", "[\"//a\";]"),
        (
            task("resource_overdraft_memory_reserve_multiplier=2"),
            "tasks/t/user_job_resource_overdraft_memory_multiplier",
            "2.",
        ),
    ];
    for (text, path, expected) in cases {
        let parsed = parse(&text).expect("a good spec");
        assert_eq!(show(at(&parsed.full.into(), path).clone()), expected, "{text}");
        assert!(parsed.unrecognized.is_empty(), "{text}: {:?}", parsed.unrecognized);
    }
    let twice = error(&task("job_time_limit=5000; exec_time_limit=6000"));
    assert!(twice.contains("exec_time_limit") && twice.contains("job_time_limit"), "{twice}");
}

#[test]
fn what_the_client_adds_is_recognized() {
    let parsed = parse(
        "{started_by={hostname=h; pid=1; command=[a]; user=u}; title=\"Tasks[T]\"; description=#; job_io={};
          pool=p; job_count=3; tasks={T={job_count=2; command=\"sleep 1\";
            environment={YT_ALLOW_HTTP_REQUESTS_TO_YT_FROM_JOB=\"0\"}; use_yamr_descriptors=%false;
            check_input_fully_consumed=%false; redirect_stdout_to_stderr=%true; input_format=<a=1>yson;
            output_format=yson; job_io={}; tmpfs_path=tmpfs; tmpfs_size=1000; memory_limit=2000;
            file_paths=[<file_name=x; executable=%true; format=<a=b>yson>\"//tmp/x\"]}}}",
    )
    .expect("a good spec");
    assert!(parsed.unrecognized.is_empty(), "{:?}", parsed.unrecognized);
}

#[test]
fn unrecognized_options_keep_their_nesting() {
    let parsed = parse(
        "{foo=1; job_cpu_monitor={bar=2}; scheduling_options_per_pool_tree={a={pool=x; baz=3}};
          tasks={t={job_count=1; command=x; qux=4; monitoring={no=5}}}}",
    )
    .expect("a good spec");
    expect![[r#"{"job_cpu_monitor"={"bar"=2;};"scheduling_options_per_pool_tree"={"a"={"baz"=3;};};"tasks"={"t"={"monitoring"={"no"=5;};"qux"=4;};};"foo"=1;}"#]]
        .assert_eq(&show(parsed.unrecognized));
}

#[test]
fn the_vault_is_not_shown() {
    let parsed = parse(&root("secure_vault={token=secret; n=5}")).expect("a good spec");
    for form in [&parsed.provided, &parsed.full, &parsed.unrecognized, &parsed.brief] {
        assert!(!show(form.clone()).contains("secret"), "{form:?}");
    }
    assert!(!error(&root("secure_vault=secret")).contains("secret\""));
}

#[test]
fn scheduling_options_are_handed_on() {
    let parsed = parse(&root(
        "pool=p; weight=2.5; preemption_mode=graceful; pool_trees=[a;b]; resource_limits={cpu=3};
         non_preemptible_resource_usage_threshold={user_slots=9; cpu=1}; max_unpreemptible_job_count=4;
         scheduling_options_per_pool_tree={a={pool=q; weight=1}; b={}}",
    ))
    .expect("a good spec");
    let s = parsed.spec.scheduling;
    assert_eq!((s.pool.as_deref(), s.common.weight), (Some("p"), Some(2.5)));
    assert_eq!(s.preemption_mode, PreemptionMode::Graceful);
    let limits = s.common.resource_limits.expect("limits");
    assert_eq!((limits.resources().cpu, limits.raw(Resource::Memory)), (Cpu(300), None));
    let threshold = s.common.non_preemptible_resource_usage_threshold.expect("a threshold");
    assert_eq!(threshold.raw(Resource::UserSlots), Some(4), "the smaller of the two spellings");
    assert_eq!(s.per_tree[0].1.pool.as_deref(), Some("q"));
    assert_eq!(s.per_tree[1].0, "b");
    assert_eq!(s.waiting_job_timeout, None::<Span>);
}

fn check_error(text: &str, expected: Expect) {
    expected.assert_eq(&error(text));
}

#[test]
fn errors_say_what_and_where() {
    check_error("{}", expect!["Missing required option /tasks of the spec"]);
    check_error("{tasks={}}", expect!["Invalid value of spec option /tasks: expected at least one task"]);
    check_error("{tasks={t={job_count=1}}}", expect!["Missing required option /tasks/t/command of the spec"]);
    check_error("{tasks={t={command=x}}}", expect!["Missing required option /tasks/t/job_count of the spec"]);
    check_error(
        "{tasks={\"\"={job_count=1;command=x}}}",
        expect!["Invalid value of spec option /tasks: the name of a task must not be empty"],
    );
    check_error(
        "{tasks={\"a/b\"={job_count=-5;command=x}}}",
        expect![[
            r#"Invalid value of spec option /tasks/a\/b/job_count: expected int64 in 1..=4294967295, found int64 -5"#
        ]],
    );
    check_error(
        &task("cpu_limit=lots"),
        expect![[
            r#"Invalid value of spec option /tasks/t/cpu_limit: expected number of at least 0, found string "lots""#
        ]],
    );
    check_error(
        &task("redirect_stdout_to_stderr=%true; use_yamr_descriptors=%true"),
        expect![[
            r#"Invalid value of spec option /tasks/t/use_yamr_descriptors: it excludes "redirect_stdout_to_stderr""#
        ]],
    );
    check_error(
        &root("consider_guarantees_for_single_tree=%true"),
        expect![[
            r#"Invalid value of spec option /consider_guarantees_for_single_tree: it needs "schedule_in_single_tree""#
        ]],
    );
    check_error(
        "{fail_on_job_restart=%true; tasks={t={job_count=1;command=x;gang_options={}}}}",
        expect![[r#"Invalid value of spec option /tasks/t/gang_options: it excludes "fail_on_job_restart""#]],
    );
    check_error(
        "{tasks={a={job_count=60000;command=x};b={job_count=40001;command=x}}}",
        expect!["Invalid value of spec option /tasks: maximum total job count is 100000, found 100001"],
    );
    // S13: the number counts before what the first task says.
    let tasks: String = (0..101).map(|i| format!("t{i}={{job_count={}}};", i - 1)).collect();
    check_error(
        &format!("{{tasks={{{tasks}}}}}"),
        expect!["Invalid value of spec option /tasks: maximum number of tasks is 100, found 101"],
    );
    check_error(
        "{tasks={a={job_count=1;command=x;output_table_paths=[\"//o\"]};b={job_count=1;command=x;output_table_paths=[<append=%true>\"//o\"]}}}",
        expect![[
            r#"Invalid value of spec option /tasks/b/output_table_paths: path <{"append": %true}>"//o" has other attributes in another task"#
        ]],
    );
    let long = "x".repeat(10 << 10);
    assert!(error(&root(&format!("annotations={{a=\"{long}\"}}"))).contains("/annotations"));
}

#[test]
fn other_types_are_not_supported() {
    let refused =
        spec::parse(OperationType::Sort, &map("{}"), &ControllerOptions::default()).expect_err("refused");
    assert_eq!(refused.code, 1);
    assert!(refused.message.contains("sort") && refused.message.contains("not supported"), "{refused}");
}

/// They are maps whose jobs pass on what they read.
#[test]
fn rows_that_are_written_anew() {
    let options = ControllerOptions::default();
    let parse = |operation_type, text: &str| spec::parse(operation_type, &map(text), &options);
    let erase =
        parse(OperationType::Erase, "{table_path=<ranges=[{exact={row_index=1}}]>\"//t\"}").expect("good");
    let tables = erase.spec.map.expect("it is done like a map");
    assert!(tables.outside && erase.spec.merge.is_none());
    assert!(tables.inputs[0].attributes.contains("ranges"));
    let output = &erase.spec.tasks[0].outputs[0];
    assert_eq!((output.text().as_str(), output.attributes.is_empty()), ("//t", true));
    assert_eq!(erase.unrecognized, map("{}"));

    let merge = |more: &str| {
        let text = format!("{{input_table_paths=[\"//a\";\"//b\"];output_table_path=\"//o\";{more}}}");
        parse(OperationType::Merge, &text)
    };
    let plain = merge("mode=ordered;job_count=3").expect("good");
    assert!(plain.spec.merge.is_some() && plain.spec.tasks.is_empty());
    for (more, job_type) in [
        ("combine_chunks=%true", "unordered_merge"),
        ("force_transform=%true;mode=ordered", "ordered_merge"),
        ("input_table_paths=[<columns=[x]>\"//a\"]", "unordered_merge"),
        ("input_table_paths=[\"//a[#1:#2]\"]", "unordered_merge"),
    ] {
        let parsed = merge(more).expect(more);
        let tables = parsed.spec.map.expect(more);
        assert!(!tables.outside && parsed.spec.merge.is_some_and(|m| m.must_write_anew()), "{more}");
        assert_eq!(parsed.spec.tasks[0].job_type, job_type);
        assert_eq!(parsed.unrecognized, map("{}"), "{more}");
        assert!(!parsed.brief.contains("mapper"), "{more}");
    }
    // Whether chunks overlap is not known here.
    for (more, may_take_chunks) in [
        ("", true),
        ("combine_chunks=%true", false),
        ("input_table_paths=[\"//a[#1:#2]\"]", false),
        ("output_table_path=<sorted_by=[k]>\"//o\"", false),
    ] {
        let parsed = merge(&format!("mode=sorted;merge_by=[k];job_count=7;{more}")).expect(more);
        let tables = parsed.spec.map.expect(more);
        assert_eq!(tables.merge_by, Some(vec!["k".to_owned()]), "{more}");
        assert_eq!(parsed.spec.merge.map(|m| !m.must_write_anew()), Some(may_take_chunks), "{more}");
        assert_eq!(parsed.spec.tasks[0].job_type, "sorted_merge");
    }
    let refused =
        merge("input_table_paths=[\"//b\";<columns=[x]>\"//a\"];mode=sorted").expect_err("keys may be gone");
    assert!(refused.message.contains("/input_table_paths/1"), "{refused}");
}

#[test]
fn where_schemas_of_outputs_come_from() {
    let parse = |operation_type, mode: &str| {
        let text = format!(
            "{{input_table_paths=[\"//a\"];output_table_path=\"//o\";output_table_paths=[];table_path=\"//t\";\
             mapper={{command=cat}};schema_inference_mode={mode}}}"
        );
        spec::parse(operation_type, &map(&text), &ControllerOptions::default())
    };
    for (mode, expected) in [
        ("auto", SchemaInference::Auto),
        ("#", SchemaInference::Auto),
        ("from_input", SchemaInference::FromInput),
        ("from_output", SchemaInference::FromOutput),
    ] {
        let parsed = parse(OperationType::Merge, mode).expect(mode);
        assert_eq!(parsed.spec.merge.map(|m| m.schema_inference), Some(expected));
        for operation_type in [OperationType::Merge, OperationType::Erase, OperationType::Map] {
            let parsed = parse(operation_type, mode);
            if (operation_type, mode) == (OperationType::Map, "from_input") {
                let refused = parsed.expect_err("a mapper makes rows of its own");
                assert!(
                    refused.message.contains("expected one of auto, from_output, found \"from_input\""),
                    "{refused}"
                );
                continue;
            }
            let parsed = parsed.expect(mode);
            assert!(!parsed.unrecognized.contains("schema_inference_mode"), "{mode}");
            let full = parsed.full.get("schema_inference_mode").and_then(Value::as_str);
            assert_eq!(full, Some(if mode == "#" { "auto" } else { mode }));
        }
    }
    let refused = parse(OperationType::Merge, "strong").expect_err("no such mode");
    assert!(
        refused.message.contains("/schema_inference_mode")
            && refused.message.contains("expected one of auto, from_input, from_output, found \"strong\""),
        "{refused}"
    );
}

#[test]
fn brief_spec() {
    let parsed = parse(&root("title=x; alias=\"*a\"; pool=p")).expect("a good spec");
    expect![[r#"{"title"="x";"alias"="*a";"pool"="p";"tasks"={"t"={"command"="true";"job_count"=1;};};}"#]]
        .assert_eq(&show(parsed.brief));
}

/// (options of the task, factor without samples): jobs-and-nodes.md 2.7.
#[test]
fn reserve_factor_follows_options_and_tmpfs() {
    for (options, expected) in [
        ("", 0.5),
        ("memory_reserve_factor=0.3", 0.3),
        ("memory_reserve_factor=0.3; ignore_memory_reserve_factor_less_than_one=%true", 0.5),
        ("memory_reserve_factor=1; ignore_memory_reserve_factor_less_than_one=%true", 1.0),
        ("memory_limit=1000; tmpfs_path=t; tmpfs_size=800", 0.8),
        ("memory_limit=1000; tmpfs_path=t", 1.0),
        ("memory_limit=1000; tmpfs_path=t; tmpfs_size=100", 0.5),
        ("user_job_memory_digest_lower_bound=0.7", 0.7),
    ] {
        let parsed = parse(&task(options)).unwrap_or_else(|e| panic!("{options}: {e}"));
        let script = &parsed.spec.tasks[0].script;
        let bounds = script.memory.bounds(script.tmpfs_size(), script.memory_limit, 0.01);
        assert_eq!(bounds.default, expected, "{options}");
    }
}

/// S15.
#[test]
fn titles_annotations_and_files_have_limits() {
    let long = "x".repeat(4097);
    assert_eq!(
        error(&root(&format!("title={long}"))),
        "Invalid value of spec option /title: expected at most 4096 bytes (max_title_length), found 4097"
    );
    assert!(parse(&root(&format!("title={}", &long[1..]))).is_ok());
    let text = error(&root(&format!("annotations={{a={}}}", long.repeat(4))));
    assert!(text.contains("at most 10240 bytes of text YSON (max_annotations_size), found 163"), "{text}");
    let files = |count: usize| (0..count).map(|n| format!("\"//f/{n}\";")).collect::<String>();
    assert!(parse(&task(&format!("file_paths=[{}]", files(1000)))).is_ok());
    let text = error(&task(&format!("file_paths=[{}]", files(1001))));
    assert!(
        text.contains("/tasks/t/file_paths: maximum number of files and layers of a task is 1000"),
        "{text}"
    );
    let tasks: String =
        (0..4).map(|n| format!("t{n}={{job_count=1;command=x;file_paths=[{}]}};", files(800))).collect();
    let text = error(&format!("{{tasks={{{tasks}}}}}"));
    assert!(text.contains("of all tasks is 3000 (max_total_user_file_count), found 3200"), "{text}");
}

/// S13: each of these was compared with all others.
#[test]
fn lists_whose_items_are_compared_have_limits() {
    let many = |count: usize, item: fn(usize) -> String| (0..count).map(item).collect::<String>();
    let shells = many(1001, |n| format!("{{name=s{n}}};"));
    assert!(
        error(&root(&format!("job_shells=[{shells}]")))
            .contains("at most 1000 items are allowed, found 1001")
    );
    let trees = many(1001, |n| format!("t{n};"));
    assert!(error(&root(&format!("pool_trees=[{trees}]"))).contains("/pool_trees: at most 1000 items"));
    let volumes = many(1001, |n| format!("{{size=1;path=p{n}}};"));
    assert!(
        error(&task(&format!("tmpfs_volumes=[{volumes}]"))).contains("tmpfs_volumes: at most 1000 items")
    );
    let outputs = |task: usize| (0..100).map(|n| format!("\"//o/{task}-{n}\";")).collect::<String>();
    let tasks = |count: usize| -> String {
        let one = |n: usize| format!("t{n}={{job_count=1;command=x;output_table_paths=[{}]}};", outputs(n));
        format!("{{tasks={{{}}}}}", (0..count).map(one).collect::<String>())
    };
    assert!(parse(&tasks(10)).is_ok());
    assert!(
        error(&tasks(11))
            .contains("at most 1000 output tables are allowed in all tasks together, found 1100")
    );
}

/// S13: a large specification is read before the limits that are in force are known.
#[test]
fn limits_may_be_looked_at_afterwards() {
    let read = |text: &str| {
        let map = map(text);
        spec::parse(OperationType::Vanilla, &map, &ControllerOptions::before_limits()).expect("a good spec")
    };
    let options = ControllerOptions::default();
    let refused = |text: &str| {
        let known = parse(text).expect_err("refused at once, too").to_string();
        let later = spec::check_limits(&mut read(text), &options).expect_err("refused later").to_string();
        assert_eq!(later, known);
    };
    refused(&root(&format!("title={}", "x".repeat(5000))));
    refused(&root(&format!("annotations={{a={}}}", "x".repeat(20_000))));
    refused(&task("job_count=100001").replace("job_count=1;", ""));
    refused("{tasks={a={job_count=60000;command=x};b={job_count=40001;command=x}}}");
    let tasks: String = (0..101).map(|i| format!("t{i}={{job_count=1;command=x}};")).collect();
    refused(&format!("{{tasks={{{tasks}}}}}"));
    assert_eq!(spec::check_limits(&mut read(&root("title=short")), &options), Ok(()));
}

/// S13: specifications of all types are read before the limits are known, and become what they would have been.
#[test]
fn operations_over_tables_read_ahead_are_as_those_that_are_not() {
    let specs = [
        (
            OperationType::Map,
            "input_table_paths=[\"//a\"]; output_table_paths=[\"//b\"]; mapper={command=cat}",
        ),
        (
            OperationType::Merge,
            "input_table_paths=[\"//a\"]; output_table_path=\"//b\"; combine_chunks=%true",
        ),
        (OperationType::Erase, "table_path=\"//a\""),
    ];
    let options = ControllerOptions { max_total_job_count: 1_000, ..ControllerOptions::default() };
    for (operation_type, text) in specs {
        for more in ["", "job_count=10", "job_count=1001", "max_job_count=5", "max_job_count=1001"] {
            let map = map(&format!("{{{text}; {more}}}"));
            let at_once = spec::parse(operation_type, &map, &options).map_err(|e| e.to_string());
            let mut ahead = spec::parse(operation_type, &map, &ControllerOptions::before_limits())
                .expect("there are no limits yet");
            let checked = spec::check_limits(&mut ahead, &options).map_err(|e| e.to_string());
            match (at_once, checked) {
                (Ok(at_once), Ok(())) => {
                    assert_eq!(at_once.full, ahead.full, "{more}");
                    let cutting = |parsed: &spec::ParsedSpec| {
                        parsed.spec.map.as_ref().map(|map| format!("{:?}", map.cutting))
                    };
                    assert_eq!(cutting(&at_once), cutting(&ahead), "{more}");
                }
                (at_once, checked) => assert_eq!(at_once.map(drop), checked, "{operation_type:?} {more}"),
            }
        }
    }
}

/// S13: a patch reads the option that it changes, and none of the others.
#[test]
fn one_option_of_a_specification_is_changed() {
    let options = ControllerOptions::default();
    let mut parsed = parse(&root("max_failed_job_count=3")).expect("a good spec");
    let set = |parsed: &mut spec::ParsedSpec, text: &str| {
        let value = yson::parse(text.as_bytes()).expect("YSON");
        spec::set_max_failed_job_count(parsed, &value, &options).map_err(|e| e.to_string())
    };
    set(&mut parsed, "5").expect("a number");
    assert_eq!(parse(&root("max_failed_job_count=5")).expect("a good spec").full, parsed.full);
    assert_eq!(parsed.spec.root.max_failed_job_count, 5);
    let refused = set(&mut parsed, "-1").expect_err("out of range");
    assert!(refused.contains("/max_failed_job_count"), "{refused}");
    assert_eq!(parsed.provided.get("max_failed_job_count").and_then(yson::Value::as_i64), Some(5));
}
