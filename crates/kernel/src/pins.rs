//! Contents that unfinished operations need, whatever becomes of the files and tables that have them. Counted, so that the end
//! of one of them is not looked for in all operations.

use std::collections::BTreeMap;

/// How often each content is needed.
#[derive(Default)]
pub(crate) struct Pins(BTreeMap<u64, usize>);

impl Pins {
    /// These are needed once more.
    pub fn add(&mut self, blobs: impl IntoIterator<Item = u64>) {
        for blob in blobs {
            *self.0.entry(blob).or_default() += 1;
        }
    }

    /// These are needed once less.
    pub fn remove(&mut self, blobs: impl IntoIterator<Item = u64>) {
        for blob in blobs {
            let Some(count) = self.0.get_mut(&blob) else { continue };
            *count -= 1;
            if *count == 0 {
                self.0.remove(&blob);
            }
        }
    }

    /// Is it needed?
    pub fn holds(&self, blob: u64) -> bool {
        self.0.contains_key(&blob)
    }

    /// Is this what a count of all contents that are needed finds?
    pub fn are(&self, blobs: impl IntoIterator<Item = u64>) -> bool {
        let mut counted = Pins::default();
        counted.add(blobs);
        counted.0 == self.0
    }
}
