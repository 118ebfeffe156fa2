//! Records without which the server cannot start: which one is damaged, since nobody can look for it otherwise.

use vocab::Failure;
use vocab::batch::Table;

/// One record cannot be read.
pub(super) fn of_record(table: Table, key: &[u8], why: Failure) -> Failure {
    let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let table = table.as_str();
    Failure::new(format!("Record {key} of table \"{table}\" is damaged"))
        .with("table", table)
        .with("key", key)
        .because(why)
}

/// Records do not fit together, or the reason names the one that cannot be read.
pub(super) fn of_table(table: Table, why: Failure) -> Failure {
    let table = table.as_str();
    Failure::new(format!("Table \"{table}\" is damaged")).with("table", table).because(why)
}
