//! TLS: a certificate and its key from files, read again when they change, so that a renewed certificate
//! needs no restart.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use vocab::Failure;

/// How often it is looked whether the files have changed.
const LOOK: Duration = Duration::from_secs(10);
/// What is spoken inside: HTTP/2 is for nodes.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// See the module page.
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    current: Mutex<Current>,
}

struct Current {
    config: Arc<ServerConfig>,
    /// Times of the two files as they were read.
    times: [Option<SystemTime>; 2],
    looked: Instant,
}

impl Tls {
    /// PEM files: the chain of certificates, the server's own first, and its private key.
    pub fn read(certificate: &Path, key: &Path) -> Result<Tls, Failure> {
        let times = [certificate, key].map(changed);
        let current = Current { config: configuration(certificate, key)?, times, looked: Instant::now() };
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        Ok(Tls { certificate, key, current: Mutex::new(current) })
    }

    /// What connections are served with from now on.
    pub(super) fn current(&self) -> Arc<ServerConfig> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.looked.elapsed() >= LOOK {
            current.looked = Instant::now();
            self.refresh(&mut current);
        }
        Arc::clone(&current.config)
    }

    /// What cannot be read, or does not fit together yet, is looked at again the next time.
    fn refresh(&self, current: &mut Current) {
        let times = [self.certificate.as_path(), &self.key].map(changed);
        if times == current.times {
            return;
        }
        match configuration(&self.certificate, &self.key) {
            Ok(config) => {
                tracing::info!(certificate = %self.certificate.display(), "the certificate was renewed");
                (current.config, current.times) = (config, times);
            }
            Err(failure) => tracing::warn!(%failure, "the old certificate stays in use"),
        }
    }
}

fn changed(file: &Path) -> Option<SystemTime> {
    std::fs::metadata(file).and_then(|about| about.modified()).ok()
}

fn configuration(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, Failure> {
    let bad = |file: &Path, why: String| {
        Failure::new(format!("{}: {why}", file.display())).with("path", file.display().to_string())
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|e| bad(certificate, format!("cannot read a certificate in PEM form: {e}")))?;
    if chain.is_empty() {
        return Err(bad(certificate, "no certificate in PEM form is in it".to_owned()));
    }
    let secret = datadir::read_secret(key)
        .map_err(|e| Failure::new(e.to_string()).with("path", key.display().to_string()))?;
    let secret = PrivateKeyDer::from_pem_slice(&secret)
        .map_err(|e| bad(key, format!("cannot read a private key in PEM form: {e}")))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| Failure::new(format!("Cannot use TLS: {e}")))?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|e| bad(key, format!("it does not belong to {}: {e}", certificate.display())))?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(Arc::new(config))
}
