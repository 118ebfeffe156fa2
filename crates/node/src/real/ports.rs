//! Whether anybody on the host uses a port.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

/// Can a job listen on this port, on all addresses of the host? A socket with the port bound to some address
/// only is in the way as well. Not known for sure (no IPv6 here) is good enough.
pub(crate) fn is_free(port: u16) -> bool {
    let binds = |address: SocketAddr| match TcpListener::bind(address) {
        Ok(_) => true,
        Err(e) => e.kind() != std::io::ErrorKind::AddrInUse,
    };
    binds((Ipv4Addr::UNSPECIFIED, port).into()) && binds((Ipv6Addr::UNSPECIFIED, port).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_is_not_free() -> std::io::Result<()> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        assert!(!is_free(port));
        drop(listener);
        assert!(is_free(port));
        Ok(())
    }
}
