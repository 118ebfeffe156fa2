//! Every answer has three forms from the day it is born: for people, for programs, for scripts.

use crate::error::CliError;
use std::io::{IsTerminal, Write};
use vocab::Time;
use yson::{JsonFormat, Value};

/// An answer.
pub trait Output {
    /// Tables, trees and cards. Ends without a line feed; empty prints nothing.
    fn human(&self, look: &Look) -> String;
    /// `--json`.
    fn json(&self) -> Value;
    /// `--quiet`: what the next command in a pipe needs, one per line.
    fn quiet(&self) -> String;
}

/// What the human form may depend on. Given as data, so that pictures can be compared in tests.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Colours are welcome.
    pub colour: bool,
    /// To tell ages from times.
    pub now: Time,
}

/// Which form was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Form {
    /// For people.
    #[default]
    Human,
    /// For programs.
    Json,
    /// For scripts.
    Quiet,
}

/// Stdout and stderr of this process.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// The form.
    pub form: Form,
    /// How it looks.
    pub look: Look,
    talk_colour: bool,
}

impl Screen {
    /// The screen of this process.
    pub fn new(form: Form) -> Screen {
        let colours = std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        Screen {
            form,
            look: Look { colour: colours && std::io::stdout().is_terminal(), now: wall_clock() },
            talk_colour: colours && std::io::stderr().is_terminal(),
        }
    }

    /// Data: the answer in the form that was asked for.
    pub fn show(&self, answer: &dyn Output) -> Result<(), CliError> {
        let text = match self.form {
            Form::Human => answer.human(&self.look),
            Form::Json => json_text(&answer.json()),
            Form::Quiet => answer.quiet(),
        };
        if text.is_empty() {
            return Ok(());
        }
        self.print(format!("{}\n", text.trim_end_matches('\n')).as_bytes())
    }

    /// Data as it is.
    pub fn print(&self, bytes: &[u8]) -> Result<(), CliError> {
        let mut out = std::io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush()).map_err(|e| CliError::output(&e))
    }

    /// Talk: what happens, for whoever is watching. A closed stderr is nobody's loss.
    pub fn tell(&self, text: &str) {
        if self.form == Form::Human {
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }

    /// What went wrong.
    pub fn complain(&self, error: &CliError) {
        if let Some(text) = error.render(self.talk_colour) {
            let _ = write!(std::io::stderr(), "{text}");
        }
    }
}

/// Indented JSON with strings as they are.
pub fn json_text(value: &Value) -> String {
    let format = JsonFormat { pretty: true, ..JsonFormat::utf8() };
    String::from_utf8_lossy(&yson::json::to_json(value, &format)).into_owned()
}

/// Now.
pub fn wall_clock() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}
