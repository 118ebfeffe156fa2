//! The authority that nodes' certificates are from: made at the first start, beside the store.
//!
//! What it signs, and for how long, the kernel decides; here is the cryptography. The server's own certificate for its nodes
//! is from this authority too, and lives in memory only.
//!
//! The store has the digest of the authority. A server whose file is lost, or is that of another cluster, does not start: with a
//! new authority no node could connect any more, and each would have to join again.

use anyhow::{Context, bail};
use api::secrets::sha256_of_bytes;
use datadir::{read_secret_if_there, write_secret};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SerialNumber,
};
use std::ops::{Bound, ControlFlow};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::{Batch, Store, StoreError, Table};
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
/// Key of the digest in [`Table::Meta`].
const DIGEST: &[u8] = b"node_authority";
/// How keys of identities and of join tokens begin in [`Table::NodeIdentities`]: both are good for one authority only.
const BOUND_TO_IT: [u8; 2] = *b"it";
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
    /// A new authority that could not be written: nothing is signed before it is on the disk.
    unwritten: Mutex<Option<Unwritten>>,
}

struct Unwritten {
    file: PathBuf,
    text: String,
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
    /// Reads the authority of a data directory; a directory without one gets one. If the disk does not take it now, it is
    /// written before it is used: the server starts on a full disk too, and answers questions.
    ///
    /// Another authority than that of the store's nodes is an error, unless the operator wants a new one.
    pub fn open(store: &dyn Store, directory: &Path, wants_new: bool) -> anyhow::Result<NodeAuthority> {
        let file = directory.join(FILE);
        let expected =
            store.get(Table::Meta, DIGEST)?.map(|digest| String::from_utf8_lossy(&digest).into_owned());
        let expects = expected.as_ref().map_or_else(
            || "nodes of this cluster have joined by one".to_owned(),
            |expected| format!("nodes of this cluster know the one with the SHA-256 {expected}"),
        );
        let advice = "put back the file from a backup; to let all nodes join again, by tokens of `millpond node token create --name NAME \
                      --replace`, start the server once with --new-node-authority";
        match read_secret_if_there(&file).context("cannot read the authority of nodes")? {
            Some(text) => {
                let authority = NodeAuthority::parse(&text).with_context(|| {
                    format!("cannot use the authority of nodes in {}: put back the file from a backup, or remove it", file.display())
                })?;
                let found = authority.digest();
                let is_another = expected.as_ref().is_some_and(|expected| *expected != found);
                if is_another && !wants_new && has_nodes(store)? {
                    bail!(
                        "the authority of nodes in {} has the SHA-256 {found}, and {expects}: {advice}. Nothing was changed",
                        file.display()
                    );
                }
                Ok(authority)
            }
            None => {
                if !wants_new && has_nodes(store)? {
                    bail!(
                        "the authority of nodes is missing in {}, and {expects}: {advice}. Nothing was changed",
                        file.display()
                    );
                }
                let (mut authority, text) = NodeAuthority::make()?;
                let sha256 = authority.digest();
                authority.unwritten = Mutex::new(Some(Unwritten { file, text }));
                tracing::info!(sha256, "an authority for the certificates of nodes was made");
                Ok(authority)
            }
        }
    }

    /// Makes sure that the authority is on the disk, and that the store knows it.
    pub fn keep(&self, store: &dyn Store) -> anyhow::Result<()> {
        self.write_if_new().context("cannot write the authority of nodes")?;
        let digest = self.digest();
        if store.get(Table::Meta, DIGEST)?.as_deref() != Some(digest.as_bytes()) {
            let mut batch = Batch::new();
            batch.put(Table::Meta, DIGEST, digest);
            store.write(&[batch])?;
        }
        Ok(())
    }

