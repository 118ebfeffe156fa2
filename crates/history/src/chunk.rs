//! A stretch of points without a gap, packed.
//!
//! A point is one byte that says which columns changed (and, by its highest bit, that more than one
//! step has passed), the number of steps if it was more than one, and the difference of each changed
//! column; numbers as variable-length integers, differences zigzag. The first point of a chunk is the
//! difference to all zeros, so that a chunk can be read without the ones before it.
//!
//! Typical sizes: a volume that fills up takes 3 bytes a second, a busy pool 6 to 12.

/// Bytes after which a chunk is full: large enough that its head does not matter, small enough that
/// forgetting whole chunks does not forget much more than is due.
pub(crate) const CHUNK_BYTES: usize = 1000;

/// Columns that fit into the first byte of a point.
const MAX_COLUMNS: usize = 7;
const SKIPS: u8 = 1 << MAX_COLUMNS;

/// See the module page.
#[derive(Clone, Debug)]
pub(crate) struct Chunk<const N: usize> {
    /// Step of the first point.
    pub first: u64,
    /// The last point holds until this step.
    pub end: u64,
    /// Step and values of the last point.
    last: u64,
    values: [i64; N],
    bytes: Vec<u8>,
}

/// Values that hold from one step to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run<const N: usize> {
    pub from: u64,
    pub to: u64,
    pub values: [i64; N],
}

impl<const N: usize> Chunk<N> {
    /// A chunk with its first point.
    pub fn new(from: u64, to: u64, values: [i64; N]) -> Chunk<N> {
        const { assert!(N <= MAX_COLUMNS, "the mask of a point has room for 7 columns") };
        let mut chunk =
            Chunk { first: from, end: to, last: from, values: [0; N], bytes: Vec::with_capacity(64) };
        chunk.write(from, values);
        chunk
    }

    /// Goes on with values from the present end to another; equal ones make the last point longer.
    pub fn push(&mut self, from: u64, to: u64, values: [i64; N]) {
        debug_assert_eq!(from, self.end, "a chunk has no gaps");
        if values != self.values {
            self.write(from, values);
        }
        self.end = to;
    }

    fn write(&mut self, step: u64, values: [i64; N]) {
        let steps = step - self.last;
        let changed = |i: &usize| values[*i] != self.values[*i];
        let mask = (0..N).filter(changed).fold(0u8, |mask, i| mask | 1 << i);
        let skips = steps > 1;
        self.bytes.push(if skips { mask | SKIPS } else { mask });
        if skips {
            write_number(&mut self.bytes, steps);
        }
        for i in (0..N).filter(changed) {
            write_number(&mut self.bytes, zigzag(values[i].wrapping_sub(self.values[i])));
        }
        (self.last, self.values) = (step, values);
    }

    pub fn is_full(&self) -> bool {
        self.bytes.len() >= CHUNK_BYTES
    }

    /// Nothing will be added.
    pub fn close(&mut self) {
        self.bytes.shrink_to_fit();
    }

    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity()
    }

    /// All points, as the runs in which values hold.
    pub fn runs(&self) -> Runs<'_, N> {
        let mut runs =
            Runs { rest: &self.bytes, step: self.first, values: [0; N], end: self.end, next: None };
        runs.next = runs.point();
        runs
    }
}

/// See [`Chunk::runs`].
pub(crate) struct Runs<'a, const N: usize> {
    rest: &'a [u8],
    step: u64,
    values: [i64; N],
    end: u64,
    next: Option<(u64, [i64; N])>,
}

impl<const N: usize> Runs<'_, N> {
    fn point(&mut self) -> Option<(u64, [i64; N])> {
        let (mask, rest) = self.rest.split_first()?;
        self.rest = rest;
        // Only the first point of a chunk is no step further than the one before.
        let first = self.next.is_none();
        let steps = if mask & SKIPS != 0 { read_number(&mut self.rest) } else { u64::from(!first) };
        self.step += steps;
        for i in (0..N).filter(|i| mask >> i & 1 == 1) {
            self.values[i] = self.values[i].wrapping_add(unzigzag(read_number(&mut self.rest)));
        }
        Some((self.step, self.values))
    }
}

impl<const N: usize> Iterator for Runs<'_, N> {
    type Item = Run<N>;

    fn next(&mut self) -> Option<Run<N>> {
        let (from, values) = self.next?;
        let following = self.point();
        let to = following.map_or(self.end, |(step, _)| step);
        self.next = following;
        Some(Run { from, to, values })
    }
}

fn zigzag(x: i64) -> u64 {
    ((x << 1) ^ (x >> 63)) as u64
}

fn unzigzag(x: u64) -> i64 {
    (x >> 1) as i64 ^ -((x & 1) as i64)
}

fn write_number(bytes: &mut Vec<u8>, mut x: u64) {
    while x >= 0x80 {
        bytes.push(x as u8 | 0x80);
        x >>= 7;
    }
    bytes.push(x as u8);
}

fn read_number(bytes: &mut &[u8]) -> u64 {
    let mut x = 0;
    for shift in (0..64).step_by(7) {
        let Some((byte, rest)) = bytes.split_first() else { break };
        *bytes = rest;
        x |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive() {
        for x in [0, 1, -1, 63, -64, 64, 1_000_000, i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            write_number(&mut bytes, zigzag(x));
            assert_eq!(unzigzag(read_number(&mut &bytes[..])), x);
        }
    }

    #[test]
    fn points_are_small() {
        let mut chunk = Chunk::new(1_000_000, 1_000_001, [0i64; 7]);
        let before = chunk.bytes.len();
        for i in 1..=100 {
            let mut values = [0; 7];
            values[6] = i * 150;
            chunk.push(1_000_000 + i as u64, 1_000_001 + i as u64, values);
        }
        assert_eq!(chunk.bytes.len() - before, 100 * 3, "mask and a difference of two bytes");
        for i in 101..200 {
            let mut values = [0; 7];
            values[6] = 100 * 150;
            chunk.push(1_000_000 + i, 1_000_001 + i, values);
        }
        assert_eq!(chunk.bytes.len() - before, 100 * 3, "what does not change costs nothing");
        assert_eq!(chunk.runs().last().map(|r| (r.from, r.to)), Some((1_000_100, 1_000_200)));
    }
}
