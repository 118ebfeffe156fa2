//! How a node gets its identity: by a join token, or by asking for an approval.
//!
//! The server proves first who it is. A join token carries the digest of its authority's certificate; the node looks at what the
//! server shows in a handshake of its own, and only then opens the connection that carries the token's secret.

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
    /// There is no server, or it is another one. Nothing was told to it.
    NoServer(String),
}

/// How long the handshake that shows the authority may take, and the question itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// The join token of the configuration; `None` if there is no such file (yet).
pub(crate) fn token(config: &NodeConfig) -> Result<Option<JoinToken>, NodeError> {
    let Some(file) = &config.join_token_file else { return Ok(None) };
    let text = match datadir::read_secret(file) {
        Ok(text) => text,
        Err(datadir::SecretError::Io { .. }) => return Ok(None),
        Err(open) => return Err(open.into()),
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
    let wanted = token.map(|token| &token.authority_sha256).or(config.authority_sha256.as_ref());
    if identity.name != config.address {
        return Some(format!(
            "it is the identity of node {}, and this node is {}",
            identity.name, config.address
        ));
    }
    if let Some(wanted) = wanted.filter(|wanted| **wanted != authority) {
        return Some(format!("it is from the authority {authority}, and this node is to trust {wanted}"));
    }
    if identity.valid_until <= wall_clock() {
        return Some(format!("its certificate has ended at {}", identity.valid_until));
    }
    None
}

/// One attempt. What goes wrong on this host is an error.
pub(crate) async fn attempt(
    config: &NodeConfig,
    place: &Place,
    token: Option<&JoinToken>,
) -> Result<Attempt, NodeError> {
    let pinned = token.map(|token| &token.authority_sha256).or(config.authority_sha256.as_ref());
    if pinned.is_none() && !is_near(&config.server) {
        let why = format!(
            "this node has no identity yet, and nothing says which server to trust on {}: give it a join token of \
             `millpond node token create` by --join-token-file, or the digest of the server's authority by --authority-sha256",
            config.server
        );
        return Err(NodeError::Option { option: "join_token_file", why });
    }
    let authority = match discover(&config.server, pinned.map(String::as_str)).await {
        Ok(authority) => authority,
        Err(why) => return Ok(Attempt::NoServer(why)),
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
        Err(error) => return Ok(Attempt::NoServer(describe(&error))),
    };
    let asked = tokio::time::timeout(PATIENCE, async { NodeServiceClient::new(channel).join(request).await });
    let outcome = match asked.await {
        Ok(Ok(reply)) => reply.into_inner().outcome,
        Ok(Err(status)) if matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled) => {
            return Ok(Attempt::NoServer(status.message().to_owned()));
        }
        Ok(Err(status)) => {
            // The server does not know the key, or does not want it: the next attempt is with another one.
            place.forget_key();
            return Ok(Attempt::Refused(status.message().to_owned()));
        }
        Err(_) => return Ok(Attempt::NoServer("the server does not answer".to_owned())),
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
                Err(why) => Ok(Attempt::Refused(format!("the server's answer cannot be used: {why}"))),
            }
        }
        Some(pb::join_reply::Outcome::Pending(again_in)) => Ok(Attempt::Pending {
            again_in: Duration::from_micros(again_in.clamp(100_000, 60_000_000)),
            key_sha256,
        }),
        None => Ok(Attempt::Refused("the server's answer is empty".to_owned())),
    }
}

/// The identity of this node; waits until it has one.
pub(crate) async fn obtain(config: &NodeConfig, place: &Place) -> Result<Identity, NodeError> {
    // Each reason is told once: attempts are many.
    let mut told = String::new();
    loop {
        let token = token(config)?;
        if let Some(identity) = place.load()? {
            match unusable(&identity, config, token.as_ref()) {
                None => {
                    place.forget_key();
                    return Ok(identity);
                }
                Some(why) => {
                    tell(&mut told, format!("the identity of this node cannot be used: {why}; it joins anew"))
                }
            }
        }
        let pause = match attempt(config, place, token.as_ref()).await? {
            Attempt::Joined(identity) => return Ok(*identity),
            Attempt::Pending { again_in, key_sha256 } => {
                tell(&mut told, waiting(config, &key_sha256));
                again_in
            }
            Attempt::Refused(why) => {
                tell(&mut told, format!("the server refuses this node: {why}"));
                REFUSED_PAUSE
            }
            Attempt::NoServer(why) => {
                tell(&mut told, format!("this node cannot join yet: {why}"));
                NO_SERVER_PAUSE
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
const NO_SERVER_PAUSE: Duration = Duration::from_secs(1);

/// Joins once, for `millpond node join`: waits for an approval, and for nothing else. The name of the node.
pub fn join(config: &NodeConfig) -> Result<String, NodeError> {
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
            return Err(refused(format!("cannot read the join token in {}", file.display())));
        }
        loop {
            match attempt(config, place, None).await? {
                Attempt::Joined(identity) => return Ok(identity.name),
                Attempt::Pending { again_in, key_sha256 } => {
                    tell(&mut told, waiting(config, &key_sha256));
                    tokio::time::sleep(again_in).await;
                }
                Attempt::Refused(why) | Attempt::NoServer(why) => return Err(refused(why)),
            }
        }
    };
    match attempt(config, place, Some(&token)).await? {
        Attempt::Joined(identity) => Ok(identity.name),
        Attempt::Pending { .. } => {
            Err(refused("the server asks for an approval although there is a token".to_owned()))
        }
        Attempt::Refused(why) | Attempt::NoServer(why) => Err(refused(why)),
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
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
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
