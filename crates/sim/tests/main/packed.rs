//! Workloads that are packed: gzip and zstd, whatever the files are called; and in the other encoding.

use crate::desk::{Desk, figure};
use flate2::{Compression, write::GzEncoder};
use sim::Options;
use std::io::Write;

/// One operation of two jobs, and one of one job, each as `zstd -19 --check` packs it.
const FRAMES: [&str; 2] = [
    "28b52ffd24658d020052461316904d6303e0044e349404fe0ae66eb752cba8394f65174055546bad0167ba6c462df902bc41c827e0cb9a22c6a1ccf78e2b4fb22902971a29f73bc71d55e8bb8d478ad4be856f7e4fe3c9321500e3a6300f",
    "28b52ffd2465a5020002c61216904d63acca044e349404fe0ae66e1fa8d988194b74174055546b2d0167ba6c462d6910f205f8b2a6887128f3bde3ca936c8ac0a546cafdce714715fa6ee39122b56fc037bfa7f164990a01004ee146012fd3676a",
];
/// A frame without content, which readers go over: three bytes.
const SKIPPED: &str = "502a4d1803000000abcdef";

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |i: usize| u8::from_str_radix(&hex[i..i + 2], 16).expect("hexadecimal digits");
    (0..hex.len()).step_by(2).map(digit).collect()
}

fn desk_with(packed: &[u8]) -> Desk {
    let desk = Desk::new(1, 4, 600_000, &[]);
    std::fs::write(desk.path().join("workload.jsonl"), packed).expect("a file");
    desk
}

#[test]
fn zstd() {
    let all = [bytes(FRAMES[0]), bytes(SKIPPED), bytes(FRAMES[1])].concat();
    let ran = desk_with(&all).checked("out", &[]);
    assert_eq!(figure(&ran, "cluster/counts/operations/completed"), 2.0);
    assert_eq!(figure(&ran, "cluster/counts/jobs_completed"), 3.0);
}

#[test]
fn gzip() {
    let text =
        r#"{"id":"x","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":2,"duration":5000}]}"#;
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(text.as_bytes()).expect("a vector");
    let ran = desk_with(&packed.finish().expect("a vector")).checked("out", &[]);
    assert_eq!(figure(&ran, "cluster/counts/jobs_completed"), 2.0);
}

/// Both encodings everywhere: lines of a workload may be YSON.
#[test]
fn yson() {
    let desk = Desk::new(1, 4, 600_000, &[]);
    desk.write(
        "work.yson",
        "{id=x;at=0;user=u;pool=a;tasks=[{name=t;job_count=2;duration={uniform=[1000;2000]}}]};\n\
         {id=y;at=9;user=u;pool=a;tasks=[{name=t;job_count=1;duration=5000}]}\n",
    );
    let files = ("/workload", r#"["work.yson"]"#);
    let ran = desk.checked("out", &[files]);
    assert_eq!(figure(&ran, "cluster/counts/jobs_completed"), 3.0);
    desk.write("work.yson", "{id=x;at=0}\n{id=\n");
    let error = desk.run("out", &[files], Options::default()).expect_err("no YSON").to_string();
    assert!(error.contains("work.yson, line 1: /tasks: required"), "{error}");
}

#[test]
fn what_is_broken_is_told() {
    let whole = bytes(FRAMES[0]);
    let mut other = whole.clone();
    // The last byte of the checksum.
    *other.last_mut().expect("bytes") ^= 1;
    for (packed, why) in [(&whole[..60], "zstd: "), (&other[..], "zstd: the checksum of a frame")] {
        let desk = desk_with(packed);
        let error = desk.run("out", &[], Options::default()).expect_err(why).to_string();
        assert!(error.contains("workload.jsonl") && error.contains(why), "{error}");
    }
}
