//! Every broken driver, and the cases that have to reject it.

use std::sync::Arc;

use wraith_drivers::Park;
#[cfg(unix)]
use wraith_drivers::Pollable;

use super::{Broken, Sabotage};
use crate::harness::Harness;
use crate::suite::Suite;

/// One broken driver.
#[derive(Debug)]
pub struct Specimen<D> {
    /// The fault's type.
    pub name: &'static str,
    /// Cases that reject it, at least.
    pub rejected_by: &'static [&'static str],
    /// Runs cases against it.
    pub suite: Suite<Broken<D>>,
}

/// One for each line: the fault's type and the cases that reject it.
macro_rules! specimens {
    ($($fault:ident: $($case:literal),*;)*) => {
        vec![$(Specimen {
            name: stringify!($fault),
            rejected_by: &[$($case),*],
            suite: Suite::from_workshop(Arc::new(Sabotage::<H> {
                name: stringify!($fault),
                fault: || Box::new(super::$fault::default()),
            })),
        },)*]
    };
}

/// The wrapper without a fault around drivers of `H`: no case rejects it.
pub fn sound<H: Harness<Driver: Park + Send>>() -> Suite<Broken<H::Driver>> {
    let workshop = Sabotage::<H> { name: "Sound", fault: || Box::new(super::Sound) };
    Suite::from_workshop(Arc::new(workshop)).park()
}

/// Broken drivers around those of `H`.
pub fn specimens<H: Harness<Driver: Park + Send>>() -> Vec<Specimen<H::Driver>> {
    let all = [sending::<H>(), receiving::<H>(), others::<H>()].into_iter().flatten();
    all.map(|specimen| Specimen { suite: specimen.suite.park(), ..specimen }).collect()
}

fn sending<H: Harness>() -> Vec<Specimen<H::Driver>> {
    specimens! {
        DropsOnFull: "accounting/what_is_reported_as_sent_arrives", "tx/a_full_network_holds_datagrams_back";
        MergesUnequalSegments: "tx/unequal_sizes_stay_apart", "rx/every_size_crosses";
        LeaksReservation: "tx/a_reservation_without_a_commit_costs_nothing";
        ReusesInFlightBuffer: "tx/committed_bytes_do_not_change", "tx/order_is_kept";
        HidesPartialSend: "accounting/committed_is_sent_dropped_or_in_flight";
        SendsWholeReservation: "tx/a_commit_may_be_shorter_than_its_reservation";
        CommitsTwice: "tx/a_commit_without_a_reservation_does_nothing";
        NeverFull: "tx/a_full_queue_lends_nothing_and_recovers";
        RefusesLong: "tx/an_idle_queue_lends_every_size", "proto/a_session_opens_and_closes",
            "proto/a_session_in_real_time", "park/sessions_run_on_two_threads";
        ClipsLong: "tx/a_datagram_that_is_too_long_is_dropped";
        OverclaimsSlots: "tx/the_promised_slots_are_there";
        OverclaimsSegmentation: "accounting/a_batch_takes_fewer_system_calls";
        SendsBeforeFlush: "tx/nothing_leaves_before_a_flush";
        Reorders: "tx/order_is_kept";
        SendsTwice: "tx/order_is_kept", "rx/every_size_crosses";
        MergesDestinations: "tx/changing_destinations_stay_apart";
        MergesMarks: "tx/changing_marks_stay_apart";
        OverfillsBatches: "tx/more_than_a_batch_crosses";
        FailsOnUnsendable: "tx/an_unsendable_datagram_goes_alone";
        StopsAtUnsendable: "tx/an_unsendable_datagram_goes_alone";
        IgnoresSource: "tx/a_foreign_source_is_never_replaced";
        RefusesSource: "tx/a_chosen_source_is_used";
        TrustsVia: "tx/an_answer_takes_the_way_back";
        BlocksInFlush: "tx/a_full_network_holds_datagrams_back";
        RepeatsReports: "accounting/an_idle_flush_reports_nothing";
        CallsForNothing: "accounting/an_idle_flush_makes_no_system_call";
        LosesSlots: "soak/many_datagrams_cross_both_ways";
    }
}

