//! Bytes on the two sockets: a small binary encoding and length-prefixed frames.
//!
//! Both ends are the same binary on the same host, or two releases of it (a proxy outlives a restart
//! of the node with a newer one). So the encoding is positional and compact, the first message says
//! its version, and everything that is read is bounded: a damaged length never becomes an allocation.

use std::path::PathBuf;
use vocab::{Cpu, Failure, Guid, JobId, Span, Summary, Time};
use yson::{Map, Value};

/// Longest frame that is accepted. A job's environment may hold a big secure vault, an answer a
/// piece of stderr; nothing legitimate comes near this.
pub const MAX_FRAME: usize = 16 << 20;

/// Deepest nesting of values and failures that is accepted.
const MAX_DEPTH: usize = 64;

/// What is wrong with received bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The message ends in the middle of a field.
    #[error("Message ends too early: {wanted} more bytes expected, {left} left")]
    Truncated {
        /// Size of the field.
        wanted: usize,
        /// What is there.
        left: usize,
    },
    /// Bytes are left over.
    #[error("Message has {0} bytes after its end")]
    Trailing(usize),
    /// A tag or name that this version does not know.
    #[error("Unknown {what} {value:?}")]
    Unknown {
        /// Kind of thing.
        what: &'static str,
        /// What was found.
        value: String,
    },
    /// A frame longer than [`MAX_FRAME`].
    #[error("Frame of {0} bytes: at most {MAX_FRAME} are allowed")]
    TooLong(usize),
    /// Nested deeper than any real message.
    #[error("Value nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// Text that is not UTF-8.
    #[error("Text is not UTF-8")]
    NotText,
}

/// A cursor over one message.
pub struct Reader<'a> {
    rest: &'a [u8],
    depth: usize,
}

impl<'a> Reader<'a> {
    /// Over the body of a frame.
    pub fn new(body: &'a [u8]) -> Reader<'a> {
        Reader { rest: body, depth: 0 }
    }
    /// The next `n` bytes.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], CodecError> {
        if n > self.rest.len() {
            return Err(CodecError::Truncated { wanted: n, left: self.rest.len() });
        }
        let (head, tail) = self.rest.split_at(n);
        self.rest = tail;
        Ok(head)
    }
    /// All bytes must have been used.
    pub fn finish(self) -> Result<(), CodecError> {
        if self.rest.is_empty() { Ok(()) } else { Err(CodecError::Trailing(self.rest.len())) }
    }
    /// A length in elements of at least `min_size` bytes each, checked against what is there.
    fn length(&mut self, min_size: usize) -> Result<usize, CodecError> {
        let n = u32::decode(self)? as usize;
        let wanted = n.saturating_mul(min_size);
        if wanted > self.rest.len() {
            return Err(CodecError::Truncated { wanted, left: self.rest.len() });
        }
        Ok(n)
    }
    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T, CodecError>) -> Result<T, CodecError> {
        if self.depth == MAX_DEPTH {
            return Err(CodecError::TooDeep);
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }
}

/// A type with a form in bytes.
pub trait Wire: Sized {
    /// Appends the form.
    fn encode(&self, out: &mut Vec<u8>);
    /// Reads the form.
    fn decode(r: &mut Reader<'_>) -> Result<Self, CodecError>;
}

/// Appends one frame: length (4 bytes, little endian) and the message.
pub fn encode_frame<M: Wire>(message: &M, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    message.encode(out);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Cuts a stream of bytes into messages.
#[derive(Default)]
pub struct FrameReader {
    buffer: Vec<u8>,
    start: usize,
}

impl FrameReader {
    /// Adds what was received.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole message, if it is there. After an error the stream is useless: close it.
    pub fn next_message<M: Wire>(&mut self) -> Result<Option<M>, CodecError> {
        let rest = &self.buffer[self.start..];
        let Some(head) = rest.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        if length > MAX_FRAME {
            return Err(CodecError::TooLong(length));
        }
        let Some(body) = rest.get(4..4 + length) else { return Ok(None) };
        let mut r = Reader::new(body);
        let message = M::decode(&mut r)?;
        r.finish()?;
        self.start += 4 + length;
        Ok(Some(message))
    }
}

/// Decodes one message that fills `body` exactly (files, not streams).
pub fn decode_all<M: Wire>(body: &[u8]) -> Result<M, CodecError> {
    let mut r = Reader::new(body);
    let message = M::decode(&mut r)?;
    r.finish()?;
    Ok(message)
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl Wire for $t {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn decode(r: &mut Reader<'_>) -> Result<$t, CodecError> {
                let bytes = r.take(size_of::<$t>())?;
                Ok(<$t>::from_le_bytes(bytes.try_into().expect("take() gave exactly this many")))
            }
        }
    )*};
}
numbers!(u8, u32, u64, i32, i64, f64);

