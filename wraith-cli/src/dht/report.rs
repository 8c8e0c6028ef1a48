//! What the commands of the DHT print of their answers.

use wraith_dht_proto::{Conflict, Kind};

use super::events::{AnnouncedEvent, FoundEvent, StoredEvent, ValueEvent};
use super::questions::{Announce, FindPeer, FindProviders, Found, Get, Put};
use super::verbs::{lines, write_value};
use crate::address::Target;
use crate::failure::{Result, failed};
use crate::output::Output;

/// An answer that people and programs are told.
pub(super) trait Told {
    /// Prints it.
    ///
    /// # Errors
    /// There is none.
    fn tell(&self, output: Output) -> Result<()>;
}

impl Told for Put {
    fn tell(&self, output: Output) -> Result<()> {
        let (nodes, conflict) = self.stored.unwrap_or_default();
        let seq = self.signer.as_ref().map(|signer| signer.seq);
        // Whoever refused it for an equal or higher number does not give it to anybody.
        let conflict = conflict.filter(|conflict| {
            nodes == 0 || self.expected.is_some() || seq.is_some_and(|seq| conflict.seq >= seq)
        });
        if let Some(conflict) = conflict {
            outvoted(nodes, conflict, self.expected, seq).map_err(failed)?;
        }
        if nodes == 0 {
            return Err(failed(
                "no node of the DHT keeps the record: they are full or did not answer; retry",
            ));
        }
        let key = self.with(|record| format!("{:?}", record.key())).unwrap_or_default();
        let peer = self.signer.as_ref().map(|signer| signer.identity.peer_id().to_string());
        let salt = self.signer.as_ref().map(|signer| signer.salt);
        output.result(&StoredEvent { key: &key, nodes: nodes.into(), peer, salt, seq }, &key);
        if !output.json {
            output.note(format_args!("kept by {}, for two hours", counted(nodes)));
        }
        if let Some(Conflict { nodes, seq }) = conflict {
            let who = counted(nodes);
            output
                .note(format_args!("{who} refused it and named the sequence number {seq}, without a proof"));
        }
        Ok(())
    }
}

impl Told for Get {
    fn tell(&self, output: Output) -> Result<()> {
        let Some(Found { value, signed, hops, .. }) = &self.found else {
            let what = if self.kinds == [Kind::Signed] {
                "such a record of that peer"
            } else {
                "a record under that key"
            };
            return Err(failed(format!(
                "no node of the DHT has {what}: it was never stored, or has expired; ask its owner to put it again"
            )));
        };
        write_value(value)?;
        output.event(&ValueEvent {
            key: format!("{:?}", self.key),
            bytes: value.len(),
            hops: Some(*hops),
            peer: signed.map(|(peer, ..)| peer.to_string()),
            salt: signed.map(|(_, salt, _)| salt),
            seq: signed.map(|(.., seq)| seq),
        });
        if let Some((peer, salt, seq)) = signed
            && !output.json
        {
            output.detail(format_args!("signed by {peer}, record {salt}, sequence number {seq}"));
        }
        Ok(())
    }
}

impl Told for Announce {
    fn tell(&self, output: Output) -> Result<()> {
        if self.nodes == 0 {
            return Err(failed(
                "no node of the DHT keeps the announcement: they are full or did not answer; retry",
            ));
        }
        let hash = format!("{:?}", self.key);
        let text = format!("where {hash} is was told to {}, for two hours", counted(self.nodes));
        output.result(&AnnouncedEvent { hash: &hash, nodes: Some(self.nodes) }, text);
        Ok(())
    }
}

impl Told for FindProviders {
    fn tell(&self, output: Output) -> Result<()> {
        if self.providers.is_empty() {
            return Err(failed(format!(
                "nobody announces {:?} on the DHT: its owner runs `wraith-cli send --announce`",
                self.key
            )));
        }
        tell(output, &self.providers, None);
        Ok(())
    }
}

impl Told for FindPeer {
    fn tell(&self, output: Output) -> Result<()> {
        let addresses =
            self.answered.iter().chain(self.said.iter().filter(|addr| Some(**addr) != self.answered));
        let targets: Vec<_> = addresses.map(|&addr| Target { id: self.peer, addr }).collect();
        if targets.is_empty() {
            return Err(failed(format!(
                "the DHT does not know where {} is: it runs no node, or under another id",
                self.peer
            )));
        }
        tell(output, &targets, self.answered.map(|addr| Target { id: self.peer, addr }));
        Ok(())
    }
}

