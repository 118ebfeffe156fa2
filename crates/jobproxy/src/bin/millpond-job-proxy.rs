//! The spawner alone, as a binary of its own: for tests and measurements without the whole of
//! Millpond. The `millpond` binary dispatches to the same function.

fn main() -> std::process::ExitCode {
    jobproxy::spawner_main()
}
