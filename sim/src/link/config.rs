//! What a link does to datagrams.

use std::time::Duration;

/// Properties of one direction of a path; start from a preset. Probabilities are in millionths (ppm).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LinkConfig {
    /// Propagation delay.
    pub latency: Duration,
    /// Random additional delay, uniform from zero; it never changes the order.
    pub jitter: Duration,
    /// How datagrams are lost behind the queue.
    pub loss: Loss,
    /// Probability that a datagram is held back by `reorder_delay`, so that later ones overtake it.
    pub reorder: u32,
    /// Additional delay of the datagrams held back.
    pub reorder_delay: Duration,
    /// Probability that a datagram arrives twice.
    pub duplicate: u32,
    /// Bits per second of datagram bytes; `None` is infinitely fast and has no queue.
    pub rate: Option<u64>,
    /// Bytes that may wait for the rate, the datagram being sent included; more are dropped at the tail.
    ///
    /// An idle link always takes one datagram.
    pub queue_bytes: usize,
    /// Largest datagram that passes, in bytes of UDP payload; larger ones vanish without a trace.
    pub mtu: usize,
    /// Waiting bytes from which ECN-capable datagrams are marked.
    pub ecn_mark_threshold: Option<usize>,
    /// Datagrams in flight for which memory is taken at once; a link that carries more grows.
    pub slots: usize,
}

/// How datagrams are lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Loss {
    /// Each with this probability, independently.
    Random(u32),
    /// In bursts.
    Burst(GilbertElliott),
}

/// The two-state loss model of Gilbert and Elliott. Probabilities are in millionths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GilbertElliott {
    /// Probability that a datagram turns the good state bad.
    pub to_bad: u32,
    /// Probability that a datagram turns the bad state good; 1,000,000 over it is the mean burst.
    pub to_good: u32,
    /// Loss in the good state.
    pub loss_good: u32,
    /// Loss in the bad state.
    pub loss_bad: u32,
}

impl LinkConfig {
    /// No delay, no loss, no limit but the 65,527 bytes of UDP over IPv6.
    pub const fn perfect() -> Self {
        Self {
            latency: Duration::ZERO,
            jitter: Duration::ZERO,
            loss: Loss::Random(0),
            reorder: 0,
            reorder_delay: Duration::ZERO,
            duplicate: 0,
            rate: None,
            queue_bytes: usize::MAX,
            mtu: 65_527,
            ecn_mark_threshold: None,
            slots: 0,
        }
    }

    /// 1 Gbit/s Ethernet: 0.1 ms, 1,472 bytes, a queue of 256 KiB.
    pub const fn lan() -> Self {
        Self::perfect()
            .with_latency(Duration::from_micros(100))
            .with_rate(Some(1_000_000_000))
            .with_queue_bytes(256 << 10)
            .with_mtu(1472)
    }

    /// A home connection: 100 Mbit/s, 20 ms with 1 ms of jitter, a queue of 40 ms.
    pub const fn broadband() -> Self {
        Self::perfect()
            .with_latency(Duration::from_millis(20))
            .with_jitter(Duration::from_millis(1))
            .with_rate(Some(100_000_000))
            .with_queue_bytes(500_000)
            .with_mtu(1472)
    }

    /// A mobile network: 20 Mbit/s, 50 ms with 20 ms of jitter, bursts of loss (0.5 %), a deep queue.
    pub const fn mobile() -> Self {
        Self::perfect()
            .with_latency(Duration::from_millis(50))
            .with_jitter(Duration::from_millis(20))
            .with_burst_loss(GilbertElliott {
                to_bad: 2000,
                to_good: 300_000,
                loss_good: 0,
                loss_bad: 750_000,
            })
            .with_rate(Some(20_000_000))
            .with_queue_bytes(1_000_000)
            .with_mtu(1372)
    }

    /// A geostationary satellite: 50 Mbit/s, 300 ms, 0.1 % of loss.
    pub const fn satellite() -> Self {
        Self::perfect()
            .with_latency(Duration::from_millis(300))
            .with_loss(1000)
            .with_rate(Some(50_000_000))
            .with_queue_bytes(2_000_000)
            .with_mtu(1432)
    }

    /// Everything that can go wrong, often: 5 % of loss, 5 % held back, 2 % twice.
    pub const fn hostile() -> Self {
        Self::perfect()
            .with_latency(Duration::from_millis(10))
            .with_jitter(Duration::from_millis(5))
            .with_loss(50_000)
            .with_reorder(50_000, Duration::from_millis(15))
            .with_duplicate(20_000)
            .with_mtu(1472)
    }

    /// Sets independent loss, in millionths.
    #[must_use]
    pub const fn with_loss(mut self, ppm: u32) -> Self {
        self.loss = Loss::Random(ppm);
        self
    }

    /// Sets loss in bursts.
    #[must_use]
    pub const fn with_burst_loss(mut self, model: GilbertElliott) -> Self {
        self.loss = Loss::Burst(model);
        self
    }

    /// Sets the probability, in millionths, and the additional delay of datagrams held back.
    #[must_use]
    pub const fn with_reorder(mut self, ppm: u32, delay: Duration) -> Self {
        self.reorder = ppm;
        self.reorder_delay = delay;
        self
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $setter:ident => $field:ident: $kind:ty,)*) => {
        impl LinkConfig {$(
            $(#[$doc])*
            #[must_use]
            pub const fn $setter(mut self, $field: $kind) -> Self {
                self.$field = $field;
                self
            }
        )*}
    };
}

setters! {
    /// Sets the propagation delay.
    with_latency => latency: Duration,
    /// Sets the largest random additional delay.
    with_jitter => jitter: Duration,
    /// Sets the probability of a second arrival, in millionths.
    with_duplicate => duplicate: u32,
    /// Sets the rate in bits per second.
    with_rate => rate: Option<u64>,
    /// Sets the bytes that may wait.
    with_queue_bytes => queue_bytes: usize,
    /// Sets the largest datagram that passes.
    with_mtu => mtu: usize,
    /// Sets the waiting bytes from which datagrams are marked.
    with_ecn_mark_threshold => ecn_mark_threshold: Option<usize>,
    /// Sets the datagrams in flight for which memory is taken at once.
    with_slots => slots: usize,
}
