//! The log on a disk that fails: whatever happens to it, numbers are right, nothing is there twice, and
//! what is missing is said.

use super::files::{EventFiles, Limits};
use super::index::list;
use super::read::{Page, Reader, read};
use super::{EventLog, News, Outbox};
use kernel::EventFilter;
use kernel::command::EventsFrom;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use yson::Map;

/// What does not work at the moment.
#[derive(Clone, Default)]
pub struct Faults(Arc<Mutex<Broken>>);

#[derive(Default)]
struct Broken {
    full: bool,
    no_sync: bool,
    no_create: bool,
    syncs: u64,
}

impl Faults {
    fn set(&self, change: impl Fn(&mut Broken)) {
        change(&mut self.0.lock().expect("nobody panics"));
    }
    pub fn create(&self) -> io::Result<()> {
        match self.0.lock().expect("nobody panics").no_create {
            true => Err(io::ErrorKind::PermissionDenied.into()),
            false => Ok(()),
        }
    }
    /// A full disk takes half of it.
    pub fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        if self.0.lock().expect("nobody panics").full {
            file.write_all(&bytes[..bytes.len() / 2])?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
    pub fn sync(&self) -> io::Result<()> {
        let mut broken = self.0.lock().expect("nobody panics");
        broken.syncs += 1;
        match broken.no_sync {
            true => Err(io::Error::other("the disk is on fire")),
            false => Ok(()),
        }
    }
}

fn event(number: u64) -> Map {
    yson::map! {"number" => number, "event" => "job_started", "text" => "x".repeat(50)}
}

fn open(directory: &Path, limits: Limits) -> EventFiles {
    EventFiles::open(directory, limits, None).expect("a directory")
}

fn add(files: &mut EventFiles, numbers: RangeInclusive<u64>) {
    numbers.for_each(|number| files.append(number, event(number)).expect("room"));
    files.flush().expect("room");
}

fn write(directory: &Path, limits: Limits, numbers: RangeInclusive<u64>) -> EventFiles {
    let mut files = open(directory, limits);
    add(&mut files, numbers);
    files
}

fn page(reader: &Reader, from: EventsFrom, limit: usize) -> Page {
    read(reader, from, limit, &EventFilter::default()).expect("readable")
}

fn numbers(page: &Page) -> Vec<u64> {
    page.events.iter().filter_map(|e| e.get("number")?.as_u64()).collect()
}

fn all(reader: &Reader) -> Vec<u64> {
    numbers(&page(reader, EventsFrom::Oldest, usize::MAX))
}

mod of_files {
    use super::*;

    #[test]
    fn what_is_told_twice_is_written_once() {
        let directory = tempfile::tempdir().expect("a directory");
        write(directory.path(), Limits::default(), 1..=5);
        let files = write(directory.path(), Limits::default(), 3..=8);
        let log = files.reader();
        assert_eq!(files.last(), 8);
        let got = page(&log, EventsFrom::Oldest, 100);
        assert_eq!((numbers(&got), got.next, got.oldest), ((1..=8).collect(), 9, 1));
        for (from, limit, expected, next) in [
            (EventsFrom::Number(7), 1, vec![7], 8),
            (EventsFrom::Number(9), 10, vec![], 9),
            (EventsFrom::Last(3), 10, vec![6, 7, 8], 9),
            (EventsFrom::Last(0), 10, vec![], 9),
            (EventsFrom::Last(100), 2, vec![1, 2], 3),
        ] {
            let got = page(&log, from, limit);
            assert_eq!((numbers(&got), got.next), (expected, next), "{from:?} {limit}");
        }
    }

