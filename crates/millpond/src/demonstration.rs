//! `millpond demo`, and `millpond burn`, which its jobs run.

use crate::told;
use cli::CliError;
use cli::args::{BurnArgs, DemoArgs};
use demo::{BurnConfig, DemoConfig};

/// Replays a real workload on a cluster of this machine.
pub fn run(args: DemoArgs) -> Result<(), CliError> {
    let DemoArgs { seconds, directory, keep, job_environment } = args;
    match demo::run(DemoConfig { seconds, directory, keep, job_environment, program: None }).map_err(told)? {
        true => Ok(()),
        false => Err(CliError::failed("the demo did not succeed; what is wrong is said above")),
    }
}

/// Burns CPU and holds memory; says so on stderr, which is the job's.
pub fn burn(args: BurnArgs) -> Result<(), CliError> {
    let BurnArgs { seconds, memory, cpu } = args;
    eprintln!("{}", demo::burn(BurnConfig { seconds, memory, cpu }).map_err(told)?);
    Ok(())
}
