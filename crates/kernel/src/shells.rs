//! Shells beside running jobs (http-api.md 8.7): who may have one, and where the job is. What is typed and
//! printed goes past the kernel.

use crate::jobs::no_such_job;
use crate::{Kernel, NodeKey, Operation};
use vocab::{Failure, JobId, code};
use yson::Value;

impl Kernel {
    /// Where the shells of a job are: `{node, secrets}`, the connection of its node and whether a shell
    /// may see the operation's secure vault.
    pub(crate) fn locate_job_shell(
        &self,
        user: &str,
        job_id: JobId,
        shell_name: Option<&str>,
    ) -> Result<Value, Failure> {
        let job = self.jobs.get(job_id).ok_or_else(|| no_such_job(job_id))?;
        let operation = self.operations.get(&job.operation).ok_or_else(|| no_such_job(job_id))?;
        if let Some(name) = shell_name {
            self.check_owner_of_shell(user, name, operation).map_err(|e| e.with("job_id", job_id))?;
        }
        let Some(NodeKey(node)) = self.nodes.get(&job.node).and_then(|node| node.key) else {
            let text = format!("Node {:?} of job {job_id} is away at the moment", job.node);
            return Err(Failure::coded(code::TIMEOUT, text).with("job_id", job_id));
        };
        let secrets = operation.spec.spec.root.enable_secure_vault_variables_in_job_shell;
        Ok(yson::map! {"node" => node, "secrets" => secrets}.into())
    }

    /// The same for a new shell, which is an event: somebody looks into the work of somebody.
    pub(crate) fn open_job_shell(
        &mut self,
        user: &str,
        job_id: JobId,
        shell_name: Option<&str>,
        command: Option<&str>,
    ) -> Result<Value, Failure> {
        let located = self.locate_job_shell(user, job_id, shell_name)?;
        let job = self.jobs.get(job_id);
        let fields = yson::map! {"job_id" => job_id, "user" => user}
            .with_some("operation_id", job.map(|job| job.operation))
            .with_some("node_address", job.map(|job| job.node.clone()))
            .with_some("shell_name", shell_name)
            .with_some("command", command);
        self.log("job_shell_opened", fields);
        Ok(located)
    }

    /// Is this shell for people that the specification names?
    pub(crate) fn shell_has_owners(&self, job_id: JobId, shell_name: Option<&str>) -> bool {
        let operation = self.jobs.get(job_id).and_then(|job| self.operations.get(&job.operation));
        operation.zip(shell_name).is_some_and(|(operation, name)| operation.owners_of_shell(name).is_some())
    }

    /// Shells with a name are for their own owners (jobs-and-nodes.md 5.5, 8.1).
    fn check_owner_of_shell(&self, user: &str, name: &str, operation: &Operation) -> Result<(), Failure> {
        let known = operation.job_shell_names();
        if !known.contains(&name) {
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Failure::new(format!(
                "No such job shell {name:?}: option \"job_shells\" of the spec has {known}"
            )));
        }
        let Some(owners) = operation.owners_of_shell(name) else { return Ok(()) };
        let who = self.who(user);
        if who.is_superuser() || owners.iter().filter_map(Value::as_str).any(|owner| who.is(owner)) {
            return Ok(());
        }
        Err(Failure::coded(
            code::ACCESS_DENIED,
            format!("User {user:?} is not an owner of job shell {name:?}"),
        )
        .with("user", user))
    }
}
