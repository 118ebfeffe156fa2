//! Commands that the API answers by itself (http-api.md 8.1, 8.4, 8.9).

use super::params::{Params, Result, required};
use crate::job_commands::job_traces;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};
use yson::{Map, Value};

/// What these commands know of the request.
pub struct Local<'a> {
    /// Who asks.
    pub user: &'a str,
    /// Version of the server.
    pub version: &'a str,
    /// `host:port` under which clients reach this server.
    pub address: &'a str,
}

pub(super) fn parse_ypath(_: &Local<'_>, params: &Params) -> Result<Value> {
    let path = required("path", params.path("path"))?;
    Ok(yson::map! {"path" => path.to_value()}.into())
}

pub(super) fn list_job_traces(_: &Local<'_>, params: &Params) -> Result<Value> {
    job_traces(params)?;
    Ok(yson::map! {"traces" => Value::List(Vec::new())}.into())
}

pub(super) fn get_current_user(local: &Local<'_>, _: &Params) -> Result<Value> {
    Ok(yson::map! {"user" => local.user}.into())
}

pub(super) fn get_version(local: &Local<'_>, _: &Params) -> Result<Value> {
    Ok(yson::map! {"version" => local.version}.into())
}

pub(super) fn get_supported_features(_: &Local<'_>, _: &Params) -> Result<Value> {
    let primitive_types = [
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "string", "double",
        "boolean", "any",
    ];
    let features = yson::map! {
        "primitive_types" => primitive_types.to_vec(),
        "compression_codecs" => vec!["none"],
        "erasure_codecs" => vec!["none"],
        "operation_statistics_descriptions" => Map::new(),
        // There are no queries.
        "query_memory_limit_in_tablet_nodes" => false,
        "require_password_in_authentication_commands" => false,
    };
    Ok(yson::map! {"features" => features}.into())
}

/// The last one that was given, of this process.
static LAST_TIMESTAMP: AtomicU64 = AtomicU64::new(0);

/// Seconds since 1970 in the upper bits, and below them a number that makes each larger than all before it, also
/// those before a restart: nobody asks a billion times in a second.
pub(super) fn generate_timestamp(_: &Local<'_>, _: &Params) -> Result<Value> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let next = |last: u64| (seconds << 30).max(last + 1);
    let last = LAST_TIMESTAMP.fetch_update(Relaxed, Relaxed, |last| Some(next(last)));
    Ok(yson::map! {"timestamp" => last.map_or_else(next, next)}.into())
}

pub(super) fn discover_proxies(local: &Local<'_>, _: &Params) -> Result<Value> {
    Ok(yson::map! {"proxies" => vec![local.address]}.into())
}
