//! How a node gets its identity: by a join token, or by asking for an approval.
//!
//! The server proves first who it is. A join token carries the digest of its authority's certificate; the node looks at what the
//! server shows in a handshake of its own, and only then opens the connection that carries the token's secret.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{self, CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{
    self, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tonic::Code;
use vocab::JoinToken;
use vocab::join_token::NODE_SERVER_NAME;
use wire::PROTOCOL_VERSION;
use wire::proto::pb;
use wire::proto::pb::node_service_client::NodeServiceClient;

use crate::agent::wall_clock;
use crate::identity::{Identity, Place, hex, trusting};
use crate::link::{describe, secure_endpoint};
use crate::listener::demand_trusted;
use crate::real::Layout;
use crate::{NodeConfig, NodeError};

/// What became of one attempt to join.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// The node has its identity, and has stored it.
    Joined(Box<Identity>),
    /// An administrator has not decided yet.
    Pending {
        /// When to ask again.
        again_in: Duration,
        /// SHA-256 of the node's public key, for the administrator to compare.
        key_sha256: String,
    },
    /// The server does not want this node, or not with this token.
    Refused(String),
    /// There is no server, it is another one, or it has not decided. The next attempt is with the same key: the server may have
    /// exchanged the token for it already.
    NoAnswer(String),
}

/// How long the handshake that shows the authority may take, and the question itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// The join token of the configuration; `None` if no file is configured, or the file is not there (yet).
pub(crate) fn token(config: &NodeConfig) -> Result<Option<JoinToken>, NodeError> {
    let Some(file) = &config.join_token_file else { return Ok(None) };
    let text = match datadir::read_secret(file) {
        Ok(text) => text,
        Err(datadir::SecretError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            return Ok(None);
        }
        Err(unusable) => return Err(unusable.into()),
    };
    let wrong = |why: String| NodeError::Option { option: "join_token_file", why };
    let token = String::from_utf8_lossy(&text).parse();
    token.map(Some).map_err(|e: vocab::join_token::NoJoinToken| wrong(format!("{}: {e}", file.display())))
}

/// Why an identity that is there cannot be used; `None` if it can.
pub(crate) fn unusable(
    identity: &Identity,
    config: &NodeConfig,
    token: Option<&JoinToken>,
) -> Option<String> {
    let authority = identity.authority_sha256();
    let wanted = match wanted_authority(config, token) {
        Ok(wanted) => wanted,
        Err(differ) => return Some(differ.to_string()),
    };
    if identity.name != config.address {
        return Some(format!(
            "it is the identity of node {}, and this node is {}",
            identity.name, config.address
        ));
    }
    if let Some(wanted) = wanted.filter(|wanted| *wanted != authority) {
        return Some(format!("it is from the authority {authority}, and this node is to trust {wanted}"));
    }
    if identity.valid_until <= wall_clock() {
        return Some(format!("its certificate has ended at {}", identity.valid_until));
    }
    None
}

/// SHA-256 of the authority that the operator wants this node to trust.
fn wanted_authority<'a>(
    config: &'a NodeConfig,
    token: Option<&'a JoinToken>,
) -> Result<Option<&'a str>, NodeError> {
    let configured = config.authority_sha256.as_deref();
    let of_token = token.map(|token| token.authority_sha256.as_str());
    match (configured, of_token) {
        (Some(configured), Some(of_token)) if configured != of_token => Err(NodeError::Option {
            option: "authority_sha256",
            why: format!(
                "expected {of_token}, the authority of the join token, found {configured}: correct it, leave it out, or make \
                 the token on the server with that authority"
            ),
        }),
        _ => Ok(configured.or(of_token)),
    }
}

/// SHA-256 of the authority that the server must have from the node's point of view: what the operator wants, or else what the
/// node trusts since it has joined. `None`: nothing is known yet.
fn pinned_authority(
    config: &NodeConfig,
    place: &Place,
    token: Option<&JoinToken>,
) -> Result<Option<String>, NodeError> {
    match wanted_authority(config, token)? {
        Some(wanted) => Ok(Some(wanted.to_owned())),
        None => Ok(place.load()?.map(|identity| identity.authority_sha256())),
    }
}

