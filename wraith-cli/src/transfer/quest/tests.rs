use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::failure::failed;

/// What a network was asked and will answer.
#[derive(Default)]
struct Desk {
    questions: u32,
    answer: Option<Result<Vec<Candidate>>>,
}

struct Scripted(Rc<RefCell<Desk>>);

impl Network for Scripted {
    fn ask(&mut self) {
        self.0.borrow_mut().questions += 1;
    }

    fn answer(&mut self) -> Option<Result<Vec<Candidate>>> {
        self.0.borrow_mut().answer.take()
    }
}

fn at(millis: u64) -> Instant {
    Instant::MIN.saturating_add(Duration::from_millis(millis))
}

/// Without chance in its pauses.
fn quest(patience: u64) -> (Quest, Rc<RefCell<Desk>>) {
    let desk = Rc::default();
    let mut quest =
        Quest::new(vec![Box::new(Scripted(Rc::clone(&desk)))], Duration::from_secs(patience), at(0));
    quest.asked[0].backoff = Backoff::with_draw(PAUSE.0, longest_pause(Duration::from_secs(patience)), || 0);
    (quest, desk)
}

fn somebody() -> Candidate {
    Candidate { id: None, addr: "127.0.0.1:1".parse().unwrap() }
}

/// Nobody is known up to `to`, in seconds; when the network was asked.
fn ask(quest: &mut Quest, desk: &RefCell<Desk>, from: u64, to: u64) -> Vec<u64> {
    let mut asked = Vec::new();
    for second in from..to {
        let before = desk.borrow().questions;
        quest.turn(at(1_000 * second), true, false);
        if desk.borrow().questions > before {
            asked.push(second);
            desk.borrow_mut().answer = Some(Err(failed("nobody: wait")));
            quest.turn(at(1_000 * second), true, false);
        }
    }
    asked
}

#[test]
fn while_somebody_is_needed_a_network_is_asked_ever_more_seldom_until_the_patience_is_over() {
    let (mut quest, desk) = quest(400);
    assert_eq!(quest.wake_at(), Some(Instant::MIN));
    assert_eq!(ask(&mut quest, &desk, 0, 800), [0, 2, 6, 14, 30, 62, 122, 182, 242, 302, 362]);
    assert!(!quest.is_open(at(400_000)) && quest.is_open(at(399_999)));
}

#[test]
fn with_less_patience_pauses_are_shorter_so_that_whoever_comes_late_is_found() {
    for (patience, asked) in
        [(60, &[0, 2, 6, 14, 24, 34, 44, 54][..]), (20, &[0, 2, 6, 10, 14, 18]), (5, &[0, 2, 4]), (1, &[0])]
    {
        let (mut quest, desk) = quest(patience);
        assert_eq!(ask(&mut quest, &desk, 0, 400), asked, "{patience} s");
    }
}

#[test]
fn without_patience_it_is_asked_once_and_waited_for() {
    let (mut quest, desk) = quest(0);
    assert!(quest.is_open(at(0)));
    assert_eq!(quest.turn(at(0), true, false), Found::default());
    assert!(quest.is_open(at(30_000)), "it has not answered");
    assert_eq!(quest.wake_at(), None, "nothing is due before the answer");
    assert_eq!(quest.wait(failed("nobody was given"), at(1), false), None);
    assert_eq!(quest.take_failure(at(30_000)), None);
    desk.borrow_mut().answer = Some(Err(failed("nobody: wait")));
    assert_eq!(quest.turn(at(30_001), true, false), Found::default(), "the error says it");
    assert!(!quest.is_open(at(30_001)));
    assert_eq!(quest.take_failure(at(30_001)), Some(failed("nobody was given")));
    assert_eq!(quest.take_why(), Some(failed("nobody: wait")));
    assert_eq!(ask(&mut quest, &desk, 31, 300), [0_u64; 0]);
}

#[test]
fn people_are_told_once_that_it_is_asked_again_and_anew_after_somebody_was_named() {
    let (mut quest, desk) = quest(60);
    let mut turn = |millis, needed, others, answer| {
        desk.borrow_mut().answer = answer;
        quest.turn(at(millis), needed, others)
    };
    let nobody = || Some(Err(failed("nobody: wait")));
    let notes = |found: Found| found.notes;
    turn(0, true, false, None);
    assert_eq!(notes(turn(10, true, false, nobody())), ["nobody: wait; asking again for up to 60 s"]);
    turn(2_010, true, false, None);
    assert_eq!(notes(turn(2_020, true, false, nobody())), Vec::<String>::new());
    turn(6_020, true, false, None);
    let found = turn(6_030, true, false, Some(Ok(vec![somebody()])));
    assert_eq!(found, Found { candidates: vec![somebody()], notes: Vec::new() });
    turn(14_030, true, false, None);
    assert_eq!(notes(turn(14_040, false, true, nobody())), ["nobody: wait; going on without"]);
}

#[test]
fn of_several_reasons_the_last_one_of_somebody_who_was_there_is_kept_and_the_first_is_told() {
    let (mut quest, desk) = quest(60);
    assert_eq!(quest.wait(failed("no address: give one"), at(0), false), None);
    let told = Some("no answer from A: check; asking again for up to 60 s".to_owned());
    assert_eq!(quest.wait(failed("no answer from A: check"), at(1), true), told);
    assert_eq!(quest.wait(failed("no answer from B: check"), at(2), true), None);
    assert_eq!(quest.wait(failed("no address: give one"), at(3), false), None);
    assert_eq!(ask(&mut quest, &desk, 0, 61).len(), 8);
    assert_eq!(quest.take_failure(at(60_000)), Some(failed("no answer from B: check")));
    quest.end_wait();
    assert_eq!(quest.take_failure(at(60_000)), None);
}

#[test]
fn who_brings_something_is_enough_and_gives_patience_again() {
    let (mut quest, desk) = quest(60);
    assert_eq!(ask(&mut quest, &desk, 0, 3), [0, 2]);
    for second in 3..100 {
        quest.progress(at(1_000 * second), second);
        quest.turn(at(1_000 * second), false, true);
    }
    assert_eq!(desk.borrow().questions, 2, "asked though nobody was needed");
    // It was lost: the first pauses are short again.
    assert_eq!(ask(&mut quest, &desk, 100, 400), [100, 102, 106, 114, 124, 134, 144, 154]);
    quest.progress(at(400_000), 99);
    assert!(!quest.is_open(at(400_000)), "the content has not grown");
}

#[test]
fn time_in_which_somebody_brings_it_slowly_costs_no_patience_and_does_not_renew_it() {
    let (mut quest, desk) = quest(60);
    assert_eq!(ask(&mut quest, &desk, 0, 40), [0, 2, 6, 14, 24, 34]);
    for second in 40..1_000 {
        quest.turn(at(1_000 * second), false, true);
    }
    assert_eq!(ask(&mut quest, &desk, 1_000, 2_000), [1_000, 1_002, 1_006, 1_014]);
    assert_eq!(quest.wake_at(), None);
    assert!(!quest.is_open(at(1_020_000)));
}