/// Writes `impl Wire` for a struct (all fields, in order) or for wrappers around one value.
macro_rules! wire {
    (struct $name:ident { $($field:ident),* $(,)? }) => {
        impl $crate::codec::Wire for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                $( $crate::codec::Wire::encode(&self.$field, out); )*
            }
            fn decode(r: &mut $crate::codec::Reader<'_>) -> Result<$name, $crate::codec::CodecError> {
                Ok($name { $( $field: $crate::codec::Wire::decode(r)?, )* })
            }
        }
    };
    (name $($name:ident),*) => {$(
        impl $crate::codec::Wire for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                $crate::codec::encode_bytes(self.as_str().as_bytes(), out);
            }
            fn decode(r: &mut $crate::codec::Reader<'_>) -> Result<$name, $crate::codec::CodecError> {
                let text = String::decode(r)?;
                text.parse().map_err(|_| $crate::codec::CodecError::Unknown {
                    what: stringify!($name), value: text,
                })
            }
        }
    )*};
    (enum $name:ident { $( $tag:literal => $variant:ident { $($field:ident),* $(,)? } ),* $(,)? }) => {
        impl $crate::codec::Wire for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                match self {
                    $( $name::$variant { $($field),* } => {
                        out.push($tag);
                        $( $crate::codec::Wire::encode($field, out); )*
                    } )*
                }
            }
            fn decode(r: &mut $crate::codec::Reader<'_>) -> Result<$name, $crate::codec::CodecError> {
                match u8::decode(r)? {
                    $( $tag => Ok($name::$variant { $( $field: $crate::codec::Wire::decode(r)?, )* }), )*
                    other => Err($crate::codec::CodecError::Unknown {
                        what: stringify!($name), value: other.to_string(),
                    }),
                }
            }
        }
    };
}
pub(crate) use wire;

pub(crate) fn encode_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    (bytes.len() as u32).encode(out);
    out.extend_from_slice(bytes);
}

fn decode_bytes<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], CodecError> {
    let n = r.length(1)?;
    r.take(n)
}

impl Wire for bool {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn decode(r: &mut Reader<'_>) -> Result<bool, CodecError> {
        match u8::decode(r)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(CodecError::Unknown { what: "boolean", value: other.to_string() }),
        }
    }
}

impl Wire for String {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_bytes(self.as_bytes(), out);
    }
    fn decode(r: &mut Reader<'_>) -> Result<String, CodecError> {
        String::from_utf8(decode_bytes(r)?.to_vec()).map_err(|_| CodecError::NotText)
    }
}

/// Paths need not be UTF-8.
impl Wire for PathBuf {
    fn encode(&self, out: &mut Vec<u8>) {
        use std::os::unix::ffi::OsStrExt;
        encode_bytes(self.as_os_str().as_bytes(), out);
    }
    fn decode(r: &mut Reader<'_>) -> Result<PathBuf, CodecError> {
        use std::os::unix::ffi::OsStrExt;
        Ok(PathBuf::from(std::ffi::OsStr::from_bytes(decode_bytes(r)?)))
    }
}

/// Raw bytes, one copy (a `Vec<u8>` as a list of numbers would go byte by byte).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Blob(pub Vec<u8>);

impl Wire for Blob {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_bytes(&self.0, out);
    }
    fn decode(r: &mut Reader<'_>) -> Result<Blob, CodecError> {
        Ok(Blob(decode_bytes(r)?.to_vec()))
    }
}

