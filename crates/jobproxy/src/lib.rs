//! The process beside each job: starts, feeds, measures, guards, reports.
