//! Options of trees, pools, the scheduler, operations and controllers, lists of access, schemas of tables, and descriptions of
//! formats: no panic, and a list of access is read back as the same.
#![no_main]

use controller::ControllerOptions;
use cypress::Acl;
use libfuzzer_sys::fuzz_target;
use scheduler::OperationOptions;
use scheduler::config::{PoolConfig, SchedulerConfig, TreeConfig};
use tables::{Control, Schema};

fuzz_target!(|input: &[u8]| {
    let _ = yson::Format::parse(input);
    let Ok(value) = yson::parse(input) else { return };
    let _ = Schema::parse(&value);
    let _ = Acl::given(&value);
    if let Ok(acl) = Acl::parse(&value) {
        let again = Acl::parse(&acl.to_value()).expect("a list that was read");
        assert_eq!(again.to_value(), acl.to_value());
    }
    let Some(map) = value.as_map() else { return };
    let _ = PoolConfig::parse(map);
    let _ = TreeConfig::parse(map);
    let _ = SchedulerConfig::parse(map);
    let _ = OperationOptions::parse(map);
    let _ = ControllerOptions::parse(map);
    let _ = Control::parse(map);
});
