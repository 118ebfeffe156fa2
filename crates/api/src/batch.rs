//! `execute_batch`: many commands in one request (http-api.md 8.9).

use crate::api::{Caller, fits_batch};
use crate::commands::{Descriptor, Params, find, required};
use crate::transport::Reservation;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::task::JoinHandle;
use vocab::{Failure, Guid, code};
use yson::{Map, Value};

/// Items that run at the same time unless the request says otherwise.
const DEFAULT_CONCURRENCY: usize = 50;
/// More than this the kernel's queue need not hold for one client.
const MAX_CONCURRENCY: usize = 1000;

type Item = crate::BoxFuture<Result<Option<Value>, Failure>>;
type Running = JoinHandle<Result<Option<Value>, Failure>>;

/// A result takes this in the reply besides its value.
const RESULT: u64 = 64;
/// Smaller results are kept when the bytes of a batch are refused: with [`crate::Limits`] items they are bounded, and say
/// what became of changes.
const SMALL: u64 = 1 << 10;

/// Bytes of the results of a batch that has not been answered yet.
struct Results {
    reservation: Mutex<Reservation>,
    /// Why a result was not kept.
    refused: OnceLock<Failure>,
}

impl Results {
    fn begin(caller: &Caller) -> Arc<Results> {
        let reservation = Mutex::new(caller.api.in_flight.begin(&caller.user));
        Arc::new(Results { reservation, refused: OnceLock::new() })
    }

    fn reservation(&self) -> MutexGuard<'_, Reservation> {
        self.reservation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a result as soon as it is there; the error in its place if there is no room for it.
    fn count(
        &self,
        counted_before: Vec<Reservation>,
        result: Option<Value>,
    ) -> Result<Option<Value>, Failure> {
        let bytes = RESULT + result.as_ref().map_or(0, |value| value.weight() as u64);
        let before: u64 = counted_before.iter().map(Reservation::bytes).sum();
        let mut reservation = self.reservation();
        counted_before.into_iter().for_each(|counted| reservation.absorb(counted));
        match reservation.grow(bytes.saturating_sub(before)) {
            Ok(()) => Ok(result),
            Err(_) if bytes <= SMALL => Ok(result),
            Err(failure) => {
                let _ = self.refused.set(failure.clone());
                Err(failure)
            }
        }
    }

    /// The same for an error. It is the one that it was, unless it is long and there is no room for it.
    fn count_failure(&self, failure: Failure) -> Failure {
        match self.count(Vec::new(), Some(failure.to_value())) {
            Ok(_) => failure,
            Err(refused) => refused,
        }
    }
}

/// Runs the items and gives `{results=[...]}` in their order. Items are started in order, so they
/// take effect in order; a failing item does not stop those behind it.
pub(crate) async fn execute(
    caller: &Arc<Caller>,
    params: &Params,
    mutation_id: Option<Guid>,
) -> Result<Value, Failure> {
    let requests = params.value("requests");
    let requests = required("requests", Ok(requests))?.as_list().ok_or_else(|| {
        Failure::new("Parameter \"requests\" must be a list of maps {command; parameters; input}")
    })?;
    caller.api.settings.limits.check_batch(requests.len())?;
    let concurrency = params.count("concurrency")?.unwrap_or(DEFAULT_CONCURRENCY).clamp(1, MAX_CONCURRENCY);
    let counted = Results::begin(caller);
    let mut running: VecDeque<Running> = VecDeque::with_capacity(concurrency.min(requests.len()));
    let mut results = Vec::with_capacity(requests.len());
    for (index, request) in requests.iter().enumerate() {
        if running.len() == concurrency
            && let Some(first) = running.pop_front()
        {
            results.push(finish(first).await);
        }
        // What could not be answered is not begun.
        if let Some(failure) = counted.refused.get() {
            let message = "Not started: the results of the requests before it take too many bytes";
            let failure = Failure::coded(failure.code, message).because(failure.clone());
            running.push_back(tokio::spawn(std::future::ready(Err(failure))));
            continue;
        }
        let id = mutation_id.map(|id| derive(id, index));
        let (item, holds_up) = match start(caller, request, id, &counted) {
            Ok((future, descriptor)) => (tokio::spawn(future), descriptor.holds_up()),
            Err(failure) => (tokio::spawn(std::future::ready(Err(failure))), false),
        };
        running.push_back(item);
        while holds_up && let Some(first) = running.pop_front() {
            results.push(finish(first).await);
        }
    }
    for item in running {
        results.push(finish(item).await);
    }
    let of_all = std::mem::replace(&mut *counted.reservation(), caller.api.in_flight.begin(&caller.user));
    caller.counted.add(of_all);
    Ok(yson::map! {"results" => results}.into())
}

fn start(
    caller: &Arc<Caller>,
    request: &Value,
    mutation_id: Option<Guid>,
    counted: &Arc<Results>,
) -> Result<(Item, &'static Descriptor), Failure> {
    let name = request
        .get("command")
        .and_then(Value::as_str)
        .ok_or_else(|| Failure::new("A request of a batch must be a map with the string \"command\""))?;
    let (descriptor, implied) = find(caller.version, name)
        .ok_or_else(|| Failure::coded(code::NO_SUCH_METHOD, format!("Unknown command {name:?}")))?;
    if !fits_batch(descriptor) {
        return Err(Failure::new(format!("Command {name:?} cannot be part of a batch")));
    }
    let mut params = Params::new(implied);
    match request.get("parameters").map(Value::bare) {
        None | Some(Value::Entity) => {}
        Some(Value::Map(map)) => params.merge(map.clone()),
        Some(other) => {
            let found = other.type_name();
            return Err(Failure::new(format!("\"parameters\" of a request must be a map, found {found}")));
        }
    }
    let input = request.get("input").cloned();
    let (caller, counted) = (Arc::new(caller.for_item()), Arc::clone(counted));
    let running = caller.run(descriptor, params, input, mutation_id);
    let item = async move {
        match running.await {
            Ok(result) => counted.count(caller.counted.take_all(), result),
            Err(failure) => Err(counted.count_failure(failure)),
        }
    };
    Ok((Box::pin(item), descriptor))
}

async fn finish(item: Running) -> Map {
    let result = match item.await {
        Ok(result) => result,
        Err(error) => Err(crate::transport::panic_failure(error)),
    };
    match result {
        Ok(output) => Map::new().with_some("output", output),
        Err(failure) => yson::map! {"error" => failure.to_value()},
    }
}

/// The mutation id of an item: the same whenever the same batch is repeated.
fn derive(id: Guid, index: usize) -> Guid {
    let [a, b, c, d] = id.0;
    Guid([a.wrapping_add(index as u32 + 1), b, c, d])
}
