//! Addresses that other people choose, such as those of webhooks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::Uri;

/// The addresses that are not public, as prefixes with their lengths: IANA's registries of
/// special-purpose addresses (<https://www.iana.org/assignments/iana-ipv4-special-registry>), and
/// multicast.
const RESERVED_V4: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];
/// The only block of IPv6 that has public addresses, and what is reserved in it. Addresses that
/// contain an IPv4 address are in other blocks, or among the reserved ones.
const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
const RESERVED_V6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// The addresses to which a [`super::Connector`] connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reach {
    #[default]
    Any,
    /// Only addresses of the public internet, and only with TLS.
    Public,
}

impl Reach {
    /// Reads the variable `WEBHOOK_TARGETS`: only `any` reaches other than public addresses.
    #[must_use]
    pub fn of_webhooks() -> Self {
        match std::env::var("WEBHOOK_TARGETS").as_deref() {
            Ok("any") => Self::Any,
            _ => Self::Public,
        }
    }

    #[must_use]
    pub fn allows(self, address: IpAddr) -> bool {
        self == Self::Any || is_public(address)
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let begins =
                |(prefix, length): &(Ipv4Addr, u32)| (address.to_bits() ^ prefix.to_bits()).leading_zeros() >= *length;
            !RESERVED_V4.iter().any(begins)
        }
        IpAddr::V6(address) => {
            let begins =
                |(prefix, length): &(Ipv6Addr, u32)| (address.to_bits() ^ prefix.to_bits()).leading_zeros() >= *length;
            begins(&GLOBAL_V6) && !RESERVED_V6.iter().any(begins)
        }
    }
}

/// A URL to which requests go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Scheme, host and port.
    pub base: String,
    /// Path and query.
    pub path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadTarget {
    #[error("must be an https URL")]
    Scheme,
    #[error("must have a host, and no user name and fragment")]
    Form,
    #[error("must not have a private address")]
    Private,
}

impl Target {
    /// Reads a URL. Only [`Reach::Any`] permits `http`. The address of a host's name is checked when a
    /// connection is opened.
    pub fn new(url: &str, reach: Reach) -> Result<Self, BadTarget> {
        // The parser drops a fragment.
        if url.contains('#') {
            return Err(BadTarget::Form);
        }
        let uri: Uri = url.parse().map_err(|_| BadTarget::Scheme)?;
        let scheme = match uri.scheme_str() {
            Some("https") => "https",
            Some("http") if reach == Reach::Any => "http",
            _ => return Err(BadTarget::Scheme),
        };
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'));
        let authority = authority.filter(|authority| !authority.host().is_empty()).ok_or(BadTarget::Form)?;
        let literal = authority.host().trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        if literal.is_ok_and(|address| !reach.allows(address)) {
            return Err(BadTarget::Private);
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self { base: format!("{scheme}://{authority}"), path: path.to_owned() })
    }

    /// Returns the host, and the port if it is not that of the scheme, as signatures have them (RFC 9421,
    /// section 2.2.3).
    #[must_use]
    pub fn authority(&self) -> String {
        let (scheme, authority) = self.base.split_once("://").unwrap_or(("", &self.base));
        let port = if scheme == "https" { ":443" } else { ":80" };
        authority.strip_suffix(port).unwrap_or(authority).to_ascii_lowercase()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_addresses_of_the_public_internet_are_public() {
        let public = |text: &str| Reach::Public.allows(text.parse().unwrap());
        for address in ["1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.0.1"] {
            assert!(public(address), "{address}");
        }
        for address in ["172.32.0.1", "192.0.1.0", "198.20.0.0", "223.255.255.255", "2606:4700::1", "2001:200::1"] {
            assert!(public(address), "{address}");
        }
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.168.0.1",
            "198.19.255.255",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:1.1.1.1",
            "64:ff9b::a00:1",
            "2001::1",
            "2001:db8::1",
            "2002:a00:1::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(!public(address), "{address}");
            assert!(Reach::Any.allows(address.parse().unwrap()));
        }
    }

    #[test]
    fn a_target_is_a_public_https_url() {
        let read = |url: &str| Target::new(url, Reach::Public);
        let target = Target { base: "https://a.example:8443".to_owned(), path: "/hook/?key=1".to_owned() };
        assert_eq!(read("https://a.example:8443/hook/?key=1"), Ok(target));
        assert_eq!(read("https://a.example").unwrap().path, "/");
        for (bad, error) in [
            ("", BadTarget::Scheme),
            ("a.example/hook", BadTarget::Scheme),
            ("http://a.example", BadTarget::Scheme),
            ("ftp://a.example", BadTarget::Scheme),
            ("https://", BadTarget::Scheme),
            ("https:///hook", BadTarget::Scheme),
            ("https://user@a.example", BadTarget::Form),
            ("https://a.example#b", BadTarget::Form),
            ("https://127.0.0.1/", BadTarget::Private),
            ("https://[::1]:8443/", BadTarget::Private),
            ("https://169.254.169.254/latest", BadTarget::Private),
        ] {
            assert_eq!(read(bad), Err(error), "{bad}");
        }
        assert_eq!(Target::new("http://127.0.0.1:80/", Reach::Any).unwrap().base, "http://127.0.0.1:80");
    }
}
