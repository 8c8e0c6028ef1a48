//! Every case with the clauses that it proves.

/// Hands the cases of every driver to a macro: group { name: clauses, level; … } …
#[doc(hidden)]
#[macro_export]
macro_rules! __driver_cases {
    ($($then:tt)*) => {
        $($then)*! {
            rx {
                every_size_crosses: "DRV §2.1", Level::Must;
                datagrams_cross_over_ipv6: "DRV §2.1 and §2.8", Level::Must;
                joined_datagrams_are_cut_where_they_were_joined: "DRV §2.2", Level::IfClaimed(Claim::Coalescing);
                a_lent_slice_is_the_callers: "DRV §2.3", Level::Must;
                the_budget_is_respected: "DRV §2.4", Level::Must;
                what_a_budget_leaves_comes_later: "DRV §2.5", Level::Must;
                an_empty_wire_returns_at_once: "DRV §2.6", Level::Must;
                a_truncated_datagram_is_counted_and_not_lent: "DRV §2.7", Level::Must;
                the_source_is_the_senders_address: "DRV §2.8", Level::Must;
                the_destination_is_the_local_address: "DRV §2.9", Level::IfClaimed(Claim::LocalIp);
                marks_arrive: "DRV §2.10", Level::IfClaimed(Claim::Ecn);
                a_peer_that_is_gone_is_no_error: "DRV §2.11", Level::Must;
                an_empty_datagram_crosses: "DRV §2.12", Level::Should;
            }
        }
    };
}
