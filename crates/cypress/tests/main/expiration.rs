//! `expiration_time` and `expiration_timeout`: values, and the index of what expires when. That the index follows from
//! the records is checked by the console everywhere.

use crate::console::{Console, check};
use cypress::{Context, Last};
use expect_test::expect;
use vocab::{ObjectId, Span, Time};

#[test]
fn values() {
    check(
        r#"
        create table //tmp/t -- attributes={expiration_timeout=5000;expiration_time="2030-01-02T03:04:05Z"}
        get //tmp/t/@ -- attributes=[expiration_time;expiration_timeout;user_attribute_keys]
        set //tmp/t/@expiration_time 1800000000123u
        get //tmp/t/@expiration_time
        multiset //tmp/t {expiration_timeout=7u;mine=1}
        get //tmp/t/@expiration_timeout
        remove //tmp/t/@expiration_time
        remove //tmp/t/@expiration_time
        remove //tmp/t/@expiration_time -- force=%true
        exists //tmp/t/@expiration_time
        remove //tmp/t/@*
        exists //tmp/t/@expiration_timeout
        set //tmp/t/@expiration_timeout 0
        set //tmp/t/@expiration_timeout -1
        set //tmp/t/@expiration_timeout "5m"
        set //tmp/t/@expiration_timeout 1.5
        set //tmp/t/@expiration_timeout 18446744073709551615u
        set //tmp/t/@expiration_time tomorrow
        set //tmp/t/@expiration_time "2030-13-02T03:04:05Z"
        set //tmp/t/@expiration_time -1
        set //tmp/t/@expiration_time #
        create table //tmp/u -- attributes={expiration_timeout=bad}
        exists //tmp/u
        "#,
        expect![[r#"
            create table //tmp/t -- attributes={expiration_timeout=5000;expiration_time="2030-01-02T03:04:05Z"}
                ok
            get //tmp/t/@ -- attributes=[expiration_time;expiration_timeout;user_attribute_keys]
                {"expiration_time"="2030-01-02T03:04:05.000000Z";"expiration_timeout"=5000;"user_attribute_keys"=[];}
            set //tmp/t/@expiration_time 1800000000123u
                ok
            get //tmp/t/@expiration_time
                "2027-01-15T08:00:00.123000Z"
            multiset //tmp/t {expiration_timeout=7u;mine=1}
                ok
            get //tmp/t/@expiration_timeout
                7
            remove //tmp/t/@expiration_time
                ok
            remove //tmp/t/@expiration_time
                500: Attribute "expiration_time" of //tmp/t is not found
            remove //tmp/t/@expiration_time -- force=%true
                ok
            exists //tmp/t/@expiration_time
                false
            remove //tmp/t/@*
                ok
            exists //tmp/t/@expiration_timeout
                true
            set //tmp/t/@expiration_timeout 0
                1: Attribute //tmp/t/@expiration_timeout: expected milliseconds, an integer from 1 to 253402300799000, found 0
            set //tmp/t/@expiration_timeout -1
                1: Attribute //tmp/t/@expiration_timeout: expected milliseconds, an integer from 1 to 253402300799000, found -1
            set //tmp/t/@expiration_timeout "5m"
                1: Attribute //tmp/t/@expiration_timeout: expected milliseconds, an integer from 1 to 253402300799000, found "5m"
            set //tmp/t/@expiration_timeout 1.5
                1: Attribute //tmp/t/@expiration_timeout: expected milliseconds, an integer from 1 to 253402300799000, found 1.5
            set //tmp/t/@expiration_timeout 18446744073709551615u
                1: Attribute //tmp/t/@expiration_timeout: expected milliseconds, an integer from 1 to 253402300799000, found 18446744073709551615u
            set //tmp/t/@expiration_time tomorrow
                1: Attribute //tmp/t/@expiration_time: expected a time such as "2026-01-02T03:04:05.000000Z" or milliseconds since 1970, not after the year 9999, found "tomorrow"
            set //tmp/t/@expiration_time "2030-13-02T03:04:05Z"
                1: Attribute //tmp/t/@expiration_time: expected a time such as "2026-01-02T03:04:05.000000Z" or milliseconds since 1970, not after the year 9999, found "2030-13-02T03:04:05Z"
            set //tmp/t/@expiration_time -1
                1: Attribute //tmp/t/@expiration_time: expected a time such as "2026-01-02T03:04:05.000000Z" or milliseconds since 1970, not after the year 9999, found -1
            set //tmp/t/@expiration_time #
                1: Attribute //tmp/t/@expiration_time: expected a time such as "2026-01-02T03:04:05.000000Z" or milliseconds since 1970, not after the year 9999, found #
            create table //tmp/u -- attributes={expiration_timeout=bad}
                1: Attribute //tmp/u/@expiration_timeout: expected milliseconds, an integer from 1 to 253402300799000, found "bad"
            exists //tmp/u
                false
        "#]],
    );
}

#[test]
fn not_of_what_is_part_of_the_system() {
    check(
        r#"
        set //@expiration_timeout 5
        set //sys/@expiration_timeout 5
        set //sys/users/root/@expiration_time 5
        set //tmp/@expiration_time 5
        create group //sys/groups/g -- attributes={expiration_timeout=5}
        create map_node //sys/mine -- attributes={expiration_timeout=5}
        "#,
        expect![[r#"
            set //@expiration_timeout 5
                1: Attribute //@expiration_timeout cannot be set to 5: the node is part of the system
            set //sys/@expiration_timeout 5
                1: Attribute //sys/@expiration_timeout cannot be set to 5: the node is part of the system
            set //sys/users/root/@expiration_time 5
                1: Attribute //sys/users/root/@expiration_time cannot be set to 5: the node is part of the system
            set //tmp/@expiration_time 5
                1: Attribute //tmp/@expiration_time cannot be set to 5: the node is part of the system
            create group //sys/groups/g -- attributes={expiration_timeout=5}
                1: Attribute //sys/groups/g/@expiration_timeout cannot be set to 5: the node is part of the system
            create map_node //sys/mine -- attributes={expiration_timeout=5}
                ok
        "#]],
    );
}

/// Paths of what expires, with the seconds from now.
fn expiring(console: &Console) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    let mut after = None;
    while let Some(next) = console.tree.next_expired(Time::MAX, after) {
        all.push((console.tree.path(next.1), next.0.since(console.now).as_millis() / 1000));
        after = Some(next);
    }
    all
}

fn entries(of: &[(&str, u64)]) -> Vec<(String, u64)> {
    of.iter().map(|(path, seconds)| ((*path).to_owned(), *seconds)).collect()
}

#[test]
fn the_index() {
    let mut c = Console::new();
    c.say("create table //tmp/a -- attributes={expiration_timeout=100000}");
    c.say("set //tmp/m {x={y=1}}");
    c.say("set //tmp/m/x/@expiration_timeout 50000");
    assert_eq!(expiring(&c), entries(&[("//tmp/m/x", 50), ("//tmp/a", 98)]));
    // Changes put it off, of a map those of what is in it; whichever comes first counts.
    c.say("set //tmp/a/@mine 1");
    c.say("set //tmp/m/x/z 1");
    c.say("set //tmp/m/x/y 2");
    assert_eq!(expiring(&c), entries(&[("//tmp/m/x", 49), ("//tmp/a", 98)]));
    c.say("set //tmp/a/@expiration_time 1767323060000");
    let of_a = Time::from_secs(1_767_323_060);
    assert_eq!(c.tree.next_expired(of_a, None).map(|(at, _)| at), Some(of_a));
    assert_eq!(c.tree.next_expired(Time(of_a.0 - 1), None), None);
    // Copies only if this is asked for, of everything below.
    c.say("copy //tmp/m //tmp/n");
    c.say("copy //tmp/a //tmp/b -- preserve_expiration_time=%true");
    c.say("copy //tmp/m //tmp/o -- preserve_expiration_timeout=%true;preserve_modification_time=%true");
    c.say("remove //tmp/a");
    let paths = |c: &Console| expiring(c).into_iter().map(|(path, _)| path).collect::<Vec<_>>();
    assert_eq!(paths(&c), ["//tmp/b", "//tmp/m/x", "//tmp/o/x"]);
    c.say("move //tmp/o //tmp/p");
    c.say("remove //tmp/m -- recursive=%true");
    c.say("remove //tmp/b/@expiration_time");
    assert!(!c.tree.anything_expires(), "{:?}", expiring(&c));
}

#[test]
fn uses_put_it_off_and_are_not_all_written_down() {
    let mut c = Console::new();
    c.say("create table //tmp/a -- attributes={expiration_timeout=160000}");
    c.say("create table //tmp/b -- attributes={expiration_time=\"2030-01-02T03:04:05Z\"}");
    let made = c.now;
    let id = |c: &Console, path: &str| c.place(path, Last::Follow).expect("it is there").node;
    let (a, b) = (id(&c, "//tmp/a"), id(&c, "//tmp/b"));
    let mut renew = |id: ObjectId, seconds: u64| {
        let now = made + Span::from_secs(seconds);
        let context = Context { now, user: "root", ids: &mut c.ids };
        let done = c.tree.edit(context, |edit| {
            edit.renew(id);
            Ok(())
        });
        let node = c.tree.node(id).expect("it is there");
        // Whatever was written down, it stays for the whole timeout.
        let ends = node.expires().expect("it expires");
        assert!(id == b || ends >= now + Span::from_secs(160), "{seconds}");
        (done.expect("nothing to go wrong").changes.len(), node.access_time().since(made).as_millis() / 1000)
    };
    assert_eq!(renew(a, 3), (1, 3));
    assert_eq!(renew(a, 13), (0, 3));
    assert_eq!(renew(a, 14), (1, 14));
    assert_eq!(renew(b, 14).0, 0, "it goes however it is used");
}
