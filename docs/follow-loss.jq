# Follows one lost packet through a trace; see TRACING.md.
#
#   tr -d '\036' < FILE | jq -nrf docs/follow-loss.jq                       the first packet that was overtaken
#   tr -d '\036' < FILE | jq -nrf docs/follow-loss.jq --argjson packet 120  this one

def ms: . * 1000 | round / 1000 | tostring + " ms";
def number: .data.header.packet_number;
def pieces: [.data.frames[]? | select(.frame_type == "stream")
    | {id: .stream_id, from: .offset, to: (.offset + .raw.length)}];
def shown: map("stream \(.id) bytes \(.from) to \(.to)") | join(", ");
def overlaps($lost): any(pieces[]; . as $piece
    | any($lost[]; .id == $piece.id and .from < $piece.to and $piece.from < .to));

[inputs] as $events
| ($events | map(select(.name == "quic:packet_lost"))) as $losses
| ($ARGS.named.packet
    // ($losses | map(select(.data.trigger == "reordering_threshold")) | first | number)) as $packet
| ($losses | map(select(number == $packet)) | first) as $loss
| ($events | map(select(.name == "quic:packet_sent" and .group_id == $loss.group_id))) as $sent
| ($sent | map(select(number == $packet)) | first) as $origin
| ($origin | pieces) as $lost
| ($sent | map(select(number > $packet and overlaps($lost)))) as $again
| "\($origin.time | ms): \($packet) sent, \($lost | shown)",
  "\($loss.time | ms): \($packet) lost, \($loss.data.trigger), \($loss.data.largest_acked) was acknowledged",
  ($again[] | "\(.time | ms): \(number) sent, \(pieces | shown)"),
  ($again[] | number as $n | $events[]
    | select(.name == "quic:packets_acked" and .group_id == $loss.group_id
        and (.data.packet_numbers | index($n)))
    | "\(.time | ms): \($n) acknowledged")
