//! Files of jobs: `file_paths` of a spec become contents that nodes can fetch.

use crate::operation::{Pinned, unknown_payer};
use crate::{Kernel, NodeProof};
use controller::spec::FileRequest;
use cypress::{Body, Content};
use std::sync::Arc;
use vocab::{Artifact, Failure, ObjectId, Time, code};
use yson::ypath::YPath;
use yson::{Map, Value};

impl Kernel {
    /// Resolves the files of one task, with the eyes of a user.
    pub(crate) fn resolve_files(
        &self,
        user: &str,
        task: u32,
        files: &[FileRequest],
    ) -> Result<Vec<Pinned>, Failure> {
        let mut pinned = Vec::new();
        for request in files {
            self.demand_file(user, &request.path)?;
            pinned.push(self.resolve_file(user, task, request)?);
        }
        Ok(pinned)
    }

    /// Files that are not for this user are refused with the call; those that are missing fail the
    /// operation when it is prepared.
    pub(crate) fn refuse_secret_files(
        &self,
        user: &str,
        parsed: &controller::spec::ParsedSpec,
    ) -> Result<(), Failure> {
        for request in parsed.spec.tasks.iter().flat_map(|task| &task.script.files) {
            match self.demand_file(user, &request.path) {
                Err(failure) if failure.code == code::ACCESS_DENIED => return Err(failure),
                _ => {}
            }
        }
        Ok(())
    }

    fn resolve_file(&self, user: &str, task: u32, request: &FileRequest) -> Result<Pinned, Failure> {
        let located = self.locate_file(&request.path)?;
        let number = |key: &str| located.get(key).and_then(Value::as_u64).unwrap_or_default();
        let text = |key: &str| located.get(key).and_then(Value::as_str).map(str::to_owned);
        let file_id: ObjectId = text("id")
            .and_then(|id| id.parse().ok())
            .ok_or_else(|| Failure::new("Malformed id of a file"))?;
        let file_name = request.file_name.clone().or_else(|| text("file_name")).or_else(|| text("key"));
        let executable = request
            .executable
            .unwrap_or_else(|| located.get("executable").and_then(Value::as_bool).unwrap_or(false));
        let artifact = Artifact {
            file_id,
            revision: number("revision"),
            size: number("size"),
            file_name: file_name.unwrap_or_else(|| file_id.to_string()),
            executable,
            bypass_cache: request.bypass_artifact_cache,
        };
        let payer = self.tree.payer(file_id).unwrap_or_else(|| Arc::new(unknown_payer(user)));
        Ok(Pinned { task, artifact, blob: number("blob"), payer })
    }

    /// A file by its path, and its content if it was ever written.
    pub(crate) fn file(&self, path: &YPath) -> Result<(ObjectId, Option<&Content>), Failure> {
        let (id, node) = self.tree_node(path, "a file")?;
        match &node.body {
            Body::File(content) => Ok((id, content.as_ref())),
            _ => Err(self.unexpected(id, "a file")),
        }
    }

    /// `{id, key, revision, blob, size, room, md5, executable, file_name}` of a file node.
    pub(crate) fn locate_file(&self, path: &YPath) -> Result<Value, Failure> {
        let (id, content) = self.file(path)?;
        let node = self.tree.expect_node(id)?;
        let attribute = |name: &str| node.user_attributes.get(name).cloned();
        let mut map: Map = yson::map! {
            "id" => id,
            "key" => Value::String(node.key.clone()),
            "revision" => node.content_revision,
            "blob" => content.map_or(0, |c| c.blob),
            "size" => content.map_or(0, |c| c.size),
            "room" => self.disk_room(id),
        };
        map = map
            .with_some("md5", content.and_then(|c| c.md5.clone()))
            .with_some("executable", attribute("executable"))
            .with_some("file_name", attribute("file_name"));
        Ok(map.into())
    }

    /// Names of the limits that more bytes of a node count towards, each with the bytes that are left.
    pub(crate) fn disk_room(&self, id: ObjectId) -> Map {
        self.tree.disk_room(id).into_iter().collect()
    }

    /// A content that some unfinished operation has pinned, though the file may be another by now. A node gets it for a job of
    /// its own only.
    pub(crate) fn locate_artifact(
        &self,
        now: Time,
        from: &NodeProof,
        file_id: ObjectId,
        revision: u64,
    ) -> Result<Value, Failure> {
        let mut pinned = self.operations.values().flat_map(|o| &o.pinned);
        let found = pinned
            .find(|p| p.artifact.file_id == file_id && p.artifact.revision == revision)
            .ok_or_else(|| {
                Failure::resolve(format!(
                    "No unfinished operation needs revision {revision} of file {file_id}"
                ))
            })?;
        if self.config.node_identities && !self.is_file_of_caller(now, from, found) {
            // A job of the life before may be reported in a moment.
            return Err(Failure::coded(
                code::UNAVAILABLE,
                format!("No job of this node needs revision {revision} of file {file_id}"),
            ));
        }
        Ok(Value::Map(yson::map! { "blob" => found.blob, "size" => found.artifact.size }))
    }

    /// Contents that files and tables, transactions and unfinished operations refer to: the others in the store are garbage.
    pub fn blobs(&self) -> impl Iterator<Item = u64> {
        self.tree.all_blobs()
    }
}
