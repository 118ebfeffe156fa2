//! Decimal digits of numbers, shared by all textual forms.

use std::io::Write as _;

pub(crate) fn write_u64(mut u: u64, out: &mut Vec<u8>) {
    let mut buffer = [0u8; 20];
    let mut at = buffer.len();
    loop {
        at -= 1;
        buffer[at] = b'0' + (u % 10) as u8;
        u /= 10;
        if u == 0 {
            break;
        }
    }
    out.extend_from_slice(&buffer[at..]);
}

pub(crate) fn write_i64(i: i64, out: &mut Vec<u8>) {
    if i < 0 {
        out.push(b'-');
    }
    write_u64(i.unsigned_abs(), out);
}

/// Shortest digits that give the same finite double back.
///
/// Plain notation for 1e-10 <= |d| < 1e21, scientific outside, as the reference does. A whole
/// number in plain notation gets `whole` behind it (`.` in YSON, `.0` in JSON): it must not read
/// back as an integer.
pub(crate) fn write_digits(d: f64, whole: &[u8], out: &mut Vec<u8>) {
    if d.is_sign_negative() {
        out.push(b'-');
    }
    let mut scratch = [0u8; 32];
    let text = shortest(d.abs(), &mut scratch);
    // `d.ddde-x`, and the point is put where we want it.
    let e = text.iter().position(|b| *b == b'e').expect("`{:e}` prints an exponent");
    let exponent = std::str::from_utf8(&text[e + 1..]).ok().and_then(|x| x.parse().ok());
    let exponent: i32 = exponent.expect("`{:e}` prints a decimal exponent");
    let mut digits = [0u8; 24];
    digits[0] = text[0];
    let fraction = text.get(2..e).unwrap_or(&[]);
    digits[1..=fraction.len()].copy_from_slice(fraction);
    let digits = &digits[..=fraction.len()];

    if !(-10..21).contains(&exponent) {
        out.extend_from_slice(&text[..e]);
        out.push(b'e');
        out.push(if exponent < 0 { b'-' } else { b'+' });
        write_u64(u64::from(exponent.unsigned_abs()), out);
    } else if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-exponent - 1) as usize, b'0');
        out.extend_from_slice(digits);
    } else {
        let point = exponent as usize + 1;
        if digits.len() > point {
            out.extend_from_slice(&digits[..point]);
            out.push(b'.');
            out.extend_from_slice(&digits[point..]);
        } else {
            out.extend_from_slice(digits);
            out.resize(out.len() + point - digits.len(), b'0');
            out.extend_from_slice(whole);
        }
    }
}

/// The shortest scientific form; of two equally near ones the even, as everybody else prints it.
fn shortest(d: f64, scratch: &mut [u8; 32]) -> &[u8] {
    let length = print(scratch, |space| write!(space, "{d:e}"));
    let e = scratch[..length].iter().position(|b| *b == b'e').expect("`{:e}` prints an exponent");
    // The standard library rounds a tie up, which shows as an odd last digit. Ties need a number
    // whose exact form has one digit more than the shortest one: only long ones do.
    let is_long = e >= 16;
    if is_long && scratch[e - 1] & 1 == 1 {
        let mut even = [0u8; 32];
        let precision = e - 2;
        let even_length = print(&mut even, |space| write!(space, "{d:.precision$e}"));
        if std::str::from_utf8(&even[..even_length]).ok().and_then(|t| t.parse().ok()) == Some(d) {
            *scratch = even;
            return &scratch[..even_length];
        }
    }
    &scratch[..length]
}

fn print(scratch: &mut [u8; 32], print: impl FnOnce(&mut &mut [u8]) -> std::io::Result<()>) -> usize {
    let mut space = &mut scratch[..];
    print(&mut space).expect("a double has at most 17 digits and an exponent");
    let left = space.len();
    scratch.len() - left
}
