//! The port of a server, in the other family of addresses.
//!
//! A server on 127.0.0.1 leaves the same port of ::1 free. Jobs share the host's network: one that listens there gets the
//! requests, with their tokens, of clients that look for `localhost` and try ::1 first.

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

/// Binds the port that belongs to the name `localhost` beside `listen`, without listening: connections are refused, and no
/// other process of the host gets the port while the result lives. `None` if there is no such address, or no such family on
/// this host.
///
/// # Errors
/// Another process has the port.
pub fn hold_other_family(listen: SocketAddr) -> io::Result<Option<OwnedFd>> {
    let ip = match listen.ip() {
        IpAddr::V4(Ipv4Addr::LOCALHOST) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        IpAddr::V6(Ipv6Addr::LOCALHOST) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        // A socket on [::] has both families.
        _ => return Ok(None),
    };
    let address = SocketAddr::new(ip, listen.port());
    match bound(address) {
        Ok(socket) => Ok(Some(socket)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(io::Error::new(
            error.kind(),
            format!(
                "another process has {address}: clients that look for \"localhost\" may get to it instead of this server"
            ),
        )),
        // A host without IPv6.
        Err(_) => Ok(None),
    }
}

fn bound(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    // Without SO_REUSEADDR: with it another socket with SO_REUSEADDR could take the port of one that does not listen.
    bind(&socket, &address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    /// S6: a job that listens on ::1 is shown the tokens that are meant for the server on 127.0.0.1.
    #[test]
    fn localhost_is_the_server_in_both_families() {
        if TcpListener::bind("[::1]:0").is_err() {
            return; // There is no IPv6 on this host, so nobody can take the port there.
        }
        for (own, others) in [
            ("127.0.0.1:0", &["[::1]", "[::]"][..]),
            ("0.0.0.0:0", &["[::1]", "[::]"]),
            ("[::1]:0", &["127.0.0.1", "0.0.0.0"]),
        ] {
            let server = TcpListener::bind(own).expect("a free port");
            let port = server.local_addr().expect("bound").port();
            let held = hold_other_family(server.local_addr().expect("bound")).expect("a free port");
            for other in others {
                let other = format!("{other}:{port}");
                assert!(TcpListener::bind(&other).is_err(), "{own}: {other} was taken");
            }
            let (near, far) = (format!("[::1]:{port}"), format!("127.0.0.1:{port}"));
            assert_eq!(
                TcpStream::connect(near).is_ok(),
                own.starts_with('['),
                "{own}: nobody listens on the held port"
            );
            assert_eq!(
                TcpStream::connect(far).is_ok(),
                !own.starts_with('['),
                "{own}: nobody listens on the held port"
            );
            drop(held);
        }
    }

    #[test]
    fn a_port_that_another_process_has_is_told() {
        let Ok(other) = TcpListener::bind("[::1]:0") else { return };
        let port = other.local_addr().expect("bound").port();
        let refused =
            hold_other_family(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).expect_err("it is taken");
        assert!(refused.to_string().contains(&format!("[::1]:{port}")), "{refused}");
        // Other addresses have no counterpart.
        for address in ["[::]:1", "10.0.0.1:1", "127.0.0.2:1"] {
            assert!(
                hold_other_family(address.parse().expect("an address")).expect("nothing to do").is_none()
            );
        }
    }
}
