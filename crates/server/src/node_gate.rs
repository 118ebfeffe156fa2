//! The calls of nodes: how large they may be, and which of them get in.
//!
//! A call is refused before anything of its body is read. Without a certificate a node can only join, and each call with one
//! is looked up first: its identity may have been revoked since the handshake.

use crate::node_service::{Entrance, Nodes, admission};
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use std::sync::Arc;
use tonic::service::interceptor::InterceptedService;
use wire::proto::MAX_MESSAGE_SIZE;
use wire::proto::pb::node_service_server::NodeServiceServer;

/// Path of the calls of nodes, before the name of the call.
const SERVICE: &str = "/millpond.node.v1.NodeService/";
/// The only call without a certificate.
const JOIN: &str = "/millpond.node.v1.NodeService/Join";
/// Calls with one small message.
const SMALL_CALLS: [&str; 4] = ["Join", "Renew", "FetchFile", "FetchRows"];
/// Largest message of a small call: a join token and a request for a certificate take a few thousand bytes.
const LARGEST_SMALL: usize = 32 << 10;

/// Calls with a stream of pieces.
const UPLOADS: [&str; 3] = ["UploadStderr", "UploadFailContext", "UploadRows"];
/// Largest piece. Nodes send 256 KiB at a time, and with the first rows a summary that is not longer.
const LARGEST_PIECE: usize = 4 << 20;

/// Adds the calls of nodes to a router.
pub(crate) fn with_calls(router: Router, nodes: &Arc<Nodes>, entrance: &Entrance) -> Router {
    let service = |largest: usize| {
        let calls = NodeServiceServer::from_arc(Arc::clone(nodes))
            .max_decoding_message_size(largest)
            .max_encoding_message_size(MAX_MESSAGE_SIZE);
        let (refusals, hub) = (Arc::clone(&nodes.refusals), Arc::clone(&nodes.backend.hub));
        InterceptedService::new(calls, admission(entrance.clone(), refusals, hub))
    };
    let router = router.route_service(&format!("{SERVICE}{{method}}"), service(MAX_MESSAGE_SIZE));
    let bounded = SMALL_CALLS.map(|call| (call, LARGEST_SMALL)).into_iter();
    let bounded = bounded.chain(UPLOADS.map(|call| (call, LARGEST_PIECE)));
    bounded.fold(router, |router, (call, largest)| {
        router.route_service(&format!("{SERVICE}{call}"), service(largest))
    })
}

/// What is served behind the door for nodes.
pub(crate) fn door(nodes: &Arc<Nodes>) -> Router {
    with_calls(Router::new(), nodes, &Entrance::Identities)
        .layer(from_fn_with_state(Arc::clone(nodes), prove))
}

/// Lets a call in that proves which node it is from. The proof goes with the request.
async fn prove(State(nodes): State<Arc<Nodes>>, mut request: Request, next: Next) -> Response {
    if request.uri().path() == JOIN {
        return next.run(request).await;
    }
    match nodes.prove(request.extensions()).await {
        Ok(proof) => {
            request.extensions_mut().insert(proof);
            next.run(request).await
        }
        Err(status) => status.into_http(),
    }
}
