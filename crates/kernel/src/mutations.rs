//! Kept answers: a repeated mutation is answered, not executed again (http-api.md 2.8).
//!
//! Answers are durable with the change itself: a client whose server died between the commit and
//! the reply repeats its request to the next life and gets the first answer.

use crate::effect::Seq;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use vocab::batch::{Batch, Table};
use vocab::{Failure, Guid, Span, Time, code};
use yson::Value;

/// How long answers are kept; at least five minutes by the specification.
pub const KEEP: Span = Span::from_secs(600);

/// How many bytes of answers are kept for one user: 600,000 started operations take less.
pub const ROOM: usize = 256 << 20;

/// Answers by user and mutation id.
#[derive(Default)]
pub struct Mutations {
    kept: BTreeMap<Key, Kept>,
    by_age: VecDeque<(Time, Key)>,
    /// Bytes that the answers of each user take in the store.
    taken: BTreeMap<String, usize>,
}

type Key = (String, Guid);

struct Kept {
    /// The batch that made it durable.
    after: Seq,
    reply: Result<Value, Failure>,
    /// Bytes in the store.
    size: usize,
}

impl Mutations {
    /// The answer of an earlier execution, and what it waits for.
    pub fn find(&self, user: &str, id: Guid) -> Option<(Seq, Result<Value, Failure>)> {
        self.kept.get(&(user.to_owned(), id)).map(|k| (k.after, k.reply.clone()))
    }

    /// Refuses what would be kept beside too much: to forget an answer early could start an operation twice.
    pub fn demand_room(&self, user: &str) -> Result<(), Failure> {
        let taken = self.taken.get(user).copied().unwrap_or_default();
        if taken < ROOM {
            return Ok(());
        }
        let minutes = KEEP.as_secs_f64() / 60.0;
        Err(Failure::coded(
            code::REQUEST_QUEUE_SIZE_LIMIT_EXCEEDED,
            format!(
                "User \"{user}\" has changed so much in the last {minutes} minutes that the answers, which are kept \
                 for so long, take {taken} bytes, at most {ROOM}: try again later"
            ),
        ))
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
        let (store_key, record) = (store_key(&key), encode(now, reply));
        let size = store_key.len() + record.len();
        batch.put(Table::Mutations, store_key, record);
        self.remember(now, key, Kept { after, reply: reply.clone(), size });
    }

    fn remember(&mut self, time: Time, key: Key, kept: Kept) {
        *self.taken.entry(key.0.clone()).or_default() += kept.size;
        self.by_age.push_back((time, key.clone()));
        self.kept.insert(key, kept);
    }

    /// Forgets answers that are old enough.
    pub fn expire(&mut self, now: Time, batch: &mut Batch) {
        while self.by_age.front().is_some_and(|(time, _)| now.since(*time) > KEEP) {
            if let Some((_, key)) = self.by_age.pop_front() {
                batch.delete(Table::Mutations, store_key(&key));
                let size = self.kept.remove(&key).map_or(0, |kept| kept.size);
                if let Entry::Occupied(mut taken) = self.taken.entry(key.0) {
                    *taken.get_mut() -= size;
                    if *taken.get() == 0 {
                        taken.remove();
                    }
                }
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
        self.remember(time, (user, id), Kept { after: 0, reply, size: key.len() + value.len() });
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

    #[test]
    fn who_has_too_many_answers_waits_until_they_are_forgotten() {
        let (mut mutations, mut batch) = (Mutations::default(), Batch::new());
        let long = || Ok(Value::String(vec![b'x'; ROOM / 2]));
        for n in 0..2 {
            assert_eq!(mutations.demand_room("ann"), Ok(()), "{n}");
            mutations.keep(Time::from_secs(10 * n), "ann", Guid([n as u32, 0, 0, 1]), 1, &long(), &mut batch);
        }
        let refused = mutations.demand_room("ann").expect_err("too much");
        assert_eq!(refused.code, code::REQUEST_QUEUE_SIZE_LIMIT_EXCEEDED);
        assert_eq!(mutations.demand_room("bob"), Ok(()), "what others have is no matter");
        mutations.expire(Time::from_secs(5) + KEEP, &mut batch);
        assert_eq!(mutations.demand_room("ann"), Ok(()));
        mutations.expire(Time::from_secs(15) + KEEP, &mut batch);
        assert!(mutations.taken.is_empty() && mutations.kept.is_empty());
    }
}