    #[test]
    fn files_are_bounded() {
        let directory = tempfile::tempdir().expect("a directory");
        let limits = Limits { file_size: 500, files: 3 };
        let mut files = write(directory.path(), limits, 1..=100);
        files.sync().expect("room");
        let kept = list(directory.path()).expect("readable");
        assert_eq!(kept.len(), 3);
        let size: u64 = kept.iter().filter_map(|(_, path)| Some(path.metadata().ok()?.len())).sum();
        assert!(size < 3 * 700, "{size}");
        for files in [files, open(directory.path(), limits)] {
            let got = page(&files.reader(), EventsFrom::Number(1), 1_000);
            assert_eq!(got.oldest, kept[0].0);
            assert_eq!(numbers(&got), (got.oldest..=100).collect::<Vec<_>>(), "across files, without a gap");
            assert_eq!(got.lost, [], "what is too old is not lost");
        }
    }

    #[test]
    fn half_a_line_is_removed() {
        let long = format!("{{\"number\":4,\"event\":\"job_{}", "x".repeat(200));
        for half in ["{", "{\"number\":4,\"event\":\"jo", &long] {
            let directory = tempfile::tempdir().expect("a directory");
            write(directory.path(), Limits::default(), 1..=3);
            let (_, path) = list(directory.path()).expect("readable").pop().expect("a file");
            let mut file = OpenOptions::new().append(true).open(path).expect("there");
            file.write_all(half.as_bytes()).expect("room");
            assert_eq!(all(&open(directory.path(), Limits::default()).reader()), [1, 2, 3]);
            let files = write(directory.path(), Limits::default(), 4..=5);
            assert_eq!(all(&files.reader()), [1, 2, 3, 4, 5]);
            assert_eq!(list(directory.path()).expect("readable").len(), 1);
        }
    }

    #[test]
    fn a_gap_is_seen_by_the_writer_by_readers_and_by_the_next_life() {
        let directory = tempfile::tempdir().expect("a directory");
        write(directory.path(), Limits::default(), 1..=2);
        let mut files = write(directory.path(), Limits::default(), 10..=11);
        assert_eq!(files.take_lost(), [(3, 9)]);
        assert_eq!(files.take_lost(), []);
        for log in [files.reader(), open(directory.path(), Limits::default()).reader()] {
            let got = page(&log, EventsFrom::Number(2), 10);
            assert_eq!((numbers(&got), got.lost), (vec![2, 10, 11], vec![(3, 9)]));
            let got = page(&log, EventsFrom::Number(5), 10);
            assert_eq!((numbers(&got), got.lost), (vec![10, 11], vec![(5, 9)]));
            assert_eq!(page(&log, EventsFrom::Number(10), 10).lost, []);
        }
        let mut files = write(directory.path(), Limits::default(), 11..=12);
        assert_eq!((files.last(), files.take_lost()), (12, vec![(3, 9)]));
    }

    /// Somebody has removed a file, or a part of one.
    #[test]
    fn files_that_were_touched_are_gaps() {
        let directory = tempfile::tempdir().expect("a directory");
        let limits = Limits { file_size: 500, files: 100 };
        write(directory.path(), limits, 1..=40);
        let files = list(directory.path()).expect("readable");
        let (a, b, c) = (files[1].0, files[2].0, files[3].0);
        std::fs::remove_file(&files[1].1).expect("there");
        let bytes = std::fs::read(&files[2].1).expect("there");
        let second_line = bytes.iter().position(|b| *b == b'\n').expect("a line") + 1;
        std::fs::write(&files[2].1, &bytes[..second_line + 5]).expect("there");
        let mut opened = open(directory.path(), limits);
        assert_eq!(opened.take_lost(), [(a, b - 1), (b + 1, c - 1)]);
        let got = page(&opened.reader(), EventsFrom::Oldest, 1_000);
        assert_eq!(got.lost, [(a, b - 1), (b + 1, c - 1)]);
        assert_eq!(numbers(&got), (1..a).chain(b..=b).chain(c..=40).collect::<Vec<_>>());
    }

    /// A damaged newest file is left as it is; what the store has is written again.
    #[test]
    fn what_may_not_have_been_synced_is_taken_from_the_store() {
        let directory = tempfile::tempdir().expect("a directory");
        write(directory.path(), Limits::default(), 1..=9);
        let mut files = EventFiles::open(directory.path(), Limits::default(), Some(6)).expect("there");
        assert_eq!((files.last(), all(&files.reader())), (5, vec![1, 2, 3, 4, 5]));
        add(&mut files, 6..=9);
        assert_eq!(all(&files.reader()), (1..=9).collect::<Vec<_>>());
        // A number that the log does not reach changes nothing.
        let files = EventFiles::open(directory.path(), Limits::default(), Some(50)).expect("there");
        assert_eq!(files.last(), 9);
    }

