//! The metadata tree: nodes, their attributes, links, access control lists.
//!
//! A [`Tree`] is read by `&self` and changed only through [`Tree::edit`], which runs any number of
//! commands all-or-nothing and gives back the records that changed:
//!
//! ```ignore
//! match tree.resolve(&path, Last::Follow)? {
//!     Resolved::Local(place) => tree.get(&place, &options),
//!     Resolved::Mount(mount) => /* the owner of the mount answers */,
//!     Resolved::Foreign(foreign) => /* an object that is not a node */,
//! }
//!
//! let done = tree.edit(Context { now, user, ids: &mut ids }, |edit| {
//!     let id = edit.create(&place, &CreateOptions::new(NodeType::MapNode))?;
//!     check_whatever(edit)?; // an error here takes everything back
//!     Ok(id)
//! })?;
//! store.commit(done.changes);
//! ```
//!
//! Architecture invariants: this crate does not know what any path means. Subtrees that somebody
//! else answers for are *mounts*: [`Tree::mount`] marks a node, and resolution stops there with the
//! steps that are left ([`Resolved::Mount`]). A mount that is "just YSON" is served by [`walk`]. It
//! enforces no permissions, it computes them ([`Tree::check_permission`]). It keeps no contents of
//! files, only the number of the blob; blobs that nobody refers to any more come out of an edit.
//! An edit is durable or it did not happen; transactions are views over the tree, and the tree
//! does not know of them ([`Forest`]).
//!
//! Large subtrees are removed in slices (`edit::discard`), and what one command reads or changes has a bound
//! ([`Limits`]): whoever owns the tree answers everybody in turn.
//!
//! Reading order: [`node`], [`resolve`], [`Tree`], [`read`], [`attributes`], then [`edit`] and what
//! is under it; [`walk`], [`acl`] and [`record`] stand on their own.
#![forbid(unsafe_code)]

pub mod accounts;
pub mod acl;
pub mod attributes;
pub mod edit;
pub mod expiration;
pub mod failures;
pub mod layout;
pub mod limits;
pub mod node;
pub mod read;
pub mod record;
pub mod resolve;
pub mod subjects;
pub mod transactions;
pub mod types;
pub mod walk;

mod tree;
mod weigh;

pub use accounts::{Payer, Usage};
pub use acl::{Ace, Acl, AclLink, Action, Decision, InheritanceMode, Permission, Subjects};
pub use edit::{
    Committed, Context, CopyOptions, CreateOptions, Edit, LinkOptions, RemoveOptions, SetOptions,
};
pub use expiration::Expiration;
pub use layout::Layout;
pub use limits::Limits;
pub use node::{Body, Chunk, Content, Node, TableContent};
pub use read::{GetOptions, list_reply};
pub use record::{Change, RestoreError};
pub use resolve::{Foreign, Last, MountId, Mounted, Place, Resolved};
pub use transactions::{Forest, Hold, LockOptions, Locked, StartOptions};
pub use tree::Tree;
pub use types::NodeType;
