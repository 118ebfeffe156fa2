//! The identity of this node: its own key, and the certificate that the server has given for it.
//!
//! All of it lies in one file of the data directory, replaced by rename: after a crash there is the old one or the new one.
//! The key never leaves the node.

use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PublicKeyData};
use sha2::{Digest, Sha256};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::server::ParsedCertificate;
use tonic::transport::{Certificate, ClientTlsConfig};
use vocab::Time;
use vocab::join_token::NODE_SERVER_NAME;
use wire::proto::pb;

use crate::NodeError;

/// Where a node keeps its identity.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    identity: PathBuf,
    /// The key of a node that is about to join: it asks with the same key again if it is killed in between.
    joining: PathBuf,
}

/// See the module page.
#[derive(Clone)]
pub(crate) struct Identity {
    /// Name that the certificate is for.
    pub name: String,
    /// Users of the cluster need not trust each other: jobs must be kept apart.
    pub authentication: bool,
    /// When this node got the certificate, by its own clock.
    pub issued: Time,
    /// End of the certificate.
    pub valid_until: Time,
    /// Own certificate, DER.
    certificate: Vec<u8>,
    /// Certificate of the server's authority, DER.
    authority: Vec<u8>,
    key: Key,
}

/// A private key of a node, in PEM form.
#[derive(Clone)]
pub(crate) struct Key(String);

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity")
            .field("name", &self.name)
            .field("valid_until", &self.valid_until)
            .finish_non_exhaustive()
    }
}

/// Time between two renewals, at least.
const SHORTEST: vocab::Span = vocab::Span::from_secs(1);

/// First line of the file.
const HEAD: &str = "# Identity of a node of Millpond: keep it secret, and do not copy it to another node.";

impl Place {
    /// In the data directory of a node.
    pub fn new(data_directory: &Path) -> Place {
        Place { identity: data_directory.join("identity.pem"), joining: data_directory.join("joining.pem") }
    }

    /// Refuses keys that others can read, before the data directory is closed to them.
    pub fn demand_closed(&self) -> Result<(), NodeError> {
        datadir::demand_closed(&self.identity)?;
        Ok(datadir::demand_closed(&self.joining)?)
    }

    /// The identity, if the node has joined.
    pub fn load(&self) -> Result<Option<Identity>, NodeError> {
        let Some(text) = read(&self.identity)? else { return Ok(None) };
        let identity = Identity::parse(&text)
            .map_err(|reason| NodeError::Identity { path: self.identity.clone(), reason })?;
        Ok(Some(identity))
    }

    /// Makes an identity the one of this node.
    pub fn store(&self, identity: &Identity) -> Result<(), NodeError> {
        write(&self.identity, &identity.to_text())?;
        self.forget_key();
        Ok(())
    }

    /// The key to join with: the one that an interrupted attempt has left, or a new one.
    pub fn joining_key(&self) -> Result<Key, NodeError> {
        let left = read(&self.joining)?.map(|text| String::from_utf8_lossy(&text).into_owned());
        if let Some(key) = left.filter(|text| KeyPair::from_pem(text).is_ok()) {
            return Ok(Key(key));
        }
        let made =
            KeyPair::generate().map_err(|e| NodeError::io("make a key for", &self.joining)(other(e)))?;
        let key = made.serialize_pem();
        write(&self.joining, &key)?;
        Ok(Key(key))
    }

    /// The next attempt to join begins with a new key.
    pub fn forget_key(&self) {
        let _ = std::fs::remove_file(&self.joining);
    }
}

impl Key {
    fn pair(&self) -> Result<KeyPair, String> {
        KeyPair::from_pem(&self.0).map_err(|e| format!("the private key cannot be used: {e}"))
    }

    /// SHA-256 of the public key, in hexadecimal: what administrators see of a node that waits.
    pub fn sha256(&self) -> Result<String, String> {
        Ok(hex(&Sha256::digest(self.pair()?.subject_public_key_info())))
    }

    /// A request for a certificate (PKCS#10, DER), signed by the key.
    pub fn request(&self, name: &str) -> Result<Vec<u8>, String> {
        let mut distinguished_name = DistinguishedName::new();
        distinguished_name.push(DnType::CommonName, name);
        let mut params = CertificateParams::default();
        params.distinguished_name = distinguished_name;
        let request = params.serialize_request(&self.pair()?).map_err(|e| e.to_string())?;
        Ok(request.der().to_vec())
    }
}