    /// The index finds every number, in files of this life and of earlier ones.
    #[test]
    fn every_number_is_found() {
        let directory = tempfile::tempdir().expect("a directory");
        let limits = Limits { file_size: 200_000, files: 100 };
        let files = write(directory.path(), limits, 1..=9_000);
        assert!(list(directory.path()).expect("readable").len() > 2);
        for log in [files.reader(), open(directory.path(), limits).reader()] {
            for from in (1..=9_000).step_by(97).chain([9_000]) {
                let got = page(&log, EventsFrom::Number(from), 3);
                let expected: Vec<u64> = (from..=9_000).take(3).collect();
                assert_eq!(numbers(&got), expected);
            }
        }
    }

    /// An answer has what is wanted and no more of it than asked for, and who goes on sees each once.
    #[test]
    fn wanted_events_are_found_among_others() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut files = open(directory.path(), Limits { file_size: 20_000, files: 100 });
        for number in 1..=1_000_u64 {
            let user = if number % 100 == 0 { "ann" } else { "bob" };
            let quote = r#""user":"ann""#;
            let mut event =
                yson::map! {"number" => number, "event" => "audit", "user" => user, "text" => quote};
            if number % 7 == 0 {
                event = event.with("path", format!("//tmp/\u{e9} \"x\"/{number}"));
            }
            files.append(number, event).expect("room");
        }
        files.flush().expect("room");
        assert!(list(directory.path()).expect("readable").len() > 2);
        let log = files.reader();
        let some = |word: &str| Some(word.to_owned());
        let of_ann = EventFilter { user: some("ann"), ..EventFilter::default() };
        let got = read(&log, EventsFrom::Oldest, 3, &of_ann).expect("readable");
        assert_eq!((numbers(&got), got.next, got.newest), (vec![100, 200, 300], 301, 1_000));
        let got = read(&log, EventsFrom::Number(got.next), 100, &of_ann).expect("readable");
        assert_eq!(numbers(&got), (4..=10).map(|n| n * 100).collect::<Vec<_>>());
        assert_eq!(got.next, 1_001, "what was looked at is not looked at again");
        let got = read(&log, EventsFrom::Last(150), 100, &of_ann).expect("readable");
        assert_eq!(numbers(&got), [900, 1_000]);
        let below = EventFilter { path: some("//tmp/\u{e9} \"x\""), ..of_ann.clone() };
        let got = read(&log, EventsFrom::Oldest, 100, &below).expect("readable");
        assert_eq!(numbers(&got), [700]);
        let of_eve = EventFilter { user: some("eve"), ..EventFilter::default() };
        let got = read(&log, EventsFrom::Oldest, 100, &of_eve).expect("readable");
        assert_eq!((got.events.len(), got.next), (0, 1_001));
    }

    /// Followers cost nothing: the file that has nothing new is not even opened.
    #[test]
    fn who_is_up_to_date_opens_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let files = write(directory.path(), Limits::default(), 1..=3);
        std::fs::remove_dir_all(directory.path()).expect("there");
        let got = page(&files.reader(), EventsFrom::Number(4), 10);
        assert_eq!((got.events.len(), got.next, got.lost), (0, 4, vec![]));
        assert_eq!(all(&files.reader()), [], "and one that is gone is passed over");
    }

    #[test]
    fn after_an_error_only_what_was_synced_is_believed() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut files = write(directory.path(), Limits::default(), 1..=3);
        let faults = files.disk.faults.clone();
        files.sync().expect("room");
        add(&mut files, 4..=5);
        faults.set(|f| f.no_sync = true);
        files.sync().expect_err("on fire");
        files.rewind();
        assert_eq!((files.last(), all(&files.reader())), (3, vec![1, 2, 3]));
        // It would succeed now, and say nothing about 4 and 5.
        faults.set(|f| f.no_sync = false);
        assert_eq!(files.sync().expect("nothing to sync"), 3);
        add(&mut files, 4..=6);
        assert_eq!(files.sync().expect("room"), 6);
        let there: Vec<u64> = list(directory.path()).expect("readable").iter().map(|(n, _)| *n).collect();
        assert_eq!(there, [1, 4], "in a new file");
        assert_eq!(all(&files.reader()), [1, 2, 3, 4, 5, 6]);
        assert_eq!(all(&open(directory.path(), Limits::default()).reader()), [1, 2, 3, 4, 5, 6]);
    }
}

