//! Quantities as typed and as printed. Parsers answer with what is allowed, for clap to show.

mod parse;
mod show;

pub use parse::{
    Amounts, parse_cores, parse_env, parse_file, parse_listen, parse_option, parse_resources, parse_server,
    parse_size, parse_span, parse_yson_map,
};
pub use show::{age, bar, bytes, cores, count, percent, resource, resources, span};
