//! Variables that all jobs of a task have (jobs-and-nodes.md 5.3).

use crate::spec::{RootOptions, TaskSpec};
use std::sync::Arc;
use vocab::OperationId;
use yson::Value;

/// Defaults that the spec may override.
const NODE_DEFAULTS: &[(&str, &str)] = &[
    ("HOME", "$(SandboxPath)"),
    ("TMPDIR", "$(SandboxPath)"),
    ("PYTHONPATH", "$(SandboxPath)"),
    ("PYTHONUSERBASE", "$(SandboxPath)/.local"),
    ("PYTHON_EGG_CACHE", "$(SandboxPath)/.python-eggs"),
];

/// In order, later ones win: defaults, those of the spec, those that the spec cannot set. What only the node knows
/// (ports, sockets) it adds itself.
pub(crate) fn common(id: OperationId, spec: &TaskSpec, root: &RootOptions) -> Arc<[(String, String)]> {
    let mut out: Vec<(String, String)> = Vec::new();
    let mut put = |name: &str, value: String| out.push((name.to_owned(), value));
    for (name, value) in NODE_DEFAULTS {
        put(name, (*value).to_owned());
    }
    for (name, value) in &spec.script.environment {
        put(name, value.clone());
    }
    put("YT_OPERATION_ID", id.to_string());
    put("YT_TASK_NAME", spec.name.clone());
    // With redirection descriptor 1 is stderr and tables begin at 4 (http-api.md 13).
    let first_table = if spec.script.redirect_stdout_to_stderr { "4" } else { "1" };
    put("YT_FIRST_OUTPUT_TABLE_FD", first_table.to_owned());
    if let Some(size) = spec.gang_size {
        put("YT_TASK_GANG_SIZE", size.to_string());
    }
    if let Some(vault) = &root.secure_vault {
        put("YT_SECURE_VAULT", text(&Value::Map(vault.clone())));
        for (key, value) in vault.iter() {
            if let Some(scalar) = scalar_text(value) {
                put(&format!("YT_SECURE_VAULT_{}", String::from_utf8_lossy(key)), scalar);
            }
        }
    }
    out.into()
}

fn text(value: &Value) -> String {
    String::from_utf8_lossy(&yson::to_text(value)).into_owned()
}

/// Value of a variable for a scalar secret: strings as they are, others as text YSON.
fn scalar_text(value: &Value) -> Option<String> {
    match value.bare() {
        Value::String(s) => Some(String::from_utf8_lossy(s).into_owned()),
        Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Bool(_) => Some(text(value.bare())),
        _ => None,
    }
}
