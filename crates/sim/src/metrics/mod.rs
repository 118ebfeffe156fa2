//! What a run comes to (simulator.md 9). Nothing here grows with the number of jobs that are over.

mod group;
mod hunger;
mod periods;
pub mod pool;
mod spread;
pub mod volume;
mod window;

pub use group::{Attempts, End, Group, Starved};
pub use hunger::Hunger;
pub use periods::Periods;
pub use spread::Spread;
pub use window::Window;

use yson::Value;

/// Three digits are plenty, and the same everywhere.
pub fn round(x: f64) -> Value {
    ((x * 1000.0).round() / 1000.0).into()
}
