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
            tx {
                an_idle_queue_lends_every_size: "DRV §3.1", Level::Must;
                a_commit_may_be_shorter_than_its_reservation: "DRV §3.2", Level::Must;
                a_reservation_without_a_commit_costs_nothing: "DRV §3.3", Level::Must;
                a_commit_without_a_reservation_does_nothing: "DRV §3.4", Level::Must;
                the_promised_slots_are_there: "DRV §3.5", Level::Must;
                a_full_queue_lends_nothing_and_recovers: "DRV §3.6", Level::Must;
                nothing_leaves_before_a_flush: "DRV §3.7", Level::Must;
                order_is_kept: "DRV §3.8", Level::Must;
                unequal_sizes_stay_apart: "DRV §3.9", Level::Must;
                changing_destinations_stay_apart: "DRV §3.9", Level::Must;
                changing_marks_stay_apart: "DRV §3.9", Level::IfClaimed(Claim::Ecn);
                more_than_a_batch_crosses: "DRV §3.10", Level::Must;
                committed_bytes_do_not_change: "DRV §3.11", Level::Must;
                an_unsendable_datagram_goes_alone: "DRV §3.12", Level::Must;
                a_datagram_that_is_too_long_is_dropped: "DRV §3.12 and §4.2", Level::Must;
                a_full_network_holds_datagrams_back: "DRV §3.13", Level::Must;
                a_chosen_source_is_used: "DRV §3.14", Level::IfClaimed(Claim::LocalIp);
                a_foreign_source_is_never_replaced: "DRV §3.14", Level::IfClaimed(Claim::LocalIp);
                an_answer_takes_the_way_back: "DRV §3.15", Level::Must;
                a_datagram_longer_than_the_path_is_dropped: "DRV §3.16", Level::IfClaimed(Claim::DontFragment);
            }
            time {
                the_clock_never_goes_back: "DRV §5.1", Level::Must;
                the_clock_keeps_real_time: "DRV §5.2", Level::Must;
                the_clock_is_fine: "DRV §5.3", Level::Should;
            }
            accounting {
                caps_are_sane: "DRV §1.1", Level::Must;
                caps_and_address_stay: "DRV §1.2 and §1.3", Level::Must;
                committed_is_sent_dropped_or_in_flight: "DRV §4.1", Level::Must;
                what_is_reported_as_sent_arrives: "DRV §4.2", Level::Must;
                an_idle_flush_reports_nothing: "DRV §4.3", Level::Must;
                an_idle_flush_makes_no_system_call: "DRV §4.4", Level::Should;
                a_batch_takes_fewer_system_calls: "DRV §4.5", Level::IfClaimed(Claim::Segmentation);
                what_is_too_long_is_told: "DRV §4.6", Level::IfClaimed(Claim::DontFragment);
            }
            soak {
                many_datagrams_cross_both_ways: "DRV §2.1 and §8.2", Level::Must;
                nothing_allocates: "DRV §8.1", Level::Must;
                descriptors_come_back: "DRV §8.3", Level::Must;
                memory_comes_back: "DRV §8.3", Level::Must;
                a_driver_is_dropped_with_datagrams_waiting: "DRV §8.4", Level::Must;
            }
            proto {
                a_session_opens_and_closes: "DRV §9.1", Level::Must;
                a_stream_arrives: "DRV §9.1", Level::Must;
                datagrams_of_a_session_arrive: "DRV §9.1", Level::Must;
                a_bad_network_is_made_good: "DRV §9.1", Level::Must;
                a_session_in_real_time: "DRV §9.2", Level::Must;
            }
        }
    };
}

/// Hands the cases of drivers that park a thread to a macro.
#[doc(hidden)]
#[macro_export]
macro_rules! __park_cases {
    ($($then:tt)*) => {
        $($then)*! {
            park {
                a_deadline_is_never_early: "DRV §6.1", Level::Must;
                a_deadline_that_has_passed_ends_a_park_at_once: "DRV §6.2", Level::Must;
                a_deadline_is_met_closely: "DRV §6.3", Level::Should;
                what_has_arrived_ends_a_park: "DRV §6.4", Level::Must;
                what_arrives_ends_a_park: "DRV §6.4", Level::Must;
                a_spent_budget_ends_the_next_park: "DRV §6.5", Level::Must;
                an_unpark_ends_the_running_park: "DRV §6.6", Level::Must;
                an_unpark_ends_the_next_park_once: "DRV §6.6", Level::Must;
                an_unpark_beside_traffic_is_reported: "DRV §6.7", Level::Must;
                an_idle_wire_lets_a_thread_park: "DRV §6.8", Level::Must;
                room_ends_a_park: "DRV §6.9", Level::Must;
                no_wake_up_is_lost: "DRV §6.4 and §6.6", Level::Must;
                sessions_run_on_two_threads: "DRV §9.2", Level::Must;
                parking_allocates_nothing: "DRV §8.1", Level::Must;
            }
        }
    };
}

/// Hands the cases of drivers that nest in another loop to a macro.
#[doc(hidden)]
#[macro_export]
macro_rules! __pollable_cases {
    ($($then:tt)*) => {
        $($then)*! {
            poll {
                a_level_stands_while_there_is_something: "DRV §7.1", Level::Must;
                an_edge_comes_with_every_arrival: "DRV §7.2", Level::Must;
                room_is_asked_for_only_when_it_is_missing: "DRV §7.3", Level::Must;
                the_descriptor_stays_and_nests: "DRV §7.4", Level::Must;
            }
        }
    };
}
