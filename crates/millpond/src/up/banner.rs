//! What is said when the cluster is ready.

use super::plan::{Options, reachable};
use cli::output::{Look, Output};
use cli::units::resources;
use yson::{Value, map};

/// A cluster that is ready.
pub struct Ready {
    address: String,
    options: Options,
}

impl Ready {
    /// From what was decided.
    pub fn new(options: &Options) -> Ready {
        Ready { address: reachable(options.listen).to_string(), options: options.clone() }
    }
}

impl Output for Ready {
    fn human(&self, _: &Look) -> String {
        let Ready { address, options } = self;
        let nodes = match options.nodes {
            0 => "no nodes".to_owned(),
            1 => format!("1 node: {}", resources(&options.resources)),
            n => format!("{n} nodes, each: {}", resources(&options.resources)),
        };
        // The default needs no mention.
        let proxy = match address.as_str() {
            cli::args::DEFAULT_PROXY => String::new(),
            _ => format!("    export MILLPOND_PROXY={address}\n"),
        };
        let (sign_in, token) = match options.is_authenticated() {
            true => {
                let file = options.root_token().display().to_string();
                (format!("    export MILLPOND_TOKEN=$(cat {file})\n"), format!("$(cat {file})"))
            }
            false => (String::new(), "any".to_owned()),
        };
        format!(
            "\
Millpond is ready on http://{address}
  {nodes}
  data  {data}
  logs  {logs}

  Try it:
{proxy}{sign_in}    millpond pool create research --weight 2
    millpond run --pool research --follow -- echo hello
    millpond pool tree
    millpond top

  With the yt client:
    export YT_PROXY=http://{address} YT_TOKEN={token}
    yt list //sys/pool_trees

Ctrl-C stops the cluster.",
            data = options.data.display(),
            logs = options.logs().display(),
        )
    }
    fn json(&self) -> Value {
        let Ready { address, options } = self;
        map! {
            "address" => address.as_str(),
            "data" => options.data.display().to_string(),
            "logs" => options.logs().display().to_string(),
            "nodes" => i64::from(options.nodes),
            "node_resources" => options.resources.to_value(),
            "pid" => i64::from(std::process::id()),
        }
        .into()
    }
    fn quiet(&self) -> String {
        self.address.clone()
    }
}