impl<T: Wire> Wire for Option<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.is_some().encode(out);
        if let Some(x) = self {
            x.encode(out);
        }
    }
    fn decode(r: &mut Reader<'_>) -> Result<Option<T>, CodecError> {
        if bool::decode(r)? { T::decode(r).map(Some) } else { Ok(None) }
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        (self.len() as u32).encode(out);
        self.iter().for_each(|x| x.encode(out));
    }
    fn decode(r: &mut Reader<'_>) -> Result<Vec<T>, CodecError> {
        let n = r.length(1)?;
        (0..n).map(|_| T::decode(r)).collect()
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
        self.1.encode(out);
    }
    fn decode(r: &mut Reader<'_>) -> Result<(A, B), CodecError> {
        Ok((A::decode(r)?, B::decode(r)?))
    }
}

macro_rules! newtypes {
    ($($t:ident($inner:ty)),*) => {$(
        impl Wire for $t {
            fn encode(&self, out: &mut Vec<u8>) { self.0.encode(out); }
            fn decode(r: &mut Reader<'_>) -> Result<$t, CodecError> { <$inner>::decode(r).map($t) }
        }
    )*};
}
newtypes!(Time(u64), Span(u64), Cpu(i64), JobId(Guid));

impl Wire for Guid {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_bytes());
    }
    fn decode(r: &mut Reader<'_>) -> Result<Guid, CodecError> {
        Ok(Guid::from_bytes(r.take(16)?.try_into().expect("take() gave exactly this many")))
    }
}

wire!(struct Summary { sum, count, min, max, last });

impl Wire for Value {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Value::Entity => out.push(0),
            Value::Bool(x) => {
                out.push(1);
                x.encode(out);
            }
            Value::Int(x) => {
                out.push(2);
                x.encode(out);
            }
            Value::Uint(x) => {
                out.push(3);
                x.encode(out);
            }
            Value::Double(x) => {
                out.push(4);
                x.encode(out);
            }
            Value::String(x) => {
                out.push(5);
                encode_bytes(x, out);
            }
            Value::List(x) => {
                out.push(6);
                x.encode(out);
            }
            Value::Map(x) => {
                out.push(7);
                x.encode(out);
            }
            Value::Attributed(x) => {
                out.push(8);
                x.0.encode(out);
                x.1.encode(out);
            }
        }
    }
    fn decode(r: &mut Reader<'_>) -> Result<Value, CodecError> {
        r.nested(|r| {
            Ok(match u8::decode(r)? {
                0 => Value::Entity,
                1 => Value::Bool(bool::decode(r)?),
                2 => Value::Int(i64::decode(r)?),
                3 => Value::Uint(u64::decode(r)?),
                4 => Value::Double(f64::decode(r)?),
                5 => Value::String(decode_bytes(r)?.to_vec()),
                6 => Value::List(Vec::decode(r)?),
                7 => Value::Map(Map::decode(r)?),
                8 => {
                    let attributes = Map::decode(r)?;
                    Value::decode(r)?.with_attributes(attributes)
                }
                other => return Err(CodecError::Unknown { what: "value", value: other.to_string() }),
            })
        })
    }
}

impl Wire for Map {
    fn encode(&self, out: &mut Vec<u8>) {
        (self.len() as u32).encode(out);
        for (k, v) in self.iter() {
            encode_bytes(k, out);
            v.encode(out);
        }
    }
    fn decode(r: &mut Reader<'_>) -> Result<Map, CodecError> {
        let n = r.length(5)?;
        let mut map = Map::new();
        for _ in 0..n {
            let key = decode_bytes(r)?.to_vec();
            map.insert_owned(key, Value::decode(r)?);
        }
        Ok(map)
    }
}

impl Wire for Failure {
    fn encode(&self, out: &mut Vec<u8>) {
        self.code.encode(out);
        self.message.encode(out);
        self.attributes.encode(out);
        self.inner_errors.encode(out);
    }
    fn decode(r: &mut Reader<'_>) -> Result<Failure, CodecError> {
        r.nested(|r| {
            Ok(Failure {
                code: i64::decode(r)?,
                message: String::decode(r)?,
                attributes: Map::decode(r)?,
                inner_errors: Vec::decode(r)?,
            })
        })
    }
}

#[cfg(test)]
mod tests;
