//! Protected packets: their protection, numbers and bodies.

use wraith_proto::wire::{ConnectionId, Frame};

use super::case;
use super::finish::is_echo;
use crate::case::{Outcome, ensure};
use crate::peer::Plain;
use crate::protocol::bench::Bench;
use crate::protocol::run::Case;
use crate::protocol::talk::{Talk, encode};

pub(super) const CASES: &[Case] = &[
    case!("packet/is_acknowledged", "PROTO §8.3, §5.4", is_acknowledged),
    case!("packet/every_size", "PROTO §2.1, §5.4", every_size),
    case!("packet/cut", "PROTO §5.1, §5.8", cut),
    case!("packet/altered", "PROTO §5.8, §5.5", altered),
    case!("packet/replayed", "PROTO §5.9", replayed),
    case!("packet/window", "PROTO §5.9", window),
    case!("packet/numbers", "PROTO §5.3", numbers),
    case!("packet/reserved_bits", "PROTO §5.2, §5.8", reserved_bits),
    case!("packet/ignored_bit", "PROTO §5.2", ignored_bit),
    case!("packet/other_phases", "PROTO §5.10", other_phases),
    case!("packet/unknown_id", "PROTO §9.4", unknown_id),
    case!("packet/other_additional_data", "PROTO §5.5", other_additional_data),
    case!("packet/empty", "PROTO §5.4", empty),
    case!("packet/lengths", "PROTO §5.4, §9.5", lengths),
];

/// Sends a datagram frame in a packet made by hand, and waits for its echo.
fn echoes(bench: &mut Bench<'_>, talk: &mut Talk, packet: &[u8], data: &[u8], what: &str) -> Outcome {
    bench.send(packet)?;
    let echoed = bench.hear_until(talk, bench.patience, |_, opened| is_echo(opened, data))?;
    ensure!(echoed, "{what}");
    Ok(())
}

/// The body of a packet with one DATAGRAM frame.
fn body(data: &[u8]) -> Vec<u8> {
    let frames = encode(&[Frame::Datagram { len: data.len() as u16 }]);
    [data, &frames, &(frames.len() as u16).to_be_bytes()].concat()
}

fn is_acknowledged(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    for _ in 0..3 {
        let (number, packet) = talk.seal(&[Frame::Ping], &[]);
        bench.send(&packet)?;
        bench.acknowledged(&mut talk, number)?;
    }
    bench.end(talk)
}

fn every_size(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    // Header, tag, type, lengths.
    let most = 1200 - 13 - 16 - 5;
    for len in (0..=most).step_by(17).chain([most]) {
        let mut data = vec![0; len];
        bench.rng.fill(&mut data);
        let (_, packet) = talk.seal(&[Frame::Datagram { len: len as u16 }], &data);
        let what = format!("§5.4: a datagram of {len} bytes does not come back");
        echoes(bench, &mut talk, &packet, &data, &what)?;
        // Unacknowledged echoes would fill the subject's congestion window.
        let ack = talk.ack();
        let (_, packet) = talk.seal_bytes(&ack, &[]);
        bench.send(&packet)?;
    }
    bench.alive(&mut talk)?;
    bench.end(talk)
}

fn cut(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    let (_, packet) = talk.seal(&[Frame::Datagram { len: 40 }], &[6; 40]);
    let copies: Vec<Vec<u8>> = (0..packet.len()).map(|len| packet[..len].to_vec()).collect();
    bench.dropped(&copies, "§5.8: a packet that is cut off")?;
    echoes(bench, &mut talk, &packet, &[6; 40], "§5.8: the whole packet is lost behind its parts")?;
    bench.end(talk)
}

fn altered(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    let (_, packet) = talk.seal(&[Frame::Datagram { len: 40 }], &[6; 40]);
    let flip = |(at, bit): (usize, usize)| {
        let mut copy = packet.clone();
        copy[at] ^= 1 << bit;
        copy
    };
    // All bits of the header, one of each other byte.
    let header = (0..13).flat_map(|at| (0..8).map(move |bit| (at, bit)));
    let copies: Vec<Vec<u8>> = header.chain((13..packet.len()).map(|at| (at, at % 8))).map(flip).collect();
    bench.dropped(&copies, "§5.8: a packet with an altered bit")?;
    bench.dropped(&[[&packet[..], &[0]].concat()], "§5.8: a packet with a byte too much")?;
    echoes(bench, &mut talk, &packet, &[6; 40], "§5.8: the genuine packet is lost behind altered ones")?;
    bench.end(talk)
}

fn replayed(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    let (_, packet) = talk.seal(&[Frame::Datagram { len: 3 }], b"one");
    echoes(bench, &mut talk, &packet, b"one", "§7.9: no echo")?;
    bench.rest(&mut talk)?;
    bench.dropped(&[packet.clone(), packet], "§5.9: a packet that was received before")?;
    bench.alive(&mut talk)?;
    bench.end(talk)
}

fn window(bench: &mut Bench<'_>) -> Outcome {
    const WIDTH: u64 = 8192;
    let mut talk = bench.session()?;
    let far = talk.channel.next_number() + 2 * WIDTH;
    talk.channel.skip_to(far);
    bench.rest(&mut talk)?;
    let newest = talk.channel.next_number() - 1;
    let plain =
        |number: u64, talk: &Talk| Plain { number, ..talk.channel.plain(body(&number.to_be_bytes())) };
    for behind in [newest - WIDTH, newest - WIDTH - 1, newest - WIDTH - 100, 5] {
        let packet = talk.channel.seal_plain(&plain(behind, &talk));
        bench.dropped(&[packet], &format!("§5.9: packet {behind}, where {newest} was received"))?;
    }
    for within in [newest - WIDTH + 1, newest - WIDTH + 2, newest - 50] {
        talk.note(within);
        let packet = talk.channel.seal_plain(&plain(within, &talk));
        let what = format!("§5.9: packet {within} within the window is lost, where {newest} was received");
        echoes(bench, &mut talk, &packet, &within.to_be_bytes(), &what)?;
    }
    bench.alive(&mut talk)?;
    bench.end(talk)
}

