//! Who may do everything because nobody is asked who they are.

use std::net::SocketAddr;
use std::path::Path;

use vocab::Failure;

/// Accounts of people have numbers from here on, by the custom of all distributions.
const FIRST_PERSON: u32 = 1000;
/// `nobody`.
const NOBODY: u32 = 65_534;

/// What a server without authentication lets others do: strangers if it listens on more than this host; else other people of
/// the host. Also where `--no-auth` was given: accounts come later than a command line. `None`: only its own user can reach it.
pub fn exposure(listen: SocketAddr) -> Option<Failure> {
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    exposed_to(listen, &accounts, rustix::process::geteuid().as_raw())
}

fn exposed_to(listen: SocketAddr, accounts: &str, own: u32) -> Option<Failure> {
    let text = if !listen.ip().to_canonical().is_loopback() {
        format!(
            "Authentication is off: everybody who reaches {listen} may do everything; start the server with --auth, \
             or let it listen on 127.0.0.1"
        )
    } else {
        let other = accounts.lines().find_map(|line| other_person(line, own))?;
        format!(
            "Authentication is off: other accounts of this host, {other} for one, may do everything in this cluster; \
             start it with --auth"
        )
    };
    Some(Failure::new(text).with("alert_type", "authentication_off"))
}

/// The name in a line of `passwd`, if that is another person who can sign in.
fn other_person(line: &str, own: u32) -> Option<&str> {
    let fields: Vec<&str> = line.split(':').collect();
    let [name, _, uid, _, _, _, shell] = fields.as_slice() else { return None };
    let uid: u32 = uid.parse().ok()?;
    let signs_in = !shell.is_empty()
        && !matches!(Path::new(shell).file_name().and_then(|name| name.to_str()), Some("nologin" | "false"));
    (uid >= FIRST_PERSON && uid != NOBODY && uid != own && signs_in).then_some(*name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNTS: &str = "root:x:0:0:root:/root:/bin/bash\n\
        daemon:x:1:1::/:/usr/sbin/nologin\n\
        nobody:x:65534:65534:nobody:/nonexistent:/bin/sh\n\
        service:x:1001:1001::/:/sbin/nologin\n\
        ann:x:1002:1002:Ann:/home/ann:/bin/bash\n";

    fn told(listen: &str, accounts: &str, own: u32) -> Option<String> {
        let listen = listen.parse().expect("an address");
        exposed_to(listen, accounts, own).map(|failure| failure.message)
    }

    /// S8.
    #[test]
    fn s8_who_may_do_everything_is_told() {
        for address in ["0.0.0.0:8000", "[::]:8000", "[::ffff:10.0.0.1]:8000"] {
            let text = told(address, "", 0).expect("strangers");
            assert!(text.contains(&format!("everybody who reaches {address}")), "{text}");
        }
        // The last one is the same address in a socket of IPv6.
        for address in ["127.0.0.1:8000", "[::1]:8000", "[::ffff:127.0.0.1]:8000"] {
            let text = told(address, ACCOUNTS, 0).expect("ann");
            assert!(text.contains("ann for one") && text.contains("--auth"), "{text}");
        }
        assert_eq!(told("127.0.0.1:8000", ACCOUNTS, 1002), None, "ann herself");
        assert_eq!(told("127.0.0.1:8000", "broken\nroot:x:0:0:root:/root:/bin/sh", 0), None);
    }
}