impl Identity {
    /// From the server's answer, which must be for this key and from this authority.
    pub fn accept(
        name: &str,
        key: Key,
        authority: &[u8],
        now: Time,
        answer: pb::Certificate,
    ) -> Result<Identity, String> {
        let pb::Certificate { certificate, authority: told, valid_from, valid_until, authentication } =
            answer;
        if valid_from >= valid_until {
            return Err("the certificate ends before it begins".to_owned());
        }
        if told != authority {
            return Err(
                "the server's certificate is from another authority than the one that it names".to_owned()
            );
        }
        let der = CertificateDer::from(certificate.as_slice());
        let parsed = ParsedCertificate::try_from(&der).map_err(|e| format!("not a certificate: {e}"))?;
        if parsed.subject_public_key_info()[..] != key.pair()?.subject_public_key_info()[..] {
            return Err("the certificate is for another key".to_owned());
        }
        let authority = authority.to_vec();
        let (name, valid_until) = (name.to_owned(), Time(valid_until));
        Ok(Identity { name, authentication, issued: now, valid_until, certificate, authority, key })
    }

    /// The same with a new certificate.
    pub fn renewed(&self, now: Time, answer: pb::Certificate) -> Result<Identity, String> {
        Identity::accept(&self.name, self.key.clone(), &self.authority, now, answer)
    }

    /// A request for the next certificate.
    pub fn request(&self) -> Result<Vec<u8>, String> {
        self.key.request(&self.name)
    }

    /// SHA-256 of the certificate of the server's authority, in hexadecimal.
    pub fn authority_sha256(&self) -> String {
        hex(&Sha256::digest(&self.authority))
    }

    /// How to speak with the server: only one with a certificate of the authority is believed.
    pub fn tls(&self) -> ClientTlsConfig {
        let own = tonic::transport::Identity::from_pem(armoured(&self.certificate), &self.key.0);
        trusting(&self.authority).identity(own)
    }

    /// When it should be renewed: half of its life is over. Not at once, even if the clock of this host is ahead of the server's.
    pub fn renew_at(&self) -> Time {
        self.issued + vocab::Span(self.valid_until.since(self.issued).0 / 2).max(SHORTEST)
    }

    fn to_text(&self) -> String {
        let Identity { name, authentication, issued, valid_until, certificate, authority, key } = self;
        format!(
            "{HEAD}\nname: {name}\nauthentication: {authentication}\nissued: {}\nvalid_until: {}\n{}{}{}",
            issued.0,
            valid_until.0,
            key.0,
            armoured(certificate),
            armoured(authority),
        )
    }

    /// Reads the file.
    pub fn parse(text: &[u8]) -> Result<Identity, String> {
        let certificates: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(text).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
        let [certificate, authority] = certificates.as_slice() else {
            return Err(format!("expected two certificates, found {}", certificates.len()));
        };
        let text = std::str::from_utf8(text).map_err(|e| e.to_string())?;
        let line = |name: &str| {
            let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            found.ok_or_else(|| format!("the line \"{name}: ...\" is missing"))
        };
        let time = |name: &str| line(name)?.parse().map(Time).map_err(|e| format!("{name}: {e}"));
        let begin = text.find("-----BEGIN PRIVATE KEY-----").ok_or("there is no private key")?;
        let end = "-----END PRIVATE KEY-----";
        let length = text[begin..].find(end).ok_or("the private key is not complete")? + end.len();
        let key = Key(format!("{}\n", &text[begin..begin + length]));
        key.pair()?;
        Ok(Identity {
            name: line("name")?.to_owned(),
            // What cannot be read is the safer of the two.
            authentication: line("authentication")? != "false",
            issued: time("issued")?,
            valid_until: time("valid_until")?,
            certificate: certificate.to_vec(),
            authority: authority.to_vec(),
            key,
        })
    }
}

/// How to speak with a server whose authority is known, by a node that has no certificate yet.
pub(crate) fn trusting(authority: &[u8]) -> ClientTlsConfig {
    ClientTlsConfig::new()
        .domain_name(NODE_SERVER_NAME)
        .ca_certificate(Certificate::from_pem(armoured(authority)))
        .timeout(std::time::Duration::from_secs(10))
}

