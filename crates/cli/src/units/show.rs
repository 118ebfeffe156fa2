//! What users read.

use vocab::{Cpu, RESOURCES, Resource, Resources, Span, Time};

/// `512 B`, `1.5 GiB`, `16 GiB`: three digits at most.
pub fn bytes(bytes: i64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    // 1023.5 and more would be printed as 1024.
    while value.abs() >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && value.abs() < 99.95);
    let number = format!("{value:.digits$}");
    format!("{} {}", number.strip_suffix(".0").unwrap_or(&number), UNITS[unit])
}

/// `2`, `0.5`, `1.25`.
pub fn cores(cpu: Cpu) -> String {
    cpu.to_string()
}

/// `950`, `12 345`, `1 234 567`.
pub fn count(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut out = if n < 0 { "-".to_owned() } else { String::new() };
    for (i, digit) in digits.chars().enumerate() {
        // Four digits are read without help.
        if digits.len() > 4 && i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// `12.5%`, `100%`; a dash for what is infinite or nothing to speak of.
pub fn percent(ratio: f64) -> String {
    let percent = ratio * 100.0;
    if !percent.is_finite() || percent > 1e7 {
        return "-".to_owned();
    }
    let number = format!("{percent:.1}");
    format!("{}%", number.strip_suffix(".0").unwrap_or(&number))
}

/// `████······`: `width` characters for a ratio of 1.
pub fn bar(ratio: f64, width: usize) -> String {
    let ratio = if ratio.is_finite() { ratio.clamp(0.0, 1.0) } else { 1.0 };
    let mut filled = (ratio * width as f64).round() as usize;
    // A little is not nothing, and nearly all is not all.
    if ratio > 0.0 && filled == 0 {
        filled = 1;
    }
    if ratio < 1.0 && filled == width {
        filled = width.saturating_sub(1);
    }
    "█".repeat(filled) + &"·".repeat(width - filled)
}

/// `250ms`, `12s`, `3m 05s`, `2h 03m`, `4d 01h`.
pub fn span(span: Span) -> String {
    let seconds = span.as_micros() / 1_000_000;
    match seconds {
        0 => format!("{}ms", span.as_millis()),
        s @ 1..60 => format!("{s}s"),
        s @ 60..3_600 => format!("{}m {:02}s", s / 60, s % 60),
        s @ 3_600..86_400 => format!("{}h {:02}m", s / 3_600, s / 60 % 60),
        s => format!("{}d {:02}h", s / 86_400, s / 3_600 % 24),
    }
}

/// `12s ago`.
pub fn age(then: Time, now: Time) -> String {
    match now.since(then) {
        s if s < Span::from_secs(1) => "now".to_owned(),
        s => format!("{} ago", span(s)),
    }
}

/// One amount in its unit.
pub fn resource(r: Resource, raw: i64) -> String {
    match r {
        Resource::Cpu => cores(Cpu(raw)),
        Resource::Memory => bytes(raw),
        _ => count(raw),
    }
}

/// What is not zero: `cpu 8, memory 16 GiB`; a dash for nothing at all.
pub fn resources(amounts: &Resources) -> String {
    // The order in which people think of them.
    let order = [Resource::Cpu, Resource::Memory, Resource::UserSlots, Resource::Gpu, Resource::Network];
    debug_assert_eq!(order.len(), RESOURCES.len(), "every resource is shown");
    let parts: Vec<String> = order
        .into_iter()
        .filter(|r| amounts.raw(*r) != 0)
        .map(|r| {
            format!(
                "{} {}",
                if r == Resource::UserSlots { "slots" } else { r.as_str() },
                resource(r, amounts.raw(r))
            )
        })
        .collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join(", ") }
}
