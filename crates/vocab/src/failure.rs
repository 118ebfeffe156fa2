//! The error value that users see, and its codes (http-api.md 3).

use std::fmt;
use yson::{Map, Value};

/// Numeric error codes of the public API. Clients rely on them being *somewhere* in the tree.
#[allow(missing_docs)]
pub mod code {
    pub const OK: i64 = 0;
    /// Parse errors, wrong types, everything without a code of its own.
    pub const GENERIC: i64 = 1;
    pub const CANCELED: i64 = 2;
    pub const TIMEOUT: i64 = 3;
    pub const NO_SUCH_METHOD: i64 = 103;
    pub const UNAVAILABLE: i64 = 105;
    pub const REQUEST_QUEUE_SIZE_LIMIT_EXCEEDED: i64 = 108;
    pub const INVALID_CREDENTIALS: i64 = 111;
    /// Action on a finished operation.
    pub const NO_SUCH_OPERATION: i64 = 200;
    pub const INVALID_OPERATION_STATE: i64 = 201;
    pub const TOO_MANY_OPERATIONS: i64 = 202;
    pub const NO_SUCH_JOB: i64 = 203;
    pub const OPERATION_FAILED_ON_JOB_RESTART: i64 = 210;
    pub const MAX_FAILED_JOBS_LIMIT_EXCEEDED: i64 = 215;
    pub const OPERATION_FAILED_TO_PREPARE: i64 = 216;
    pub const LOCK_CONFLICT: i64 = 402;
    /// No such node, attribute, pool, tree, user.
    pub const RESOLVE_ERROR: i64 = 500;
    pub const ALREADY_EXISTS: i64 = 501;
    pub const MAX_CHILD_COUNT: i64 = 502;
    pub const MAX_STRING_LENGTH: i64 = 503;
    pub const MAX_ATTRIBUTE_SIZE: i64 = 504;
    pub const MAX_KEY_LENGTH: i64 = 505;
    pub const AUTHENTICATION: i64 = 900;
    pub const ACCESS_DENIED: i64 = 901;
    pub const ACCOUNT_LIMIT: i64 = 902;
    /// The user, or the address, asks too often. Clients try again later.
    pub const TOO_MANY_REQUESTS_OF_USER: i64 = 904;
    pub const PREREQUISITE_FAILED: i64 = 1000;
    pub const RESOURCE_OVERDRAFT: i64 = 1102;
    pub const WAITING_JOB_TIMEOUT: i64 = 1103;
    pub const ARTIFACT_COPYING_FAILED: i64 = 1107;
    pub const NODE_DIRECTORY_PREPARATION_FAILED: i64 = 1108;
    pub const NOT_ENOUGH_DISK_SPACE: i64 = 1112;
    pub const ARTIFACT_DOWNLOAD_FAILED: i64 = 1113;
    pub const JOB_PREPARATION_TIMEOUT: i64 = 1115;
    pub const JOB_PROXY_FAILED: i64 = 1120;
    pub const MEMORY_LIMIT_EXCEEDED: i64 = 1200;
    pub const JOB_TIME_LIMIT_EXCEEDED: i64 = 1202;
    pub const USER_JOB_FAILED: i64 = 1205;
    pub const JOB_NOT_RUNNING: i64 = 1208;
    pub const INTERRUPTION_UNSUPPORTED: i64 = 1209;
    pub const INTERRUPTION_TIMEOUT: i64 = 1210;
    pub const SHELL_EXITED: i64 = 1800;
    pub const SHELL_MANAGER_SHUT_DOWN: i64 = 1801;
    /// API: unknown operation id or alias.
    pub const API_NO_SUCH_OPERATION: i64 = 1915;
    pub const API_NO_SUCH_JOB: i64 = 1916;
    /// No such attribute of an operation.
    pub const NO_SUCH_ATTRIBUTE: i64 = 1920;
    pub const PROCESS_NON_ZERO_EXIT: i64 = 10000;
    pub const PROCESS_SIGNAL: i64 = 10001;
    pub const PROCESS_CANNOT_RESOLVE_BINARY: i64 = 10002;
    pub const PROCESS_CANNOT_START: i64 = 10003;
    pub const NO_SUCH_TRANSACTION: i64 = 11000;
}

/// An error tree as users see it. Messages are one line with parameters already substituted.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub struct Failure {
    /// See [`code`].
    pub code: i64,
    /// One line.
    pub message: String,
    /// Named details; clients print them.
    pub attributes: Map,
    /// Causes.
    pub inner_errors: Vec<Failure>,
}

impl Failure {
    /// An error with the generic code 1.
    pub fn new(message: impl Into<String>) -> Failure {
        Failure::coded(code::GENERIC, message)
    }
    /// An error with a code.
    pub fn coded(code: i64, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into(), attributes: Map::new(), inner_errors: Vec::new() }
    }
    /// Adds an attribute.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Failure {
        self.attributes.insert(name, value);
        self
    }
    /// Adds a cause.
    #[must_use]
    pub fn because(mut self, inner: Failure) -> Failure {
        self.inner_errors.push(inner);
        self
    }
    /// A resolve error (500).
    pub fn resolve(message: impl Into<String>) -> Failure {
        Failure::coded(code::RESOLVE_ERROR, message)
    }
    /// Is the code anywhere in the tree? This is how clients ask.
    pub fn contains_code(&self, wanted: i64) -> bool {
        self.code == wanted || self.inner_errors.iter().any(|e| e.contains_code(wanted))
    }
    /// Looks for an attribute in the whole tree, outermost first.
    pub fn find_attribute(&self, name: &str) -> Option<&Value> {
        self.attributes.get(name).or_else(|| self.inner_errors.iter().find_map(|e| e.find_attribute(name)))
    }
    /// `{code, message, attributes, inner_errors}` and no other keys: clients feed these to a
    /// constructor with exactly these names (http-api.md 3.1).
    pub fn to_value(&self) -> Value {
        yson::map! {
            "code" => self.code,
            "message" => self.message.as_str(),
            "attributes" => self.attributes.clone(),
            "inner_errors" => self.inner_errors.iter().map(Failure::to_value).collect::<Vec<_>>(),
        }
        .into()
    }
    /// Inverse of [`Failure::to_value`]; missing parts take defaults.
    pub fn from_value(value: &Value) -> Failure {
        Failure {
            code: value.get("code").and_then(Value::as_i64).unwrap_or(code::GENERIC),
            message: value.get("message").and_then(Value::as_str).unwrap_or_default().to_owned(),
            attributes: value.get("attributes").and_then(Value::as_map).cloned().unwrap_or_default(),
            inner_errors: value
                .get("inner_errors")
                .and_then(Value::as_list)
                .map(|l| l.iter().map(Failure::from_value).collect())
                .unwrap_or_default(),
        }
    }
}

/// The chain of messages on one line.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for (i, inner) in self.inner_errors.iter().enumerate() {
            write!(f, "{}{inner}", if i == 0 { ": " } else { "; " })?;
        }
        Ok(())
    }
}