/// One attempt. What goes wrong on this host is an error.
pub(crate) async fn attempt(
    config: &NodeConfig,
    place: &Place,
    token: Option<&JoinToken>,
) -> Result<Attempt, NodeError> {
    let pinned = pinned_authority(config, place, token)?;
    if let (None, None, Some(file)) = (&pinned, token, &config.join_token_file) {
        return Ok(Attempt::NoAnswer(format!(
            "there is no join token in {} yet, and nothing else says which server to trust",
            file.display()
        )));
    }
    if pinned.is_none() && !is_near(&config.server) {
        let why = format!(
            "this node has no identity yet, and nothing says which server to trust on {}: give it a join token of \
             `millpond node token create` by --join-token-file, or the digest of the server's authority by --authority-sha256",
            config.server
        );
        return Err(NodeError::Option { option: "join_token_file", why });
    }
    let authority = match discover(&config.server, pinned.as_deref()).await {
        Ok(authority) => authority,
        Err(why) => return Ok(Attempt::NoAnswer(why)),
    };
    if pinned.is_none() {
        tracing::warn!(
            authority_sha256 = hex(&Sha256::digest(&authority)),
            "this node trusts the server that it has found on this host, from now on; --authority-sha256 says which one to trust"
        );
    }
    let key = place.joining_key()?;
    let internal = |why: String| NodeError::Option { option: "data", why };
    let key_sha256 = key.sha256().map_err(internal)?;
    let request = pb::JoinRequest {
        protocol_version: PROTOCOL_VERSION,
        address: config.address.clone(),
        secret: token.map(|token| token.secret.clone()).unwrap_or_default(),
        request: key.request(&config.address).map_err(internal)?,
    };
    let endpoint = secure_endpoint(&config.server, trusting(&authority))?;
    let channel = match endpoint.connect().await {
        Ok(channel) => channel,
        Err(error) => return Ok(Attempt::NoAnswer(describe(&error))),
    };
    let asked = tokio::time::timeout(PATIENCE, async { NodeServiceClient::new(channel).join(request).await });
    let outcome = match asked.await {
        Ok(Ok(reply)) => reply.into_inner().outcome,
        Ok(Err(status)) if is_refusal(status.code()) => {
            // The server does not know the key, or does not want it: the next attempt is with another one.
            place.forget_key();
            return Ok(Attempt::Refused(status.message().to_owned()));
        }
        Ok(Err(status)) => return Ok(Attempt::NoAnswer(status.message().to_owned())),
        Err(_) => return Ok(Attempt::NoAnswer("the server does not answer".to_owned())),
    };
    match outcome {
        Some(pb::join_reply::Outcome::Certificate(answer)) => {
            match Identity::accept(&config.address, key, &authority, wall_clock(), answer) {
                Ok(identity) => {
                    place.store(&identity)?;
                    tracing::info!(
                        name = identity.name,
                        valid_until = %identity.valid_until,
                        authority_sha256 = identity.authority_sha256(),
                        "this node has joined the cluster"
                    );
                    Ok(Attempt::Joined(Box::new(identity)))
                }
                Err(why) => Ok(Attempt::NoAnswer(format!("the server's answer cannot be used: {why}"))),
            }
        }
        Some(pb::join_reply::Outcome::Pending(again_in)) => Ok(Attempt::Pending {
            again_in: Duration::from_micros(again_in.clamp(100_000, 60_000_000)),
            key_sha256,
        }),
        None => Ok(Attempt::NoAnswer("the server's answer is empty".to_owned())),
    }
}

/// Has the server decided? Any other failure may come after it has exchanged the token for the key.
fn is_refusal(code: Code) -> bool {
    matches!(
        code,
        Code::Unauthenticated | Code::PermissionDenied | Code::FailedPrecondition | Code::InvalidArgument
    )
}

