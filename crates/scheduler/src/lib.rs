//! Pool trees, operation counts, snapshots, heartbeat plans.
