//! The authority that nodes' certificates are from: made at the first start, beside the store.
//!
//! What it signs, and for how long, the kernel decides; here is the cryptography. The server's own certificate for its nodes
//! is from this authority too, and lives in memory only.

use anyhow::{Context, bail};
use api::secrets::sha256_of_bytes;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SerialNumber,
};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{
    CertificateDer, CertificateSigningRequestDer, PrivateKeyDer, PrivatePkcs8KeyDer,
};
use tokio_rustls::rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use vocab::join_token::NODE_SERVER_NAME;
use vocab::{Span, Time};

/// Name of the file in the data directory: certificate and private key, in PEM form.
pub const FILE: &str = "node-authority.pem";
/// Life of the authority itself: longer than that of any cluster.
const LIFE: Duration = Duration::from_secs(50 * 365 * 24 * 3600);
/// Certificates are valid from so long before they are made: clocks of hosts differ.
const BACKDATED: Span = Span::from_secs(3600);
/// Life of the server's own certificate.
const SERVING: Duration = Duration::from_secs(7 * 24 * 3600);
/// The server's own certificate is made anew so often.
const SERVING_RENEWED: Duration = Duration::from_secs(24 * 3600);
/// Longest request of a node: keys have less than a thousand bytes.
const LONGEST_REQUEST: usize = 16 << 10;

/// See the module page.
pub struct NodeAuthority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    serving: Mutex<Option<(SystemTime, Arc<ServerConfig>)>>,
}

/// A node's request for a certificate. It has the private key that belongs to it.
pub struct SigningRequest {
    request: CertificateSigningRequestParams,
    /// SHA-256 of its public key, in hexadecimal: what the kernel knows it by.
    pub key_sha256: String,
}

impl SigningRequest {
    /// Verifies the signature of a request (PKCS#10, DER).
    pub fn read(request: &[u8]) -> Result<SigningRequest, String> {
        if request.len() > LONGEST_REQUEST {
            let found = request.len();
            return Err(format!("request: expected at most {LONGEST_REQUEST} bytes, found {found}"));
        }
        let request = CertificateSigningRequestParams::from_der(&CertificateSigningRequestDer::from(request))
            .map_err(|e| {
                format!("request: expected a signed certificate request of a node, found something else: {e}")
            })?;
        let key_sha256 = sha256_of_bytes(&request.public_key.subject_public_key_info());
        Ok(SigningRequest { request, key_sha256 })
    }
}

/// SHA-256 of the public key in a certificate (DER), in hexadecimal.
pub fn key_of_certificate(certificate: &[u8]) -> Result<String, String> {
    let certificate = CertificateDer::from(certificate);
    let parsed = ParsedCertificate::try_from(&certificate).map_err(|e| e.to_string())?;
    Ok(sha256_of_bytes(&parsed.subject_public_key_info()))
}

impl NodeAuthority {
    /// Reads the authority of a data directory; a directory without one gets one. `None` if the disk does not take it: the
    /// server starts on a full disk too, and answers questions.
    pub fn open(directory: &Path) -> anyhow::Result<Option<NodeAuthority>> {
        let file = directory.join(FILE);
        match datadir::read_secret(&file) {
            Ok(text) => NodeAuthority::parse(&text)
                .map(Some)
                .with_context(|| format!("cannot use the authority of nodes in {}", file.display())),
            Err(datadir::SecretError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                let (authority, text) = NodeAuthority::make()?;
                if let Err(error) = write(&file, &text) {
                    tracing::error!(%error, file = %file.display(), "cannot write the authority of nodes: no node can connect");
                    return Ok(None);
                }
                tracing::info!(
                    file = %file.display(),
                    sha256 = authority.digest(),
                    "the authority for the certificates of nodes was made: nodes that had one of another authority join again"
                );
                Ok(Some(authority))
            }
            Err(error) => Err(error).context("cannot read the authority of nodes"),
        }
    }

    fn make() -> anyhow::Result<(NodeAuthority, String)> {
        let key = KeyPair::generate()?;
        let (not_before, not_after) = validity(SystemTime::now(), LIFE)?;
        let mut params = CertificateParams::default();
        (params.not_before, params.not_after) = (not_before, not_after);
        params.distinguished_name = name("Millpond authority for nodes");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.serial_number = Some(serial()?);
        let certificate = params.self_signed(&key)?;
        let text = format!("{}{}", certificate.pem(), key.serialize_pem());
        let certificate = certificate.der().clone();
        Ok((NodeAuthority::new(certificate, key)?, text))
    }

    /// Reads certificate and key.
    pub fn parse(text: &[u8]) -> anyhow::Result<NodeAuthority> {
        let certificate = CertificateDer::from_pem_slice(text)
            .map_err(|e| anyhow::anyhow!("expected a certificate in PEM form: {e}"))?;
        let key = PrivateKeyDer::from_pem_slice(text)
            .map_err(|e| anyhow::anyhow!("expected a private key in PEM form: {e}"))?;
        let key = KeyPair::try_from(&key).context("expected the private key of the certificate")?;
        let of_certificate = key_of_certificate(&certificate).map_err(anyhow::Error::msg)?;
        if of_certificate != sha256_of_bytes(&key.subject_public_key_info()) {
            bail!("the private key does not belong to the certificate");
        }
        NodeAuthority::new(certificate.into_owned(), key)
    }

    fn new(certificate: CertificateDer<'static>, key: KeyPair) -> anyhow::Result<NodeAuthority> {
        let issuer =
            Issuer::from_ca_cert_der(&certificate, key).context("the certificate cannot sign others")?;
        Ok(NodeAuthority { issuer, certificate, serving: Mutex::default() })
    }

