//! Which user of this host listens on an address.
//!
//! A node that joins without a digest trusts the server that it finds on its own host. Any user of the host can take a free port,
//! a job included, so the port must belong to root or to the user of the node.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Sockets of the network namespace of this process.
const TABLES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
/// State of a socket that listens.
const LISTENS: &str = "0A";

/// Refuses an address on which another user than root and the user of this process listens.
pub(crate) fn demand_trusted(address: SocketAddr) -> io::Result<()> {
    let mut owners = Vec::new();
    for table in TABLES {
        match std::fs::read_to_string(table) {
            Ok(text) => owners.extend(owners_in(&text, address)),
            // A kernel without IPv6.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io::Error::other(format!("cannot read {table}: {error}"))),
        }
    }
    judge(address, &owners, rustix::process::geteuid().as_raw()).map_err(io::Error::other)
}

fn judge(address: SocketAddr, owners: &[u32], own: u32) -> Result<(), String> {
    let advice = "give this node a join token by --join-token-file, or the digest of the server's authority by --authority-sha256";
    match owners.iter().find(|owner| **owner != 0 && **owner != own) {
        Some(owner) => Err(format!(
            "the program that listens on {address} belongs to user {owner}, and without a digest this node trusts only programs \
             of root and of its own user {own}: {advice}"
        )),
        None if owners.is_empty() => Err(format!(
            "this host does not say which user listens on {address}, so this node does not trust the server there: {advice}"
        )),
        None => Ok(()),
    }
}

/// Users of the sockets in a table of `/proc/net` that may get connections to an address.
fn owners_in(table: &str, address: SocketAddr) -> Vec<u32> {
    let owner = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, state, _, _, _, owner, ..] = fields[..] else { return None };
        let (ip, port) = local.split_once(':')?;
        let is_its = state == LISTENS
            && u16::from_str_radix(port, 16) == Ok(address.port())
            && parse(ip).is_some_and(|ip| takes(ip, address.ip()));
        // A user that cannot be read is another one.
        is_its.then(|| owner.parse().unwrap_or(u32::MAX))
    };
    table.lines().skip(1).filter_map(owner).collect()
}

/// May a socket that is bound to one address get connections to the other?
fn takes(bound: IpAddr, called: IpAddr) -> bool {
    bound.is_unspecified() || bound.to_canonical() == called.to_canonical()
}

/// Words of 32 bits, each in the order of bytes of this machine.
fn parse(text: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let digits = text.get(at * 8..at * 8 + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    match text.len() {
        8 => Some(IpAddr::V4(Ipv4Addr::from(word(0)?))),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let octets: [u8; 16] = words.as_flattened().try_into().ok()?;
            Some(IpAddr::V6(Ipv6Addr::from(octets)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    const HEAD: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    fn line(local: &str, state: &str, owner: &str) -> String {
        format!(
            "   0: {local} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  {owner}        0 5 1 0\n"
        )
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    /// S7: a job that had taken the server's port was trusted by each node of the host that had no identity yet.
    #[test]
    fn a_program_of_another_user_is_not_trusted() {
        let table = format!(
            "{HEAD}{}{}{}{}{}",
            line("0100007F:1F90", "0A", "1001"),
            line("0100007F:1F91", "0A", "0"),
            line("0100007F:1F91", "01", "1001"),
            line("00000000:1F92", "0A", "1002"),
            line("0200007F:1F93", "0A", "1003"),
        );
        let owners = |text: &str| owners_in(&table, address(text));
        assert_eq!(owners("127.0.0.1:8080"), [1001]);
        assert_eq!(owners("127.0.0.1:8081"), [0], "a connection is not a listener");
        assert_eq!(owners("127.0.0.1:8082"), [1002], "all addresses are this one, too");
        assert_eq!(owners("127.0.0.1:8083"), [], "another address");
        for (owners, own, is_trusted) in [
            (&[0][..], 1000, true),
            (&[1000], 1000, true),
            (&[0, 1000], 1000, true),
            (&[1001], 0, false),
            (&[1000, 1001], 1000, false),
            (&[], 0, false),
        ] {
            assert_eq!(judge(address("127.0.0.1:1"), owners, own).is_ok(), is_trusted, "{owners:?} {own}");
        }
    }

    /// S7.
    #[test]
    fn addresses_of_ipv6_are_read() {
        let words = |octets: [u8; 16]| {
            let mut text = String::new();
            for word in octets.chunks_exact(4) {
                let word = u32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
                text.push_str(&format!("{word:08X}"));
            }
            text
        };
        for (bound, called, is_its) in [
            ("::1", "[::1]:8080", true),
            ("::", "[::1]:8080", true),
            ("::", "127.0.0.1:8080", true),
            ("::ffff:127.0.0.1", "127.0.0.1:8080", true),
            ("::2", "[::1]:8080", false),
        ] {
            let bound: Ipv6Addr = bound.parse().expect("an address");
            let table = format!("{HEAD}{}", line(&format!("{}:1F90", words(bound.octets())), "0A", "7"));
            assert_eq!(owners_in(&table, address(called)) == [7], is_its, "{bound} {called}");
        }
    }

    /// S7: the tables of this kernel are understood.
    #[test]
    fn the_own_listener_is_found() {
        for bound in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(bound) else {
                println!("skipped: this host cannot listen on {bound}");
                continue;
            };
            let address = listener.local_addr().expect("bound");
            let connected = TcpStream::connect(address).expect("it listens").peer_addr().expect("connected");
            demand_trusted(connected).expect("it is the own user's");
            drop(listener);
            assert!(demand_trusted(address).is_err(), "nobody listens");
        }
    }
}