/// Whether `nodes` that took a record are more than those that refused it; otherwise why it counts as refused.
///
/// Nobody proves the number of what is there, and one that lies must not make a put fail that all others took.
fn outvoted(
    nodes: u8,
    conflict: Conflict,
    expected: Option<u64>,
    seq: Option<u64>,
) -> std::result::Result<(), String> {
    if nodes > conflict.nodes {
        return Ok(());
    }
    let text = refusal(conflict.seq, expected, seq);
    Err(if nodes == 0 { text } else { format!("{text}; {} took this one all the same", counted(nodes)) })
}

/// Why a signed record with the number `seq` was not stored: a node has one with the number `conflict`, or none if that is 0;
/// and what to do.
fn refusal(conflict: u64, expected: Option<u64>, seq: Option<u64>) -> String {
    match expected {
        Some(0) if conflict == 0 && seq == Some(0) => {
            "--seq 0 replaces no record: leave --expected out if nothing is there, or give a higher --seq"
                .to_owned()
        }
        // One with the number 0 would have made way for a higher one.
        Some(expected) if conflict == 0 => format!(
            "there is no record with sequence number {expected}: look at what is there with `dht get --peer`, and leave \
             --expected out if that is nothing"
        ),
        Some(expected) if conflict != expected && conflict < u64::MAX => format!(
            "a record with sequence number {conflict} is there, not {expected}: look at it with `dht get --peer`, and give \
             --expected {conflict} and a higher --seq to replace it"
        ),
        _ => match conflict.checked_add(1) {
            Some(next) => format!(
                "a record with sequence number {conflict} is there: look at it with `dht get --peer`, and give --seq {next} \
                 to replace it"
            ),
            None => format!(
                "a record with sequence number {conflict} is there, the highest that there is: nothing replaces it; give \
                 another --salt"
            ),
        },
    }
}

/// So many nodes, in words.
pub(super) fn counted(nodes: u8) -> String {
    if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") }
}

fn tell(output: Output, targets: &[Target], answered: Option<Target>) {
    if !output.json {
        output.result(&(), lines(targets));
    }
    for target in targets {
        let Target { id, addr } = target;
        output.event(&FoundEvent {
            peer: Some(id.to_string()),
            address: addr.to_string(),
            target: Some(target.to_string()),
            answered: answered == Some(*target),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_refused_unless_more_nodes_took_it_than_refused_it() {
        let by = |nodes| Conflict { nodes, seq: u64::MAX };
        assert_eq!(outvoted(2, by(1), None, Some(1)), Ok(()));
        assert_eq!(outvoted(20, by(19), Some(4), Some(5)), Ok(()));
        let refused = outvoted(2, by(2), None, Some(1)).unwrap_err();
        assert!(refused.ends_with("; 2 nodes took this one all the same"), "{refused}");
        assert_eq!(outvoted(0, by(1), None, Some(1)), Err(refusal(u64::MAX, None, Some(1))));
    }

    #[test]
    fn a_refusal_says_what_is_there_and_a_number_that_is_taken() {
        let ends = |conflict, expected, start: &str, end: &str| {
            let text = refusal(conflict, expected, Some(1));
            assert!(text.starts_with(start) && text.ends_with(end), "{text}");
        };
        ends(5, None, "a record with sequence number 5 is there: ", "give --seq 6 to replace it");
        ends(5, Some(5), "a record with sequence number 5 is there: ", "give --seq 6 to replace it");
        ends(5, Some(4), "a record with sequence number 5 is there, not 4: ", "a higher --seq to replace it");
        ends(0, Some(4), "there is no record with sequence number 4: ", "if that is nothing");
        ends(0, Some(0), "there is no record with sequence number 0: ", "if that is nothing");
        let zero = refusal(0, Some(0), Some(0));
        assert!(
            zero.starts_with("--seq 0 replaces no record: ") && zero.ends_with("a higher --seq"),
            "{zero}"
        );
        ends(u64::MAX, Some(3), "a record with sequence number 18446744073709551615 is there, ", "--salt");
        ends(0, None, "a record with sequence number 0 is there: ", "give --seq 1 to replace it");
        ends(
            u64::MAX,
            None,
            &format!("a record with sequence number {} is there, ", u64::MAX),
            "another --salt",
        );
    }
}
