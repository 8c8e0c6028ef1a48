//! Handshakes over a bad link.

use wraith_proto::Event;
use wraith_sim::{Pair, Side};

use crate::common::{SECOND, both_connected, events, full};
use crate::crossing::lossy;

/// 200 seeds, or 1,000 on a full budget.
#[test]
fn a_dial_over_a_link_that_loses_a_third_makes_exactly_one_session() {
    let mut lost = 0;
    for seed in 0..if full() { 1000 } else { 200 } {
        let mut pair = Pair::new(lossy(seed));
        let left = pair.dial().expect("a free session");
        assert!(pair.run_until(both_connected, 30 * SECOND), "seed {seed}");
        // Late copies of INIT may begin handshakes that nobody finishes.
        pair.run_for(31 * SECOND);
        assert_eq!(events(&pair.left, left), [Event::Connected], "seed {seed}");
        assert_eq!((pair.left.host.events.len(), pair.right.host.events.len()), (1, 1), "seed {seed}");
        assert_eq!((pair.left.endpoint.sessions(), pair.right.endpoint.sessions()), (1, 1), "seed {seed}");
        lost += pair.link(Side::Right).counters().lost + pair.link(Side::Left).counters().lost;
    }
    assert!(lost > 200, "{lost}");
}
