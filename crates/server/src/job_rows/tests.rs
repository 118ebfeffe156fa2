//! What a node is told when the rows of a job cannot be read.

use super::*;
use ::tables::{Checker, Writer};
use std::fs;
use std::path::{Path, PathBuf};
use store::RedbStore;
use tokio_stream::StreamExt;
use tonic::Code;
use wire::proto::blob_lost;
use yson::Style;

/// A chunk with ten rows; its blob and its bytes.
fn write_chunk(store: &dyn Store) -> (u64, u64) {
    let mut writer = Writer::new(Format::tabular_default(), Checker::new(None, Vec::new()));
    let mut bytes = Vec::new();
    for n in 0..10 {
        writer.push(format!("{{n={n}}};").as_bytes(), &mut bytes).expect("a row");
    }
    writer.finish(&mut bytes).expect("rows");
    let mut blob = store.begin_blob().expect("a blob");
    blob.append(&bytes).expect("room");
    (blob.finish().expect("room"), bytes.len() as u64)
}

/// The input of a job that reads this chunk, in order or merged with itself.
fn input(blob: u64, size: u64, merged: bool) -> JobInput {
    let piece =
        |table: u64| vec![table, 0, 0, blob, size, 0, 10].into_iter().map(Value::from).collect::<Vec<_>>();
    let all_columns = Columns::default().to_value();
    let mut located = yson::map! {
        "pieces" => vec![Value::from(piece(0)), Value::from(piece(1))],
        "columns" => vec![all_columns.clone(), all_columns],
        "control" => yson::Map::new(),
    };
    if merged {
        located.insert("merge_by", vec!["n"]);
    }
    JobInput::from_value(&located.into()).expect("an input")
}

fn read(store: &Arc<dyn Store>, input: JobInput) -> Result<usize, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let mut rows = input.stream(Arc::clone(store), Format::Yson(Style::Binary))?;
        let mut bytes = 0;
        while let Some(piece) = rows.next().await {
            bytes += piece?.len();
        }
        Ok(bytes)
    })
}

/// Writes a chunk, does something to its file, and gives the blob and the answer to a node, read both ways.
fn after(harm: impl Fn(&Path)) -> Vec<(u64, Option<usize>, Status)> {
    [false, true]
        .map(|merged| {
            let directory = tempfile::tempdir().expect("a directory");
            let store: Arc<dyn Store> = Arc::new(RedbStore::open(directory.path()).expect("a store"));
            let (blob, size) = write_chunk(&*store);
            let file: PathBuf = directory.path().join("blobs").join(format!("{blob:016x}"));
            assert!(read(&store, input(blob, size, merged)).expect("whole") > 0);
            harm(&file);
            let failure = read(&store, input(blob, size, merged)).expect_err("harmed");
            (blob, input(blob, size, merged).lost_table(&*store), unread_rows(&failure))
        })
        .into()
}

/// S20: every error was told as a loss of data, which ends the operation at the third attempt: also one of the disk that
/// passes.
#[test]
fn s20_only_a_missing_or_damaged_chunk_is_lost() {
    type Harm = fn(&Path);
    let lost: [(&str, Harm, bool); 4] = [
        ("missing", |file| fs::remove_file(file).expect("there"), true),
        ("cut off", |file| fs::write(file, &fs::read(file).expect("there")[..20]).expect("room"), true),
        ("empty", |file| fs::write(file, "").expect("room"), true),
        (
            "changed",
            |file| {
                let mut bytes = fs::read(file).expect("there");
                bytes[3] ^= 1;
                fs::write(file, bytes).expect("room");
            },
            false,
        ),
    ];
    for (what, harm, without_end) in lost {
        for (blob, table, status) in after(harm) {
            assert_eq!(
                (status.code(), blob_lost(&status)),
                (Code::DataLoss, Some(blob)),
                "{what}: {status:?}"
            );
            assert_eq!(table, without_end.then_some(0), "{what}");
        }
    }
    // A link to itself is there and cannot be opened, as on a disk with an error.
    let unreadable = |file: &Path| {
        fs::remove_file(file).expect("there");
        std::os::unix::fs::symlink(file, file).expect("room");
    };
    for (_, table, status) in after(unreadable) {
        assert_eq!((status.code(), blob_lost(&status)), (Code::Unavailable, None), "{status:?}");
        assert_eq!(table, None, "nothing is known to be lost");
    }
}
