//! Every protocol case: its clauses, the side of the subject, and how that is set up.

/// Hands the cases to a macro: group { name: clauses, side, variant; … } …
#[doc(hidden)]
#[macro_export]
macro_rules! __protocol_cases {
    ($($then:tt)*) => {
        $($then)*! {
            init {
                an_init_is_answered: "PROTO §4.1, §4.4, §4.7", Answers, Usual;
                a_repeated_init_gets_the_same_answer: "PROTO §4.10, §4.12", Answers, Usual;
                a_response_is_repeated_by_timer_within_three_times_the_bytes: "PROTO §4.10, §4.11", Answers, Usual;
                an_init_from_another_address_is_another_handshake: "PROTO §4.12", Answers, Usual;
                an_init_with_another_payload_is_another_handshake: "PROTO §4.12", Answers, Usual;
                an_altered_init_does_not_stop_the_genuine_one: "PROTO §4.3, §4.12", Answers, Usual;
                an_init_that_is_cut_off_is_dropped: "PROTO §2.5, §4.3", Answers, Usual;
                an_init_with_wrong_lengths_is_dropped: "PROTO §2.4", Answers, Usual;
                an_init_with_a_destination_is_dropped: "PROTO §2.8", Answers, Usual;
                unknown_forms_and_types_are_dropped: "PROTO §2.8", Answers, Usual;
                noise_is_dropped: "PROTO §2.8, §9.4", Answers, Usual;
                answers_to_no_dial_are_dropped: "PROTO §2.8", Answers, Usual;
                an_unknown_version_is_answered_with_versions: "PROTO §4.16, §2.6", Answers, Usual;
                a_malformed_init_is_refused: "PROTO §4.4, §1.1", Answers, Usual;
                unknown_parameters_in_init_are_ignored: "PROTO §4.4", Answers, Usual;
                an_init_with_another_id_inside_is_dropped: "PROTO §4.6", Answers, Usual;
                an_init_with_a_point_of_small_order_is_dropped: "PROTO §3.3", Answers, Usual;
                nothing_in_common_is_refused_with_its_code: "PROTO §4.5", Answers, Usual;
                the_choice_follows_from_both_lists: "PROTO §4.5, §3.7", Answers, Usual;
                an_initiator_may_come_down_from_another_version: "PROTO §4.6", Answers, Usual;
                strangers_need_a_cookie_under_load: "PROTO §4.13, §4.14", Answers, Usual;
            }
            finish {
                a_finish_is_confirmed_at_once: "PROTO §4.1, §4.2, §4.10", Answers, Usual;
                a_packet_behind_finish_is_taken: "PROTO §2.3, §4.18", Answers, Usual;
                a_repeated_finish_changes_nothing: "PROTO §4.10", Answers, Usual;
                a_finish_that_is_cut_off_is_dropped: "PROTO §4.2, §4.3", Answers, Usual;
                an_altered_finish_is_dropped_and_the_genuine_one_counts: "PROTO §4.2, §4.3", Answers, Usual;
                a_finish_with_wrong_lengths_is_dropped: "PROTO §2.4", Answers, Usual;
                a_finish_from_elsewhere_begins_the_session_where_response_went: "PROTO §4.11", Answers, Usual;
                a_malformed_finish_is_refused: "PROTO §4.4, §1.1", Answers, Usual;
                unknown_parameters_in_finish_are_ignored: "PROTO §4.4", Answers, Usual;
                a_finish_with_another_id_inside_is_refused: "PROTO §4.6", Answers, Usual;
                a_finish_with_other_lists_is_refused: "PROTO §4.6", Answers, Usual;
                a_finish_with_another_choice_is_refused: "PROTO §4.6", Answers, Usual;
                a_finish_of_another_identity_is_refused: "PROTO §4.7", Answers, Usual;
                an_unacceptable_identity_is_refused: "PROTO §3.2, §3.3", Answers, Usual;
                whoever_is_not_admitted_gets_close: "PROTO §4.17, §9.5", Answers, AdmitsNobody;
            }
            paths {
                a_challenge_is_answered_where_it_came_from: "PROTO §13.2", Answers, Usual;
                a_session_follows_a_peer_that_answers_from_its_new_address: "PROTO §13.1, §13.3, §13.4", Answers, Usual;
                a_session_stays_when_the_answer_comes_from_elsewhere: "PROTO §13.3", Answers, Usual;
            }
            packets {
                every_packet_that_asks_is_acknowledged: "PROTO §8.3, §5.4", Answers, Usual;
                datagrams_of_every_size_come_back_in_both_suites: "PROTO §2.1, §5.4, §5.6, §5.7", Answers, Usual;
                a_packet_that_is_cut_off_is_dropped: "PROTO §5.1, §5.8", Answers, Usual;
                an_altered_packet_is_dropped: "PROTO §5.8, §5.5", Answers, Usual;
                a_replayed_packet_is_dropped: "PROTO §5.9", Answers, Usual;
                the_replay_window_is_8192_numbers_wide: "PROTO §5.9", Answers, Usual;
                the_nearest_number_is_taken: "PROTO §5.3", Answers, Usual;
                a_reserved_bit_is_a_violation_once_the_tag_is_good: "PROTO §5.2, §5.8", Answers, Usual;
                the_ignored_bit_is_ignored: "PROTO §5.2", Answers, Usual;
                a_phase_without_a_key_is_dropped: "PROTO §5.10", Answers, Usual;
                an_unknown_id_is_dropped: "PROTO §9.4", Answers, Usual;
                the_whole_header_is_authenticated: "PROTO §5.5", Answers, Usual;
                a_packet_without_frames_means_nothing: "PROTO §5.4", Answers, Usual;
                lengths_that_do_not_add_up_are_a_violation: "PROTO §5.4, §9.5", Answers, Usual;
            }
            frames {
                unknown_extensions_are_ignored_and_acknowledged: "PROTO §6.2", Answers, Usual;
                frames_that_ask_for_nothing_get_nothing: "PROTO §6.1, §8.3", Answers, Usual;
                repeated_frames_are_harmless: "PROTO §6.1, §6.6, §7.2", Answers, Usual;
                many_frames_in_a_packet_all_count: "PROTO §5.4, §6.1", Answers, Usual;
                an_ack_comes_within_the_delay: "PROTO §8.3", Answers, Usual;
                two_packets_are_acknowledged_at_once: "PROTO §8.4", Answers, Usual;
                a_gap_is_acknowledged_at_once: "PROTO §8.4", Answers, Usual;
                no_more_than_64_packets_share_an_ack: "PROTO §8.4", Answers, Usual;
                an_ack_has_at_most_64_ranges_and_the_newest: "PROTO §8.5, §6.4", Answers, Usual;
                retired_ids_are_replaced: "PROTO §6.6, §5.11", Answers, Usual;
                ids_below_retire_prior_to_are_retired: "PROTO §6.6", Answers, Usual;
            }
            violations {
                unknown_frame_types_are_violations: "PROTO §6.2, §9.5", Answers, Usual;
                frames_that_are_cut_off_are_violations: "PROTO §6.1, §9.5", Answers, Usual;
                varints_that_are_too_long_are_violations: "PROTO §1.1, §9.5", Answers, Usual;
                codes_and_ids_over_32_bits_are_violations: "PROTO §6.3, §6.5", Answers, Usual;
                offsets_over_62_bits_are_violations: "PROTO §6.5", Answers, Usual;
                impossible_acks_are_violations: "PROTO §6.4, §8.7", Answers, Usual;
                ids_against_the_rules_are_violations: "PROTO §6.6", Answers, Usual;
                authorized_of_an_initiator_is_a_violation: "PROTO §6.7", Answers, Usual;
                streams_beyond_the_limits_are_violations: "PROTO §7.1", Answers, Usual;
                data_beyond_the_credit_are_a_violation: "PROTO §7.2", Answers, Usual;
                contradictory_final_sizes_are_violations: "PROTO §7.3", Answers, Usual;
                data_before_authorized_are_a_violation: "PROTO §6.7, §9.5", Answers, Asks;
                an_ack_of_a_skipped_number_is_a_violation: "PROTO §8.7", Answers, Usual;
            }
            rekey {
                an_exchange_leads_to_the_next_epoch: "PROTO §5.13, §5.14, §5.15", Answers, Usual;
                an_exchange_of_a_dialled_session_leads_to_the_next_epoch: "PROTO §5.13, §5.14, §5.15", Dials, Usual;
                epochs_follow_one_another_in_both_suites: "PROTO §5.2, §5.13, §5.15", Answers, Usual;
                the_subject_keeps_to_its_epoch_until_the_peer_has_its_share: "PROTO §5.16", Answers, Usual;
                a_packet_of_the_next_epoch_takes_the_subject_along: "PROTO §5.16", Answers, Usual;
                the_subject_begins_an_exchange_in_time: "PROTO §5.14", Answers, RekeysOften;
                a_repeated_share_changes_nothing: "PROTO §5.15, §6.1", Answers, Usual;
                shares_for_former_epochs_are_ignored: "PROTO §5.15", Answers, Usual;
                shares_against_the_rules_are_violations: "PROTO §5.15, §6.8, §3.3", Answers, Usual;
                another_share_for_the_newest_epoch_is_a_violation: "PROTO §5.15", Answers, Usual;
                a_share_before_a_packet_of_the_present_epoch_is_a_violation: "PROTO §5.15", Answers, Usual;
                late_packets_of_the_former_epoch_are_taken_for_a_while: "PROTO §5.17", Answers, Usual;
                no_more_than_two_former_epochs_have_keys: "PROTO §5.17", Answers, Usual;
            }
            streams {
                pieces_come_in_any_order_and_twice: "PROTO §7.1, §7.3, §7.4", Answers, Usual;
                a_stream_opens_those_below_it: "PROTO §7.1", Answers, Usual;
                streams_and_credit_may_be_used_to_the_last: "PROTO §7.1, §7.2", Answers, Usual;
                streams_that_end_make_room_for_others: "PROTO §7.1", Answers, Usual;
                the_subject_keeps_to_its_credit: "PROTO §7.2, §7.8", Answers, Usual;
                credit_is_raised_as_bytes_are_taken: "PROTO §7.2", Answers, Usual;
                a_stopped_stream_is_reset_with_the_same_code: "PROTO §7.8", Answers, Usual;
                a_stream_can_be_stopped: "PROTO §7.8", Answers, Usual;
                lost_data_come_again_in_new_packets: "PROTO §8.1", Answers, Usual;
                refused_bytes_are_reported_before_they_are_acknowledged: "PROTO §7.5", Answers, Usual;
                reported_bytes_come_again_after_a_grant: "PROTO §7.5", Answers, Usual;
                authorized_ends_the_wait: "PROTO §6.7", Answers, Asks;
            }
            life {
                a_close_is_not_answered: "PROTO §9.3", Answers, Usual;
                a_closed_session_answers_ever_more_seldom: "PROTO §9.3", Answers, Usual;
                a_close_by_both_ends_ends_in_silence: "PROTO §9.3", Answers, Usual;
                the_application_closes_with_its_code: "PROTO §9.3, §6.1", Answers, Usual;
                an_idle_session_ends_silently: "PROTO §9.1", Answers, Usual;
                packets_postpone_the_idle_end: "PROTO §9.1, §9.2", Answers, Usual;
                sessions_of_one_side_stand_side_by_side: "PROTO §4.9", Answers, Usual;
                dials_that_cross_leave_one_session: "PROTO §4.9", Dials, Usual;
            }
            dialled {
                an_init_is_complete: "PROTO §2.5, §3.7, §4.4", Dials, Usual;
                an_init_is_repeated_in_its_rhythm: "PROTO §4.10", Dials, Usual;
                a_cookie_is_carried_at_once: "PROTO §4.13, §4.10", Dials, Usual;
                cookies_without_end_make_no_flood: "PROTO §4.13", Dials, Usual;
                a_malformed_or_late_cookie_is_dropped: "PROTO §2.8, §4.13", Dials, Usual;
                versions_without_a_common_one_end_the_dial: "PROTO §4.16", Dials, Usual;
                versions_without_a_common_one_do_not_stop_the_peer: "PROTO §4.16", Dials, Usual;
                versions_with_the_version_tried_are_ignored: "PROTO §4.16, §2.8", Dials, Usual;
                its_own_init_is_dropped: "PROTO §4.12", Dials, Usual;
                a_finish_is_complete: "PROTO §4.1, §4.2, §4.4", Dials, Usual;
                a_finish_is_repeated_until_it_is_confirmed: "PROTO §4.10", Dials, Usual;
                a_dialled_session_carries_data: "PROTO §4.1, §5.4", Dials, Usual;
                no_data_come_before_authorized: "PROTO §6.7", Dials, Usual;
                a_dial_stays_with_its_address: "PROTO §4.11", Dials, Usual;
            }
            response {
                a_response_that_is_cut_off_is_dropped: "PROTO §2.5, §4.3", Dials, Usual;
                an_altered_response_is_dropped_and_the_genuine_one_counts: "PROTO §4.3", Dials, Usual;
                a_response_with_wrong_lengths_is_dropped: "PROTO §2.4", Dials, Usual;
                a_repeated_response_changes_nothing: "PROTO §4.10", Dials, Usual;
                a_malformed_response_is_refused_and_the_dial_goes_on: "PROTO §4.4, §1.1, §4.19", Dials, Usual;
                unknown_parameters_in_response_are_ignored: "PROTO §4.4", Dials, Usual;
                a_response_with_another_id_inside_is_dropped: "PROTO §4.6, §4.3", Dials, Usual;
                a_response_with_another_first_version_is_refused: "PROTO §4.6", Dials, Usual;
                a_choice_that_does_not_follow_is_refused: "PROTO §4.5", Dials, Usual;
                an_impostor_gets_no_finish_and_the_dial_goes_on: "PROTO §4.8, §4.19", Dials, Usual;
                impostors_without_end_end_the_dial: "PROTO §4.19", Dials, Usual;
                a_response_with_another_static_key_is_refused: "PROTO §4.7", Dials, Usual;
                an_unacceptable_responder_is_refused: "PROTO §3.2", Dials, Usual;
                a_response_with_a_point_of_small_order_is_dropped: "PROTO §3.3", Dials, Usual;
                a_refusal_ends_the_dial: "PROTO §4.5", Dials, Usual;
                a_refusal_of_an_impostor_does_not_end_the_dial: "PROTO §4.5, §4.19", Dials, Usual;
            }
        }
    };
}