mod of_the_writer {
    use super::*;

    /// A store that has records of two events each until they are written.
    #[derive(Clone, Default)]
    struct Store(Arc<Mutex<BTreeMap<u64, Vec<u8>>>>);

    impl Store {
        fn add(&self, first: u64) -> Vec<u8> {
            let two: Vec<yson::Value> =
                vec![yson::map! {"event" => "a"}.into(), yson::map! {"event" => "b"}.into()];
            let stored = yson::to_binary(&two.into());
            self.0.lock().expect("nobody panics").insert(first, stored.clone());
            stored
        }
        fn forget(&self, before: u64) {
            self.0.lock().expect("nobody panics").retain(|first, _| *first >= before);
        }
        fn outbox(&self) -> Box<Outbox> {
            let store = self.clone();
            Box::new(move |from, _| {
                let records = store.0.lock().expect("nobody panics");
                Ok(records
                    .iter()
                    .filter(|(first, _)| **first + 2 > from)
                    .map(|(n, r)| (*n, r.clone()))
                    .collect())
            })
        }
    }

    struct Life {
        log: EventLog,
        news: Receiver<News>,
        faults: Faults,
    }

    fn start(directory: &Path, store: &Store) -> Life {
        let files = open(directory, Limits::default());
        let faults = files.disk.faults.clone();
        let (sender, news) = channel();
        let log = EventLog::start(files, store.outbox(), move |news| drop(sender.send(news)));
        Life { log: log.expect("a thread"), news, faults }
    }

    impl Life {
        fn append(&self, store: &Store, first: u64) {
            self.log.append(first, store.add(first));
        }
        /// The next news that are wanted.
        fn wait(&self, wanted: impl Fn(&News) -> bool) -> News {
            loop {
                let news =
                    self.news.recv_timeout(Duration::from_secs(120)).expect("the writer says something");
                if wanted(&news) {
                    return news;
                }
            }
        }
        fn is_failing(&self, text: &str) {
            self.wait(|news| matches!(news, News::Failing(error) if error.contains(text)));
        }
        fn wait_written(&self, number: u64) {
            self.wait(|news| *news == News::Written(number));
        }
        fn stop(self) -> Vec<News> {
            self.log.stop();
            self.news.try_iter().collect()
        }
    }

