use std::fs;
use std::time::Duration;

use super::super::layout::Layout;
use super::super::records;
use super::*;
use vocab::Guid;

struct Place {
    directory: tempfile::TempDir,
}

/// The clerk answers within this time, or a test fails.
const LIMIT: Duration = Duration::from_secs(60);

impl Place {
    fn new() -> Place {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["run", "tmp", "etc"] {
            fs::create_dir(directory.path().join(name)).expect("made");
        }
        Place { directory }
    }
    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
    fn node(&self, name: &str) -> Users {
        self.node_with(name, Vec::new(), Path::new("/nowhere/getent"))
    }
    fn node_with(&self, name: &str, of_slots: Vec<u32>, getent: &Path) -> Users {
        let data = self.at(name);
        fs::create_dir_all(&data).expect("made");
        let host = Host {
            places: vec![self.at("run"), self.at("tmp")],
            files: ["passwd", "group", "subuid", "subgid"].map(|file| self.at("etc").join(file)).into(),
            getent: getent.to_owned(),
        };
        Users::of_host(&data, "this boot", of_slots, host).expect("a thread")
    }
    fn claims(&self) -> usize {
        let entries = fs::read_dir(self.at("run")).expect("there").flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(claim::PREFIX)).count()
    }
}

/// As the agent does it, at once.
impl Users {
    fn claim_with(&mut self, wanted: JobUids, living: &[u32]) -> Result<(), Failure> {
        let (sender, receiver) = channel();
        self.claim(wanted, living.iter().copied(), move |claimed| sender.send(claimed).expect("we wait"));
        let claimed = receiver.recv_timeout(LIMIT).expect("an answer of the clerk");
        self.claimed(claimed)
    }
    fn claim_now(&mut self, wanted: JobUids) -> Result<(), Failure> {
        self.claim_with(wanted, &[])
    }
    fn look_now(&mut self, uid: u32) -> Result<(), Failure> {
        let (sender, receiver) = channel();
        self.look(uid, move |looked| sender.send(looked).expect("we wait"));
        let looked = receiver.recv_timeout(LIMIT).expect("an answer of the clerk");
        self.looked(looked)
    }
    fn owner(&mut self, uid: Option<u32>) -> Result<Owner, Failure> {
        for _ in 0..2 {
            match self.of(uid) {
                Verdict::Granted(owner) => return Ok(owner),
                Verdict::Refused(why) => return Err(why),
                Verdict::Ask => self.look_now(uid.expect("named"))?,
            }
        }
        panic!("the clerk was asked, and is to be asked again");
    }
}

fn uids(cluster: u32, first: u32, last: u32) -> JobUids {
    let range = UidRange::new(first, last).expect("a range");
    JobUids { cluster_id: Guid([cluster, 0, 0, 1]), range, claim: range }
}

fn with_job(host: &Place, node: &str) -> PathBuf {
    let job = Layout::at(&host.at(node)).job(3);
    fs::create_dir_all(&job).expect("made");
    fs::write(job.join(records::NAME), "a record").expect("written");
    job.join(records::NAME)
}

/// S9: two clusters on one host.
#[test]
fn a_range_belongs_to_one_cluster_of_a_host() {
    let host = Place::new();
    let (mut one, mut same, mut other) = (host.node("one"), host.node("same"), host.node("other"));
    one.claim_now(uids(1, 100_000, 110_000)).expect("free");
    same.claim_now(uids(1, 100_000, 110_000)).expect("a second node of the cluster");
    for _ in 0..2 {
        let refused = other.claim_now(uids(2, 110_000, 120_000)).expect_err("taken").to_string();
        assert!(refused.contains("100000-110000") && refused.contains("job_uids"), "{refused}");
        assert!(
            refused.contains(&host.at("one").display().to_string())
                || refused.contains(&host.at("same").display().to_string())
        );
        other.owner(Some(115_000)).expect_err("nothing is claimed");
    }
    other.claim_now(uids(2, 110_001, 120_000)).expect("free");
    // A node that ends without jobs gives its claim back, and so does one that dies.
    one.release();
    kill(same);
    let mut third = host.node("third");
    third.claim_now(uids(3, 100_000, 110_000)).expect("free again");
    assert_eq!(host.claims(), 2);
}

/// The node dies: its locks go with it.
fn kill(mut users: Users) {
    let clerk = users.clerk.take();
    drop(users);
    clerk.expect("it lives").join().expect("it ends");
}