    /// SHA-256 of the authority's certificate, in hexadecimal: by it nodes know the server.
    pub fn digest(&self) -> String {
        sha256_of_bytes(&self.certificate)
    }

    /// The authority's certificate (DER).
    pub fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    /// A certificate (DER) for a node's key, and its beginning.
    pub fn sign(
        &self,
        node: &str,
        request: &SigningRequest,
        now: Time,
        valid_until: Time,
    ) -> anyhow::Result<(Vec<u8>, Time)> {
        let valid_from = now - BACKDATED;
        // Nothing but the key is taken over from the request.
        let mut params = CertificateParams::default();
        params.not_before = date(Duration::from_micros(valid_from.as_micros()))?;
        params.not_after = date(Duration::from_micros(valid_until.as_micros()))?;
        params.distinguished_name = name(node);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.serial_number = Some(serial()?);
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&request.request.public_key, &self.issuer)?;
        Ok((certificate.der().to_vec(), valid_from))
    }

    /// What connections of nodes are served with at the moment.
    pub fn serving(&self) -> std::io::Result<Arc<ServerConfig>> {
        let mut serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner);
        let now = SystemTime::now();
        if let Some((made, config)) = &*serving
            && now.duration_since(*made).is_ok_and(|age| age < SERVING_RENEWED)
        {
            return Ok(Arc::clone(config));
        }
        let config = self.configuration(now).map_err(|error| {
            tracing::error!(error = format!("{error:#}"), "nodes cannot connect");
            std::io::Error::other(error)
        })?;
        *serving = Some((now, Arc::clone(&config)));
        Ok(config)
    }

    fn configuration(&self, now: SystemTime) -> anyhow::Result<Arc<ServerConfig>> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec![NODE_SERVER_NAME.to_owned()])?;
        (params.not_before, params.not_after) = validity(now, SERVING)?;
        params.distinguished_name = name(NODE_SERVER_NAME);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.serial_number = Some(serial()?);
        params.use_authority_key_identifier_extension = true;
        let own = params.signed_by(&key, &self.issuer)?.der().clone();
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone())?;
        let provider = Arc::new(ring::default_provider());
        // A node that joins has none yet. Without one it can do nothing else.
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(verifier)
            .with_single_cert(
                vec![own, self.certificate.clone()],
                PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        // A resumed session would not look at the end of the certificate again.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

fn name(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    name
}

fn serial() -> anyhow::Result<SerialNumber> {
    let id = api::secrets::random_guid().map_err(|failure| anyhow::anyhow!("{failure}"))?;
    let mut bytes = id.to_bytes().to_vec();
    // Positive.
    bytes[0] &= 0x7f;
    Ok(SerialNumber::from(bytes))
}

fn validity(now: SystemTime, life: Duration) -> anyhow::Result<(OffsetDateTime, OffsetDateTime)> {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let from = now.saturating_sub(Duration::from_micros(BACKDATED.as_micros()));
    Ok((date(from)?, date(now + life)?))
}

fn date(since_epoch: Duration) -> anyhow::Result<OffsetDateTime> {
    let seconds = i64::try_from(since_epoch.as_secs()).context("the clock of this host")?;
    OffsetDateTime::from_unix_timestamp(seconds).ok().context("the clock of this host")
}

/// By rename, readable for the owner alone from the first moment.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    let draft = file.with_extension("draft");
    let _ = std::fs::remove_file(&draft);
    let mut out = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    out.write_all(text.as_bytes())?;
    out.sync_all()?;
    std::fs::rename(&draft, file)?;
    // A token that was given out has the digest in it.
    std::fs::File::open(file.parent().unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn request(key: &KeyPair) -> Vec<u8> {
        CertificateParams::default().serialize_request(key).expect("a request").der().to_vec()
    }

    /// S7.
    #[test]
    fn an_authority_is_the_same_in_each_life_and_closed_to_others() {
        let directory = tempfile::tempdir().expect("a directory");
        let open =
            || NodeAuthority::open(directory.path()).map(|authority| authority.expect("room on the disk"));
        let first = open().expect("made").digest();
        assert_eq!(open().expect("read").digest(), first);
        let file = directory.path().join(FILE);
        let mode = std::fs::metadata(&file).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("changed");
        let refused = open().err().expect("others could read it");
        assert!(format!("{refused:#}").contains("0644"), "{refused:#}");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("changed");
        // Half of it is an error: a new one would cut all nodes off.
        let whole = std::fs::read_to_string(&file).expect("text");
        let end = whole.find("-----BEGIN PRIVATE").expect("a key");
        std::fs::write(&file, &whole[..end]).expect("written");
        let refused = open().err().expect("no key");
        assert!(format!("{refused:#}").contains("private key"), "{refused:#}");
    }

    /// S7.
    #[test]
    fn a_request_is_signed_for_its_key_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let authority = NodeAuthority::open(directory.path()).expect("made").expect("room on the disk");
        let key = KeyPair::generate().expect("a key");
        let read = SigningRequest::read(&request(&key)).expect("a good request");
        let now = Time::from_secs(1_800_000_000);
        let (certificate, from) =
            authority.sign("node", &read, now, now + Span::from_secs(60)).expect("signed");
        assert_eq!(key_of_certificate(&certificate).expect("a certificate"), read.key_sha256);
        assert!(from < now);
        let mut broken = request(&key);
        let last = broken.len() - 1;
        broken[last] ^= 1;
        for bad in [&broken[..], b"", b"nonsense", &[0; LONGEST_REQUEST + 1]] {
            let refused = SigningRequest::read(bad).err().expect("refused");
            assert!(refused.starts_with("request: "), "{refused}");
        }
        authority.serving().expect("a configuration");
    }
}
