//! Old names (http-api.md 8.10).

use super::{Descriptor, TABLE};
use vocab::OperationType;
use yson::Map;

/// Name in v3 and in v4, where they differ.
const RENAMED: &[(&str, &str)] = &[
    ("start_tx", "start_transaction"),
    ("ping_tx", "ping_transaction"),
    ("commit_tx", "commit_transaction"),
    ("abort_tx", "abort_transaction"),
    ("start_op", "start_operation"),
    ("abort_op", "abort_operation"),
    ("suspend_op", "suspend_operation"),
    ("resume_op", "resume_operation"),
    ("complete_op", "complete_operation"),
    ("update_op_parameters", "update_operation_parameters"),
    ("patch_op_spec", "patch_operation_spec"),
];

/// All names with their commands.
pub fn names() -> impl Iterator<Item = (&'static str, &'static Descriptor)> {
    let renamed = |d: &Descriptor| RENAMED.iter().find(|(_, v4)| *v4 == d.name).map(|(v3, _)| *v3);
    let types = OperationType::ALL.iter().map(|t| t.as_str());
    let start = Descriptor::find("start_operation");
    TABLE
        .iter()
        .map(move |d| (renamed(d).unwrap_or(d.name), d))
        .chain(types.filter_map(move |name| start.map(|d| (name, d))))
}

/// The command of a name; the name of an operation type starts such an operation.
pub fn find(name: &str) -> Option<(&'static Descriptor, Map)> {
    let (_, descriptor) = names().find(|(n, _)| *n == name)?;
    let implied = match name.parse::<OperationType>() {
        Ok(_) => yson::map! {"operation_type" => name},
        Err(_) => Map::new(),
    };
    Some((descriptor, implied))
}
