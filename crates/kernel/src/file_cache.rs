//! The cache of files that clients upload for their jobs (http-api.md 8.3): files by their checksums.

use crate::{Effect, Kernel};
use cypress::{Body, CopyOptions, Last, Place, Resolved};
use vocab::{Failure, ObjectId, Time};
use yson::Value;
use yson::ypath::YPath;

/// `<cache>/<last two digits>/<checksum>`.
pub(crate) fn place_in(cache: &YPath, md5: &str) -> YPath {
    let shelf = md5.get(md5.len().saturating_sub(2)..).unwrap_or(md5);
    cache.clone().child(shelf).child(md5)
}

impl Kernel {
    /// `get_file_from_cache`: the path of the file, empty if it is not there.
    pub(crate) fn get_file_from_cache(&self, md5: &str, cache: &YPath) -> Result<Value, Failure> {
        let path = place_in(cache, md5);
        let found = match self.tree.resolve(&path, Last::Follow)? {
            Resolved::Local(Place { node, rest }) if rest.is_empty() => self.is_file_with(node, md5),
            _ => false,
        };
        Ok(if found { path.text().into() } else { "".into() })
    }

    /// `put_file_to_cache`: the file becomes one of the cache; its new path. Two clients that upload
    /// the same file both succeed.
    pub(crate) fn put_file_to_cache(
        &mut self,
        now: Time,
        user: &str,
        (path, md5, cache): (&YPath, &str, &YPath),
        preserve_expiration_timeout: bool,
        out: &mut Vec<Effect>,
    ) -> Result<Value, Failure> {
        let from = self.resolve_local(path, Last::Follow, "put_file_to_cache")?;
        if !from.rest.is_empty() {
            return Err(self.tree.missing(&from));
        }
        self.file_with(from.node, md5)?;
        let target = place_in(cache, md5);
        let to = self.resolve_local(&target, Last::Stay, "put_file_to_cache")?;
        // Whatever else is there is not the file.
        let kept = to.rest.is_empty() && self.is_file_with(to.node, md5);
        let options = CopyOptions {
            recursive: true,
            force: true,
            preserve_expiration_timeout,
            ..CopyOptions::default()
        };
        self.edit(now, user, out, |edit| {
            let id = if kept { to.node } else { edit.copy(&from, &to, options)? };
            let touched = yson::map! { "touch_time" => now };
            edit.multiset_attributes(&Place { node: id, rest: Vec::new() }, touched)
        })?;
        Ok(target.text().into())
    }

    /// Does the cache keep this node as the file of that checksum?
    pub(crate) fn is_file_with(&self, node: ObjectId, md5: &str) -> bool {
        self.file_with(node, md5).is_ok()
    }

    /// A file whose checksum was computed and is this one.
    fn file_with(&self, node: ObjectId, md5: &str) -> Result<(), Failure> {
        let path = || self.tree.path(node);
        let found = self.tree.expect_node(node)?;
        let Body::File(content) = &found.body else {
            let message = format!("{} is of type {}, expected a file", path(), found.node_type.name());
            return Err(Failure::new(message).with("path", path()));
        };
        match content.as_ref().and_then(|content| content.md5.as_deref()) {
            Some(found) if found == md5 => Ok(()),
            Some(found) => {
                let message = format!("File {} has the checksum {found}, expected {md5}", path());
                Err(Failure::new(message).with("path", path()))
            }
            None => {
                let message = format!("File {} has no checksum: write it with \"compute_md5\"", path());
                Err(Failure::new(message).with("path", path()))
            }
        }
    }
}
