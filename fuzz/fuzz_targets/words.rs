//! Short texts with a meaning: durations, times, ids, node filters, patterns of names, names of files in sandboxes, amounts and
//! addresses of the command line and of configuration files. No panic, and ids and plain names are fixed points.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vocab::{Guid, Span, Time, sandbox_path};

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let _ = Span::parse(text);
    let _ = Time::parse(text);
    let _ = kernel::command::When::parse(text);
    if let Ok(range) = text.parse::<vocab::UidRange>() {
        assert_eq!(range.to_string().parse(), Ok(range));
    }
    if let Ok(id) = text.parse::<Guid>() {
        assert_eq!(id.to_string().parse::<Guid>().ok(), Some(id));
    }
    if let Ok(plain) = sandbox_path::plain_directory(text) {
        assert_eq!(sandbox_path::plain_directory(&plain).as_ref(), Ok(&plain));
    }
    let _ = scheduler::TagFilter::parse(text);
    let _ = scheduler::config::NamePattern::parse(text);
    let _ = text.parse::<node::SharedDirectory>();
    let _ = cli::units::parse_size(text);
    let _ = cli::units::parse_cores(text);
    let _ = cli::units::parse_span(text);
    let _ = cli::units::parse_resources(text);
    let _ = cli::units::parse_listen(text);
    let _ = cli::units::parse_server(text);
    let _ = cli::units::parse_env(text);
    let _ = cli::units::parse_file(text);
    let _ = cli::units::parse_option(text);
    let _ = cli::units::parse_yson_map(text);
    let _ = demo::swf::parse(text);
});