fn receiving<H: Harness>() -> Vec<Specimen<H::Driver>> {
    specimens! {
        IgnoresBudget: "rx/the_budget_is_respected";
        HidesSpentBudget: "rx/what_a_budget_leaves_comes_later";
        AlwaysHasMore: "rx/an_empty_wire_returns_at_once";
        Miscounts: "rx/the_budget_is_respected", "rx/every_size_crosses";
        LendsJoined: "rx/joined_datagrams_are_cut_where_they_were_joined", "soak/many_datagrams_cross_both_ways";
        OverlapsSlices: "rx/a_lent_slice_is_the_callers";
        HidesTruncation: "rx/a_truncated_datagram_is_counted_and_not_lent";
        MapsSource: "rx/the_source_is_the_senders_address";
        GarblesIpv6: "rx/datagrams_cross_over_ipv6";
        ForgetsDestination: "rx/the_destination_is_the_local_address";
        ForgetsMarks: "rx/marks_arrive", "tx/changing_marks_stay_apart";
        BlocksOnEmpty: "rx/an_empty_wire_returns_at_once";
        SkipsEmpty: "rx/an_empty_datagram_crosses";
        FailsOnSilence: "rx/a_peer_that_is_gone_is_no_error";
        Corrupts: "rx/every_size_crosses", "soak/many_datagrams_cross_both_ways", "proto/a_stream_arrives",
            "proto/datagrams_of_a_session_arrive", "proto/a_bad_network_is_made_good";
        Allocates: "soak/nothing_allocates";
    }
}

fn others<H: Harness>() -> Vec<Specimen<H::Driver>> {
    specimens! {
        ClockGoesBack: "time/the_clock_never_goes_back";
        ClockIsSlow: "time/the_clock_keeps_real_time";
        ClockIsCoarse: "time/the_clock_is_fine";
        ClaimsNothing: "accounting/caps_are_sane";
        CapsWaver: "accounting/caps_and_address_stay";
        LeaksDescriptors: "soak/descriptors_come_back";
        LeaksMemory: "soak/memory_comes_back";
        LingersInDrop: "soak/a_driver_is_dropped_with_datagrams_waiting";
        WakesEarly: "park/a_deadline_is_never_early";
        WakesLate: "park/a_deadline_is_met_closely", "park/a_deadline_that_has_passed_ends_a_park_at_once";
        SleepsOverTraffic: "park/what_has_arrived_ends_a_park", "park/what_arrives_ends_a_park",
            "park/a_spent_budget_ends_the_next_park", "park/room_ends_a_park", "park/no_wake_up_is_lost";
        NoticesLate: "park/what_has_arrived_ends_a_park", "park/what_arrives_ends_a_park", "park/room_ends_a_park",
            "park/no_wake_up_is_lost";
        LosesUnparks: "park/an_unpark_ends_the_running_park", "park/no_wake_up_is_lost";
        RepeatsUnparks: "park/an_unpark_ends_the_next_park_once";
        ForgetsUnparkBesideTraffic: "park/an_unpark_beside_traffic_is_reported";
        Spins: "park/an_idle_wire_lets_a_thread_park";
        AllocatesInPark: "park/parking_allocates_nothing";
    }
}

/// Broken drivers that nest in another loop, around those of `H`.
#[cfg(unix)]
pub fn pollable_specimens<H: Harness<Driver: Pollable>>() -> Vec<Specimen<H::Driver>> {
    let all: Vec<Specimen<H::Driver>> = specimens! {
        HidesTooLong: "accounting/what_is_too_long_is_told";
        ClipsToPath: "tx/a_datagram_longer_than_the_path_is_dropped";
        WantsRoomAlways: "poll/room_is_asked_for_only_when_it_is_missing";
        AlwaysReadable: "poll/a_level_stands_while_there_is_something";
        NeverReadable: "poll/an_edge_comes_with_every_arrival", "poll/the_descriptor_stays_and_nests",
            "poll/a_level_stands_while_there_is_something";
    };
    all.into_iter().map(|specimen| Specimen { suite: specimen.suite.pollable(), ..specimen }).collect()
}
