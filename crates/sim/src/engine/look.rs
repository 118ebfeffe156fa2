//! A run that stands still at a time, to be looked at: the same scenario and seed come to the same place.

use super::*;
use crate::output::Cell;
use yson::{Map, Value};

/// See the module page. Nothing is written.
pub struct Stopped<'a>(Engine<'a>);

impl<'a> Stopped<'a> {
    /// Runs a scenario up to a time; none, if `watch` wanted to stop.
    pub fn at(
        scenario: &'a Scenario,
        at: Span,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Option<Stopped<'a>>, SimError> {
        let options = Options { until: Some(at), ..Options::default() };
        let mut engine = Engine::new(scenario, Sink::nowhere(), Beside::default(), options)?;
        // What happens at that very time has happened.
        engine.end += Span::from_micros(1);
        let mut instants = 0u64;
        while !engine.is_over() {
            engine.step()?;
            instants += 1;
            if instants.is_multiple_of(512) && !watch(&engine.progress()) {
                return Ok(None);
            }
        }
        engine.now = engine.now.max(scenario.start + at.min(scenario.duration));
        Ok(Some(Stopped(engine)))
    }

    /// Why an operation of the workload has what it has, as the product explains it.
    pub fn explain(&mut self, operation: &str) -> Result<Map, SimError> {
        let engine = &mut self.0;
        let file = || engine.scenario.document.path.clone();
        let Some(id) = engine.by_name.get(operation).copied() else {
            let refused = engine.refusals.iter().find(|why| why.contains(&format!("{operation:?}")));
            let why = match refused {
                Some(why) => format!("the submission was refused: {why}"),
                None => format!("no operation {operation:?} of the workload was submitted by then"),
            };
            return Err(SimError::file(&file(), why));
        };
        let command = Command::ExplainOperation { operation: OperationRef::Id(id) };
        let (number, input) = engine.server.request("root", None, command);
        engine.inputs.push(input);
        let mut outcomes = Vec::new();
        engine.server.turn(engine.now, &mut engine.inputs, &mut outcomes);
        let body = outcomes.into_iter().find_map(|outcome| match outcome {
            Outcome::Reply(request, body) if request == number => Some(body),
            _ => None,
        });
        match body {
            Some(Ok(Body::Value(Value::Map(map)))) => Ok(map),
            Some(Err(failure)) => Err(SimError::file(&file(), in_full(&failure))),
            _ => Err(SimError::file(&file(), "the server is down at that time")),
        }
    }

    /// A row of `pools.csv` for every pool, by the last share update.
    pub fn pools(&mut self) -> Vec<Vec<Cell>> {
        let engine = &mut self.0;
        if let Some(kernel) = engine.server.kernel() {
            engine.pools.look(engine.now, kernel, &engine.ledger.by_pool);
        }
        engine.pools.sample(engine.now.since(engine.scenario.start))
    }

    /// What was refused so far.
    pub fn refusals(&self) -> &[String] {
        &self.0.refusals
    }
}
