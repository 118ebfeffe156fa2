//! Bugs that are planted in test builds, one for each family of what must hold beside the invariants of the
//! core: fault simulation must find them by name. In any other build there are none.

/// See the module page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Planted {
    /// A store acknowledges a batch that it does not keep.
    LostBatch,
    /// The end of a job does not get into the log.
    LostEvent,
    /// What nodes say of their jobs is never heard.
    DeafServer,
    /// A node counts its cores twice.
    TwiceTheCores,
}

/// Does the bug strike on this occasion? On one of so many.
#[cfg(not(test))]
pub(crate) fn strikes(_: Planted, _every: u64) -> bool {
    false
}

#[cfg(test)]
pub(crate) use on::strikes;

#[cfg(test)]
mod on {
    use super::Planted;
    use std::cell::Cell;

    thread_local! {
        /// The bug of this thread, and how many occasions it had.
        static BUG: Cell<Option<(Planted, u64)>> = const { Cell::new(None) };
    }

    pub(crate) fn strikes(bug: Planted, every: u64) -> bool {
        BUG.with(|cell| match cell.get() {
            Some((planted, occasions)) if planted == bug => {
                cell.set(Some((planted, occasions + 1)));
                (occasions + 1).is_multiple_of(every)
            }
            _ => false,
        })
    }

    /// The first violation in the stories of so many seeds.
    fn found(bug: Option<Planted>, seeds: u64) -> Option<String> {
        let folder = tempfile::tempdir().expect("a directory");
        let first = (0..seeds).find_map(|seed| {
            BUG.set(bug.map(|bug| (bug, 0)));
            let story = crate::soak::play(seed, folder.path()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            story.ran.violations.into_iter().next()
        });
        BUG.set(None);
        first
    }

    fn is_found(bug: Planted, name: &str) {
        let found = found(Some(bug), 40);
        assert!(found.as_ref().is_some_and(|what| what.contains(name)), "{bug:?}: {found:?}");
    }

    #[test]
    fn a_store_that_loses_batches() {
        is_found(Planted::LostBatch, "UNIT-1");
    }

    #[test]
    fn a_log_that_loses_events() {
        is_found(Planted::LostEvent, "UNIT-2");
    }

    #[test]
    #[cfg_attr(debug_assertions, ignore = "four hours of a stuck cluster: in a release build")]
    fn a_server_that_does_not_listen() {
        is_found(Planted::DeafServer, "LIVE-1");
    }

    #[test]
    fn a_node_that_counts_its_cores_twice() {
        is_found(Planted::TwiceTheCores, "NODE-1");
    }
}