    #[test]
    fn says_what_is_safe_and_takes_it_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::default();
        let life = start(directory.path(), &store);
        life.append(&store, 1);
        life.append(&store, 3);
        assert_eq!(life.stop().last(), Some(&News::Written(4)));
        let life = start(directory.path(), &store);
        life.append(&store, 3);
        life.append(&store, 5);
        let reader = life.log.reader();
        assert_eq!(life.stop().last(), Some(&News::Written(6)));
        let got = page(&reader, EventsFrom::Oldest, 100);
        let kinds: Vec<&str> = got.events.iter().filter_map(|e| e.get("event")?.as_str()).collect();
        assert_eq!((kinds, got.next), (vec!["a", "b", "a", "b", "a", "b"], 7));
    }

    /// Whatever fails, and however long: it is told, the store keeps what comes, and when it works again
    /// everything is there once, without a restart.
    #[test]
    fn recovers_from_every_fault_without_a_loss() {
        type Fault = fn(&mut Broken, bool);
        let faults: [(&str, Fault); 2] =
            [("no storage space", |f, is| f.full = is), ("on fire", |f, is| f.no_sync = is)];
        for (text, fault) in faults {
            let directory = tempfile::tempdir().expect("a directory");
            let store = Store::default();
            let life = start(directory.path(), &store);
            life.append(&store, 1);
            life.wait_written(2);
            life.faults.set(|f| fault(f, true));
            life.append(&store, 3);
            life.is_failing(text);
            (5..100).step_by(2).for_each(|n| life.append(&store, n));
            assert_eq!(all(&life.log.reader()), [1, 2]);
            life.faults.set(|f| fault(f, false));
            life.wait_written(100);
            assert_eq!(all(&life.log.reader()), (1..=100).collect::<Vec<_>>());
            let news = life.stop();
            assert!(!news.iter().any(|n| matches!(n, News::Lost { .. })), "{news:?}");
        }
    }

    /// The directory goes away under a running server: it is made again, with what is in the store.
    #[test]
    fn a_removed_directory_is_made_again() {
        let parent = tempfile::tempdir().expect("a directory");
        let directory = parent.path().join("event-log");
        let store = Store::default();
        let life = start(&directory, &store);
        life.append(&store, 1);
        life.wait_written(2);
        store.forget(3);
        std::fs::remove_dir_all(&directory).expect("there");
        life.faults.set(|f| f.no_create = true);
        life.append(&store, 3);
        life.is_failing("No such file");
        life.is_failing("permission denied");
        life.faults.set(|f| f.no_create = false);
        life.append(&store, 5);
        life.wait_written(6);
        let got = page(&life.log.reader(), EventsFrom::Oldest, 100);
        assert_eq!((numbers(&got), got.oldest, got.lost), (vec![3, 4, 5, 6], 3, vec![]));
        let news = life.stop();
        assert!(!news.iter().any(|n| matches!(n, News::Lost { .. })), "{news:?}");
    }

    /// The store has given up waiting: that is told, by number.
    #[test]
    fn what_nobody_has_any_more_is_lost_and_said_so() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::default();
        let life = start(directory.path(), &store);
        life.append(&store, 1);
        life.wait_written(2);
        life.faults.set(|f| f.full = true);
        (3..50).step_by(2).for_each(|n| life.append(&store, n));
        life.is_failing("no storage space");
        store.forget(41);
        life.faults.set(|f| f.full = false);
        let lost = life.wait(|news| matches!(news, News::Lost { .. }));
        assert_eq!(lost, News::Lost { from: 3, to: 40 });
        let got = page(&life.log.reader(), EventsFrom::Oldest, 100);
        assert_eq!((got.lost, got.next), (vec![(3, 40)], 51));
        life.stop();
        // The next life says so too.
        let life = start(directory.path(), &store);
        assert_eq!(life.wait(|news| matches!(news, News::Lost { .. })), News::Lost { from: 3, to: 40 });
        life.stop();
    }

    /// A stop on a broken disk says nothing that is not true, and the next life has everything.
    #[test]
    fn a_stop_while_the_disk_fails_skips_nothing() {
        type Fault = fn(&mut Broken);
        let faults: [Fault; 3] = [|f| f.full = true, |f| f.no_sync = true, |f| f.no_create = true];
        for fault in faults {
            let directory = tempfile::tempdir().expect("a directory");
            let store = Store::default();
            let life = start(directory.path(), &store);
            life.faults.set(fault);
            (1..10).step_by(2).for_each(|n| life.append(&store, n));
            let news = life.stop();
            assert!(!news.iter().any(|n| matches!(n, News::Written(n) if *n > 0)), "{news:?}");
            let life = start(directory.path(), &store);
            (1..14).step_by(2).for_each(|n| life.append(&store, n));
            let reader = life.log.reader();
            let news = life.stop();
            assert_eq!(news.last(), Some(&News::Written(14)), "{news:?}");
            assert_eq!(all(&reader), (1..=14).collect::<Vec<_>>());
        }
    }
}
