//! Records of jobs and operations, failures, indexes and summaries of chunks, and files that job proxies leave: bytes of a damaged disk, or of
//! another version. No panic, and a record of a job comes back the same.
#![no_main]

use controller::JobRecord;
use jobproxy::codec::decode_all;
use jobproxy::protocol::ProxyResult;
use jobproxy::record::ProxyState;
use libfuzzer_sys::fuzz_target;
use vocab::Failure;
use vocab::batch::Table;

fuzz_target!(|input: &[u8]| {
    let _ = kernel::archived_job(input);
    let _ = kernel::archived_job_in_full(input);
    let _ = kernel::rows_of_archived_job(input);
    if let Ok(record) = JobRecord::decode(input) {
        let bytes = record.encode();
        assert_eq!(JobRecord::decode(&bytes).expect("what was encoded").encode(), bytes);
    }
    let _ = decode_all::<ProxyResult>(input);
    let _ = decode_all::<ProxyState>(input);
    let mut trailer = [0; 16];
    trailer[8..12].copy_from_slice(&crc32fast::hash(input).to_le_bytes());
    // The first bytes also say where the index begins, as the size of a blob does.
    for start in [0, input.len() as u64, input.first_chunk().map_or(0, |start| u64::from_le_bytes(*start))] {
        let Ok(index) = tables::Index::parse(input, &trailer, start) else { continue };
        let total: u64 = index.blocks.iter().map(|block| block.size as u64).sum();
        assert_eq!(total, start, "the blocks fill what is before the index");
        for rows in [0..1, 5..9, 0..u64::MAX] {
            for block in index.blocks_with(&rows) {
                let _ = block.rows(&input[..block.size.min(input.len())], &rows);
            }
        }
    }
    if let Some((key, value)) = input.split_at_checked(17) {
        let _ = kernel::operation_of_vault(Table::Operations, key);
        let _ = kernel::split_clear_vault(Table::Operations, key, value);
        let _ = kernel::without_clear_vault(Table::OperationArchive, value);
    }
    if let Ok(value) = yson::parse_record(input) {
        // From a node that has rows of a job.
        let _ = tables::Summary::from_value(&value);
        let _ = tables::Columns::from_value(&value);
        let failure = Failure::from_value(&value);
        let again = Failure::from_value(&failure.to_value());
        assert_eq!(again.to_value(), failure.to_value());
    }
});
