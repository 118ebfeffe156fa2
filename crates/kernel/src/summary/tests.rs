use super::*;

fn op(n: u32, user: &str, pool: &str, state: OperationState) -> Summary {
    Summary {
        id: OperationId(vocab::Guid([n, 0, 0x103e8, n])),
        start_time: Time::from_secs(u64::from(n)),
        finish_time: None,
        user: user.into(),
        operation_type: OperationType::Vanilla,
        state,
        alias: None,
        pools: vec![("physical".into(), pool.into())],
        has_failed_jobs: n.is_multiple_of(2),
        acl: Arc::default(),
        owners: Arc::default(),
        search: format!("title {n}"),
        archived_bytes: u64::from(n),
        text: String::new(),
    }
    .complete()
}

fn all() -> Vec<Summary> {
    vec![
        op(5, "ann", "a", OperationState::Running),
        op(4, "bob", "b", OperationState::Failed),
        op(3, "ann", "b", OperationState::Completed),
        op(2, "ann", "a", OperationState::Completed),
        op(1, "bob", "a", OperationState::Aborted),
    ]
}

fn ids(query: ListOperations) -> (Vec<u32>, bool) {
    let all = all();
    let page = list(all.iter().map(Listed::Finished), &query, |_| true).expect("a good query");
    let incomplete = page.rest.get("incomplete").and_then(Value::as_bool).expect("incomplete is there");
    (page.ids.iter().map(|id| id.0.0[0]).collect(), incomplete)
}

fn query() -> ListOperations {
    ListOperations { limit: 100, include_counters: true, ..ListOperations::default() }
}

#[test]
fn filters() {
    assert_eq!(ids(query()).0, [5, 4, 3, 2, 1]);
    assert_eq!(ids(ListOperations { user: Some("ann".into()), ..query() }).0, [5, 3, 2]);
    assert_eq!(ids(ListOperations { pool: Some("b".into()), ..query() }).0, [4, 3]);
    assert_eq!(ids(ListOperations { pool_tree: Some("x".into()), ..query() }).0, [0; 0]);
    for (text, expected) in
        [("TITLE 4", vec![4]), ("ANN", vec![5, 3, 2]), ("5-0-103e8-5", vec![5]), ("abort", vec![1])]
    {
        assert_eq!(ids(ListOperations { filter: Some(text.into()), ..query() }).0, expected, "{text}");
    }
    assert_eq!(ids(ListOperations { with_failed_jobs: Some(true), ..query() }).0, [4, 2]);
    let window =
        ListOperations { from_time: Some(Time::from_secs(2)), to_time: Some(Time::from_secs(4)), ..query() };
    assert_eq!(ids(window).0, [4, 3], "from is exclusive, to inclusive");
}

#[test]
fn paging() {
    let past =
        |cursor, limit| ListOperations { cursor_time: Some(Time::from_secs(cursor)), limit, ..query() };
    assert_eq!(ids(past(4, 2)), (vec![4, 3], true));
    assert_eq!(ids(past(2, 2)), (vec![2, 1], false));
    let future = ListOperations { cursor_direction: Some("future".into()), ..past(1, 2) };
    assert_eq!(ids(future), (vec![3, 2], true), "the closest to the cursor, newest first");
    let all = all();
    let bad = ListOperations { cursor_direction: Some("up".into()), ..query() };
    assert!(list(all.iter().map(Listed::Finished), &bad, |_| true).is_err());
}

#[test]
fn counters_are_progressive() {
    let all = all();
    let q = ListOperations { user: Some("ann".into()), state: Some("completed".into()), ..query() };
    let page = list(all.iter().map(Listed::Finished), &q, |_| true).expect("a good query");
    let count =
        |group: &str, key: &str| page.rest.get(group).and_then(|g| g.get(key)).and_then(Value::as_i64);
    assert_eq!(count("pool_counts", "a"), Some(3));
    assert_eq!(count("user_counts", "bob"), Some(2), "before the user filter");
    assert_eq!(count("state_counts", "running"), Some(1), "after the user filter, before the state filter");
    assert_eq!(count("state_counts", "failed"), None);
    assert_eq!(count("type_counts", "vanilla"), Some(2));
}

#[test]
fn durable_form_round_trips() {
    for s in all() {
        assert_eq!(Summary::from_value(&s.to_value()), Some(s));
    }
}
