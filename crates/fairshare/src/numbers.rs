//! Tolerances, and bisection over the bits of a float (fair-share.md 2.2, 2.3).

use vocab::Share;

/// Tolerance of shares where the specification names one.
pub(crate) const EPS: f64 = 1e-9;
/// The same in every component.
pub(crate) const EPS_SHARE: Share = Share::splat(EPS);
/// Tolerance of the removal of breakpoints (3.3).
pub(crate) const COMPRESS_EPS: f64 = 1e-15;
