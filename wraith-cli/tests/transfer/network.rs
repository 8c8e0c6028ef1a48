//! A network between two processes that takes its time, breaks and forgets.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::transfer::Sender;

/// Takes long enough over a [`Network`] to be caught in the middle.
pub(crate) const LARGE: u64 = 64 << 20;

/// Bytes in a second that a [`Network`] hands to a receiver: two seconds of [`LARGE`], however fast the machine is.
const RATE: f64 = (LARGE / 2) as f64;

/// A network between a sender and one receiver, which is slow, can be gone, and can forget the ports that it has given.
pub(crate) struct Network {
    pub(crate) address: SocketAddr,
    /// Where the sender sees the receiver at first, and when the ports are forgotten.
    pub(crate) ports: [SocketAddr; 2],
    pub(crate) gone: Arc<AtomicBool>,
    pub(crate) forgotten: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
}

impl Network {
    /// Before this sender, with a ticket that leads through it.
    pub(crate) fn of(sender: &Sender) -> (Self, String) {
        let network = Self::before(sender.event["addresses"][0].as_str().unwrap().parse().unwrap());
        let ticket = sender.changed(|ticket| ticket.addresses = vec![network.address]);
        (network, ticket)
    }

    fn before(sender: SocketAddr) -> Self {
        let [near, first, second] = [(); 3].map(|()| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            Arc::new(socket)
        });
        let network = Self {
            address: near.local_addr().unwrap(),
            ports: [&first, &second].map(|socket| socket.local_addr().unwrap()),
            gone: Arc::default(),
            forgotten: Arc::default(),
            over: Arc::default(),
        };
        let receiver = Arc::new(Mutex::new(None));
        for (socket, of_second) in [(&first, false), (&second, true)] {
            let (known, near) = (Arc::clone(&receiver), Arc::clone(&near));
            let forgotten = Arc::clone(&network.forgotten);
            let mut free = Instant::now();
            network.carry(Arc::clone(socket), move |datagram, _| {
                let receiver = *known.lock().unwrap();
                // What comes to a port that is forgotten, or not yet given, goes nowhere.
                if forgotten.load(Ordering::Relaxed) == of_second
                    && let Some(receiver) = receiver
                {
                    free = free.max(Instant::now()) + Duration::from_secs_f64(datagram.len() as f64 / RATE);
                    thread::sleep(free.saturating_duration_since(Instant::now()));
                    // A full queue loses it, as networks do.
                    let _ = near.send_to(datagram, receiver);
                }
            });
        }
        let forgotten = Arc::clone(&network.forgotten);
        network.carry(near, move |datagram, from| {
            *receiver.lock().unwrap() = Some(from);
            let port = if forgotten.load(Ordering::Relaxed) { &second } else { &first };
            let _ = port.send_to(datagram, sender);
        });
        network
    }

    /// Hands over what comes out of a socket.
    fn carry(&self, from: Arc<UdpSocket>, mut send: impl FnMut(&[u8], SocketAddr) + Send + 'static) {
        let (gone, over) = (Arc::clone(&self.gone), Arc::clone(&self.over));
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while !over.load(Ordering::Relaxed) {
                let Ok((len, sender)) = from.recv_from(&mut buffer) else { continue };
                if !gone.load(Ordering::Relaxed) {
                    send(&buffer[..len], sender);
                }
            }
        });
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}