fn armoured(certificate: &[u8]) -> String {
    let config = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    pem::encode_config(&pem::Pem::new("CERTIFICATE", certificate), config)
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn other(error: rcgen::Error) -> std::io::Error {
    std::io::Error::other(error.to_string())
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, NodeError> {
    Ok(datadir::read_secret_if_there(path)?)
}

/// What it says may be all that the server's record is good for, so it is on the disk before it is used.
fn write(path: &Path, text: &str) -> Result<(), NodeError> {
    // Also those of earlier versions, which had other names: they hold the key.
    for (draft, removed) in datadir::remove_drafts(path) {
        if let Err(error) = removed {
            tracing::warn!(file = %draft.display(), %error, "this file may hold a key, and cannot be removed");
        }
    }
    datadir::write_secret(path, text).map_err(NodeError::io("write", path))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rcgen::{BasicConstraints, IsCa, Issuer};
    use std::os::unix::fs::PermissionsExt as _;

    /// An authority, and the certificate that it gives for a key.
    pub fn signed(name: &str, key: &Key, valid_until: Time) -> (Vec<u8>, pb::Certificate) {
        let own = KeyPair::generate().expect("a key");
        let is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let mut params = CertificateParams::default();
        params.is_ca = is_ca;
        let authority = params.self_signed(&own).expect("an authority").der().to_vec();
        let issuer = Issuer::new(params, own);
        let node = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let certificate =
            node.signed_by(&key.pair().expect("a key"), &issuer).expect("signed").der().to_vec();
        let answer = pb::Certificate {
            certificate,
            authority: authority.clone(),
            valid_from: 0,
            valid_until: valid_until.0,
            authentication: true,
        };
        (authority, answer)
    }

    /// S7: what was stored is read again, and nobody else can read it.
    #[test]
    fn an_identity_is_one_closed_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = Place::new(directory.path());
        assert!(place.load().expect("nothing is wrong").is_none());
        let key = place.joining_key().expect("made");
        let (again, digest) = (place.joining_key().expect("the same"), key.sha256().expect("a key"));
        assert_eq!(again.sha256().as_ref(), Ok(&digest), "an interrupted node asks with the same key");
        let (now, end) = (Time::from_secs(100), Time::from_secs(200));
        let (authority, answer) = signed("node", &key, end);
        let identity = Identity::accept("node", key, &authority, now, answer).expect("good");
        place.store(&identity).expect("stored");
        let read = place.load().expect("good").expect("there");
        assert_eq!((read.name.as_str(), read.authentication, read.valid_until), ("node", true, end));
        assert_eq!(read.renew_at(), Time::from_secs(150));
        assert_eq!(read.authority_sha256(), hex(&Sha256::digest(&authority)));
        assert_ne!(place.joining_key().expect("a new one").sha256(), Ok(digest));
        let path = directory.path().join("identity.pem");
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("changed");
        // The group is that of this process.
        let _ = place.load();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o604)).expect("changed");
        assert!(matches!(place.load(), Err(NodeError::Secret(_))));
        assert!(matches!(place.demand_closed(), Err(NodeError::Secret(_))));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("changed");
        std::fs::write(&path, "# half of it\nname: node\n").expect("written");
        let refused = place.load().expect_err("half of it").to_string();
        assert!(refused.contains("expected two certificates, found 0"), "{refused}");
    }

    /// S7: a node whose clock is ahead renewed its certificate again and again, without a pause.
    #[test]
    fn a_certificate_that_has_ended_by_the_clock_of_the_node_is_renewed_with_a_pause() {
        let directory = tempfile::tempdir().expect("a directory");
        let key = Place::new(directory.path()).joining_key().expect("made");
        let (authority, answer) = signed("node", &key, Time::from_secs(200));
        let ahead = Time::from_secs(300);
        let identity =
            Identity::accept("node", key.clone(), &authority, ahead, answer.clone()).expect("good");
        assert_eq!(identity.renew_at(), ahead + SHORTEST);
        let odd = pb::Certificate { valid_from: answer.valid_until, ..answer };
        let refused = Identity::accept("node", key, &authority, ahead, odd).expect_err("it has no life");
        assert!(refused.contains("ends before it begins"), "{refused}");
    }

    /// S7.
    #[test]
    fn a_certificate_for_another_key_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = Place::new(directory.path());
        let key = place.joining_key().expect("made");
        place.forget_key();
        let other = place.joining_key().expect("made");
        let (authority, answer) = signed("node", &other, Time::from_secs(200));
        let now = Time::from_secs(100);
        let refused =
            Identity::accept("node", key.clone(), &authority, now, answer.clone()).expect_err("another key");
        assert!(refused.contains("another key"), "{refused}");
        let refused =
            Identity::accept("node", other, b"another one", now, answer).expect_err("another authority");
        assert!(refused.contains("another authority"), "{refused}");
    }
}
