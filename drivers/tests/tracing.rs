//! What a traced driver tells.

use std::io;
use std::sync::{Arc, Mutex};

use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;
use wraith_drivers::{Driver, MemoryDriver, MemoryOptions, Park, Trace, Wake};
use wraith_proto::{Ecn, TxMeta, TxQueue, Via};

/// The lines of a subscriber.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn take(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Runs `work` with a subscriber for events from `level` on.
fn listening(level: Level, work: impl FnOnce(&Lines)) {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(lines.clone())
        .with_ansi(false)
        .without_time()
        .finish();
    tracing::subscriber::with_default(subscriber, || work(&lines));
}

fn commit(driver: &mut impl Driver, meta: &TxMeta, data: &[u8]) {
    driver.tx().reserve(meta, data.len()).unwrap()[..data.len()].copy_from_slice(data);
    driver.tx().commit(data.len());
}

#[test]
fn datagrams_calls_and_parks_are_told_with_their_fields() {
    listening(Level::TRACE, |lines| {
        let (left, right) = MemoryDriver::pair(&MemoryOptions::default());
        let (mut left, mut right) = (Trace::new(left), Trace::new(right));
        let opened = lines.take();
        assert!(
            opened[0]
                .ends_with(r"DEBUG wraith::driver: opened addr=127.0.0.1:1 mode=memory max_datagram=1472")
        );
        let meta = TxMeta { to: right.local_addr(), from: None, via: Via(5), ecn: Ecn::Ect0 };
        commit(&mut left, &meta, b"hello");
        assert_eq!(left.flush().unwrap().sent, 1);
        let sent = [
            "TRACE wraith::driver: sent addr=127.0.0.1:1 peer=127.0.0.1:2 len=5 ecn=Ect0 via=5 local=None",
            "DEBUG wraith::driver: flushed addr=127.0.0.1:1 sent=1 dropped=0 in_flight=0 syscalls=0",
        ];
        assert_eq!(lines.take().iter().map(|line| line.trim()).collect::<Vec<_>>(), sent);

        let now = right.now();
        assert_eq!(right.park(Some(now)).unwrap(), Wake::Traffic);
        assert_eq!(right.recv(9, |_, data| assert_eq!(data, b"hello")).unwrap().datagrams, 1);
        let received = [
            "DEBUG wraith::driver: parked addr=127.0.0.1:2 wake=Traffic",
            "TRACE wraith::driver: received addr=127.0.0.1:2 peer=127.0.0.1:1 len=5 ecn=Ect0 via=0 local=Some(127.0.0.1)",
            "DEBUG wraith::driver: lent addr=127.0.0.1:2 datagrams=1 budget_hit=false",
        ];
        assert_eq!(lines.take().iter().map(|line| line.trim()).collect::<Vec<_>>(), received);
        left.flush().unwrap();
        right.recv(9, |_, _| {}).unwrap();
        assert_eq!(lines.take(), Vec::<String>::new(), "calls that do nothing are not told");
    });
}

#[test]
fn what_is_lost_is_a_warning() {
    listening(Level::WARN, |lines| {
        let options = MemoryOptions { slot_bytes: [1472, 100], ..MemoryOptions::default() };
        let (left, right) = MemoryDriver::pair(&options);
        let (mut left, mut right) = (Trace::new(left), Trace::new(right));
        let good = TxMeta { to: right.local_addr(), from: None, via: Via(0), ecn: Ecn::NotEct };
        let lost = TxMeta { to: "127.0.0.1:9".parse().unwrap(), ..good };
        commit(&mut left, &lost, b"nowhere");
        commit(&mut left, &good, &[7; 101]);
        left.flush().unwrap();
        right.recv(9, |_, _| {}).unwrap();
        let warnings = [
            "WARN wraith::driver: dropped addr=127.0.0.1:1 dropped=1",
            "WARN wraith::driver: truncated addr=127.0.0.1:2 truncated=1",
        ];
        assert_eq!(lines.take().iter().map(|line| line.trim()).collect::<Vec<_>>(), warnings);
    });
}