    fn write_if_new(&self) -> std::io::Result<()> {
        let mut unwritten = self.unwritten.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Unwritten { file, text }) = &*unwritten {
            write_secret(file, text)?;
            *unwritten = None;
        }
        Ok(())
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
        Ok(NodeAuthority { issuer, certificate, serving: Mutex::default(), unwritten: Mutex::default() })
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
        self.write_if_new().inspect_err(|error| {
            tracing::error!(%error, "nodes cannot connect: the authority of nodes cannot be written");
        })?;
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

/// Are there nodes or join tokens that another authority would make useless?
fn has_nodes(store: &dyn Store) -> Result<bool, StoreError> {
    let mut found = false;
    store.scan(Table::NodeIdentities, Bound::Unbounded, Bound::Unbounded, false, &mut |key, _| {
        found = key.first().is_some_and(|kind| BOUND_TO_IT.contains(kind));
        if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use store::MemoryStore;

    fn kept(store: &dyn Store, directory: &Path, wants_new: bool) -> anyhow::Result<NodeAuthority> {
        let authority = NodeAuthority::open(store, directory, wants_new)?;
        authority.keep(store)?;
        Ok(authority)
    }

    fn with_record(store: &dyn Store, kind: u8) {
        let mut batch = Batch::new();
        batch.put(Table::NodeIdentities, vec![kind; 65], "a record");
        store.write(&[batch]).expect("written");
    }

    /// S7, S17: a lost file was replaced in silence, and no node could connect any more.
    #[test]
    fn an_authority_that_nodes_know_is_not_replaced_in_silence() {
        let (directory, other) =
            (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let (file, path) = (directory.path().join(FILE), directory.path());
        let store = MemoryStore::new();
        let first = kept(&store, path, false).expect("made").digest();
        let text = std::fs::read(&file).expect("there");
        // Nobody has joined by it yet; nodes that wait for an approval know none.
        with_record(&store, b'p');
        std::fs::remove_file(&file).expect("removed");
        let second = kept(&store, path, false).expect("made").digest();
        assert_ne!(first, second);
        for kind in BOUND_TO_IT {
            let store = MemoryStore::new();
            std::fs::write(&file, &text).expect("written");
            kept(&store, path, false).expect("that of the store");
            with_record(&store, kind);
            std::fs::remove_file(&file).expect("removed");
            let refused = kept(&store, path, false).err().expect("it is lost").to_string();
            for part in ["is missing", &first, "--new-node-authority", "Nothing was changed"] {
                assert!(refused.contains(part), "{part}: {refused}");
            }
            assert!(!file.exists());
            // That of another cluster.
            let strange = kept(&MemoryStore::new(), other.path(), false).expect("made").digest();
            std::fs::copy(other.path().join(FILE), &file).expect("copied");
            let refused = kept(&store, path, false).err().expect("another one").to_string();
            assert!(refused.contains(&first) && refused.contains(&strange), "{refused}");
            assert_eq!(kept(&store, path, true).expect("it is wanted").digest(), strange);
            assert_eq!(kept(&store, path, false).expect("it is the known one now").digest(), strange);
            std::fs::remove_file(&file).expect("removed");
            let new = kept(&store, path, true).expect("a new one is wanted").digest();
            assert_eq!(kept(&store, path, false).expect("it is the known one now").digest(), new);
        }
        // A store that does not know the digest yet, but nodes.
        let store = MemoryStore::new();
        with_record(&store, b'i');
        let known = kept(&store, path, false).expect("there is one").digest();
        assert_eq!(store.get(Table::Meta, DIGEST).expect("read").as_deref(), Some(known.as_bytes()));
        let store = MemoryStore::new();
        with_record(&store, b'i');
        std::fs::remove_file(&file).expect("removed");
        assert!(kept(&store, path, false).err().expect("lost").to_string().contains("is missing"));
    }

    /// S7, S18: a server that had started on a full disk had no authority until its next start.
    #[test]
    fn an_authority_that_could_not_be_written_is_written_later() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, store) = (directory.path(), MemoryStore::new());
        // In the place of a full disk: the draft of the file cannot be made.
        let draft = directory.path().join(format!("{FILE}.draft"));
        std::fs::create_dir(&draft).expect("made");
        let authority = NodeAuthority::open(&store, path, false).expect("it is in memory");
        assert!(
            authority.keep(&store).is_err() && authority.serving().is_err(),
            "no node gets a certificate of it"
        );
        assert_eq!(store.get(Table::Meta, DIGEST).expect("read"), None);
        std::fs::remove_dir(&draft).expect("removed");
        authority.serving().expect("it is written now");
        let again = kept(&store, path, false).expect("read");
        assert_eq!(again.digest(), authority.digest());
    }

    fn request(key: &KeyPair) -> Vec<u8> {
        CertificateParams::default().serialize_request(key).expect("a request").der().to_vec()
    }

    /// S7.
    #[test]
    fn an_authority_is_the_same_in_each_life_and_closed_to_others() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = MemoryStore::new();
        let open = || kept(&store, directory.path(), false);
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
        let authority = kept(&MemoryStore::new(), directory.path(), false).expect("made");
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
