//! Tests of the controller, by subject.
//!
//! Where the rules of jobs-and-nodes.md 6 are tested (`k`: tests of the kernel, `n`: of nodecore, `c`: live
//! ones in `tests/cluster`):
//!
//! | rule | tests |
//! |---|---|
//! | 6.2 smallest cookie first, needs with today's factors, too small grants | `units`, `jobs::demand_of_one_job`, `jobs::a_grant_that_is_too_small_takes_no_unit` |
//! | 6.2 no node could hold a job | k `units`, `nodes::jobs_are_asked_to_leave_a_node_that_is_disabled` (the alert) |
//! | 6.3 completed, failed, aborted, abandoned, lost; each end once | `life`, `jobs::abandoned_jobs_count_with_what_they_reported`, `revival`, `properties::counters_agree_with_the_model` |
//! | 6.4 order of the rules that fail an operation | `life::rules_about_restarts_come_in_order`, `life::failures_reach_the_limit`, `life::failures_at_banned_nodes_are_excused` |
//! | 6.4 time limit | `life::the_time_limit_ends_jobs_first_and_then_the_operation`, k `nodes::jobs_of_an_operation_whose_time_is_up_fail`, n `stops::fail_by_request` |
//! | 6.5 abort reasons | n `stops`, `deaths`, `limits`; k `preemption`, `overdraft`, `nodes` |
//! | 9.1 exclusive work (S19) | `fences`; k `leases`, n `leases` |
//! | 6.5 pauses after aborts and their bound (S4, S12) | `aborts`; k `aborts` |
//! | 6.6 progress | `jobs::progress_has_the_shape_of_the_api` |
//! | 6.7 copies of slow jobs | `copies`, of vanilla tasks only if they ask for it; `map_copies`, c `test_speculation` |
//! | 6.8 interruption | `life::interrupted_jobs_make_room_unless_they_can_say_they_are_done`, n `stops::interruptions`, k `preemption` |
//! | 6.9 gangs | `life::a_gang_*`, `revival::a_gang_*`, `properties::gangs_start_anew_as_a_whole`; in the same allocations: `life::a_gang_stays_where_it_is`, k `units::a_gang_*`, c `test_gangs` |
//! | 6.10 `job_count` at run time | `life::job_count_changes_at_run_time`, `life::job_count_is_refused_with_a_reason` |
//! | 6.11 alerts | `alerts`; vanilla jobs are never suspicious |
//! | 6.12 limits of a spec | `specs::errors_say_what_and_where` |
//! | 8.3 services | `life::services_never_complete_by_themselves` |
//! | 8.3 output tables of tasks | `outputs`, live `tests/yt/test_vanilla_tables.py` |

mod aborts;
mod alerts;
mod bench;
mod copies;
mod fences;
mod jobs;
mod life;
mod map_copies;
mod measured;
mod memory;
mod outputs;
mod properties;
mod revival;
mod script;
mod specs;
