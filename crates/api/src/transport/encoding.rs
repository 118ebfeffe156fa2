//! Compressed bodies, both ways (http-api.md 2.6).

use flate2::write::{DeflateDecoder, GzEncoder, MultiGzDecoder, ZlibDecoder};
use std::io::{self, Write};

/// Smaller replies are not worth the time.
const MIN_COMPRESSED: usize = 4096;

/// Encodings of replies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Encoding {
    Identity,
    Gzip,
    Brotli,
}

impl Encoding {
    /// The first one that the client names and we have; `q=0` refuses one.
    pub fn choose(accept: Option<&str>, size: usize) -> Encoding {
        let Some(accept) = accept.filter(|_| size >= MIN_COMPRESSED) else { return Encoding::Identity };
        let known = accept.split(',').filter_map(|item| {
            let (name, parameters) = item.split_once(';').unwrap_or((item, ""));
            let refused = parameters
                .split(';')
                .any(|p| p.trim().strip_prefix("q=").and_then(|q| q.parse::<f32>().ok()) == Some(0.0));
            match name.trim().to_ascii_lowercase().as_str() {
                _ if refused => None,
                "gzip" => Some(Encoding::Gzip),
                "br" => Some(Encoding::Brotli),
                "identity" => Some(Encoding::Identity),
                _ => None,
            }
        });
        known.into_iter().next().unwrap_or(Encoding::Identity)
    }

    /// Name in `Content-Encoding`; none for identity.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Encoding::Identity => None,
            Encoding::Gzip => Some("gzip"),
            Encoding::Brotli => Some("br"),
        }
    }

    /// Fast rather than small: most clients are near.
    pub fn compress(self, body: Vec<u8>) -> Vec<u8> {
        let compressed = match self {
            Encoding::Identity => return body,
            Encoding::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(&body).and_then(|()| encoder.finish())
            }
            Encoding::Brotli => {
                let mut out = Vec::new();
                let params = brotli::enc::BrotliEncoderParams { quality: 2, ..Default::default() };
                brotli::BrotliCompress(&mut body.as_slice(), &mut out, &params).map(|_| out)
            }
        };
        compressed.expect("writing to memory does not fail")
    }
}

/// Why a body was refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum DecodeError {
    #[error(
        "Unsupported Content-Encoding {0:?}: expected one of \"identity\", \"gzip\", \"deflate\", \"br\""
    )]
    Unknown(String),
    #[error("Cannot decompress the body ({encoding}): {error}")]
    Malformed { encoding: &'static str, error: io::Error },
    #[error("The body is larger than {limit} bytes after decompression")]
    TooLarge { limit: usize },
}

/// Decompresses a body piece by piece.
pub(super) struct Decoder {
    state: State,
    encoding: &'static str,
    /// An empty body is empty in any encoding: some clients name one with every request.
    any: bool,
}

enum State {
    Identity,
    /// What a client calls gzip may be zlib: the first two bytes decide (http-api.md 2.6).
    Undecided {
        raw_allowed: bool,
        first: Vec<u8>,
    },
    Gzip(MultiGzDecoder<Sink>),
    Zlib(ZlibDecoder<Sink>),
    Raw(DeflateDecoder<Sink>),
    Brotli(Box<brotli::DecompressorWriter<Sink>>),
}

impl Decoder {
    /// For the value of a `Content-Encoding` header.
    pub fn new(header: Option<&str>) -> Result<Decoder, DecodeError> {
        let undecided = |raw_allowed| State::Undecided { raw_allowed, first: Vec::new() };
        let (state, encoding) = match header.map(str::trim).unwrap_or_default() {
            "" | "identity" => (State::Identity, "identity"),
            "gzip" | "x-gzip" => (undecided(false), "gzip"),
            "deflate" => (undecided(true), "deflate"),
            "br" => {
                let writer = brotli::DecompressorWriter::new(Sink::default(), 64 << 10);
                (State::Brotli(Box::new(writer)), "br")
            }
            other => return Err(DecodeError::Unknown(other.chars().take(100).collect())),
        };
        Ok(Decoder { state, encoding, any: false })
    }

    /// Takes a piece and gives what it became; refuses to make more than `limit` bytes of it.
    pub fn push(&mut self, piece: &[u8], limit: usize) -> Result<Vec<u8>, DecodeError> {
        self.any |= !piece.is_empty();
        if let State::Undecided { raw_allowed, first } = &mut self.state {
            first.extend_from_slice(piece);
            if first.len() < 2 {
                return Ok(Vec::new());
            }
            let (raw_allowed, first) = (*raw_allowed, std::mem::take(first));
            self.state = decide(&first, raw_allowed);
            return self.push(&first, limit);
        }
        if let State::Identity = self.state {
            return if piece.len() > limit {
                Err(DecodeError::TooLarge { limit })
            } else {
                Ok(piece.to_vec())
            };
        }
        self.sink().room = limit;
        let written = match &mut self.state {
            State::Identity | State::Undecided { .. } => Ok(()),
            State::Gzip(w) => w.write_all(piece),
            State::Zlib(w) => w.write_all(piece),
            State::Raw(w) => w.write_all(piece),
            State::Brotli(w) => w.write_all(piece),
        };
        self.collect(written, limit)
    }

