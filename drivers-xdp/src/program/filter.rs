//! Which frames go to the driver.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::asm::{Assembler, Code, Label, Reg, Width};
use crate::wire::Mac;

/// What the filter lets through to the driver; all else goes up the kernel's stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Filter {
    /// The device's address on its link. A frame for another one is not for this host: a device that listens to all of
    /// them (promiscuous) hands them up, and the kernel drops them there.
    pub(crate) mac: Mac,
    /// UDP's port of the driver.
    pub(crate) port: u16,
    /// Addresses of the host to which datagrams may go. Only the first [`ADDRESSES`] of each family count: what is for
    /// the others goes up, which is slower, and lost to nobody.
    pub(crate) addresses: Vec<IpAddr>,
    /// UDP's length, header and payload, above which a datagram goes up. In generic mode a peer's batches (GSO) arrive in
    /// one piece, and the kernel's socket takes them apart.
    pub(crate) longest: u16,
}

/// How many addresses of each family a filter knows.
const ADDRESSES: usize = 8;

/// What happens to a frame: `enum xdp_action` of linux/bpf.h.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    /// It goes up the kernel's stack.
    Pass = 2,
    /// It goes back out of the device.
    #[cfg(test)]
    Return = 3,
    /// It goes to the socket of its queue.
    #[cfg(test)]
    Redirect = 4,
}

/// `struct xdp_md` of linux/bpf.h.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const RX_QUEUE_INDEX: i16 = 16;
/// `bpf_redirect_map` of linux/bpf.h; any program may call it, whatever its licence.
const REDIRECT_MAP: i32 = 51;

/// Ethernet's header, and where its last field stands.
const ETHERNET: i16 = 14;
const ETHER_TYPE: i16 = 12;
/// Lengths of headers without options or extensions.
const IPV4: i16 = 20;
const IPV6: i16 = 40;
const UDP: i16 = 8;
/// UDP's number in IP headers.
const PROTOCOL_UDP: u32 = 17;

/// The context of the call, the frame's bytes, their end, and what was read last.
const CONTEXT: Reg = Reg::R6;
const BYTES: Reg = Reg::R2;
const END: Reg = Reg::R3;
const FIELD: Reg = Reg::R5;

impl Filter {
    /// The program. `no_socket` is what happens to a datagram of ours while its queue has no socket.
    ///
    /// # Panics
    ///
    /// If there is no address: the kernel refuses a program with a part that nothing leads to.
    pub(super) fn assemble(&self, no_socket: Action) -> Code {
        assert!(!self.addresses.is_empty(), "a filter without addresses");
        let mut asm = Assembler::default();
        let (udp, pass) = (asm.label(), asm.label());
        asm.copy(CONTEXT, Reg::R1);
        asm.load(Width::Word, BYTES, CONTEXT, DATA);
        asm.load(Width::Word, END, CONTEXT, DATA_END);
        need(&mut asm, ETHERNET + IPV4 + UDP, pass);
        self.match_link(&mut asm, pass);
        self.match_ipv4(&mut asm, udp, pass);
        self.match_ipv6(&mut asm, udp, pass);
        asm.jump(pass);
        asm.bind(udp);
        self.match_udp(&mut asm, pass);
        asm.load_map(Reg::R1);
        asm.load(Width::Word, Reg::R2, CONTEXT, RX_QUEUE_INDEX);
        asm.set(Reg::R3, no_socket as i32);
        asm.call(REDIRECT_MAP);
        asm.exit();
        asm.bind(pass);
        asm.set(Reg::R0, Action::Pass as i32);
        asm.exit();
        asm.finish()
    }

    /// Goes on if the frame is for the device.
    fn match_link(&self, asm: &mut Assembler, pass: Label) {
        let halves = self.mac.0.as_chunks::<2>().0.iter();
        for (at, bytes) in (0..).step_by(2).zip(halves) {
            asm.load(Width::Half, FIELD, BYTES, at);
            asm.jump_unless_equal(FIELD, u16::from_ne_bytes(*bytes).into(), pass);
        }
    }

    /// Goes to `udp` if the frame holds UDP over IPv4 for one of the addresses, without options and in one piece; on if
    /// it is of another kind. It is long enough.
    fn match_ipv4(&self, asm: &mut Assembler, udp: Label, pass: Label) {
        if self.ipv4_addresses().next().is_none() {
            return;
        }
        let (other, found) = (asm.label(), asm.label());
        asm.load(Width::Half, FIELD, BYTES, ETHER_TYPE);
        asm.jump_unless_equal(FIELD, half(0x0800), other);
        asm.load(Width::Byte, FIELD, BYTES, ETHERNET);
        asm.jump_unless_equal(FIELD, 0x45, pass);
        asm.load(Width::Byte, FIELD, BYTES, ETHERNET + 9);
        asm.jump_unless_equal(FIELD, PROTOCOL_UDP, pass);
        asm.load(Width::Half, FIELD, BYTES, ETHERNET + 6);
        asm.and(FIELD, half(0x3fff).cast_signed()); // more fragments follow, or came before
        asm.jump_unless_equal(FIELD, 0, pass);
        asm.load(Width::Word, FIELD, BYTES, ETHERNET + 16);
        for address in self.ipv4_addresses() {
            asm.jump_if_equal(FIELD, u32::from_ne_bytes(address.octets()), found);
        }
        asm.jump(pass);
        asm.bind(found);
        self.match_ipv4_source(asm, pass);
        asm.add(BYTES, (ETHERNET + IPV4).into());
        asm.jump(udp);
        asm.bind(other);
    }