fn numbers(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    for step in [1u64, 100, 8191, 8192, 1 << 20, (1 << 31) - 1, (1 << 31) - 1] {
        talk.channel.skip_to(talk.channel.next_number() - 1 + step);
        let data = step.to_be_bytes();
        let (number, packet) = talk.seal(&[Frame::Datagram { len: 8 }], &data);
        echoes(bench, &mut talk, &packet, &data, &format!("§5.3: packet {number}, {step} further, is lost"))?;
    }
    bench.rest(&mut talk)?;
    // Just beyond half of what 32 bits tell, the receiver takes another number for it.
    let expected = talk.channel.next_number();
    let far = Plain { number: expected + (1 << 31) + 1, ..talk.channel.plain(body(b"too far")) };
    bench.dropped(&[talk.channel.seal_plain(&far)], "§5.3: a packet number that is not the nearest")?;
    bench.alive(&mut talk)?;
    bench.end(talk)
}

fn reserved_bits(bench: &mut Bench<'_>) -> Outcome {
    for bits in [0b0100, 0b1000, 0b1100] {
        let mut talk = bench.session()?;
        bench.rest(&mut talk)?;
        let mut plain = talk.channel.plain(body(b"reserved"));
        plain.first |= bits;
        let packet = talk.channel.seal_plain(&plain);
        // An altered one with the same bits is not authentic, and no violation (§5.8).
        let mut forged = packet.clone();
        *forged.last_mut().unwrap_or(&mut 0) ^= 1;
        bench.dropped(&[forged], "§5.8: a false packet with reserved bits")?;
        talk.note(plain.number);
        talk.channel.skip_to(plain.number + 1);
        bench.send(&packet)?;
        bench.violation(&mut talk, "§5.2: a packet with reserved bits")?;
    }
    Ok(())
}

fn ignored_bit(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    for bit in [0, 1, 0, 1] {
        let number = talk.spend();
        let data = number.to_be_bytes();
        let plain = Plain { first: 0b0100_0000 | bit << 4, ..talk.channel.plain(body(&data)) };
        talk.channel.skip_to(number + 1);
        let packet = talk.channel.seal_plain(&plain);
        echoes(bench, &mut talk, &packet, &data, &format!("§5.2: the packet with {bit} in bit 4 is lost"))?;
    }
    bench.end(talk)
}

fn other_phases(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    for phase in 1..4 {
        let mut plain = talk.channel.plain(body(b"phase"));
        plain.first |= phase;
        let packet = talk.channel.seal_plain(&plain);
        bench.dropped(&[packet], &format!("§5.10: a packet with key phase {phase}"))?;
    }
    bench.alive(&mut talk)?;
    bench.end(talk)
}

fn unknown_id(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    let own = talk.channel.remote_id();
    let mut packets = Vec::new();
    for at in 0..8 {
        let mut id = own.0;
        id[at] ^= 0x55;
        let plain = Plain { destination: ConnectionId(id), ..talk.channel.plain(body(b"whom")) };
        packets.push(talk.channel.seal_plain(&plain));
    }
    bench.dropped(&packets, "§9.4: a packet for an id that nobody has")?;
    bench.alive(&mut talk)?;
    bench.end(talk)
}

/// Header bytes that are not protected are authenticated all the same.
fn other_additional_data(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    let Some(other) = talk.ids().values().copied().find(|id| *id != talk.channel.remote_id()) else {
        return Ok(());
    };
    let (_, mut packet) = talk.seal(&[Frame::Ping], &[]);
    packet[1..9].copy_from_slice(&other.0);
    bench.dropped(&[packet], "§5.5: a packet with another of the subject's ids than it was sealed with")?;
    bench.alive(&mut talk)?;
    bench.end(talk)
}

fn empty(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    for _ in 0..3 {
        bench.say(&mut talk, &[], &[])?;
    }
    ensure!(bench.answers()?.is_empty(), "§5.4: a packet without frames is answered");
    bench.alive(&mut talk)?;
    bench.end(talk)
}

fn lengths(bench: &mut Bench<'_>) -> Outcome {
    let datagram = encode(&[Frame::Datagram { len: 5 }]);
    let len = |extra: usize| ((datagram.len() + extra) as u16).to_be_bytes();
    let bodies = [
        ("without a length", vec![]),
        ("with half a length", vec![0]),
        ("with frames that are longer than the body", [&b"hello"[..], &datagram, &len(6)].concat()),
        ("with more frames than there are bytes", vec![0xff, 0xff]),
        ("with a byte of data missing", [&b"hell"[..], &datagram, &len(0)].concat()),
        ("with a byte of data too much", [&b"hello!"[..], &datagram, &len(0)].concat()),
        ("with data and no frame", [&b"hello"[..], &[0, 0]].concat()),
        ("with data and a frame that bears none", [&b"hello"[..], &[1, 0, 1]].concat()),
    ];
    for (what, body) in bodies {
        let mut talk = bench.session()?;
        let packet = talk.seal_body(body).1;
        bench.send(&packet)?;
        bench.violation(&mut talk, &format!("§5.4: a packet {what}"))?;
    }
    Ok(())
}
