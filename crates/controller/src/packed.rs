//! Numbers in few bytes: the building block of durable state.
//!
//! Varints of at most 64 bits; signed numbers zigzagged. Readers never trust lengths.

/// Writes numbers into a byte string.
#[derive(Default)]
pub(crate) struct Packer {
    bytes: Vec<u8>,
}

impl Packer {
    pub fn unsigned(&mut self, mut x: u64) -> &mut Packer {
        while x >= 0x80 {
            self.bytes.push(x as u8 | 0x80);
            x >>= 7;
        }
        self.bytes.push(x as u8);
        self
    }
    pub fn signed(&mut self, x: i64) -> &mut Packer {
        self.unsigned(((x << 1) ^ (x >> 63)) as u64)
    }
    /// An ascending sequence, as differences.
    pub fn ascending(&mut self, numbers: impl Iterator<Item = u64>) -> &mut Packer {
        let mut previous = 0;
        for x in numbers {
            self.unsigned(x - previous);
            previous = x;
        }
        self
    }
    pub fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

/// Reads them back; `None` is "malformed".
pub(crate) struct Unpacker<'a> {
    bytes: &'a [u8],
}

impl<'a> Unpacker<'a> {
    pub fn new(bytes: &'a [u8]) -> Unpacker<'a> {
        Unpacker { bytes }
    }
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(*head)
    }
    pub fn unsigned(&mut self) -> Option<u64> {
        let mut x = 0u64;
        for shift in (0..64).step_by(7) {
            let (&b, rest) = self.bytes.split_first()?;
            if shift == 63 && b > 1 {
                return None;
            }
            self.bytes = rest;
            x |= u64::from(b & 0x7f) << shift;
            if b & 0x80 == 0 {
                return Some(x);
            }
        }
        None
    }
    pub fn signed(&mut self) -> Option<i64> {
        self.unsigned().map(|u| (u >> 1) as i64 ^ -((u & 1) as i64))
    }
    /// The rest, written by [`Packer::ascending`].
    pub fn ascending(&mut self) -> Option<Vec<u64>> {
        let mut out = Vec::new();
        let mut previous = 0u64;
        while !self.is_empty() {
            previous = previous.checked_add(self.unsigned()?)?;
            out.push(previous);
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let signed = [0, 1, -1, 63, 64, -65, i64::MAX, i64::MIN];
        let mut p = Packer::default();
        signed.iter().for_each(|x| {
            p.signed(*x);
        });
        p.unsigned(u64::MAX).ascending([3, 3, 10, 1 << 40].into_iter());
        let bytes = p.finish();
        let mut u = Unpacker::new(&bytes);
        assert_eq!(signed.map(|_| u.signed().expect("a number")), signed);
        assert_eq!(u.unsigned(), Some(u64::MAX));
        assert_eq!(u.ascending(), Some(vec![3, 3, 10, 1 << 40]));
    }

    #[test]
    fn broken_bytes_are_noticed() {
        for bad in [&[0x80][..], &[0xff; 11][..], &[]] {
            assert_eq!(Unpacker::new(bad).unsigned(), None, "{bad:?}");
        }
    }
}