/// Job proxies outlive their node.
#[test]
fn a_dead_node_with_jobs_keeps_its_claim() {
    let host = Place::new();
    let mut one = host.node("one");
    one.claim_now(uids(1, 100_000, 110_000)).expect("free");
    let record = with_job(&host, "one");
    kill(one);
    let mut other = host.node("other");
    let refused = other.claim_now(uids(2, 100_000, 110_000)).expect_err("a job may live").to_string();
    // Somebody may know that none of them lives.
    let said = format!("remove {}", host.at("run").join(claim::PREFIX).display());
    assert!(refused.contains(&said), "{refused}");
    let mut again = host.node("one");
    again.claim_now(uids(1, 100_000, 110_000)).expect("its own");
    kill(again);
    fs::remove_file(record).expect("removed");
    other.claim_now(uids(2, 100_000, 110_000)).expect("no job lives");
}

/// S9: with another range in the configuration the node gave the old one back while its jobs ran.
#[test]
fn uids_of_jobs_stay_claimed_when_the_range_changes() {
    let host = Place::new();
    let (mut one, mut other) = (host.node("one"), host.node("other"));
    one.claim_now(uids(1, 100_000, 110_000)).expect("free");
    let (old, new) = (uids(2, 100_000, 110_000), uids(1, 200_000, 210_000));
    one.claim_with(new, &[100_003, 100_004, 100_009, 200_000]).expect("free");
    let refused = other.claim_now(old).expect_err("jobs have some of them").to_string();
    assert!(refused.contains("100003-100004,100009-100009"), "{refused}");
    // Jobs that were about to start go on; others with such uids do not.
    assert_eq!(one.owner(Some(100_004)).expect("kept"), (100_004, 100_004));
    assert!(one.has(100_009) && !one.has(100_005));
    one.owner(Some(100_005)).expect_err("not of the range, and no job has it");
    // More of the new range does not let go of the old uids.
    other.claim_now(uids(2, 100_005, 100_008)).expect("free");
    one.claim_with(new, &[]).expect("its own");
    assert!(!one.has(100_004));
    other.claim_now(old).expect("no job has them any more");
}

/// S9: a range that the users of slots had.
#[test]
fn users_of_slots_are_not_given_to_users_of_the_cluster() {
    let host = Place::new();
    let mut one = host.node_with("one", vec![10_003], Path::new("/nowhere/getent"));
    let refused = one.claim_now(uids(1, 10_000, 75_000 - 10_000)).expect_err("old files").to_string();
    assert!(refused.contains("10003") && refused.contains("job_uids"), "{refused}");
    one.owner(Some(10_000)).expect_err("nothing is claimed");
    one.claim_now(uids(1, 10_004, 20_000)).expect("apart");
}

/// S9: a node that gets another uid than it should refuses the job.
#[test]
fn only_claimed_uids_of_no_account_are_used() {
    let host = Place::new();
    let passwd = "root:x:0:0:root:/root:/bin/bash\nann:x:100300:100300::/home/ann:/bin/bash\nbroken\n";
    fs::write(host.at("etc").join("passwd"), passwd).expect("written");
    fs::write(host.at("etc").join("subuid"), "ann:200000:65536\n").expect("written");
    let mut node = host.node("one");
    let why = node.owner(Some(100_000)).expect_err("too early").to_string();
    assert!(why.contains("claimed no uids"), "{why}");
    let range = UidRange::new(100_000, 165_535).expect("a range");
    let claim = range.up_to_block_of(100_000);
    let wanted = JobUids { cluster_id: Guid([1, 0, 0, 1]), range, claim };
    node.claim_now(wanted).expect("free");
    assert_eq!(node.owner(Some(100_000)).expect("claimed"), (100_000, 100_000));
    for (uid, why) in
        [(None, "update the server"), (Some(0), "100000-165535"), (Some(99_999), "100000-165535")]
    {
        let refused = node.owner(uid).expect_err("refused").to_string();
        assert!(refused.contains(why), "{uid:?}: {refused}");
    }
    // The next block has an account of the host in it.
    let refused = node.owner(Some(100_256)).expect_err("refused").to_string();
    assert!(refused.contains("\"ann\"") && refused.contains("passwd"), "{refused}");
    assert_eq!(node.owner(Some(100_255)).expect("still claimed"), (100_255, 100_255));
    let refused = node.claim_now(uids(1, 250_000, 250_001)).expect_err("a container of ann").to_string();
    assert!(refused.contains("subuid"), "{refused}");
    node.owner(Some(100_000)).expect_err("nothing is claimed any more");
    // An account that was made meanwhile.
    node.claim_now(wanted).expect("free");
    fs::write(host.at("etc").join("group"), "new:x:100007:\n").expect("written");
    node.accounts.forget();
    let refused = node.owner(Some(100_007)).expect_err("refused").to_string();
    assert!(refused.contains("\"new\""), "{refused}");
}

