//! The metadata tree: `get`, `set`, `list`, `exists`, `create`, `remove`.

use super::epilogue;
use crate::units::parse_yson_map;
use clap::Args;
use yson::Map;

/// `millpond get`.
#[derive(Args, Clone, Debug)]
#[command(after_help = epilogue![
    "millpond get //sys/pool_trees/physical/research/@weight",
    "millpond get //tmp --attribute type --attribute modification_time",
    "millpond get //sys/scheduler/orchid/scheduler/cluster --json",
])]
pub struct GetArgs {
    /// Path, e.g. //sys/pool_trees/@default_tree
    pub path: String,
    /// Show this attribute of every node
    #[arg(long, short, value_name = "NAME")]
    pub attribute: Vec<String>,
}

/// `millpond set`.
#[derive(Args, Clone, Debug)]
#[command(after_help = epilogue![
    "millpond set //tmp/x '{a=1; b=[2; 3]}'",
    "millpond set //sys/pool_trees/physical/research/@weight 2.5",
    "echo '\"text\"' | millpond set //tmp/x -",
])]
pub struct SetArgs {
    /// Path
    pub path: String,
    /// Value in YSON; - reads it from stdin
    #[arg(allow_hyphen_values = true)]
    pub value: String,
    /// Create what is missing on the way
    #[arg(long, short)]
    pub recursive: bool,
    /// Replace a map with everything in it
    #[arg(long, short)]
    pub force: bool,
}

/// `millpond list`.
#[derive(Args, Clone, Debug)]
#[command(after_help = epilogue![
    "millpond list //sys",
    "millpond list //tmp --long",
    "millpond list //sys/operations -q | head",
])]
pub struct ListArgs {
    /// Path
    pub path: String,
    /// With type, size and time of the last change
    #[arg(long, short)]
    pub long: bool,
    /// Show this attribute of every child
    #[arg(long, short, value_name = "NAME")]
    pub attribute: Vec<String>,
}

/// `millpond exists`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = epilogue!["millpond exists //tmp/x", "[ $(millpond exists //tmp/x) = true ] && echo there"],
)]
pub struct PathArgs {
    /// Path
    pub path: String,
}

/// `millpond create`.
#[derive(Args, Clone, Debug)]
#[command(after_help = epilogue![
        "millpond create map_node //tmp/a/b --recursive",
        "millpond create document //tmp/d --attributes '{value={a=1}}'",
        "millpond create scheduler_pool_tree --attributes '{name=gpu; config={nodes_filter=gpu}}'",
    ])]
pub struct CreateArgs {
    /// Type, e.g. map_node, document, string_node, file, scheduler_pool
    #[arg(value_name = "TYPE")]
    pub node_type: String,
    /// Path; objects have none
    pub path: Option<String>,
    /// Attributes, a YSON map
    #[arg(long, value_name = "YSON", value_parser = parse_yson_map)]
    pub attributes: Option<Map>,
    /// Create missing parents
    #[arg(long, short)]
    pub recursive: bool,
    /// A node that is there already is fine
    #[arg(long, short)]
    pub ignore_existing: bool,
    /// Replace a node that is there
    #[arg(long, short, conflicts_with = "ignore_existing")]
    pub force: bool,
}

/// `millpond remove`.
#[derive(Args, Clone, Debug)]
#[command(after_help = epilogue![
    "millpond remove //tmp/x --recursive",
    "millpond remove //sys/pool_trees/physical/research/@weight",
])]
pub struct RemoveArgs {
    /// Path
    pub path: String,
    /// With everything below
    #[arg(long, short)]
    pub recursive: bool,
    /// Not there is fine
    #[arg(long, short)]
    pub force: bool,
}
