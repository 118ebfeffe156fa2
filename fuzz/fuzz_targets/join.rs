//! What a stranger sends to join: a request for a certificate, as the server reads it, and the text of a join token.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vocab::JoinToken;

fuzz_target!(|input: &[u8]| {
    let _ = rcgen::CertificateSigningRequestParams::from_der(&input.into());
    if let Ok(text) = std::str::from_utf8(input)
        && let Ok(token) = text.parse::<JoinToken>()
    {
        assert_eq!(token.to_string().parse(), Ok(token));
    }
});