/// S9: of accounts of LDAP and the like only their source knows.
#[test]
fn accounts_of_all_sources_are_refused() {
    let host = Place::new();
    let there = host.at("there");
    let script = format!("[ $2 = 100007 ] && exit 0; [ -e {} ] && exit 0; exit 2", there.display());
    let getent = accounts::tests::program(&host.at("etc"), &script);
    let mut node = host.node_with("one", Vec::new(), &getent);
    node.claim_now(uids(1, 100_000, 110_000)).expect("free");
    let refused = node.owner(Some(100_007)).expect_err("an account").to_string();
    assert!(refused.contains("passwd 100007"), "{refused}");
    assert_eq!(node.owner(Some(100_000)).expect("none"), (100_000, 100_000));
    // An account that was made meanwhile, and then a source that does not answer.
    fs::write(&there, "").expect("written");
    assert!(matches!(node.of(Some(100_000)), Verdict::Granted(_)), "not asked for each job");
    node.look_now(100_000).expect_err("it is an account now");
    node.owner(Some(100_000)).expect_err("it is an account now");
    fs::remove_file(&there).expect("there");
    node.owner(Some(100_000)).expect("gone");
    fs::remove_file(&getent).expect("there");
    accounts::tests::program(&host.at("etc"), "exit 3");
    node.look_now(100_000).expect("what was known counts");
    let refused = node.owner(Some(100_001)).expect_err("nothing is known").to_string();
    assert!(refused.contains("did not answer"), "{refused}");
}

#[test]
fn more_is_claimed_when_it_is_needed() {
    let host = Place::new();
    let (mut one, mut other) = (host.node("one"), host.node("other"));
    let range = UidRange::new(100_000, 165_535).expect("a range");
    let wanted = JobUids { cluster_id: Guid([1, 0, 0, 1]), range, claim: range.up_to_block_of(100_000) };
    one.claim_now(wanted).expect("free");
    other.claim_now(uids(2, 100_600, 100_700)).expect("free");
    assert_eq!(one.owner(Some(100_300)).expect("free"), (100_300, 100_300));
    let refused = one.owner(Some(100_600)).expect_err("another cluster's").to_string();
    assert!(refused.contains("another cluster"), "{refused}");
    // Told again after a reconnection: what is claimed stays claimed.
    one.claim_now(wanted).expect("as before");
    let mut third = host.node("third");
    third.claim_now(uids(3, 100_300, 100_301)).expect_err("claimed");
    // Lost to another cluster meanwhile, by a change of the configuration and back.
    one.claim_now(uids(1, 200_000, 200_001)).expect("free");
    third.claim_now(uids(3, 100_300, 100_301)).expect("free");
    one.claim_now(wanted).expect("free");
    let refused = one
        .owner(Some(100_300))
        .expect_err("it was found to be of no account, and is not claimed")
        .to_string();
    assert!(refused.contains("another cluster"), "{refused}");
}

/// Questions of jobs that come together are answered one after the other.
#[test]
fn a_smaller_claim_does_not_undo_a_larger_one() {
    let host = Place::new();
    let mut one = host.node("one");
    let range = UidRange::new(100_000, 165_535).expect("a range");
    let wanted = JobUids { cluster_id: Guid([1, 0, 0, 1]), range, claim: range.up_to_block_of(100_000) };
    one.claim_now(wanted).expect("free");
    let (sender, receiver) = channel();
    for uid in [100_800, 100_300] {
        let sender = sender.clone();
        one.look(uid, move |looked| sender.send(looked).expect("we wait"));
    }
    for _ in 0..2 {
        let looked = receiver.recv_timeout(LIMIT).expect("an answer of the clerk");
        one.looked(looked).expect("free");
    }
    assert!(one.has(100_300) && one.has(100_800));
    host.node("other").claim_now(uids(2, 100_800, 100_800)).expect_err("claimed");
}

/// S9: the agent slept while another node of the host claimed.
#[test]
fn a_claim_does_not_block_its_caller() {
    let host = Place::new();
    let mut one = host.node("one");
    let turn = host.at("run").join("job-uids.turn");
    let Ok(super::super::lock::Attempt::Taken(held)) = super::super::lock::Lock::take(&turn, "another node")
    else {
        panic!("it is free")
    };
    let (sender, receiver) = channel();
    one.claim(uids(1, 100_000, 110_000), std::iter::empty(), move |claimed| {
        sender.send(claimed).expect("we wait");
    });
    assert!(receiver.try_recv().is_err(), "the call has come back, the answer has not come");
    let claimed = receiver.recv_timeout(LIMIT).expect("an answer of the clerk");
    let refused = one.claimed(claimed).expect_err("its turn has not come").to_string();
    assert!(refused.contains("another node"), "{refused}");
    drop(held);
    one.claim_now(uids(1, 100_000, 110_000)).expect("its turn");
}
