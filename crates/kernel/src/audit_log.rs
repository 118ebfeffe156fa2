//! The audit log: events `audit` of the event log.
//!
//! - Every change that a user asked for and got: the user, the command, and the value before and after. The start of an
//!   operation has an event of its own already.
//! - With `denied`: changes that were refused because the user may not make them, and passwords and tokens that were
//!   refused.

use crate::command::{Command, OperationRef};
use crate::{Body, Kernel, RefusedSignIn};
use cypress::{GetOptions, Last, Resolved};
use vocab::{Failure, Time};
use yson::ypath::{Step, YPath};
use yson::{Map, Value};

/// Longer values are not written out.
const LIMIT: usize = 4 << 10;

/// A change that is about to be made.
pub(crate) struct Audited {
    action: &'static str,
    /// What shows the change, if something does.
    view: Option<View>,
    details: Map,
    before: Option<Value>,
}

impl Audited {
    /// Says why it is made, when nobody has asked for it.
    pub(crate) fn because(self, reason: &str) -> Audited {
        Audited { details: self.details.with("reason", reason), ..self }
    }
}

#[derive(Clone)]
enum View {
    Path(YPath),
    Parameters(OperationRef),
}

impl Kernel {
    /// What is to be remembered of a change, before it is made.
    pub(crate) fn before_change(&self, now: Time, command: &Command) -> Option<Audited> {
        if !self.events.is_enabled() {
            return None;
        }
        let (action, view, details) = describe(command)?;
        let before = view.as_ref().and_then(|view| self.view(now, view));
        Some(Audited { action, view, details, before })
    }

    /// Writes down a change that was made.
    pub(crate) fn after_change(&mut self, now: Time, user: &str, audited: Audited) {
        let after = audited.view.as_ref().and_then(|view| self.view(now, view));
        let fields = yson::map! {"user" => user, "action" => audited.action}
            .into_iter()
            .chain(audited.details)
            .chain(
                Map::new()
                    .with_some("transaction_id", self.tree.entered())
                    .with_some("before", audited.before)
                    .with_some("after", after),
            )
            .map(|(name, value)| (name, brief(value)));
        self.log("audit", fields.collect());
    }

