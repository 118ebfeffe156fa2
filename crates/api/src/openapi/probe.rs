//! Which parameters a command has: its parser is run with more and more of them until it is content, and
//! tells by that what it looks for and what it cannot do without.

use crate::JobData;
use crate::commands::{
    Asked, Descriptor, Kind, Params, Result, Run, get_job_data, get_job_stderr, poll_job_shell, read_file,
    read_table, run_job_shell_command, set_user_password, write_file, write_table,
};
use crate::job_commands::{dump_job_context, get_job_spec, job_traces};
use std::collections::BTreeSet;
use vocab::Failure;
use yson::{Format, Map, Value};

/// A parameter of a command.
pub(super) struct Parameter {
    pub name: String,
    pub kind: Kind,
    pub is_required: bool,
}

/// More parameters than this no command needs.
const MAX_REQUIRED: usize = 20;

/// Of the commands that the server answers by itself or sees through the transaction.
const OF_ALL_CHANGES: [(&str, Kind); 2] = [("mutation_id", Kind::Word), ("retry", Kind::Boolean)];

/// All parameters of a command.
pub(super) fn of_command(descriptor: &Descriptor) -> Vec<Parameter> {
    let mut found = match descriptor.run {
        Run::Kernel(parse) => parameters(&|params| parse(params).map(drop)),
        Run::KernelWithInput(parse) => parameters(&|params| parse(params, Map::new().into()).map(drop)),
        Run::NewToken(parse) | Run::NewJoinToken(parse) => {
            parameters(&|params| parse(params, String::new()).map(drop))
        }
        Run::SetPassword => parameters(&|params| set_user_password(params).map(drop)),
        Run::Stderr => parameters(&|params| get_job_stderr(params).map(drop)),
        Run::JobData(data) => parameters(&|params| get_job_data(params, data).map(drop)),
        Run::JobInputPaths => parameters(&|params| get_job_data(params, JobData::Input).map(drop)),
        Run::JobSpec => parameters(&|params| get_job_spec(params).map(drop)),
        Run::DumpJobContext => parameters(&|params| dump_job_context(params).map(drop)),
        Run::JobTrace => parameters(&job_traces),
        Run::Local(_) if descriptor.name == "list_job_traces" => parameters(&job_traces),
        Run::Shell => parameters(&|params| poll_job_shell(params).map(drop)),
        Run::ShellCommand => parameters(&|params| run_job_shell_command(params).map(drop)),
        Run::ReadFile => parameters(&|params| read_file(params).map(drop)),
        Run::WriteFile => parameters(&|params| write_file(params).map(drop)),
        Run::ReadTable => parameters(&|params| read_table(params, Format::tabular_default()).map(drop)),
        Run::WriteTable => parameters(&|params| write_table(params, Format::tabular_default()).map(drop)),
        Run::Batch => vec![
            Parameter { name: "requests".to_owned(), kind: Kind::Any, is_required: true },
            Parameter { name: "concurrency".to_owned(), kind: Kind::Count, is_required: false },
        ],
        Run::Local(_) if descriptor.name == "parse_ypath" => {
            vec![Parameter { name: "path".to_owned(), kind: Kind::Path, is_required: true }]
        }
        #[allow(unreachable_patterns)] // a new way to run has no parameters that are known here
        _ => Vec::new(),
    };
    let mut add = |name: &str, kind| {
        if !found.iter().any(|p| p.name == name) {
            found.push(Parameter { name: name.to_owned(), kind, is_required: false });
        }
    };
    if matches!(descriptor.run, Run::Kernel(_) | Run::KernelWithInput(_)) {
        add("transaction_id", Kind::Word);
    }
    if descriptor.volatile {
        OF_ALL_CHANGES.iter().for_each(|(name, kind)| add(name, *kind));
    }
    found
}

/// What a parser looks for.
pub(super) fn parameters(parse: &dyn Fn(&Params) -> Result<()>) -> Vec<Parameter> {
    let mut given = Map::new();
    let mut required = BTreeSet::new();
    let asked = loop {
        let params = Params::observed(given.clone());
        let result = parse(&params);
        let asked = params.asked();
        match missing(&result, &asked) {
            Some(next) if !given.contains(&next.name) && required.len() < MAX_REQUIRED => {
                given.insert(next.name.as_str(), sample(&next));
                required.insert(next.name);
            }
            _ => break asked,
        }
    };
    let parameter =
        |a: Asked| Parameter { is_required: required.contains(&a.name), name: a.name, kind: a.kind };
    asked.into_iter().map(parameter).collect()
}

/// The parameter that the parser could not do without.
fn missing(result: &Result<()>, asked: &[Asked]) -> Option<Asked> {
    let failure: &Failure = result.as_ref().err()?;
    let name = failure.attributes.get("parameter").and_then(Value::as_str)?;
    asked.iter().find(|a| a.name == name).cloned()
}

/// A value that any parser takes.
fn sample(asked: &Asked) -> Value {
    match (asked.name.as_str(), asked.kind) {
        ("operation_type", _) => "vanilla".into(),
        ("source_paths", _) => vec![Value::from("//tmp/x")].into(),
        ("md5", _) => "0".repeat(32).into(),
        ("new_password_sha256" | "token_sha256", _) => "0".repeat(64).into(),
        ("parameters", Kind::Map) => yson::map! {"operation" => "spawn"}.into(),
        ("acl", _) => Vec::<Value>::new().into(),
        (_, Kind::Boolean) => true.into(),
        (_, Kind::Count | Kind::Milliseconds) => 1u64.into(),
        (_, Kind::Instant) => "2026-01-02T03:04:05Z".into(),
        (name, kind) if kind == Kind::Word || name.ends_with("_id") => "1-2-3-4".into(),
        (_, Kind::Map) => Map::new().into(),
        (_, Kind::Texts) => Vec::<Value>::new().into(),
        (name, _) if name == "path" || name.ends_with("_path") => "//tmp/x".into(),
        (_, Kind::Path) => "//tmp/x".into(),
        (_, Kind::Any | Kind::Text | Kind::Word) => "x".into(),
    }
}
