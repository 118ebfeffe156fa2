//! Cgroups and processes: how the processes of one job are started, bounded, measured and killed.
//!
//! Start at [`environment`]: [`JobEnvironment`] makes a [`Container`] for a job, `Container::spawn`
//! starts the user's process *inside* it, `kill_all` returns when no process of the job is left, and
//! `destroy` removes what `create` made. Nothing runs in the background and nothing is remembered:
//! a container is found again by its job id ([`JobEnvironment::reopen`]) from any process.
//!
//! What a job sees of the host is another question, and the same for all drivers: [`isolation`] says it as
//! data, `init` carries it out in namespaces of the job's own, `privileges` takes away what is left.
//!
//! Not here: what a job is, when it must end, what an error is called. That is the job proxy's.
//!
//! # Layout (jobs-and-nodes.md 4.3, 4.4)
//!
//! ```text
//! <mount>/<root group>/             root group given by the caller: millpond/<node name>
//!     proxies/                      all job proxies of the node (tracking and memory hierarchies)
//!     jobs/<job id>/                the user's processes of one job
//! ```
//!
//! The specification has two groups per job, `proxy` and `user`. Here the proxies share one group,
//! and a job has one group per needed hierarchy: a group costs a mkdir and an rmdir, which is where
//! the time of a short job goes. A proxy is one process with a known pid and start time; its memory
//! and CPU come from `/proc` and `getrusage`, it needs no group to be tracked or killed.
//!
//! Measured (kernel 6.18, hybrid, idle machine, microseconds): fork + exec + wait of a small program
//! 700; mkdir + rmdir of a group 20 (v2), 25 (cpu), 15 (pids), 50..80 (memory), 40 (freezer); joining
//! an existing group 10..60 when the *child* writes `0` into v1 `tasks` (a write to `cgroup.procs`, or
//! by someone else, takes a lock that every fork and exit of the machine shares); being born in a v2
//! group with `CLONE_INTO_CGROUP` is not measurable; one write or read of a control file 2,
//! `memory.stat` 5. So one job's groups cost 15 to 20 % of one process start; recycling them was not
//! worth the counters that would have to be taken as differences. The whole path (fork of the proxy,
//! groups, user's process, records, messages) takes 1.6 times the CPU of a bare spawn and wait with
//! `simple`, 2.1 times with `hybrid` and `cgroup_v1` (benchmark `jobs` of the job proxy). Isolation adds
//! the CPU of about one more bare spawn: a fork, clone3 with four namespaces 240, some thirty steps of 5
//! to 40 each, of which the file systems in memory are the dearest, and the same again when they end.
//!
//! The only crate of the project with `unsafe`: see [`sys`], [`spawn`] and [`quota`].
#![allow(unsafe_code)]

// In reading order; blank lines keep the formatter from sorting.
pub mod environment;

mod cgroups;

mod tracking;

mod group;
mod knobs_v1;
mod knobs_v2;
mod mounts;

mod oci;
mod rootless;
mod simple;

pub mod isolation;

mod init;
mod privileges;
mod sealed;

pub mod spawn;

pub mod quota;
pub mod volumes;

pub mod process;
pub mod sys;

pub use environment::{
    BlockIo, CageError, Capabilities, Container, CpuUsage, Driver, EnvironmentConfig, JobEnvironment,
    JobLimits, MemoryUsage, open,
};
pub use isolation::{Bind, Isolation, RootFs};
pub use privileges::leave_abstract_sockets;
pub use process::{ProcessId, ProcessInfo};
pub use spawn::{ProcessSpec, Spawned};
