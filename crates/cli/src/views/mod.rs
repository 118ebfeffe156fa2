//! Answers of the server as pictures. Every view reads values leniently: a field that is not there is
//! a dash, not an error, so that an older command line can look at a newer server.

mod comparisons;
mod event;
mod explanation;
mod jobs;
mod node_identities;
mod node_list;
mod operation;
mod operations;
mod pool_list;
mod pools;
mod preemptions;
mod read;
mod table;
mod tokens;
mod top;
mod values;

pub use comparisons::{ComparisonTable, ShareTable, VariantTable};
pub use event::{audit_line, event_line};
pub use explanation::{JobExplanation, OperationExplanation, PoolExplanation};
pub use jobs::{JobCard, JobTable, Logs, LogsOfJob};
pub use node_identities::IdentityTable;
pub use node_list::NodeTable;
pub use operation::OperationCard;
pub use operations::OperationTable;
pub use pool_list::PoolTable;
pub use pools::{POOL_FIELDS, PoolForest, PoolRow, ROOT};
pub use preemptions::PreemptionTable;
pub use read::{error_of, find, integer, number, text};
pub use tokens::TokenTable;
pub use top::{TopView, draw};
pub use values::{Done, Names, Scalar, Tree};
