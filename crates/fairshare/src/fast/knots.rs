//! Storage of breakpoints. A pool finds them one after another, at its own pace; their number changes from
//! update to update. Chunks of equal size that go from hand to hand need no memory of their own once there
//! are enough.

use super::lanes::{Lanes, ZERO};

/// A breakpoint of a pool: all three functions of fair-share.md 4 at once. Two with the same `s` are a jump
/// of `by_sugg`, two with the same `x` one of `by_fit`.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Knot {
    /// Suggestion.
    pub(crate) s: f64,
    /// Fit factor.
    pub(crate) x: f64,
    /// What is taken.
    pub(crate) y: Lanes,
    /// Children before this one have passed their jumps at `x`, others have not.
    pub(crate) passed: u32,
}

const EMPTY: Knot = Knot { s: 0.0, x: 0.0, y: ZERO, passed: 0 };
const CHUNK: usize = 4;
/// No chunk.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Chunk {
    knots: [Knot; CHUNK],
    next: u32,
}

/// All chunks of a tree.
pub(crate) struct Store {
    chunks: Vec<Chunk>,
    free: u32,
}

/// The breakpoints of one pool, ascending.
#[derive(Clone, Copy)]
pub(crate) struct List {
    head: u32,
    tail: u32,
    len: u32,
}

impl Default for List {
    fn default() -> List {
        List { head: NONE, tail: NONE, len: 0 }
    }
}

impl List {
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }
}

/// A place in a list; the one after the last is where the next breakpoint will be.
#[derive(Clone, Copy, Default)]
pub(crate) struct Reader {
    chunk: u32,
    /// From the start of the list.
    index: u32,
}

impl Reader {
    /// How many breakpoints are before this place.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.index as usize
    }
    /// Where breakpoints are side by side.
    #[inline]
    pub(crate) fn pass(&mut self) {
        self.index += 1;
    }
}

impl Default for Store {
    fn default() -> Store {
        Store { chunks: Vec::new(), free: NONE }
    }
}

/// Where breakpoints are written.
pub(super) trait Sink {
    fn append(&mut self, list: &mut List, knot: Knot);
}

impl Sink for Store {
    #[inline]
    fn append(&mut self, list: &mut List, knot: Knot) {
        self.push(list, knot);
    }
}

impl Store {
    #[inline]
    pub(crate) fn push(&mut self, list: &mut List, knot: Knot) {
        let at = list.len as usize % CHUNK;
        if at == 0 {
            self.extend(list);
        }
        self.chunks[list.tail as usize].knots[at] = knot;
        list.len += 1;
    }

    #[inline(never)]
    fn extend(&mut self, list: &mut List) {
        let chunk = self.take();
        match list.tail {
            NONE => list.head = chunk,
            tail => self.chunks[tail as usize].next = chunk,
        }
        list.tail = chunk;
    }

    fn take(&mut self) -> u32 {
        if self.free == NONE {
            self.grow();
        }
        let chunk = self.free;
        self.free = self.chunks[chunk as usize].next;
        self.chunks[chunk as usize].next = NONE;
        chunk
    }

    /// Room that is not touched before it is needed.
    pub(super) fn reserve(&mut self, chunks: usize) {
        self.chunks.reserve(chunks);
    }

    /// By half, so that updates that need a little more or less than others soon stop asking for memory.
    fn grow(&mut self) {
        let old = self.chunks.len();
        let new = old + (old / 2).max(64);
        self.chunks.resize(new, Chunk { knots: [EMPTY; CHUNK], next: NONE });
        for chunk in (old..new).rev() {
            self.chunks[chunk].next = self.free;
            self.free = chunk as u32;
        }
    }

    /// Gives all chunks of a list back.
    pub(crate) fn clear(&mut self, list: &mut List) {
        if list.tail != NONE {
            self.chunks[list.tail as usize].next = self.free;
            self.free = list.head;
        }
        *list = List::default();
    }

    pub(crate) fn last(&self, list: &List) -> Option<&Knot> {
        let at = (list.len as usize).checked_sub(1)?;
        Some(&self.chunks[list.tail as usize].knots[at % CHUNK])
    }
    /// The breakpoint at a place, if it is there, and moves on.
    #[inline]
    pub(crate) fn read(&self, list: &List, reader: &mut Reader) -> Option<&Knot> {
        if reader.index >= list.len {
            return None;
        }
        let at = reader.index as usize % CHUNK;
        if at == 0 {
            // The chunk may not have been there when the one before it was read to its end.
            reader.chunk =
                if reader.index == 0 { list.head } else { self.chunks[reader.chunk as usize].next };
        }
        reader.index += 1;
        Some(&self.chunks[reader.chunk as usize].knots[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_grow_side_by_side_and_share_what_they_give_back() {
        let mut store = Store::default();
        let mut lists = [List::default(); 3];
        let check = |store: &Store, list: &List, n: usize| {
            let mut reader = Reader::default();
            for i in 0..n {
                assert_eq!(store.read(list, &mut reader).expect("a knot").s, i as f64);
            }
            assert!(store.read(list, &mut reader).is_none());
            assert_eq!(store.last(list).map(|k| k.s), n.checked_sub(1).map(|i| i as f64));
        };
        for round in 0..3 {
            for i in 0..50 {
                for (l, list) in lists.iter_mut().enumerate() {
                    if i < 10 * (l + round) {
                        store.push(list, Knot { s: i as f64, ..EMPTY });
                    }
                }
            }
            for (l, list) in lists.iter_mut().enumerate() {
                check(&store, list, (10 * (l + round)).min(50));
                store.clear(list);
                check(&store, list, 0);
            }
        }
        assert!(store.chunks.len() < 200, "{} chunks", store.chunks.len());
    }
}
