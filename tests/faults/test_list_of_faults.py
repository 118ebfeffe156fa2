"""The bad inputs and faults that jobs and nodes have to endure, each with the tests that show it. A test that is gone,
or has another name, fails here."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
ISOLATION, MONITOR = "tests/cluster/test_isolation.py", "crates/jobproxy/src/proxy/monitor/tests.rs"
FAULTS = {
    "an option out of range": ["crates/controller/tests/main/specs.rs root_options", "crates/controller/tests/main/specs.rs task_options",
                               "tests/faults/test_bad_input.py test_bad_specs"],
    "a job leaks": ["crates/jobproxy/tests/main/jobs.rs too_much_memory_fails_the_job",
                    "tests/cluster/test_reserves.py test_above_the_limit_the_job_fails"],
    "a job needs more than it reserved": ["tests/cluster/test_reserves.py test_the_node_runs_out_of_memory"],
    "others leave the host no memory": ["crates/nodecore/tests/main/usage.rs a_host_without_free_memory_starts_nothing",
                                        "crates/nodecore/tests/main/usage.rs pressure_takes_the_worst_overdraft_one_at_a_time"],
    "a fork bomb": [f"{ISOLATION} test_fork_bomb", "crates/jobproxy/tests/main/jobs.rs a_fork_bomb_is_contained"],
    "a job ignores signals": [f"{ISOLATION} test_ignores_signals", "tests/cluster/test_jobs.py test_interruption_timeout"],
    "a job daemonizes": [f"{ISOLATION} test_daemons", "crates/jobproxy/tests/main/jobs.rs a_daemon_does_not_survive_its_job",
                         "tests/cluster/test_unprivileged.py test_daemons_and_deaf_jobs_do_not_stay"],
    "a job fills its memory file system": [f"{ISOLATION} test_tmpfs_bound", f"{ISOLATION} test_tmpfs_too_small_for_the_files"],
    "a job fills its disk": [f"{ISOLATION} test_disk_bound", f"{ISOLATION} test_inode_bound"],
    "a job fills its stderr": [f"{ISOLATION} test_fills_its_stderr",
                               "crates/jobproxy/tests/main/jobs.rs lots_of_stderr_is_cut_quickly_and_exactly"],
    "a job floods its statistics": ["tests/faults/test_bad_input.py test_descriptor_flood_of_statistics"],
    "a job writes to files of others": [f"{ISOLATION} test_the_host_is_read_only", f"{ISOLATION} test_other_jobs_are_invisible"],
    "a job writes to files of its proxy and its node": [f"{ISOLATION} test_cannot_write_what_its_node_and_proxy_write",
                                                        f"{ISOLATION} test_only_its_own_files"],
    "a job tries to leave its control groups": [f"{ISOLATION} test_cannot_leave_its_groups"],
    "a job kills everything in sight": [f"{ISOLATION} test_kills_everything_in_sight"],
    "a shell beside a job does all that": ["crates/jobproxy/tests/main/shells.rs a_shell_ends_with_its_job_and_does_not_hold_it_up",
                                           "crates/jobproxy/tests/main/shells.rs terminated_and_forgotten_shells_are_gone"],
    "the OOM killer takes the proxy": [f"{ISOLATION} test_the_kernel_takes_a_proxy_when_memory_runs_out",
                                       "crates/cage/tests/main/proxies.rs one_that_takes_too_much_is_killed_and_the_others_are_not",
                                       f"{ISOLATION} test_proxies_are_bounded_and_their_death_is_told"],
    "the proxy of a job is killed": ["tests/faults/test_kill_matrix.py test_kill", "crates/node/tests/main/lives.rs a_proxy_that_is_killed"],
    "a counter goes backwards or cannot be read": [f"{MONITOR} a_counter_that_cannot_be_read_or_goes_back_is_no_vote",
                                                    "tests/cluster/test_reserves.py test_a_counter_goes_backwards"],
    "the clock jumps": ["tests/faults/test_clock.py test_jumps", "crates/vocab/src/clock.rs jumps_are_not_followed"],
    "a control group cannot be written": ["tests/cluster/test_reserves.py test_a_group_that_cannot_be_written",
                                          f"{MONITOR} what_cannot_be_written_does_not_count",
                                          f"{MONITOR} half_a_change_is_taken_back"],
    "the node restarts in every phase": ["tests/faults/test_kill_matrix.py test_kill",
                                         "crates/node/tests/main/restarts.rs an_agent_killed_at_any_moment_loses_no_job_and_runs_none_twice",
                                         "tests/faults/test_node_restarts.py test_fifty_kills"],
    "the server is away": ["crates/node/tests/main/restarts.rs a_server_that_is_away",
                           "tests/faults/test_partition.py test_a_pause_before_planned_work"],
    "a node is cut off": ["tests/faults/test_partition.py test_cut_off", "tests/faults/test_partition.py test_a_short_cut_costs_no_job",
                          "crates/kernel/tests/main/leases.rs a_unit_of_a_lost_node_waits_for_the_end_of_the_lease",
                          "crates/sim/src/engine/faults.rs check_exclusive_units"],
    "an agent is stopped or dead": ["tests/faults/test_partition.py test_an_agent_that_does_nothing",
                                    "crates/jobproxy/tests/main/leases.rs a_job_whose_agent_is_silent_stops_at_the_end_of_its_lease"],
    "the disk is full": [f"{ISOLATION} test_a_full_disk", f"{ISOLATION} test_too_little_free_space",
                         "tests/faults/test_bad_input.py test_full_disk_under_the_store",
                         "tests/faults/test_full_disk.py test_a_full_disk_stops_changes_and_nothing_else",
                         "tests/faults/test_full_disk.py test_a_server_that_starts_on_a_full_disk"],
    "the store of the server, or its blobs, are gone or of another cluster": [
        "tests/faults/test_store_parts.py test_a_store_that_is_gone_is_no_new_cluster",
        "tests/faults/test_store_parts.py test_blobs_that_are_gone_or_of_another_cluster",
        "tests/faults/test_store_parts.py test_many_blobs_are_not_removed_without_a_question"],
    "the key of vaults is lost, damaged or another one": [
        "tests/cluster/test_secrets_at_rest.py test_a_server_without_its_vault_key_does_not_start_until_it_is_told_to_give_up",
        "crates/server/src/vaults/tests.rs a_server_without_the_key_of_a_vault_does_not_start",
        "crates/kernel/tests/main/vaults.rs an_operation_whose_vault_cannot_be_decrypted_fails_and_the_others_go_on"],
    "a record of the store is damaged": [
        "crates/kernel/tests/main/damaged_records.rs a_start_that_fails_names_the_record_and_what_to_do",
        "crates/kernel/tests/main/broken_records.rs damaged_bytes_of_any_part",
        "crates/server/src/start/tests.rs a_start_that_is_refused_leaves_every_byte_as_it_was"],
    "a node is stopped while it starts": [
        "crates/node/tests/main/restarts.rs a_node_that_is_stopped_while_it_starts_leaves_no_groups",
        "crates/cage/tests/main/killed_probe.rs a_killed_probe_leaves_nothing_running_and_its_groups_go_at_the_next_start"],
    "somebody takes the port of the server while it restarts": [
        "tests/faults/test_port_is_kept.py test_s6_nobody_can_take_the_port_while_the_server_of_up_restarts",
        "tests/faults/test_socket_unit.py test_s6_a_restart_through_a_held_socket_refuses_nobody"],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_is_tested(fault):
    for place in FAULTS[fault]:
        file, name = place.split()
        assert re.search(rf"\b(fn|def) {name}\(", (ROOT / file).read_text()), f"{fault}: no test {name} in {file}"
