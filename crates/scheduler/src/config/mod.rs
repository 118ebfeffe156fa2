//! Options of the scheduler, of trees and of pools (scheduling.md 18, fair-share.md 13).
//!
//! Each struct is typed, has the documented defaults and is made by `parse` from a YSON map;
//! `specified` holds the options that were given, under their canonical names and in their
//! canonical form, so that a caller can show them again. Every error names the option, the value
//! and what is allowed.

mod effective;
pub(crate) mod options;
mod pool;
mod scheduler;
mod tree;

pub use fairshare::{FifoSortParameter, GuaranteeType, Mode};
pub use options::OptionInfo;
pub use pool::{
    EphemeralSubpoolConfig, IntegralGuarantees, MAX_WEIGHT, MIN_WEIGHT, PoolConfig, fifo_parameter_name,
    guarantee_type_name, mode_name,
};
pub use scheduler::{NamePattern, SchedulerConfig};
pub use tree::{BatchScheduling, PriorityScope, ROOT_NAME, TreeConfig};
