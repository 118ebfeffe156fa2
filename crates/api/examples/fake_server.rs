//! The API over a backend that prints what it is asked: for looking at what clients send.
//!
//! `cargo run -p millpond-api --example fake_server -- 127.0.0.1:8000`, then
//! `yt --proxy http://127.0.0.1:8000 get //tmp`.

#[path = "../tests/main/fake.rs"]
mod fake;

use std::sync::Arc;
use std::time::Duration;

#[tokio::main]
async fn main() {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".to_owned());
    let listener = tokio::net::TcpListener::bind(&address).await.expect("the address is free");
    let settings = api::Settings {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        public_address: None,
        only_near: false,
        tls: false,
        in_flight: api::InFlightLimits::default(),
        limits: api::RequestLimits::default(),
        node_authority: None,
        host_name: "localhost".to_owned(),
    };
    let api = api::Api::new(Arc::new(fake::Fake::default()), Arc::new(api::OpenAccess), settings);
    println!("listening on {}", listener.local_addr().expect("it is bound"));
    api::serve(
        listener,
        api::Doors::plain(api.router()),
        1000,
        std::future::pending(),
        api::Grace::of_requests(Duration::ZERO),
    )
    .await;
}
