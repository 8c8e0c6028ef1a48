//! What the caller may choose.

use crate::wire::Checksums;

/// Settings of an [`XdpDriver`](crate::XdpDriver).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The network device, by its name.
    pub interface: String,
    /// The queue of the device. What arrives in others goes through the system's UDP socket: slower, never lost.
    /// Default: 0.
    pub queue: u32,
    /// Where the filter may stand. Default: [`Attach::Best`].
    pub attach: Attach,
    /// Who may copy. Default: [`Copies::Best`].
    pub copies: Copies,
    /// Frames to receive into, rounded up to a power of two, at most 65,536. Default: 2,048.
    pub receive_frames: u32,
    /// Datagrams that can be committed or on their way at a time, rounded up to a power of two, at most 65,536.
    /// Default: 512.
    pub slots: u32,
    /// How checksums of received datagrams are judged. Default: partial ones are accepted.
    pub checksums: Checksums,
}

/// Where the filter stands: in the driver of the device (native), or behind it in the kernel's generic hook.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Attach {
    /// In the device's driver where that can be, otherwise in the generic hook.
    #[default]
    Best,
    /// In the device's driver or not at all.
    Native,
    /// In the generic hook.
    Generic,
}

/// Whether the kernel copies frames between the device and the shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Copies {
    /// No copies where the device can do without, otherwise copies.
    #[default]
    Best,
    /// No copies or not at all.
    Never,
    /// Copies.
    Always,
}

impl Options {
    /// The defaults, on a device.
    pub fn new(interface: &str) -> Self {
        Self {
            interface: interface.to_owned(),
            queue: 0,
            attach: Attach::default(),
            copies: Copies::default(),
            receive_frames: 2048,
            slots: 512,
            checksums: Checksums::AcceptPartial,
        }
    }
}