/// The identity of this node; waits until it has one.
pub(crate) async fn obtain(config: &NodeConfig, place: &Place) -> Result<Identity, NodeError> {
    // Each reason is told once: attempts are many.
    let mut told = String::new();
    loop {
        let token = token(config);
        if let Some(identity) = place.load()? {
            match unusable(&identity, config, token.as_ref().ok().and_then(Option::as_ref)) {
                None => {
                    // It is left over from the joining.
                    if let Err(unusable) = &token {
                        tracing::warn!(
                            "this node has its identity and does not need its join token: {unusable}"
                        );
                    }
                    place.forget_key();
                    return Ok(identity);
                }
                Some(why) => {
                    tell(&mut told, format!("the identity of this node cannot be used: {why}; it joins anew"))
                }
            }
        }
        let pause = match attempt(config, place, token?.as_ref()).await? {
            Attempt::Joined(identity) => return Ok(*identity),
            Attempt::Pending { again_in, key_sha256 } => {
                tell(&mut told, waiting(config, &key_sha256));
                again_in
            }
            Attempt::Refused(why) => {
                tell(&mut told, format!("the server refuses this node: {why}"));
                REFUSED_PAUSE
            }
            Attempt::NoAnswer(why) => {
                tell(&mut told, format!("this node cannot join yet: {why}"));
                NO_ANSWER_PAUSE
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// For the log of a node that waits.
pub(crate) fn waiting(config: &NodeConfig, key_sha256: &str) -> String {
    format!(
        "this node waits for an approval: `millpond node approve {}`, where `millpond node list` must show the key {key_sha256}",
        config.address
    )
}

fn tell(told: &mut String, text: String) {
    if *told != text {
        tracing::warn!("{text}");
        *told = text;
    }
}

const REFUSED_PAUSE: Duration = Duration::from_secs(5);
const NO_ANSWER_PAUSE: Duration = Duration::from_secs(1);

/// Joins once, for `millpond node join`: waits for an approval, and for nothing else. The name of the node.
pub fn join(config: &NodeConfig) -> Result<String, NodeError> {
    Place::new(&config.data_directory).demand_closed()?;
    let was_open = datadir::take_with(&config.data_directory, &Layout::care)?;
    if let Some(warning) = was_open.warning(&config.data_directory) {
        tracing::warn!("{warning}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(NodeError::io("start a runtime in", &config.data_directory))?;
    let place = Place::new(&config.data_directory);
    runtime.block_on(join_once(config, &place))
}

async fn join_once(config: &NodeConfig, place: &Place) -> Result<String, NodeError> {
    let mut told = String::new();
    let refused = |why: String| NodeError::Join { server: config.server.clone(), why };
    let Some(token) = token(config)? else {
        if let Some(file) = &config.join_token_file {
            return Err(refused(format!("there is no join token in {}", file.display())));
        }
        loop {
            match attempt(config, place, None).await? {
                Attempt::Joined(identity) => return Ok(identity.name),
                Attempt::Pending { again_in, key_sha256 } => {
                    tell(&mut told, waiting(config, &key_sha256));
                    tokio::time::sleep(again_in).await;
                }
                Attempt::Refused(why) | Attempt::NoAnswer(why) => return Err(refused(why)),
            }
        }
    };
    match attempt(config, place, Some(&token)).await? {
        Attempt::Joined(identity) => Ok(identity.name),
        Attempt::Pending { .. } => {
            Err(refused("the server asks for an approval although there is a token".to_owned()))
        }
        Attempt::Refused(why) | Attempt::NoAnswer(why) => Err(refused(why)),
    }
}

/// `host:port` without a scheme.
pub(crate) fn host_and_port(server: &str) -> &str {
    server.split_once("://").map_or(server, |(_, rest)| rest).trim_end_matches('/')
}

/// Is the server on this host?
fn is_near(server: &str) -> bool {
    let address = host_and_port(server);
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// The certificate (DER) of the authority that the server has its own from. The server has proved to have the key to it, and
/// if a digest is given, the authority is that one. Nothing but a handshake is said.
async fn discover(server: &str, pinned: Option<&str>) -> Result<Vec<u8>, String> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Pinned {
        digest: pinned.map(str::to_owned),
        provider: Arc::clone(&provider),
        found: Mutex::default(),
    });
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(|e| e.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(&verifier) as Arc<dyn ServerCertVerifier>)
        .with_no_client_auth();
    let name = ServerName::try_from(NODE_SERVER_NAME).map_err(|e| e.to_string())?;
    let handshake = async {
        let stream = TcpStream::connect(host_and_port(server)).await?;
        let address = stream.peer_addr()?;
        let demand = || if pinned.is_none() { demand_trusted(address) } else { Ok(()) };
        demand()?;
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        // Another program may have had the port at the first look.
        demand()?;
        Ok::<_, std::io::Error>(stream)
    };
    match tokio::time::timeout(PATIENCE, handshake).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return Err(format!("{}: {}", host_and_port(server), describe(&error))),
        Err(_) => return Err(format!("{} does not answer as a server of Millpond", host_and_port(server))),
    }
    let found = verifier.found.lock().unwrap_or_else(PoisonError::into_inner).take();
    found.ok_or_else(|| "the server has shown no authority".to_owned())
}

/// Believes a server whose certificate is from the authority with a digest, or, without a digest, from any that it shows.
#[derive(Debug)]
struct Pinned {
    digest: Option<String>,
    provider: Arc<CryptoProvider>,
    found: Mutex<Option<Vec<u8>>>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let digests: Vec<String> = intermediates.iter().map(|shown| hex(&Sha256::digest(shown))).collect();
        let is_it = |digest: &String| self.digest.as_ref().is_none_or(|wanted| wanted == digest);
        let at = digests.iter().rposition(is_it).ok_or_else(|| {
            let wanted = self.digest.as_deref().unwrap_or("any");
            rustls::Error::General(format!(
                "this is another server: its authority has the SHA-256 {}, expected {wanted}",
                digests.last().map_or("of none", String::as_str)
            ))
        })?;
        let authority = intermediates[at].clone().into_owned();
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone())?;
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&self.provider))
                .build()
                .map_err(|_| rustls::Error::InvalidCertificate(CertificateError::BadEncoding))?;
        let verified = verifier.verify_server_cert(end_entity, &[], server_name, ocsp_response, now)?;
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(authority.to_vec());
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        crypto::verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::tests::signed;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;
    use vocab::Time;

    fn config(directory: &Path) -> NodeConfig {
        NodeConfig::new("127.0.0.1:1", "node", directory, vocab::Resources::ZERO)
    }

    fn token_of(authority: char) -> JoinToken {
        JoinToken { authority_sha256: authority.to_string().repeat(64), secret: "s".repeat(43) }
    }

    /// A place with an identity, and the SHA-256 of its authority.
    fn joined(directory: &Path) -> (Place, String) {
        let place = Place::new(directory);
        let key = place.joining_key().expect("made");
        let (authority, answer) = signed("node", &key, Time(i64::MAX as u64));
        let identity = Identity::accept("node", key, &authority, wall_clock(), answer).expect("good");
        place.store(&identity).expect("stored");
        (place, identity.authority_sha256())
    }

    fn secret_file(path: &Path, text: &str, mode: u32) {
        std::fs::write(path, text).expect("written");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("changed");
    }

    fn ask<T>(asked: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(asked)
    }

    /// S7: a node that had lost the validity of its identity trusted any program on the server's port of its host.
    #[test]
    fn a_node_that_has_joined_trusts_no_other_authority() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut config = config(directory.path());
        let place = Place::new(directory.path());
        let pinned = |config: &NodeConfig, place: &Place, token: Option<&JoinToken>| {
            pinned_authority(config, place, token).map_err(|e| e.to_string())
        };
        assert_eq!(pinned(&config, &place, None), Ok(None), "at the first start nothing is known");
        let (place, own) = joined(directory.path());
        assert_eq!(pinned(&config, &place, None), Ok(Some(own)));
        // The operator knows better.
        let token = token_of('a');
        assert_eq!(pinned(&config, &place, Some(&token)), Ok(Some("a".repeat(64))));
        config.authority_sha256 = Some("b".repeat(64));
        assert_eq!(pinned(&config, &place, None), Ok(Some("b".repeat(64))));
        let differ = pinned(&config, &place, Some(&token)).expect_err("two authorities");
        assert!(differ.contains("authority_sha256") && differ.contains(&"a".repeat(64)), "{differ}");
        let identity = place.load().expect("good").expect("there");
        assert!(unusable(&identity, &config, Some(&token)).is_some_and(|why| why == differ));
    }

    /// S7: a node whose join token was not there yet, or could not be read, joined without one.
    #[test]
    fn a_node_that_is_to_have_a_token_waits_for_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut config = config(directory.path());
        let file = directory.path().join("token");
        config.join_token_file = Some(file.clone());
        assert!(token(&config).is_ok_and(|token| token.is_none()));
        match ask(attempt(&config, &Place::new(directory.path()), None)).expect("nothing is wrong") {
            Attempt::NoAnswer(why) => assert!(why.contains("no join token in"), "{why}"),
            other => panic!("{other:?}"),
        }
        assert!(!directory.path().join("joining.pem").exists());
        // What cannot be read is not missing.
        std::fs::create_dir(&file).expect("made");
        assert!(token(&config).is_err());
    }

    /// S7: what a node had joined with stopped it for good when it became unreadable.
    #[test]
    fn a_join_token_that_is_left_over_does_not_stop_a_node() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut config = config(directory.path());
        let file = directory.path().join("token");
        config.join_token_file = Some(file.clone());
        let (place, own) = joined(directory.path());
        for (text, mode) in [("nonsense\n", 0o600), ("nonsense\n", 0o644)] {
            secret_file(&file, text, mode);
            assert!(token(&config).is_err());
            let identity = ask(obtain(&config, &place)).expect("the identity is good");
            assert_eq!(identity.authority_sha256(), own);
        }
        // Without an identity it is needed.
        std::fs::remove_file(directory.path().join("identity.pem")).expect("removed");
        assert!(ask(obtain(&config, &place)).is_err());
    }

    /// S7: after any other failure the token may be exchanged for the key; a new key would not get a certificate for it.
    #[test]
    fn only_a_refusal_ends_the_use_of_a_key() {
        for code in
            [Code::Unauthenticated, Code::FailedPrecondition, Code::PermissionDenied, Code::InvalidArgument]
        {
            assert!(is_refusal(code), "{code:?}");
        }
        for code in [
            Code::Internal,
            Code::Unavailable,
            Code::Unknown,
            Code::Cancelled,
            Code::DeadlineExceeded,
            Code::ResourceExhausted,
            Code::Aborted,
            Code::DataLoss,
            Code::OutOfRange,
            Code::Unimplemented,
        ] {
            assert!(!is_refusal(code), "{code:?}");
        }
    }

    /// S7: without a digest only a server of this host is believed.
    #[test]
    fn addresses_of_this_host() {
        for near in ["127.0.0.1:8000", "http://localhost:8000", "https://[::1]:8000/", "127.1.2.3:1"] {
            assert!(is_near(near), "{near}");
        }
        for far in
            ["10.0.0.1:8000", "http://example.com:8000", "[2001:db8::1]:8000", "localhost.example.com:1"]
        {
            assert!(!is_near(far), "{far}");
        }
        assert_eq!(host_and_port("https://a.b:8000/"), "a.b:8000");
    }
}
