//! Several queues of a device: one driver and one endpoint each.

use std::net::{SocketAddr, UdpSocket};
use std::time::Instant as Std;

use bytes::Bytes;
use wraith_drivers::{App, Driver, Runner, Turn};
use wraith_drivers_mio::MioDriver;
use wraith_drivers_xdp::veth::Veth;
use wraith_drivers_xdp::{Options, XdpDriver};
use wraith_proto::{
    Budget, Config, Endpoint, Event, Identity, Instant, NoSource, OneShot, Payload, Peer, RxMeta,
    SessionHandle, Shard, Source, StreamId, Via,
};

use crate::common::{PATIENCE, hosts};

const CLIENTS: u8 = 12;

/// Answers every datagram, or asks once.
#[derive(Default)]
struct Talker {
    asks: bool,
    session: Option<SessionHandle>,
    to_send: Vec<(SessionHandle, Bytes)>,
    heard: Vec<Vec<u8>>,
}

impl Source for Talker {
    fn fill(&mut self, _: SessionHandle, _: StreamId, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

impl App for Talker {
    fn on_turn(&mut self, _: Instant, endpoint: &mut Endpoint) -> Turn {
        for (session, data) in self.to_send.drain(..) {
            endpoint.session(session).unwrap().send_datagram(data).unwrap();
        }
        Turn::Continue
    }

    fn on_payload(&mut self, payload: Payload<'_>) {
        if let Payload::Datagram { session, data } = payload {
            self.heard.push(data.to_vec());
            if !self.asks {
                self.to_send.push((session, Bytes::copy_from_slice(data)));
            }
        }
    }

    fn on_event(&mut self, _: Instant, _: &mut Endpoint, session: SessionHandle, event: Event) {
        if self.asks && event == Event::Connected {
            self.session = Some(session);
            self.to_send.push((session, Bytes::from_static(b"are you there?")));
        }
    }
}

fn endpoint(name: u8, shard: Shard, now: Instant) -> Endpoint {
    let mut config = Config::new(Identity::from_seed([name.min(1); 32]), b"shards");
    config.shard = shard;
    Endpoint::new(config, [name.wrapping_add(100 * shard.index + 1); 32], now).unwrap()
}

type Servers = Vec<Runner<XdpDriver, Talker>>;
type Clients = Vec<Runner<MioDriver, Talker>>;

/// One driver and one endpoint for each of two queues.
fn servers(veth: &Veth) -> Servers {
    let addr = SocketAddr::new(veth.left().ipv4().into(), 0);
    let options = Options::new(veth.left().interface());
    let drivers = veth.left().run(move || XdpDriver::bind_queues(addr, &options, 2).unwrap());
    assert!(drivers.len() == 2 && drivers[0].local_addr() == drivers[1].local_addr());
    let serve = |(driver, index): (XdpDriver, u8)| {
        let endpoint = endpoint(0, Shard { index, count: 2 }, driver.now());
        Runner::new(driver, endpoint, Talker::default())
    };
    drivers.into_iter().zip(0..).map(serve).collect()
}

fn clients(veth: &Veth, addr: SocketAddr) -> Clients {
    let id = Identity::from_seed([0; 32]).peer_id();
    let ask = |name| {
        let from = from(veth);
        let bind = move || MioDriver::bind(from, &wraith_drivers_mio::Options::default()).unwrap();
        let driver = veth.right().run(bind);
        let mut endpoint = endpoint(name, Shard::ONLY, driver.now());
        endpoint.connect(driver.now(), Peer { addr, id: Some(id) }, Via(0)).unwrap();
        Runner::new(driver, endpoint, Talker { asks: true, ..Talker::default() })
    };
    (1..=CLIENTS).map(ask).collect()
}

fn from(veth: &Veth) -> SocketAddr {
    SocketAddr::new(veth.right().ipv4().into(), 0)
}

/// Runs both until every client has its answer.
fn converse(servers: &mut Servers, clients: &mut Clients) {
    let until = Std::now() + PATIENCE;
    while clients.iter_mut().any(|client| client.app_mut().heard.is_empty()) {
        for server in &mut *servers {
            server.step().unwrap();
        }
        for client in &mut *clients {
            client.step().unwrap();
        }
        assert!(Std::now() < until, "not every client has its answer");
    }
}

/// A packet of a client's session that was never sent.
fn packet(client: Runner<MioDriver, Talker>) -> Vec<u8> {
    let (driver, mut endpoint, client) = client.into_parts();
    let mut session = endpoint.session(client.session.unwrap()).unwrap();
    session.send_datagram(Bytes::from_static(b"moved")).unwrap();
    let mut room = [0; 1472];
    let mut queue = OneShot::new(&mut room);
    let _ = endpoint.poll_transmit(driver.now(), &mut queue, &mut NoSource, Budget(1));
    queue.take().unwrap().1.to_vec()
}

#[test]
fn sessions_live_with_the_driver_of_the_queue_that_their_flow_has() {
    let Some(veth) = hosts(|options| options.queues = 2) else { return };
    let mut servers = servers(&veth);
    let mut clients = clients(&veth, servers[0].driver().local_addr());
    converse(&mut servers, &mut clients);
    let shares: Vec<_> = servers.iter_mut().map(|server| server.app_mut().heard.len()).collect();
    assert_eq!(shares.iter().sum::<usize>(), usize::from(CLIENTS));
    assert!(shares.iter().all(|&share| share > 0), "one queue has all flows: {shares:?}");
    for server in &mut servers {
        assert_eq!(server.endpoint_mut().stats().dropped(), 0, "each datagram arrived at its shard");
    }
}

#[test]
fn a_packet_in_another_queue_says_whose_it_is() {
    let Some(veth) = hosts(|options| options.queues = 2) else { return };
    let mut servers = servers(&veth);
    let addr = servers[0].driver().local_addr();
    let mut clients = clients(&veth, addr);
    converse(&mut servers, &mut clients);
    let packet = packet(clients.remove(0));
    let owner = Endpoint::shard_of(&packet, 2).unwrap();
    let mut drivers: Vec<_> = servers.into_iter().map(|server| server.into_parts().0).collect();
    let until = Std::now() + PATIENCE;
    let mut queues = [false; 2];
    while queues != [true; 2] {
        // From each port it may have another queue.
        let from = from(&veth);
        let moved = veth.right().run(move || UdpSocket::bind(from).unwrap());
        moved.send_to(&packet, addr).unwrap();
        let mut owners = Vec::new();
        while owners.is_empty() {
            for (driver, queue) in drivers.iter_mut().zip(&mut queues) {
                let see = |_: &RxMeta, data: &mut [u8]| {
                    if data == packet {
                        *queue = true;
                        owners.push(Endpoint::shard_of(data, 2));
                    }
                };
                driver.recv(1, see).unwrap();
            }
            assert!(Std::now() < until, "the moved packet did not arrive");
        }
        assert_eq!(owners, [Some(owner)]);
    }
}
