//! `GET /metrics`: what the kernel counts ([`kernel::Metrics`]) and what is measured here, with a clock: the
//! phases of the kernel's turns, commits, requests.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use axum::middleware::{Next, from_fn_with_state};
use kernel::{MetricFamily, MetricKind, Metrics, Phase, Seq};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use vocab::Failure;

type Labels<const N: usize> = [(&'static str, String); N];

/// See the module page.
pub struct Measures {
    registry: Registry,
    phases: Family<Labels<1>, Histogram>,
    commits: Histogram,
    /// Batches on their way to the disk, oldest first.
    on_their_way: Mutex<VecDeque<(Seq, Instant)>>,
    latencies: Family<Labels<1>, Histogram>,
    requests: Family<Labels<2>, Counter>,
    refused: Family<Labels<2>, Counter>,
    uploads_refused: Family<Labels<1>, Counter>,
}

/// From 10 microseconds to 20 seconds.
fn histogram() -> Histogram {
    Histogram::new(exponential_buckets(10e-6, 2.0, 22))
}

impl Measures {
    /// Nothing is measured yet.
    pub fn new() -> Measures {
        let measures = Measures {
            registry: Registry::default(),
            phases: Family::new_with_constructor(histogram),
            commits: histogram(),
            on_their_way: Mutex::default(),
            latencies: Family::new_with_constructor(histogram),
            requests: Family::default(),
            refused: Family::default(),
            uploads_refused: Family::default(),
        };
        let mut registry = Registry::default();
        let phases = measures.phases.clone();
        registry.register("millpond_kernel_phase_seconds", "Parts of the kernel's turns", phases);
        let commits = measures.commits.clone();
        registry.register(
            "millpond_commit_seconds",
            "From the end of a turn until its changes are durable",
            commits,
        );
        let latencies = measures.latencies.clone();
        registry.register("millpond_request_seconds", "Requests until their answer begins", latencies);
        registry.register(
            "millpond_requests",
            "Requests, by status of the answer",
            measures.requests.clone(),
        );
        registry.register(
            "millpond_refused_sign_ins",
            "Requests without a right password or token, by what was shown and why",
            measures.refused.clone(),
        );
        registry.register(
            "millpond_refused_uploads",
            "Uploads of nodes that were larger than the job allows, by what was uploaded",
            measures.uploads_refused.clone(),
        );
        let version = Family::<Labels<1>, Gauge>::default();
        version.get_or_create(&[("version", env!("CARGO_PKG_VERSION").to_owned())]).set(1);
        registry.register("millpond_build", "Version of the server, as a label", version);
        Measures { registry, ..measures }
    }

    /// A phase of a turn took so long.
    pub fn spent(&self, phase: Phase, time: Duration) {
        let labels = [("phase", phase.as_str().to_owned())];
        self.phases.get_or_create(&labels).observe(time.as_secs_f64());
    }

    /// A batch is on its way.
    pub fn submitted(&self, seq: Seq) {
        self.on_their_way.lock().unwrap_or_else(|e| e.into_inner()).push_back((seq, Instant::now()));
    }

    /// What was on its way will not be durable.
    pub fn forget_submitted(&self) {
        self.on_their_way.lock().unwrap_or_else(|e| e.into_inner()).clear();
    }

    /// Everything up to this number is durable.
    pub fn committed(&self, seq: Seq) {
        let mut waiting = self.on_their_way.lock().unwrap_or_else(|e| e.into_inner());
        while let Some((first, since)) = waiting.front()
            && *first <= seq
        {
            self.commits.observe(since.elapsed().as_secs_f64());
            waiting.pop_front();
        }
    }

    fn answered(&self, what: String, status: u16, time: Duration) {
        self.latencies.get_or_create(&[("command", what.clone())]).observe(time.as_secs_f64());
        self.requests.get_or_create(&[("command", what), ("status", status.to_string())]).inc();
    }

    /// A password or token was refused.
    pub fn refused(&self, shown: &'static str, reason: &'static str) {
        let labels = [("shown", shown.to_owned()), ("reason", reason.to_owned())];
        self.refused.get_or_create(&labels).inc();
    }

    /// A node has uploaded more than its job can have.
    pub fn upload_refused(&self, upload: &'static str) {
        self.uploads_refused.get_or_create(&[("upload", upload.to_owned())]).inc();
    }

    /// Everything, in the text form.
    pub fn text(&self, of_kernel: Metrics) -> Result<String, Failure> {
        let mut text = String::new();
        let mut once = Registry::default();
        once.register_collector(Box::new(OfKernel(of_kernel.families())));
        encode_registry(&mut text, &self.registry)
            .and_then(|()| encode_registry(&mut text, &once))
            .and_then(|()| encode_eof(&mut text))
            .map_err(|e| Failure::new(format!("The metrics cannot be written: {e}")))?;
        Ok(text)
    }
}

#[derive(Debug)]
struct OfKernel(Vec<MetricFamily>);

impl Collector for OfKernel {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for family in &self.0 {
            let kind = match family.kind {
                MetricKind::Gauge => MetricType::Gauge,
                MetricKind::Counter => MetricType::Counter,
            };
            let mut metric = encoder.encode_descriptor(family.name, family.help, None, kind)?;
            for (values, number) in &family.samples {
                let labels: Vec<(&str, &str)> =
                    family.labels.iter().copied().zip(values.iter().map(String::as_str)).collect();
                match labels.is_empty() {
                    true => put(&mut metric, family.kind, *number)?,
                    false => put(&mut metric.encode_family(&labels)?, family.kind, *number)?,
                }
            }
        }
        Ok(())
    }
}

fn put(metric: &mut MetricEncoder<'_>, kind: MetricKind, number: f64) -> Result<(), fmt::Error> {
    match kind {
        MetricKind::Gauge => metric.encode_gauge(&number),
        MetricKind::Counter => metric.encode_counter::<NoLabelSet, f64, f64>(&number, None),
    }
}

/// Every request is counted and timed.
pub fn measured(router: Router, measures: Arc<Measures>) -> Router {
    router.layer(from_fn_with_state(measures, measure))
}

async fn measure(State(measures): State<Arc<Measures>>, request: Request, next: Next) -> Response<Body> {
    let (what, since) = (name_of(request.uri().path()), Instant::now());
    let response = next.run(request).await;
    measures.answered(what, response.status().as_u16(), since.elapsed());
    response
}

/// The command of a request, or what else is asked for; few names, whatever clients send.
fn name_of(path: &str) -> String {
    let mut steps = path.trim_start_matches('/').split('/');
    match (steps.next(), steps.next(), steps.next(), steps.next()) {
        (Some("api"), Some("v3" | "v4"), Some(command), None) if api::is_command(command) => {
            command.to_owned()
        }
        (Some("api"), Some("millpond"), Some(question), None) if api::is_question(question) => {
            format!("millpond/{question}")
        }
        (Some("millpond.node.v1.NodeService"), ..) => "node".to_owned(),
        (Some("metrics"), None, ..) => "metrics".to_owned(),
        (Some("login" | "logout" | "auth"), ..) => "login".to_owned(),
        _ => "other".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_cannot_make_up_names() {
        let names = [
            ("/api/v4/get", "get"),
            ("/api/v3/set", "set"),
            ("/api/v4/dance", "other"),
            ("/api/v4/get/more", "other"),
            ("/api/millpond/events", "millpond/events"),
            ("/api/millpond/stream", "millpond/stream"),
            ("/api/millpond/secrets", "other"),
            ("/metrics", "metrics"),
            ("/assets/index.js", "other"),
            ("/", "other"),
            ("", "other"),
        ];
        for (path, name) in names {
            assert_eq!(name_of(path), name, "{path}");
        }
    }

    #[test]
    fn commits_are_timed_once() {
        let measures = Measures::new();
        for seq in 1..=3 {
            measures.submitted(seq);
        }
        let counted = || {
            let mut text = String::new();
            encode_registry(&mut text, &measures.registry).expect("a string takes everything");
            let line = text.lines().find(|line| line.starts_with("millpond_commit_seconds_count "));
            line.expect("it is there").to_owned()
        };
        measures.committed(2);
        assert_eq!(counted(), "millpond_commit_seconds_count 2");
        measures.committed(2);
        measures.committed(3);
        assert_eq!(counted(), "millpond_commit_seconds_count 3");
    }
}
