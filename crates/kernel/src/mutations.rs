//! Kept answers: a repeated mutation is answered, not executed again (http-api.md 2.8).
//!
//! Answers are durable with the change itself: a client whose server died between the commit and
//! the reply repeats its request to the next life and gets the first answer.

use crate::effect::Seq;
use std::collections::{BTreeMap, VecDeque};
use vocab::batch::{Batch, Table};
use vocab::{Failure, Guid, Span, Time};
use yson::Value;

/// How long answers are kept; at least five minutes by the specification.
pub const KEEP: Span = Span::from_secs(600);

/// Answers by user and mutation id.
#[derive(Default)]
pub struct Mutations {
    kept: BTreeMap<Key, Kept>,
    by_age: VecDeque<(Time, Key)>,
}

type Key = (String, Guid);

struct Kept {
    /// The batch that made it durable.
    after: Seq,
    reply: Result<Value, Failure>,
}

impl Mutations {
    /// The answer of an earlier execution, and what it waits for.
    pub fn find(&self, user: &str, id: Guid) -> Option<(Seq, Result<Value, Failure>)> {
        self.kept.get(&(user.to_owned(), id)).map(|k| (k.after, k.reply.clone()))
    }

    /// Keeps an answer, in memory and in the batch of the change.
    pub fn keep(
        &mut self,
        now: Time,
        user: &str,
        id: Guid,
        after: Seq,
        reply: &Result<Value, Failure>,
        batch: &mut Batch,
    ) {
        let key = (user.to_owned(), id);
        batch.put(Table::Mutations, store_key(&key), encode(now, reply));
        self.by_age.push_back((now, key.clone()));
        self.kept.insert(key, Kept { after, reply: reply.clone() });
    }

    /// Forgets answers that are old enough.
    pub fn expire(&mut self, now: Time, batch: &mut Batch) {
        while self.by_age.front().is_some_and(|(time, _)| now.since(*time) > KEEP) {
            if let Some((_, key)) = self.by_age.pop_front() {
                batch.delete(Table::Mutations, store_key(&key));
                self.kept.remove(&key);
            }
        }
    }

    /// Reads a record back; a record that is not one is ignored (it would only have saved work).
    pub fn restore(&mut self, key: &[u8], value: &[u8]) {
        let Some((user, id)) = parse_key(key) else { return };
        let Ok(record) = yson::parse_record(value) else { return };
        let Some(time) = record.get("time").and_then(Value::as_u64).map(Time::from_micros) else { return };
        let reply = match (record.get("error"), record.get("value")) {
            (Some(error), _) => Err(Failure::from_value(error)),
            (None, Some(value)) => Ok(value.clone()),
            (None, None) => return,
        };
        self.by_age.push_back((time, (user.clone(), id)));
        self.kept.insert((user, id), Kept { after: 0, reply });
    }

    /// To be called once after all [`Mutations::restore`]: records come in the order of keys.
    pub fn restored(&mut self) {
        self.by_age.make_contiguous().sort();
    }
}

fn store_key((user, id): &Key) -> Vec<u8> {
    let mut key = user.as_bytes().to_vec();
    key.push(0);
    key.extend_from_slice(&id.to_bytes());
    key
}

fn parse_key(key: &[u8]) -> Option<Key> {
    let split = key.len().checked_sub(17)?;
    let id: [u8; 16] = key[split + 1..].try_into().ok()?;
    Some((String::from_utf8(key[..split].to_vec()).ok()?, Guid::from_bytes(id)))
}

fn encode(now: Time, reply: &Result<Value, Failure>) -> Vec<u8> {
    let mut record = yson::map! { "time" => now.as_micros() };
    match reply {
        Ok(value) => record.insert("value", value.clone()),
        Err(failure) => record.insert("error", failure.to_value()),
    };
    yson::to_binary(&record.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::batch::Op;

    #[test]
    fn answers_survive_a_restart_and_expire() {
        let (mut first, mut batch) = (Mutations::default(), Batch::new());
        let id = |n| Guid([n, 1, 2, 3]);
        first.keep(Time::from_secs(10), "ann", id(1), 7, &Ok("x".into()), &mut batch);
        first.keep(Time::from_secs(20), "bob", id(2), 8, &Err(Failure::coded(501, "there")), &mut batch);
        assert_eq!(first.find("ann", id(1)), Some((7, Ok("x".into()))));
        assert_eq!(first.find("bob", id(1)), None, "ids of different users do not mix");

        let mut second = Mutations::default();
        for op in &batch.ops {
            match op {
                Op::Put { key, value, .. } => second.restore(key, value),
                other => panic!("unexpected {other:?}"),
            }
        }
        second.restored();
        assert_eq!(second.find("ann", id(1)), Some((0, Ok("x".into()))));
        assert_eq!(second.find("bob", id(2)), Some((0, Err(Failure::coded(501, "there")))));

        let mut cleaned = Batch::new();
        second.expire(Time::from_secs(15) + KEEP, &mut cleaned);
        assert_eq!(cleaned.ops.len(), 1);
        assert_eq!(second.find("ann", id(1)), None);
        assert!(second.find("bob", id(2)).is_some());
    }
}
