//! What is kept in memory of every operation, finished ones too: enough to list, filter and count
//! (http-api.md 8.5 `list_operations`). Everything else of a finished operation is in the archive.

use crate::command::ListOperations;
use crate::operation::Operation;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use vocab::{Failure, OperationId, OperationState, OperationType, Time};
use yson::{Map, Value};

/// The listed facts of one operation.
#[derive(Clone, PartialEq, Debug)]
pub struct Summary {
    /// Its id.
    pub id: OperationId,
    /// When it was accepted; the cursor of paging.
    pub start_time: Time,
    /// When it ended.
    pub finish_time: Option<Time>,
    /// Who started it.
    pub user: String,
    /// Its kind.
    pub operation_type: OperationType,
    /// State now.
    pub state: OperationState,
    /// `*name`.
    pub alias: Option<String>,
    /// Pool in each of its trees.
    pub pools: Vec<(String, String)>,
    /// Some job has failed.
    pub has_failed_jobs: bool,
    /// Its own list of access, and older: owners. Those of finished operations share what is the same.
    pub acl: Arc<[Value]>,
    /// Names of those who may manage it.
    pub owners: Arc<[Value]>,
    /// What the substring filter searches beside the facts above, in lower case: title, alias,
    /// annotations, paths.
    pub search: String,
    /// Bytes of its records, of its jobs and their stderrs in the archive.
    pub archived_bytes: u64,
    /// All that the substring filter searches; [`Summary::complete`] makes it.
    pub(crate) text: String,
}

impl Summary {
    /// Durable form.
    pub fn to_value(&self) -> Value {
        yson::map! {
            "id" => self.id,
            "start_time" => self.start_time.as_micros(),
            "finish_time" => self.finish_time.map(Time::as_micros),
            "user" => self.user.as_str(),
            "type" => self.operation_type,
            "state" => self.state,
            "alias" => self.alias.clone(),
            "pools" => self.pools.iter().map(|(t, p)| Value::from(vec![t.as_str(), p.as_str()])).collect::<Vec<_>>(),
            "has_failed_jobs" => self.has_failed_jobs,
            "acl" => self.acl.to_vec(),
            "owners" => self.owners.to_vec(),
            "search" => self.search.as_str(),
            "archived_bytes" => self.archived_bytes,
        }
        .into()
    }

    /// As those of the operation in the tree.
    pub(crate) fn attributes(&self) -> Map {
        yson::map! {
            "id" => self.id,
            "type" => self.operation_type,
            "operation_type" => self.operation_type,
            "state" => self.state,
            "authenticated_user" => self.user.as_str(),
            "start_time" => self.start_time,
            "has_failed_jobs" => self.has_failed_jobs,
        }
        .with_some("finish_time", self.finish_time)
    }

    /// With its text for the substring filter: whoever changes a fact calls this afterwards.
    pub fn complete(mut self) -> Summary {
        self.text.clear();
        // Lines: nothing that is searched for goes over the end of one of these.
        let facts = [&self.id.to_string(), &self.user, self.operation_type.as_str(), self.state.as_str()];
        let pools = self.pools.iter().map(|(_, pool)| pool.as_str());
        for part in facts.into_iter().map(|fact| fact as &str).chain(pools).chain([self.search.as_str()]) {
            self.text.push_str(&part.to_lowercase());
            self.text.push('\n');
        }
        self
    }

    /// When it ended, as far as that is known.
    pub fn end(&self) -> Time {
        self.finish_time.unwrap_or(self.start_time)
    }

    /// Inverse of [`Summary::to_value`]; none if the record is not one.
    pub fn from_value(value: &Value) -> Option<Summary> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let list = |key: &str| value.get(key).and_then(Value::as_list).unwrap_or_default().into();
        let summary = Summary {
            id: text("id")?.parse().ok()?,
            start_time: Time::from_micros(value.get("start_time")?.as_u64()?),
            finish_time: value.get("finish_time").and_then(Value::as_u64).map(Time::from_micros),
            user: text("user")?.to_owned(),
            operation_type: text("type")?.parse().ok()?,
            state: text("state")?.parse().ok()?,
            alias: text("alias").map(str::to_owned),
            pools: value
                .get("pools")?
                .as_list()?
                .iter()
                .filter_map(|pair| match pair.as_list()? {
                    [tree, pool] => Some((tree.as_str()?.to_owned(), pool.as_str()?.to_owned())),
                    _ => None,
                })
                .collect(),
            // Records of older versions have none: then the starter is not known to be allowed anything.
            acl: list("acl"),
            owners: list("owners"),
            has_failed_jobs: value.get("has_failed_jobs").and_then(Value::as_bool).unwrap_or(false),
            search: text("search").unwrap_or_default().to_owned(),
            archived_bytes: value.get("archived_bytes").and_then(Value::as_u64).unwrap_or(0),
            text: String::new(),
        };
        Some(summary.complete())
    }
}

