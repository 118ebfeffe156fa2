//! Numbers as people read them.

use vocab::Resource;

/// `1 pool`, `2 pools`.
pub(super) fn counted(n: i64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

pub(super) fn percent(share: f64) -> String {
    format!("{} %", trimmed(format!("{:.1}", share * 100.0)))
}

pub(super) fn number(x: f64, r: Resource) -> String {
    match r {
        Resource::Memory => trimmed(format!("{:.1}", x / f64::from(1 << 30))),
        _ => trimmed(format!("{x:.2}")),
    }
}

pub(super) fn amount(r: Resource, x: f64) -> String {
    let n = number(x, r);
    let unit = |one: &'static str, many: &'static str| if n == "1" { one } else { many };
    match r {
        Resource::UserSlots => format!("{n} {}", unit("slot", "slots")),
        Resource::Cpu => format!("{n} {}", unit("core", "cores")),
        Resource::Gpu => format!("{n} {}", unit("GPU", "GPUs")),
        Resource::Memory => format!("{n} GiB"),
        Resource::Network => format!("{n} of network"),
    }
}

/// Without zeros at the end; never `-0`.
pub(super) fn trimmed(text: String) -> String {
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

pub(super) fn duration(seconds: f64) -> String {
    let (x, unit) = match seconds {
        s if s < 120.0 => (s, "s"),
        s if s < 7_200.0 => (s / 60.0, "min"),
        s if s < 172_800.0 => (s / 3_600.0, "h"),
        s => (s / 86_400.0, "days"),
    };
    format!("{} {unit}", trimmed(format!("{x:.1}")))
}
