//! The environment of a job: what the controller gave, and what only the node knows
//! (jobs-and-nodes.md 5.3).

use std::path::Path;

use wire::StartJob;

/// All variables in order; later ones win.
///
/// `YT_JOB_PROXY_SOCKET_PATH` is not among them: proxies offer jobs nothing, and the node's own socket
/// is none of a job's business.
pub(crate) fn variables(
    start: &StartJob,
    sandbox: &Path,
    node_host: &str,
    gpus: &[u32],
    ports: &[u16],
) -> Vec<(String, String)> {
    let sandbox = sandbox.to_string_lossy();
    let given = &start.description.environment;
    let mut out: Vec<(String, String)> = Vec::with_capacity(given.len() + 12);
    let mut set = |name: &str, value: String| out.push((name.to_owned(), value));
    set("PATH", jobproxy::command::DEFAULT_PATH.to_owned());
    for name in ["HOME", "TMPDIR", "PYTHONPATH"] {
        set(name, sandbox.to_string());
    }
    set("PYTHONUSERBASE", format!("{sandbox}/.local"));
    set("PYTHON_EGG_CACHE", format!("{sandbox}/.python-eggs"));
    for (name, value) in given.iter() {
        set(name, value.replace("$(SandboxPath)", &sandbox));
    }
    set("YT_JOB_ID", start.identity.job_id.to_string());
    set("YT_NODE_HOST", node_host.to_owned());
    for (i, port) in ports.iter().enumerate() {
        set(&format!("YT_PORT_{i}"), port.to_string());
    }
    if !gpus.is_empty() {
        let list = gpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        set("CUDA_VISIBLE_DEVICES", list.clone());
        set("NVIDIA_VISIBLE_DEVICES", list);
    }
    out
}

/// The host part of `host:port`.
pub(crate) fn host_of(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}