/// What a list is made of. Of an operation that goes on nothing is copied: there may be a hundred thousand of
/// them, and pages ask for lists every second.
#[derive(Clone, Copy)]
pub(crate) enum Listed<'a> {
    /// It goes on.
    Live(&'a Operation),
    /// It has ended.
    Finished(&'a Summary),
}

impl<'a> Listed<'a> {
    pub fn id(self) -> OperationId {
        match self {
            Listed::Live(operation) => operation.id,
            Listed::Finished(summary) => summary.id,
        }
    }

    pub fn start_time(self) -> Time {
        match self {
            Listed::Live(operation) => operation.start_time,
            Listed::Finished(summary) => summary.start_time,
        }
    }

    fn user(self) -> &'a str {
        match self {
            Listed::Live(operation) => &operation.user,
            Listed::Finished(summary) => &summary.user,
        }
    }

    fn operation_type(self) -> OperationType {
        match self {
            Listed::Live(operation) => operation.operation_type,
            Listed::Finished(summary) => summary.operation_type,
        }
    }

    fn state(self) -> OperationState {
        match self {
            Listed::Live(operation) => operation.state,
            Listed::Finished(summary) => summary.state,
        }
    }

    fn has_failed_jobs(self) -> bool {
        match self {
            Listed::Live(operation) => operation.has_failed_jobs(),
            Listed::Finished(summary) => summary.has_failed_jobs,
        }
    }

    /// Its trees, and its pool in each.
    fn places(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let (live, finished): (&'a [_], &'a [_]) = match self {
            Listed::Live(operation) => (&operation.trees, &[]),
            Listed::Finished(summary) => (&[], &summary.pools),
        };
        let live = live.iter().map(|place| (place.tree.as_str(), place.pool.as_str()));
        live.chain(finished.iter().map(|(tree, pool)| (tree.as_str(), pool.as_str())))
    }

    /// Its own list of access, and its owners.
    pub fn access_lists(self) -> (&'a [Value], &'a [Value]) {
        match self {
            Listed::Live(operation) => (&operation.acl, &operation.owners),
            Listed::Finished(summary) => (&summary.acl, &summary.owners),
        }
    }

    /// Has it this text, in lower case, anywhere in what the substring filter searches?
    fn mentions(self, text: &str) -> bool {
        match self {
            Listed::Live(operation) => operation.summary().text.contains(text),
            Listed::Finished(summary) => summary.text.contains(text),
        }
    }
}

/// A page of `list_operations`: ids newest first, and the rest of the reply.
pub(crate) struct Page {
    /// Newest first.
    pub ids: Vec<OperationId>,
    /// `incomplete` and, if asked for, the counters.
    pub rest: Map,
}

