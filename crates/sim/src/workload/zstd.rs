//! Files in zstd: frames one after the other, as `zstd`, `pzstd` and `cat` make them.

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, Read};

/// See the module page.
pub(super) struct Zstd<R: BufRead> {
    input: R,
    decoder: FrameDecoder,
    /// The decoder is in a frame.
    inside: bool,
}

fn broken(what: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("zstd: {what}"))
}

impl<R: BufRead> Zstd<R> {
    pub fn new(input: R) -> Zstd<R> {
        Zstd { input, decoder: FrameDecoder::new(), inside: false }
    }

    /// Goes to the next frame with something in it. False: there is none.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.input) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped = &mut self.input.by_ref().take(u64::from(length));
                    io::copy(skipped, &mut io::sink())?;
                }
                Err(e) => return Err(broken(e)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while !out.is_empty() {
            if !self.inside {
                self.inside = self.next_frame()?;
                if !self.inside {
                    return Ok(0);
                }
            }
            while self.decoder.can_collect() < out.len() && !self.decoder.is_finished() {
                let wanted = out.len() - self.decoder.can_collect();
                let strategy = BlockDecodingStrategy::UptoBytes(wanted);
                self.decoder.decode_blocks(&mut self.input, strategy).map_err(broken)?;
            }
            let read = self.decoder.read(out)?;
            if read > 0 {
                return Ok(read);
            }
            let (told, found) =
                (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum());
            if told.is_some() && told != found {
                return Err(broken("the checksum of a frame is not that of its content"));
            }
            self.inside = false;
        }
        Ok(0)
    }
}
