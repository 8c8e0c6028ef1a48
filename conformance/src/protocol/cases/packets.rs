//! Protected packets: their protection, numbers and bodies.

use wraith_proto::wire::{ConnectionId, Frame};

use super::finish::is_echo;
use crate::case::{Outcome, Verdict, ensure};
use crate::peer::{AES_256_GCM, Answer, Plain, XCHACHA20_POLY1305};
use crate::protocol::bench::Bench;
use crate::protocol::talk::{Talk, encode};

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

pub(super) fn every_packet_that_asks_is_acknowledged(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    for _ in 0..3 {
        let (number, packet) = talk.seal(&[Frame::Ping], &[]);
        bench.send(&packet)?;
        bench.acknowledged(&mut talk, number)?;
    }
    bench.end(talk)
}

/// Runs the body in a session of each suite that the subject offers.
pub(super) fn in_each_suite(
    bench: &mut Bench<'_>,
    body: impl Fn(&mut Bench<'_>, Talk) -> Outcome,
) -> Outcome {
    for suite in [XCHACHA20_POLY1305, AES_256_GCM] {
        bench.profile.suites = vec![suite];
        let dial = bench.dial()?;
        let met = match bench.shake(&dial)? {
            Answer::Met(met) => met,
            // Only the first suite is everybody's (`PROTO §3.7`).
            Answer::Refusal(_) if suite == AES_256_GCM => continue,
            Answer::Refusal(code) => return Err(Verdict::Fail(format!("§3.7: suite 1 is refused: {code}"))),
        };
        let (finish, channel) = met.finish()?;
        let mut talk = Talk::new(channel, &bench.profile);
        bench.confirm(&finish, &mut talk)?;
        body(bench, talk)?;
    }
    Ok(())
}

pub(super) fn datagrams_of_every_size_come_back_in_both_suites(bench: &mut Bench<'_>) -> Outcome {
    in_each_suite(bench, |bench, mut talk| {
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
    })
}

pub(super) fn a_packet_that_is_cut_off_is_dropped(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    let (_, packet) = talk.seal(&[Frame::Datagram { len: 40 }], &[6; 40]);
    let copies: Vec<Vec<u8>> = (0..packet.len()).map(|len| packet[..len].to_vec()).collect();
    bench.dropped(&copies, "§5.8: a packet that is cut off")?;
    echoes(bench, &mut talk, &packet, &[6; 40], "§5.8: the whole packet is lost behind its parts")?;
    bench.end(talk)
}

pub(super) fn an_altered_packet_is_dropped(bench: &mut Bench<'_>) -> Outcome {
    in_each_suite(bench, |bench, mut talk| {
        bench.rest(&mut talk)?;
        let (_, packet) = talk.seal(&[Frame::Datagram { len: 40 }], &[6; 40]);
        let flip = |(at, bit): (usize, usize)| {
            let mut copy = packet.clone();
            copy[at] ^= 1 << bit;
            copy
        };
        // All bits of the header, one of each other byte.
        let header = (0..13).flat_map(|at| (0..8).map(move |bit| (at, bit)));
        let copies: Vec<Vec<u8>> =
            header.chain((13..packet.len()).map(|at| (at, at % 8))).map(flip).collect();
        bench.dropped(&copies, "§5.8: a packet with an altered bit")?;
        bench.dropped(&[[&packet[..], &[0]].concat()], "§5.8: a packet with a byte too much")?;
        echoes(bench, &mut talk, &packet, &[6; 40], "§5.8: the genuine packet is lost behind altered ones")?;
        bench.end(talk)
    })
}

pub(super) fn a_replayed_packet_is_dropped(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    let (_, packet) = talk.seal(&[Frame::Datagram { len: 3 }], b"one");
    echoes(bench, &mut talk, &packet, b"one", "§7.9: no echo")?;
    bench.rest(&mut talk)?;
    bench.dropped(&[packet.clone(), packet], "§5.9: a packet that was received before")?;
    bench.alive(&mut talk)?;
    bench.end(talk)
}

pub(super) fn the_replay_window_is_8192_numbers_wide(bench: &mut Bench<'_>) -> Outcome {
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

pub(super) fn the_nearest_number_is_taken(bench: &mut Bench<'_>) -> Outcome {
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

pub(super) fn a_reserved_bit_is_a_violation_once_the_tag_is_good(bench: &mut Bench<'_>) -> Outcome {
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

pub(super) fn the_ignored_bit_is_ignored(bench: &mut Bench<'_>) -> Outcome {
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

pub(super) fn a_phase_without_a_key_is_dropped(bench: &mut Bench<'_>) -> Outcome {
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

pub(super) fn an_unknown_id_is_dropped(bench: &mut Bench<'_>) -> Outcome {
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
pub(super) fn the_whole_header_is_authenticated(bench: &mut Bench<'_>) -> Outcome {
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

pub(super) fn a_packet_without_frames_means_nothing(bench: &mut Bench<'_>) -> Outcome {
    let mut talk = bench.session()?;
    bench.rest(&mut talk)?;
    for _ in 0..3 {
        bench.say(&mut talk, &[], &[])?;
    }
    ensure!(bench.answers()?.is_empty(), "§5.4: a packet without frames is answered");
    bench.alive(&mut talk)?;
    bench.end(talk)
}

pub(super) fn lengths_that_do_not_add_up_are_a_violation(bench: &mut Bench<'_>) -> Outcome {
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