/// Applies the filters of `query` to `newest_first`. Counters are progressive: each is computed
/// before its own filter and after those before it in the order tree, pool, user, state, type.
/// `may_access` is asked only if the query has the filter `access`.
pub(crate) fn list<'a>(
    newest_first: impl Iterator<Item = Listed<'a>>,
    query: &ListOperations,
    mut may_access: impl FnMut(Listed<'a>) -> bool,
) -> Result<Page, Failure> {
    let direction = match query.cursor_direction.as_deref() {
        None | Some("past") => Direction::Past,
        Some("future") => Direction::Future,
        Some("none") => Direction::None,
        Some(other) => {
            return Err(Failure::new(format!(
                "Unknown \"cursor_direction\" {other:?}: expected one of \"past\", \"future\", \"none\""
            )));
        }
    };
    let needle = query.filter.as_ref().map(|f| f.to_lowercase());
    let mut counts = Counts::default();
    let mut matching: Vec<(Time, OperationId)> = Vec::new();
    let mut incomplete = false;

    for s in newest_first {
        let in_window = query.from_time.is_none_or(|from| s.start_time() > from)
            && query.to_time.is_none_or(|to| s.start_time() <= to);
        if !in_window || needle.as_ref().is_some_and(|n| !s.mentions(n)) {
            continue;
        }
        if query.access.is_some() && !may_access(s) {
            continue;
        }
        if !counts.admit(s, query) {
            continue;
        }
        match (direction, query.cursor_time) {
            (Direction::Past, Some(cursor)) if s.start_time() > cursor => continue,
            (Direction::Future, Some(cursor)) if s.start_time() <= cursor => continue,
            _ => {}
        }
        if direction != Direction::Future && matching.len() == query.limit {
            incomplete = true;
            if !query.include_counters {
                break;
            }
            continue;
        }
        matching.push((s.start_time(), s.id()));
    }
    if direction == Direction::Future && matching.len() > query.limit {
        // The `limit` closest to the cursor are the oldest of them; the reply is newest first still.
        incomplete = true;
        matching.drain(..matching.len() - query.limit);
    }
    let mut rest = yson::map! { "incomplete" => incomplete };
    if query.include_counters {
        counts.write(&mut rest);
    }
    Ok(Page { ids: matching.into_iter().map(|(_, id)| id).collect(), rest })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Past,
    Future,
    None,
}

/// How often each name was seen. Hundreds of thousands of operations have few names among them.
#[derive(Default)]
struct Tally<'a> {
    places: FxHashMap<&'a str, usize>,
    counts: Vec<(&'a str, i64)>,
}

impl<'a> Tally<'a> {
    fn add(&mut self, name: &'a str) {
        let place = *self.places.entry(name).or_insert_with(|| {
            self.counts.push((name, 0));
            self.counts.len() - 1
        });
        self.counts[place].1 += 1;
    }

    /// In the order of names.
    fn into_map(mut self) -> Map {
        self.counts.sort_unstable();
        self.counts.into_iter().collect()
    }
}

#[derive(Default)]
struct Counts<'a> {
    trees: Tally<'a>,
    pools: Tally<'a>,
    users: Tally<'a>,
    states: Tally<'a>,
    types: Tally<'a>,
    failed_jobs: i64,
}

impl<'a> Counts<'a> {
    /// Counts the operation as far as it passes the filters, and says whether it passes all.
    fn admit(&mut self, s: Listed<'a>, query: &ListOperations) -> bool {
        for (tree, _) in s.places() {
            self.trees.add(tree);
        }
        let in_tree = |tree: &str| query.pool_tree.as_deref().is_none_or(|wanted| wanted == tree);
        if !s.places().any(|(tree, _)| in_tree(tree)) && query.pool_tree.is_some() {
            return false;
        }
        for (_, pool) in s.places().filter(|(tree, _)| in_tree(tree)) {
            self.pools.add(pool);
        }
        if let Some(wanted) = &query.pool
            && !s.places().any(|(tree, pool)| in_tree(tree) && pool == wanted.as_str())
        {
            return false;
        }
        self.users.add(s.user());
        if query.user.as_ref().is_some_and(|u| u != s.user()) {
            return false;
        }
        self.states.add(s.state().as_str());
        if query.state.as_ref().is_some_and(|x| x != s.state().as_str()) {
            return false;
        }
        self.types.add(s.operation_type().as_str());
        if query.operation_type.as_ref().is_some_and(|x| x != s.operation_type().as_str()) {
            return false;
        }
        self.failed_jobs += i64::from(s.has_failed_jobs());
        query.with_failed_jobs.is_none_or(|wanted| wanted == s.has_failed_jobs())
    }

    fn write(self, rest: &mut Map) {
        rest.insert("pool_tree_counts", self.trees.into_map());
        rest.insert("pool_counts", self.pools.into_map());
        rest.insert("user_counts", self.users.into_map());
        rest.insert("state_counts", self.states.into_map());
        rest.insert("type_counts", self.types.into_map());
        rest.insert("failed_jobs_count", self.failed_jobs);
    }
}

#[cfg(test)]
mod tests;
