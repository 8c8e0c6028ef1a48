//! The fixed header of a delivery stream.

/// Length of a delivery header, bytes.
pub const DELIVERY_HEADER: usize = 16;

/// What stands before the bytes of a chunk on its stream (`PROTO §10.11`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeliveryHeader {
    /// The receiver's number of the transfer.
    pub transfer: u32,
    /// Length of the chunk, bytes; the stream ends behind them.
    pub len: u32,
    /// Number of the chunk in its content.
    pub chunk: u64,
}

impl DeliveryHeader {
    /// The header's bytes.
    pub fn encode(&self) -> [u8; DELIVERY_HEADER] {
        let mut bytes = [0; DELIVERY_HEADER];
        bytes[..4].copy_from_slice(&self.transfer.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.len.to_be_bytes());
        bytes[8..].copy_from_slice(&self.chunk.to_be_bytes());
        bytes
    }

    /// The header in `bytes`; its values mean something only beside the transfer that they name.
    pub fn decode(bytes: &[u8; DELIVERY_HEADER]) -> Self {
        let (words, chunk) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>());
        let [head, chunk] = [words, chunk].map(|half| u64::from_be_bytes(*half.unwrap_or(&[0; 8])));
        Self { transfer: (head >> 32) as u32, len: head as u32, chunk }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `PROTO §10.11`
    #[test]
    fn a_header_is_transfer_length_and_chunk_in_sixteen_bytes() {
        let header = DeliveryHeader { transfer: 0x0102_0304, len: 0x0010_0000, chunk: 0x00ff_eedd_ccbb_aa99 };
        let bytes = [1, 2, 3, 4, 0, 0x10, 0, 0, 0, 0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99];
        assert_eq!(header.encode(), bytes);
        assert_eq!(DeliveryHeader::decode(&bytes), header);
    }
}
