//! Cookies (`PROTO §4.14`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

use super::{Bytes, File, draw, file_of, hex, vector};

pub(super) fn file() -> File {
    let (endpoint_seed, identity_seed) = (draw::<32>("endpoint"), draw::<32>("cookie's identity"));
    let v4 = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    let v6 = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 5));
    let mut vectors = Vec::new();
    for (name, address, period) in [("IPv4", v4, 100), ("IPv4, the next period", v4, 101), ("IPv6", v6, 100)]
    {
        let id = draw::<8>("cookie's id");
        vectors.push(cookie(name, endpoint_seed, identity_seed, address, 4001, id, period));
    }
    let about = "Cookies. How the secret of a period is made is the responder's own business; here as this \
                 repository's core makes it: keyed(derive_key(\"WRAITH v1 cookie\", endpoint seed, identity seed), \
                 period u64).";
    file_of("cookie.json", about, "PROTO §4.14", &vectors)
}

fn cookie(
    name: &str,
    endpoint_seed: [u8; 32],
    identity_seed: [u8; 32],
    address: IpAddr,
    port: u16,
    id: [u8; 8],
    period: u64,
) -> Value {
    let root = blake3::derive_key("WRAITH v1 cookie", &[endpoint_seed, identity_seed].concat());
    let secret = *blake3::keyed_hash(&root, &period.to_be_bytes()).as_bytes();
    let octets = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    let input = Bytes::default().raw(octets).u16(port).raw(id).u64(period).0;
    let cookie = blake3::keyed_hash(&secret, &input);
    let given = json!({
        "address": address.to_string(),
        "endpoint_seed": hex(endpoint_seed),
        "id": hex(id),
        "identity_seed": hex(identity_seed),
        "period": period,
        "port": port,
        "secret": hex(secret),
    });
    vector(name, given, json!({ "cookie": hex(&cookie.as_bytes()[..16]), "input": hex(input) }))
}
