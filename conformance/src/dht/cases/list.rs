//! Every DHT case: its clauses, and where the bench's addresses have to lie.

/// Hands the cases to a macro: group { name: clauses, doors; … } …
#[doc(hidden)]
#[macro_export]
macro_rules! __dht_cases {
    ($($then:tt)*) => {
        $($then)*! {
            requests {
                a_ping_is_answered_with_its_transaction_and_a_token: "PROTO §14.2, §14.3, §14.4", Alike;
                a_request_without_a_token_has_1200_bytes: "PROTO §14.5, §14.6", Alike;
                a_token_is_good_at_its_address_alone: "PROTO §14.5", Alike;
                malformed_requests_are_dropped: "PROTO §14.4", Alike;
                malformed_headers_are_dropped: "PROTO §14.3", Alike;
                an_altered_request_is_dropped: "PROTO §14.2, §12.14", Alike;
                a_request_for_somebody_else_is_dropped: "PROTO §14.2, §12.14", Alike;
                a_datagram_of_1201_bytes_is_dropped: "PROTO §14.2", Alike;
                a_request_played_back_gets_no_more_bytes_than_it_has: "PROTO §14.5", Alike;
            }
            records {
                a_value_is_stored_and_found: "PROTO §14.12, §14.13", Alike;
                nothing_is_kept_without_a_write_token: "PROTO §14.12", Alike;
                a_signed_record_gives_way_to_a_higher_number_alone: "PROTO §14.13", Alike;
                what_its_owner_did_not_sign_is_refused: "PROTO §14.13, §12.9", Alike;
                a_condition_has_to_hold: "PROTO §14.4, §14.13", Alike;
                a_provider_is_named_as_it_asked: "PROTO §14.13, §14.4", Alike;
            }
            contacts {
                who_only_asks_is_not_named_until_it_answers: "PROTO §14.8, §14.10", Alike;
                who_has_not_proven_its_address_is_not_pinged: "PROTO §14.5, §14.8", Alike;
                who_answers_a_request_without_a_token_is_pinged_with_its_own: "PROTO §14.8", Alike;
                an_answer_from_elsewhere_or_of_another_makes_no_contact: "PROTO §14.7", Alike;
                answers_to_nothing_are_ignored: "PROTO §14.6, §14.7", Alike;
                a_malformed_answer_does_not_count: "PROTO §14.4, §14.7", Alike;
                four_answers_to_a_request_are_opened: "PROTO §14.6", Alike;
                who_gets_a_token_asks_again_once: "PROTO §14.6, §14.7", Alike;
                a_private_address_is_not_named_to_a_public_one: "PROTO §14.10", PrivateFront;
                a_list_of_21_nodes_is_dropped: "PROTO §14.4", Alike;
            }
        }
    };
}
