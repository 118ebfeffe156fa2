//! A node agent alone: `<server> <data directory> <driver> <root group> [slots]`, or the spawner of
//! job proxies. For tests, which kill it in every way.

use std::process::ExitCode;

use vocab::{Cpu, Resources, Span};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|a| a == jobproxy::SPAWNER_SUBCOMMAND) {
        return jobproxy::spawner_main();
    }
    let [_, server, data, driver, root_group, slots] = arguments.as_slice() else {
        eprintln!("usage: {} SERVER DATA_DIRECTORY DRIVER ROOT_GROUP SLOTS", arguments[0]);
        return ExitCode::from(2);
    };
    let slots: i64 = slots.parse().expect("a number of slots");
    let limits =
        Resources { user_slots: slots, cpu: Cpu(slots * 100), memory: slots << 30, ..Resources::ZERO };
    // One node of a host has a name at a time, and tests run side by side.
    let address = format!("test-node:{}", root_group.replace('/', "-"));
    let mut config = node::NodeConfig::new(server, &address, data.as_ref(), limits);
    // The tests are the server.
    config.insecure_plaintext = true;
    config.driver = driver.parse().expect("a driver");
    config.root_group = Some(root_group.clone());
    config.memory_watchdog_period = Span::from_millis(200);
    // Beside the data; the rest of the host is read-only for jobs where they are isolated.
    let shared = std::path::Path::new(data).with_file_name("shared");
    config.room.shared_directories = vec![node::SharedDirectory { path: shared, writable: true }];
    if config.driver == node::DriverChoice::Exactly(cage::Driver::Simple) {
        // Tests of this driver are those of jobs without namespaces, also for root.
        config.room.isolation = node::IsolationChoice::None;
    }
    config.kill_timeout = Span::from_secs(5);
    match node::run(config, node::Stop::AbortJobs) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
