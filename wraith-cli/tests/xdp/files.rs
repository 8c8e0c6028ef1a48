//! Files between an end on `AF_XDP` and one on ordinary sockets.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;
use wraith_drivers_xdp::veth::{Options, Side, Veth};

use crate::hosts::{hosts, start_on, xdp};
use crate::support::program;
use crate::transfer::{Scene, content, done};

const MIB: usize = 1 << 20;

/// A host and the arguments that choose its driver.
struct End<'a> {
    side: &'a Side,
    driver: Vec<&'a str>,
    mode: &'static str,
}

impl<'a> End<'a> {
    fn xdp(side: &'a Side, generic: bool) -> Self {
        let mut driver = xdp(side).to_vec();
        driver.extend(generic.then_some("--xdp-generic"));
        Self { side, driver, mode: if generic { "xdp-generic-copy" } else { "xdp-native-copy" } }
    }

    fn mio(side: &'a Side) -> Self {
        Self { side, driver: vec!["--driver", "mio"], mode: "syscall-gso" }
    }
}

/// Sends, receives and compares.
fn transfer(from: &End<'_>, to: &End<'_>, bytes: &[u8]) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let scene = Scene::new(&format!("xdp-{}", NEXT.fetch_add(1, Ordering::Relaxed)), bytes);
    let mut command = program(["send", "--json", "-q"]);
    command.args(&from.driver).arg(&scene.source);
    let sender = start_on(from.side, command);
    let ticket = sender.event("ticket");
    assert_eq!((ticket["driver"].as_str(), ticket["mode"].as_str()), (Some(from.driver[1]), Some(from.mode)));
    assert_addresses(&ticket, from);

    let mut command = scene.receive(ticket["ticket"].as_str().unwrap(), &[]);
    command.args(&to.driver);
    let received = done(&start_on(to.side, command).finish());
    assert!(fs::read(scene.received()).unwrap() == bytes, "{} bytes", bytes.len());
    let hash = blake3::hash(bytes).to_hex().to_string();
    assert_eq!(
        (received["hash"].as_str(), received["bytes"].as_u64()),
        (Some(&*hash), Some(bytes.len() as u64))
    );
    assert_eq!(
        (received["verified"].as_bool(), received["driver"].as_str()),
        (Some(true), Some(to.driver[1]))
    );

    let end = sender.finish();
    assert_eq!((end.code, &*end.stderr), (Some(0), ""));
    let confirmed = end.json().pop().unwrap();
    assert_eq!((confirmed["event"].as_str(), confirmed["hash"].as_str()), (Some("confirmed"), Some(&*hash)));
}

/// A sender on a device is at the addresses of the device, and at no others.
fn assert_addresses(ticket: &Value, from: &End<'_>) {
    let addresses: Vec<_> =
        ticket["addresses"].as_array().unwrap().iter().map(|address| address.as_str().unwrap()).collect();
    let own = [format!("{}:", from.side.ipv4()), format!("[{}]:", from.side.ipv6())];
    let is_own = |address: &&str| own.iter().any(|own| address.starts_with(own));
    assert!(addresses.iter().filter(|address| is_own(address)).count() == 2, "{addresses:?}");
    let others = addresses.iter().any(|address| !is_own(address));
    assert_eq!(others, from.driver[1] == "mio", "{addresses:?}");
}

/// Both ways: the end on the left sends on `AF_XDP`, then the end on the right receives on it.
fn both_ways(veth: &Veth, generic: bool, sizes: &[usize]) {
    for &size in sizes {
        let bytes = content(size);
        transfer(&End::xdp(veth.left(), generic), &End::mio(veth.right()), &bytes);
        transfer(&End::mio(veth.left()), &End::xdp(veth.right(), generic), &bytes);
    }
}

#[test]
fn files_of_every_size_go_both_ways_between_xdp_and_mio() {
    let Some(veth) = hosts(&Options::default()) else { return };
    both_ways(&veth, false, &[0, 1, MIB + 1, 64 * MIB]);
}

#[test]
fn files_of_every_size_go_both_ways_when_the_filter_is_behind_the_devices_driver() {
    let Some(veth) = hosts(&Options::default()) else { return };
    both_ways(&veth, true, &[0, 1, MIB + 1, 64 * MIB]);
}

/// The first packets go through the kernel, which asks for the neighbour's link address.
#[test]
fn files_go_both_ways_between_hosts_that_have_yet_to_find_each_other() {
    for generic in [false, true] {
        for size in [1, MIB + 1] {
            // New hosts each time: these know each other afterwards.
            let mut options = Options::default();
            options.neighbours = false;
            let Some(veth) = hosts(&options) else { return };
            both_ways(&veth, generic, &[size]);
        }
    }
}

#[test]
fn a_file_goes_from_xdp_to_xdp() {
    let Some(veth) = hosts(&Options::default()) else { return };
    transfer(&End::xdp(veth.left(), false), &End::xdp(veth.right(), true), &content(5 * MIB));
}
