//! Whom to trust when somebody says who they are by TLS.

use std::path::PathBuf;

/// Where systems keep the certificates of the authorities that they trust.
const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// Variables that name another file: ours, then those of other tools, the `yt` client among them.
const VARIABLES: [&str; 3] = ["MILLPOND_CA_FILE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"];

/// The file with the authorities to trust: what the environment says, else what the system has.
pub fn authorities(env: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let named = VARIABLES.iter().find_map(|name| env(name).filter(|file| !file.is_empty()));
    named.map(PathBuf::from).or_else(|| SYSTEM.map(PathBuf::from).into_iter().find(|file| file.exists()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_comes_first() {
        let env = |set: &'static [&'static str]| {
            move |name: &str| set.contains(&name).then(|| format!("/of/{name}"))
        };
        for (set, expected) in [
            (&["SSL_CERT_FILE", "MILLPOND_CA_FILE"][..], "/of/MILLPOND_CA_FILE"),
            (&["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"], "/of/REQUESTS_CA_BUNDLE"),
            (&["SSL_CERT_FILE"], "/of/SSL_CERT_FILE"),
        ] {
            assert_eq!(authorities(env(set)), Some(PathBuf::from(expected)));
        }
        assert!(
            authorities(|_| Some(String::new()))
                .is_none_or(|file| SYSTEM.contains(&&*file.to_string_lossy()))
        );
    }
}