    /// The same for IPv6, without extension headers.
    fn match_ipv6(&self, asm: &mut Assembler, udp: Label, pass: Label) {
        const WORDS: [Reg; 4] = [Reg::R5, Reg::R7, Reg::R8, Reg::R9];
        if self.ipv6_addresses().next().is_none() {
            return;
        }
        let (other, found) = (asm.label(), asm.label());
        asm.load(Width::Half, FIELD, BYTES, ETHER_TYPE);
        asm.jump_unless_equal(FIELD, half(0x86dd), other);
        need(asm, ETHERNET + IPV6 + UDP, pass);
        asm.load(Width::Byte, FIELD, BYTES, ETHERNET);
        asm.and(FIELD, 0xf0); // the rest is of the traffic class
        asm.jump_unless_equal(FIELD, 0x60, pass);
        asm.load(Width::Byte, FIELD, BYTES, ETHERNET + 6);
        asm.jump_unless_equal(FIELD, PROTOCOL_UDP, pass);
        for (word, reg) in (0..).zip(WORDS) {
            asm.load(Width::Word, reg, BYTES, ETHERNET + 24 + 4 * word);
        }
        for address in self.ipv6_addresses() {
            let next = asm.label();
            for (word, reg) in address.octets().as_chunks::<4>().0.iter().zip(WORDS) {
                asm.jump_unless_equal(reg, u32::from_ne_bytes(*word), next);
            }
            asm.jump(found);
            asm.bind(next);
        }
        asm.jump(pass);
        asm.bind(found);
        match_ipv6_source(asm, pass);
        asm.add(BYTES, (ETHERNET + IPV6).into());
        asm.jump(udp);
        asm.bind(other);
    }

    /// Goes on if the sender's address may come over a line. The kernel drops others (martians): an answer to this host
    /// itself (127.0.0.1) would reach who listens to it alone.
    fn match_ipv4_source(&self, asm: &mut Assembler, pass: Label) {
        asm.load(Width::Word, FIELD, BYTES, ETHERNET + 12);
        for address in self.ipv4_addresses() {
            asm.jump_if_equal(FIELD, u32::from_ne_bytes(address.octets()), pass);
        }
        asm.load(Width::Byte, FIELD, BYTES, ETHERNET + 12);
        asm.jump_if_equal(FIELD, 0, pass); // this network
        asm.jump_if_equal(FIELD, 127, pass); // loopback
        asm.jump_if_above_value(FIELD, 223, pass); // multicast, reserved, broadcast
    }

    /// Goes on if UDP's header, where [`BYTES`] points, is for the port and short enough.
    fn match_udp(&self, asm: &mut Assembler, pass: Label) {
        asm.load(Width::Half, FIELD, BYTES, 2);
        asm.jump_unless_equal(FIELD, half(self.port), pass);
        asm.load(Width::Half, FIELD, BYTES, 4);
        asm.swap_16(FIELD);
        asm.jump_if_above_value(FIELD, self.longest.into(), pass);
    }

    fn ipv4_addresses(&self) -> impl Iterator<Item = Ipv4Addr> {
        let of_family =
            |address: &IpAddr| if let IpAddr::V4(address) = *address { Some(address) } else { None };
        self.addresses.iter().filter_map(of_family).take(ADDRESSES)
    }

    fn ipv6_addresses(&self) -> impl Iterator<Item = Ipv6Addr> {
        let of_family =
            |address: &IpAddr| if let IpAddr::V6(address) = *address { Some(address) } else { None };
        self.addresses.iter().filter_map(of_family).take(ADDRESSES)
    }
}

/// The same for IPv6: not multicast, and none of those that begin with 64 zeros, such as `::`, `::1` and mapped IPv4.
fn match_ipv6_source(asm: &mut Assembler, pass: Label) {
    let global = asm.label();
    asm.load(Width::Byte, FIELD, BYTES, ETHERNET + 8);
    asm.jump_if_equal(FIELD, 0xff, pass);
    for at in [8, 12] {
        asm.load(Width::Word, FIELD, BYTES, ETHERNET + at);
        asm.jump_unless_equal(FIELD, 0, global);
    }
    asm.jump(pass);
    asm.bind(global);
}

/// Goes to `pass` unless the frame has `bytes`. The kernel refuses programs that read without having asked.
fn need(asm: &mut Assembler, bytes: i16, pass: Label) {
    asm.copy(Reg::R4, BYTES);
    asm.add(Reg::R4, bytes.into());
    asm.jump_if_above(Reg::R4, END, pass);
}

/// A value of two bytes as a load of network order gives it.
fn half(value: u16) -> u32 {
    u16::from_ne_bytes(value.to_be_bytes()).into()
}
