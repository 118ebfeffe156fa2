//! Names that two crates must agree on although neither uses the other.

use cage::Driver;

#[test]
fn the_command_line_knows_every_driver() {
    let mut known: Vec<&str> = cli::args::JOB_ENVIRONMENTS.to_vec();
    let mut drivers: Vec<&str> = Driver::ALL.into_iter().map(Driver::as_str).chain(["auto"]).collect();
    known.sort_unstable();
    drivers.sort_unstable();
    assert_eq!(known, drivers);
}
