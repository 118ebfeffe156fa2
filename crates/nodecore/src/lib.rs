//! Node-side life of allocations and jobs, as a state machine.
