//! Letting go of mounts that are none of a job's business.
//!
//! A new mount namespace is a copy: it has the memory file systems of all other jobs, and would keep
//! them, with all that is in them, for as long as its own job lives. The table is read *inside*, after the
//! copy: nothing can be mounted between the look and the copy. Only system calls on memory of the stack:
//! see [`super::live`].

use std::ffi::{CStr, CString};

/// Longest path that is looked at; the kernel knows no longer ones.
const LONGEST: usize = libc::PATH_MAX as usize;
/// Field of a line that has the mount point.
const MOUNT_POINT: usize = 4;
/// A table that still has such mounts after so many looks is not one that we can empty.
const LOOKS: usize = 16;

/// Unmounts, in this namespace, everything at and below the paths, which are written as in the table.
/// False with `errno` set on failure.
pub(super) fn let_go(below: &[CString]) -> bool {
    for _ in 0..LOOKS {
        match look(below) {
            Some(0) => return true,
            Some(_) => {}
            None => return false,
        }
    }
    false
}

/// One pass through the table; gives how many were unmounted.
fn look(below: &[CString]) -> Option<usize> {
    // SAFETY (all blocks): plain system calls on buffers of this frame.
    let fd = unsafe { libc::open(c"/proc/self/mountinfo".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if fd < 0 {
        return None;
    }
    let mut point = Point::default();
    let mut buffer = [0_u8; 4096];
    let mut count = 0;
    loop {
        let got = unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) };
        let Ok(got) = usize::try_from(got) else { return None };
        if got == 0 {
            unsafe { libc::close(fd) };
            return Some(count);
        }
        for byte in &buffer[..got] {
            if *byte == b'\n' {
                if point.is_below(below)
                    && let Some(path) = point.unescaped()
                {
                    // One that lay under another went with it.
                    let flags = libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW;
                    count += usize::from(unsafe { libc::umount2(path.as_ptr(), flags) } == 0);
                }
                point.clear();
            } else {
                point.push(*byte);
            }
        }
    }
}

/// The mount point of the line that is being read.
struct Point {
    field: usize,
    length: usize,
    bytes: [u8; LONGEST * 4],
}

impl Default for Point {
    fn default() -> Point {
        Point { field: 0, length: 0, bytes: [0; LONGEST * 4] }
    }
}

impl Point {
    fn clear(&mut self) {
        (self.field, self.length) = (0, 0);
    }

    fn push(&mut self, byte: u8) {
        if byte == b' ' {
            self.field += 1;
        } else if self.field == MOUNT_POINT && self.length < self.bytes.len() - 1 {
            self.bytes[self.length] = byte;
            self.length += 1;
        }
    }

    fn is_below(&self, prefixes: &[CString]) -> bool {
        let path = &self.bytes[..self.length];
        prefixes.iter().any(|prefix| {
            let prefix = prefix.to_bytes();
            path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        })
    }

    /// In place: `\040` becomes a blank.
    fn unescaped(&mut self) -> Option<&CStr> {
        let (mut from, mut to) = (0, 0);
        while from < self.length {
            let octal =
                |i: usize| self.bytes.get(from + i).filter(|b| (b'0'..=b'7').contains(b)).map(|b| b - b'0');
            let byte = self.bytes[from];
            match (byte, octal(1), octal(2), octal(3)) {
                (b'\\', Some(a), Some(b), Some(c)) => {
                    self.bytes[to] = (a << 6) | (b << 3) | c;
                    from += 4;
                }
                _ => {
                    self.bytes[to] = byte;
                    from += 1;
                }
            }
            to += 1;
        }
        self.bytes[to] = 0;
        CStr::from_bytes_until_nul(&self.bytes[..=to]).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(line: &str) -> Point {
        let mut point = Point::default();
        line.bytes().for_each(|byte| point.push(byte));
        point
    }

    #[test]
    fn mount_points_are_found_by_their_directory() {
        let check = |path: &str, below: &str, want: bool| {
            let point =
                point(&format!("42 31 0:38 / {path} rw,relatime shared:1 - tmpfs millpond rw,size=1k"));
            assert_eq!(point.is_below(&[CString::new(below).expect("text")]), want, "{path} {below}");
        };
        check("/data/slots/1/sandbox/x", "/data", true);
        check("/data", "/data", true);
        check("/database", "/data", false);
        check("/", "/data", false);
        check("/my\\040data/x", "/my\\040data", true);
        check("/data/x", "/run", false);
    }

    #[test]
    fn blanks_are_read_back() {
        let mut point = point("1 2 0:3 / /a\\040b/c\\134d rw - x x x");
        assert_eq!(point.unescaped(), Some(c"/a b/c\\d"));
    }
}
