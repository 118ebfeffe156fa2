//! What the node does about a job whose proxy is gone.
//!
//! A proxy that ends without a result was killed or crashed. Then the node kills what is left of the
//! job ([`kill_job`]) and reports [`outcome_of_dead_proxy`]; after its own restart, with nobody left
//! who saw the end, [`outcome_of_lost_proxy`].

use cage::{CageError, JobEnvironment};
use std::time::Duration;
use vocab::{AbortReason, Failure, JobId, JobOutcome, code};

/// Kills all processes of the job and removes its groups. Harmless if nothing is left. Blocks up to
/// `deadline`.
pub fn kill_job(
    environment: &dyn JobEnvironment,
    job_id: JobId,
    deadline: Duration,
) -> Result<(), CageError> {
    match environment.reopen(job_id) {
        Some(mut container) => {
            container.kill_all(deadline)?;
            container.destroy()
        }
        None => Ok(()),
    }
}

/// The proxy died while the node looked on: the job failed, or was aborted if
/// `treat_job_proxy_failure_as_abort` (jobs-and-nodes.md 3.8). `exit` is its exit code or minus its
/// signal, as far as known; exit code [`crate::proxy::exit::SUPERVISOR_LOST`] is an abort always.
pub fn outcome_of_dead_proxy(exit: Option<i32>, treat_job_proxy_failure_as_abort: bool) -> JobOutcome {
    let mut error = Failure::coded(code::JOB_PROXY_FAILED, "Job proxy failed");
    error = match exit {
        Some(n) if n < 0 => error.because(
            Failure::coded(code::PROCESS_SIGNAL, format!("Process terminated by signal {}", -n))
                .with("signal", i64::from(-n)),
        ),
        Some(n) => error.because(
            Failure::coded(code::PROCESS_NON_ZERO_EXIT, format!("Process exited with code {n}"))
                .with("exit_code", i64::from(n)),
        ),
        None => error,
    };
    match exit {
        Some(crate::proxy::exit::SUPERVISOR_LOST | crate::proxy::exit::RESULT_REPORT_FAILED) => {
            aborted(AbortReason::Other, error)
        }
        _ if treat_job_proxy_failure_as_abort => aborted(AbortReason::JobProxyFailed, error),
        _ => JobOutcome::Failed { error },
    }
}

/// The proxy ended without a result while no node was there (jobs-and-nodes.md 9.2 step 3).
pub fn outcome_of_lost_proxy() -> JobOutcome {
    aborted(AbortReason::Other, Failure::coded(code::JOB_PROXY_FAILED, "Job proxy lost during node restart"))
}

/// The host was restarted (jobs-and-nodes.md 9.2 step 1).
pub fn outcome_of_host_restart() -> JobOutcome {
    aborted(AbortReason::Other, Failure::new("Host was restarted while the job was running"))
}

fn aborted(reason: AbortReason, error: Failure) -> JobOutcome {
    JobOutcome::Aborted { reason, error: error.with("abort_reason", reason) }
}
