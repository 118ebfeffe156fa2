//! Whose page sends a request: a browser carries what its user may do to every page that he looks at.

use super::failure::HttpFailure;
use super::headers;
use crate::api::Api;
use axum::http::{HeaderMap, header};
use std::net::IpAddr;
use vocab::Failure;

/// The code of a request that a page of somebody else may have sent.
const CSRF: i64 = 110;

/// Names of the machine that a browser runs on.
const NEAR: [&str; 5] = ["localhost", "127.0.0.1", "[::1]", "localhost.localdomain", "ip6-localhost"];

/// Without a token the browser itself is the credential (it is near, or has a cookie): a page of
/// another host must not use it. Ports may differ, and pages of this machine are welcome, as they
/// are while a page is developed. An image or a link has no origin: browsers say in another way where it
/// is, and it may look but not change anything.
pub(super) fn refuse_foreign_page(
    api: &Api,
    changes_something: bool,
    headers: &HeaderMap,
) -> Result<(), HttpFailure> {
    let Some(origin) = headers::text(headers, header::ORIGIN.as_str()) else {
        return match headers::text(headers, "sec-fetch-site") {
            Some("cross-site") if changes_something => {
                refused("A page of another host may not change anything without a token".to_owned())
            }
            _ => Ok(()),
        };
    };
    let of_page = without_port(origin.split_once("://").map_or(origin, |(_, authority)| authority));
    let of_server = headers::text(headers, header::HOST.as_str()).unwrap_or_default();
    let public = api.settings.public_address.as_deref().unwrap_or(of_server);
    let known = [without_port(of_server), without_port(public)];
    if known.iter().chain(&NEAR).any(|host| host.eq_ignore_ascii_case(of_page)) {
        return Ok(());
    }
    refused(format!("A page of {origin:?} may not send requests to {of_server:?} without a token"))
}

/// Where being near is all that is asked for, a host name in `Host` is a page's: whoever owns that name can
/// point it here after the page was loaded, and the browser then takes us for the page's own server. Names of
/// this machine and addresses cannot be pointed elsewhere.
pub(super) fn refuse_foreign_name(api: &Api, headers: &HeaderMap) -> Result<(), HttpFailure> {
    let Some(host) = headers::text(headers, header::HOST.as_str()).filter(|_| api.settings.only_near) else {
        return Ok(());
    };
    let name = without_port(host).trim_end_matches('.');
    let inside = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    let public = api.settings.public_address.as_deref().map(without_port);
    let is_near = NEAR.iter().any(|near| near.eq_ignore_ascii_case(name))
        || name.to_ascii_lowercase().ends_with(".localhost")
        || inside.parse::<IpAddr>().is_ok()
        || public.is_some_and(|public| public.eq_ignore_ascii_case(name));
    if is_near {
        return Ok(());
    }
    refused(format!(
        "This server asks nobody for a token and answers to its own machine alone, by an address or as \
         \"localhost\": found the host {host:?} (start it with --auth to use other names)"
    ))
}

fn refused(message: String) -> Result<(), HttpFailure> {
    Err(HttpFailure::of_authentication(Failure::coded(CSRF, message)))
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => authority,
    }
}
