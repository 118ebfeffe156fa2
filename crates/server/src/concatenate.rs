//! `concatenate` of files: their contents are copied one behind another into a new one.

use crate::backend::{ServerBackend, wait};
use crate::files::{ATTEMPTS, Written, turn};
use api::BoxFuture;
use kernel::{Body, Command, FileParts, Joined};
use vocab::{Failure, Guid, code};
use yson::Value;

impl ServerBackend {
    /// Asks the kernel, which does it at once with tables.
    pub(crate) fn concatenate(
        &self,
        user: String,
        mutation_id: Option<Guid>,
        command: Command,
    ) -> BoxFuture<Result<Value, Failure>> {
        let asked = self.ask(user.clone(), mutation_id, command.clone());
        let this = self.clone();
        Box::pin(async move {
            if let Body::FilesToJoin(parts) = wait(asked?).await? {
                this.join_files(user, mutation_id, command, parts).await?;
            }
            Ok(Value::Entity)
        })
    }

    async fn join_files(
        &self,
        user: String,
        mutation_id: Option<Guid>,
        command: Command,
        parts: FileParts,
    ) -> Result<(), Failure> {
        // One after another: a request that is repeated while it is being done waits, and finds it done.
        let _turn = turn(parts.destination).await;
        let ask = |command: Command| self.ask(user.clone(), mutation_id, command);
        let mut answer = wait(ask(command.clone())?).await?;
        let path = format!("#{}", parts.destination);
        let mut attempts = 0..ATTEMPTS;
        while let Body::FilesToJoin(FileParts { contents, room, replaced, .. }) = answer {
            if attempts.next().is_none() {
                let message = format!(
                    "The files were changed {ATTEMPTS} times while they were joined: try again later"
                );
                return Err(Failure::coded(code::LOCK_CONFLICT, message));
            }
            let room = self.files.rooms().open(path.clone(), Some(&room.into()), replaced);
            answer = match self.files.join(&contents, false, room).await {
                Ok(Written { blob, size, room, .. }) => {
                    let change = command.clone().with_joined(Joined { of: contents, blob, size });
                    self.files.settle(ask(change), blob, room).await?
                }
                Err(failure) => match wait(ask(command.clone())?).await? {
                    Body::FilesToJoin(now) if now.contents == contents => return Err(failure),
                    // A content was replaced while it was read: then the new one.
                    now => now,
                },
            };
        }
        Ok(())
    }
}