    /// Gives the rest; a body that stops in the middle is an error.
    pub fn finish(&mut self, limit: usize) -> Result<Vec<u8>, DecodeError> {
        match &self.state {
            State::Identity => return Ok(Vec::new()),
            _ if !self.any => return Ok(Vec::new()),
            State::Undecided { .. } => {
                let error = io::Error::from(io::ErrorKind::UnexpectedEof);
                return Err(DecodeError::Malformed { encoding: self.encoding, error });
            }
            _ => {}
        }
        self.sink().room = limit;
        let written = match &mut self.state {
            State::Identity | State::Undecided { .. } => Ok(()),
            State::Gzip(w) => w.try_finish(),
            State::Zlib(w) => w.try_finish(),
            State::Raw(w) => w.try_finish(),
            State::Brotli(w) => w.close(),
        };
        self.collect(written, limit)
    }

    fn collect(&mut self, written: io::Result<()>, limit: usize) -> Result<Vec<u8>, DecodeError> {
        let encoding = self.encoding;
        let sink = self.sink();
        if sink.overflow {
            return Err(DecodeError::TooLarge { limit });
        }
        written.map_err(|error| DecodeError::Malformed { encoding, error })?;
        Ok(std::mem::take(&mut sink.bytes))
    }

    fn sink(&mut self) -> &mut Sink {
        match &mut self.state {
            State::Gzip(w) => w.get_mut(),
            State::Zlib(w) => w.get_mut(),
            State::Raw(w) => w.get_mut(),
            State::Brotli(w) => w.get_mut(),
            State::Identity | State::Undecided { .. } => unreachable!("asked only while decompressing"),
        }
    }
}

fn decide(first: &[u8], raw_allowed: bool) -> State {
    let sink = Sink::default();
    let is_zlib = first[0] & 0x0f == 8 && u16::from_be_bytes([first[0], first[1]]).is_multiple_of(31);
    if is_zlib {
        State::Zlib(ZlibDecoder::new(sink))
    } else if raw_allowed {
        State::Raw(DeflateDecoder::new(sink))
    } else {
        // Also for garbage: its error says that the header is not gzip's.
        State::Gzip(MultiGzDecoder::new(sink))
    }
}

/// Takes what a decoder writes, up to a bound: a kilobyte may claim to be a terabyte.
#[derive(Default)]
struct Sink {
    bytes: Vec<u8>,
    room: usize,
    overflow: bool,
}

impl Write for Sink {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if data.len() > self.room {
            self.overflow = true;
            return Err(io::Error::other("too large"));
        }
        self.room -= data.len();
        self.bytes.extend_from_slice(data);
        Ok(data.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, ZlibEncoder};

    const LIMIT: usize = 10 << 20;

    fn sample() -> Vec<u8> {
        (0..100_000u32).flat_map(|i| (i / 7).to_string().into_bytes()).collect()
    }

    /// `(Content-Encoding, compressed)` in all forms that clients send.
    fn forms(data: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
        let level = Compression::default();
        let mut zlib = ZlibEncoder::new(Vec::new(), level);
        let mut raw = DeflateEncoder::new(Vec::new(), level);
        zlib.write_all(data).expect("memory");
        raw.write_all(data).expect("memory");
        let zlib = zlib.finish().expect("memory");
        vec![
            ("gzip", Encoding::Gzip.compress(data.to_vec())),
            ("gzip", zlib.clone()),
            ("deflate", zlib),
            ("deflate", raw.finish().expect("memory")),
            ("br", Encoding::Brotli.compress(data.to_vec())),
            ("identity", data.to_vec()),
        ]
    }

    fn decode(name: &str, body: &[u8], piece: usize, limit: usize) -> Result<Vec<u8>, DecodeError> {
        let mut decoder = Decoder::new(Some(name))?;
        let mut out = Vec::new();
        for piece in body.chunks(piece) {
            out.extend(decoder.push(piece, limit - out.len())?);
        }
        out.extend(decoder.finish(limit - out.len())?);
        Ok(out)
    }

    #[test]
    fn all_forms_in_any_pieces() {
        let data = sample();
        for (name, body) in forms(&data) {
            for piece in [1, 2, 1000, usize::MAX] {
                let out = decode(name, &body, piece, LIMIT).expect("a good body");
                assert!(out == data, "{name} in pieces of {piece}");
            }
            assert_eq!(decode(name, b"", 1, LIMIT).ok().as_deref(), Some(b"".as_slice()));
        }
    }

    #[test]
    fn bodies_that_stop_early_are_refused() {
        for (name, body) in forms(&sample()) {
            if name != "identity" {
                let cut = &body[..body.len() / 2];
                assert!(
                    matches!(decode(name, cut, 999, LIMIT), Err(DecodeError::Malformed { .. })),
                    "{name}"
                );
            }
        }
        assert!(matches!(decode("gzip", b"hello world", 99, LIMIT), Err(DecodeError::Malformed { .. })));
        assert!(matches!(Decoder::new(Some("z-lz4")), Err(DecodeError::Unknown(_))));
    }

    #[test]
    fn bombs_are_refused() {
        for (name, body) in forms(&vec![0; 50 << 20]) {
            let error = decode(name, &body, 1 << 20, LIMIT).expect_err("too large");
            assert!(matches!(error, DecodeError::TooLarge { .. }), "{name}: {error}");
        }
    }

    #[test]
    fn choice() {
        for (accept, expected) in [
            (None, Encoding::Identity),
            (Some("gzip, identity"), Encoding::Gzip),
            (Some("br, gzip, identity"), Encoding::Brotli),
            (Some("zstd, br;q=0, gzip;q=0.5"), Encoding::Gzip),
            (Some("*"), Encoding::Identity),
        ] {
            assert_eq!(Encoding::choose(accept, 1 << 20), expected, "{accept:?}");
            assert_eq!(Encoding::choose(accept, 100), Encoding::Identity);
        }
    }
}