    /// Writes down a change that was refused. `change` is from [`denied_change`]; `None` is not audited.
    pub(crate) fn log_denial(&mut self, user: &str, change: Option<(&'static str, Map)>, failure: &Failure) {
        let Some((action, details)) = change.filter(|_| self.events.is_enabled()) else { return };
        let fields = yson::map! {"user" => user, "action" => action}
            .into_iter()
            .chain(details)
            .chain(yson::map! {"denied" => true, "error" => failure.to_value()})
            .map(|(name, value)| (name, brief(value)));
        self.log("audit", fields.collect());
    }

    /// Writes down a password or token that was refused.
    pub(crate) fn log_refused_sign_in(&mut self, refused: RefusedSignIn) {
        let RefusedSignIn { shown, user, address, error, retry_after, unreported } = refused;
        let fields = Map::new()
            .with_some("user", user)
            .with("action", "sign_in")
            .with("shown", shown)
            .with_some("address", address.map(|address| address.to_string()))
            .with("denied", true)
            .with("error", error.to_value())
            .with_some("retry_after", retry_after.map(|span| span.as_millis() as i64))
            .with_some("unreported", (unreported > 0).then_some(unreported));
        self.log("audit", fields);
    }

    /// Not a whole subtree.
    fn is_one_value(&self, path: &YPath) -> bool {
        let is_attribute = path.steps.iter().any(|step| matches!(step, Step::Attribute(_)));
        is_attribute
            || matches!(self.tree.resolve(path, Last::Follow), Ok(Resolved::Local(place))
                if self.tree.node(place.node).is_some_and(|n| matches!(n.body, cypress::Body::Scalar(_) | cypress::Body::Document(_))))
    }

    /// A value, if it is there.
    fn view(&self, now: Time, view: &View) -> Option<Value> {
        let value = match view {
            View::Parameters(operation) => {
                let id = self.find_operation(operation).ok()?;
                self.operations.get(&id)?.runtime_parameters().into()
            }
            View::Path(path) if self.is_one_value(path) => {
                match self.get(now, path, GetOptions::default(), None) {
                    (_, Ok(Body::Value(value))) => value,
                    _ => return None,
                }
            }
            View::Path(_) => return None,
        };
        Some(value)
    }
}

/// Not the large ones: their size says that they were there.
fn brief(value: Value) -> Value {
    let size = yson::to_binary(&value).len();
    if size <= LIMIT { value } else { format!("({size} bytes)").into() }
}

/// Name and details of a change, for [`Kernel::log_denial`]; `None` for commands that change nothing.
pub(crate) fn denied_change(command: &Command) -> Option<(&'static str, Map)> {
    let at = |path: &YPath| yson::map! {"path" => path.text()};
    match command.inner() {
        // The upload that is refused before it begins.
        Command::LocateFile { path, to_write: true } => Some(("write_file", at(path))),
        Command::LocateTable { path, to_write: true } => Some(("write_table", at(path))),
        // The change that is refused before it is prepared.
        Command::Authorize(command) => denied_change(command),
        Command::StartOperation { operation_type, spec } => {
            let details = yson::map! {"type" => *operation_type}
                .with_some("pool", spec.get("pool").filter(|pool| pool.as_str().is_some()).cloned());
            Some(("start_operation", details))
        }
        Command::StartReadOperation(parsed) => {
            let details = yson::map! {"type" => parsed.spec.operation_type}
                .with_some("pool", parsed.spec.scheduling.pool.as_deref());
            Some(("start_operation", details))
        }
        Command::OpenJobShell { job_id, shell_name, .. } => {
            let details = yson::map! {"job_id" => *job_id}.with_some("shell_name", shell_name.as_deref());
            Some(("open_job_shell", details))
        }
        Command::Lock { path, .. } => Some(("lock", at(path))),
        Command::Unlock { path } => Some(("unlock", at(path))),
        Command::PingTransaction { transaction, .. } => {
            Some(("ping_transaction", yson::map! {"transaction_id" => *transaction}))
        }
        Command::StartTransaction(_) => Some(("start_transaction", Map::new())),
        // Its attributes may be long, and are not set.
        Command::Create { object_type, path: None, attributes, .. } => {
            let name = attributes.get("name").filter(|name| name.as_str().is_some()).cloned();
            Some(("create", yson::map! {"type" => object_type.as_str()}.with_some("name", name)))
        }
        command => describe(command).map(|(action, _, details)| (action, details)),
    }
}

/// Name of the command, what shows the change, and its own words; none for what is not audited.
fn describe(command: &Command) -> Option<(&'static str, Option<View>, Map)> {
    let at = |path: &YPath| (Some(View::Path(path.clone())), yson::map! {"path" => path.text()});
    let of = |operation: &OperationRef| {
        let name = match operation {
            OperationRef::Id(id) => id.to_string(),
            OperationRef::Alias(alias) => alias.clone(),
        };
        yson::map! {"operation" => name}
    };
    let (action, (view, details)) = match command {
        Command::Set { path, .. } => ("set", at(path)),
        Command::MultisetAttributes { path, attributes } => {
            let names: Vec<String> = attributes.key_strings().collect();
            let (view, details) = at(path);
            ("multiset_attributes", (view, details.with("attributes", names)))
        }
        Command::Create { object_type, path: Some(path), .. } => {
            let (view, details) = at(path);
            ("create", (view, details.with("type", object_type.as_str())))
        }
        Command::Create { object_type, attributes, .. } => {
            let details = yson::map! {"type" => object_type.as_str(), "attributes" => attributes.clone()};
            ("create", (None, details))
        }
        Command::Remove { path, .. } => ("remove", at(path)),
        Command::CopyMove { source, destination, remove_source, .. } => {
            let details = yson::map! {"source" => source.text(), "path" => destination.text()};
            (if *remove_source { "move" } else { "copy" }, (None, details))
        }
        Command::Link { target, link, .. } => {
            ("link", (None, yson::map! {"target" => target.text(), "path" => link.text()}))
        }
        Command::FileWritten { path, size, .. } => {
            ("write_file", (None, yson::map! {"path" => path.text(), "size" => *size}))
        }
        Command::TableWritten { path, rows } => {
            let count = rows.chunks.iter().map(|c| c.rows).sum::<u64>();
            let details = yson::map! {"path" => path.text(), "row_count" => count, "append" => rows.append};
            ("write_table", (None, details))
        }
        Command::AlterTable { path, schema } => {
            ("alter_table", (None, yson::map! {"path" => path.text(), "schema" => schema.clone()}))
        }
        Command::Concatenate { sources, destination, append, joined } => {
            let sources: Vec<String> = sources.iter().map(YPath::text).collect();
            let details =
                yson::map! {"sources" => sources, "path" => destination.text(), "append" => *append};
            ("concatenate", (None, details.with_some("size", joined.as_ref().map(|joined| joined.size))))
        }
        Command::PutFileToCache { path, cache_path, .. } => {
            let details = yson::map! {"path" => path.text(), "cache_path" => cache_path.text()};
            ("put_file_to_cache", (None, details))
        }
        Command::CommitTransaction { transaction } => {
            ("commit_transaction", (None, yson::map! {"transaction_id" => *transaction}))
        }
        Command::AbortTransaction { transaction } => {
            ("abort_transaction", (None, yson::map! {"transaction_id" => *transaction}))
        }
        Command::AbortOperation { operation, .. } => ("abort_operation", (None, of(operation))),
        Command::SuspendOperation { operation, .. } => ("suspend_operation", (None, of(operation))),
        Command::ResumeOperation { operation } => ("resume_operation", (None, of(operation))),
        Command::CompleteOperation { operation } => ("complete_operation", (None, of(operation))),
        Command::UpdateOperationParameters { operation, .. } => {
            ("update_operation_parameters", (Some(View::Parameters(operation.clone())), of(operation)))
        }
        Command::PatchOperationSpec { operation, patches } => {
            let patches: Map = patches.iter().map(|(path, value)| (path.as_str(), value.clone())).collect();
            ("patch_operation_spec", (None, of(operation).with("patches", patches)))
        }
        Command::AbortJob { job_id, .. } => ("abort_job", (None, yson::map! {"job_id" => *job_id})),
        Command::AbandonJob { job_id, .. } => ("abandon_job", (None, yson::map! {"job_id" => *job_id})),
        Command::TransferPoolResources { source_pool, destination_pool, pool_tree, resource_delta } => {
            let details = yson::map! {
                "source_pool" => source_pool.as_str(),
                "destination_pool" => destination_pool.as_str(),
                "pool_tree" => pool_tree.as_str(),
                "resource_delta" => resource_delta.clone(),
            };
            ("transfer_pool_resources", (None, details))
        }
        Command::TransferAccountResources { source_account, destination_account, resource_delta } => {
            let details = yson::map! {
                "source_account" => source_account.as_str(),
                "destination_account" => destination_account.as_str(),
                "resource_delta" => resource_delta.clone(),
            };
            ("transfer_account_resources", (None, details))
        }
        Command::AddMember { group, member } => {
            ("add_member", (None, yson::map! {"group" => group.as_str(), "member" => member.as_str()}))
        }
        Command::RemoveMember { group, member } => {
            ("remove_member", (None, yson::map! {"group" => group.as_str(), "member" => member.as_str()}))
        }
        Command::IssueToken { user, token_sha256, .. } => (
            "issue_token",
            (None, yson::map! {"of" => user.as_str(), "token_sha256" => token_sha256.as_str()}),
        ),
        Command::RotateToken { user, old_sha256, token_sha256, .. } => {
            let details = yson::map! {
                "of" => user.as_str(),
                "old_sha256" => old_sha256.as_str(),
                "token_sha256" => token_sha256.as_str(),
            };
            ("rotate_token", (None, details))
        }
        Command::RevokeToken { user, token_sha256 } => (
            "revoke_token",
            (None, yson::map! {"of" => user.as_str(), "token_sha256" => token_sha256.as_str()}),
        ),
        Command::CreateJoinToken { token_sha256, name, ttl, replace } => {
            let details = yson::map! {"token_sha256" => token_sha256.as_str(), "replace" => *replace}
                .with_some("node", name.as_deref())
                .with_some("ttl", ttl.map(|ttl| ttl.as_millis()));
            ("create_join_token", (None, details))
        }
        Command::RevokeJoinToken { token_sha256 } => {
            ("revoke_join_token", (None, yson::map! {"token_sha256" => token_sha256.as_str()}))
        }
        Command::ApproveNode { name, key_sha256 } => {
            let details = yson::map! {"node" => name.as_str()};
            ("approve_node", (None, details.with_some("key_sha256", key_sha256.as_deref())))
        }
        Command::RevokeNode { name } => ("revoke_node", (None, yson::map! {"node" => name.as_str()})),
        Command::CollectGarbage => ("gc_collect", (None, Map::new())),
        Command::ExtendLeases { period } => {
            ("extend_leases", (None, yson::map! {"period" => period.as_millis() as i64}))
        }
        Command::RemoveNode { address, lost } => {
            ("remove_node", (None, yson::map! {"address" => address.as_str(), "lost" => *lost}))
        }
        Command::SetUserPassword { user, .. } => {
            ("set_user_password", (None, yson::map! {"of" => user.as_str()}))
        }
        _ => return None,
    };
    Some((action, view, details))
}
