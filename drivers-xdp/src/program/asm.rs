//! An assembler for what the filter needs of BPF (RFC 9669), one method to an instruction.

/// A register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reg {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
}

/// How much a load takes: RFC 9669 §5, with the bits of its opcode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Width {
    Byte = 0x10,
    Half = 0x08,
    Word = 0x00,
}

/// One instruction, or half of a wide one (RFC 9669 §3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Instruction {
    pub(super) opcode: u8,
    pub(super) destination: Reg,
    pub(super) source: Reg,
    pub(super) offset: i16,
    pub(super) immediate: i32,
}

/// A place to jump to, ahead of the jump.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Label(usize);

/// What was assembled.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) instructions: Vec<Instruction>,
    /// The instruction that loads the map, whose number is filled in when the program is loaded.
    pub(super) map_at: usize,
}

#[derive(Debug, Default)]
pub(super) struct Assembler {
    instructions: Vec<Instruction>,
    map_at: Option<usize>,
    /// Where each label is bound.
    labels: Vec<Option<usize>>,
    /// Jumps, and where they go.
    jumps: Vec<(usize, Label)>,
}

/// Classes of instructions (RFC 9669 §3.3).
const LD: u8 = 0x00;
const LDX: u8 = 0x01;
const ALU: u8 = 0x04;
const JMP: u8 = 0x05;
const JMP32: u8 = 0x06;
const ALU64: u8 = 0x07;
/// The other operand is a register, not the immediate (RFC 9669 §4).
const REGISTER: u8 = 0x08;
/// Arithmetic (RFC 9669 §4.1).
const ADD: u8 = 0x00;
const AND: u8 = 0x50;
const MOV: u8 = 0xb0;
/// To big-endian, as the operand "register" says of it (RFC 9669 §4.2).
const END: u8 = 0xd0;
/// Jumps (RFC 9669 §4.3).
const JA: u8 = 0x00;
const JEQ: u8 = 0x10;
const JGT: u8 = 0x20;
const JNE: u8 = 0x50;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;
/// Loads from memory, and of 64 bits of immediates (RFC 9669 §5).
const MEM: u8 = 0x60;
const DOUBLE_WORD: u8 = 0x18;

impl Assembler {
    /// A label that is to be bound once.
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Lets `label` stand for the next instruction.
    pub(super) fn bind(&mut self, label: Label) {
        let bound = self.labels[label.0].replace(self.instructions.len());
        assert_eq!(bound, None, "a label bound twice");
    }

    /// to = from
    pub(super) fn copy(&mut self, to: Reg, from: Reg) {
        self.put(ALU64 | MOV | REGISTER, to, from, 0, 0);
    }

    /// to = value
    pub(super) fn set(&mut self, to: Reg, value: i32) {
        self.put(ALU64 | MOV, to, Reg::R0, 0, value);
    }

    /// to += value
    pub(super) fn add(&mut self, to: Reg, value: i32) {
        self.put(ALU64 | ADD, to, Reg::R0, 0, value);
    }

    /// to &= value
    pub(super) fn and(&mut self, to: Reg, value: i32) {
        self.put(ALU64 | AND, to, Reg::R0, 0, value);
    }

    /// The lower 16 bits, read in network order.
    pub(super) fn swap_16(&mut self, reg: Reg) {
        self.put(ALU | END | REGISTER, reg, Reg::R0, 0, 16);
    }

    /// to = *(base + offset), with zeros in front
    pub(super) fn load(&mut self, width: Width, to: Reg, base: Reg, offset: i16) {
        self.put(LDX | MEM | width as u8, to, base, offset, 0);
    }

    /// to = the map of sockets
    pub(super) fn load_map(&mut self, to: Reg) {
        let before = self.map_at.replace(self.instructions.len());
        assert_eq!(before, None, "a map loaded twice");
        self.put(LD | DOUBLE_WORD, to, Reg::R0, 0, 0);
        self.put(0, Reg::R0, Reg::R0, 0, 0);
    }

    pub(super) fn jump(&mut self, to: Label) {
        self.jump_if(JMP | JA, Reg::R0, Reg::R0, 0, to);
    }

    /// Jumps if `a` > `b`, both unsigned.
    pub(super) fn jump_if_above(&mut self, a: Reg, b: Reg, to: Label) {
        self.jump_if(JMP | JGT | REGISTER, a, b, 0, to);
    }

    /// Jumps if the lower 32 bits of `a` are above `value`.
    pub(super) fn jump_if_above_value(&mut self, a: Reg, value: u32, to: Label) {
        self.jump_if(JMP32 | JGT, a, Reg::R0, value.cast_signed(), to);
    }

    /// Jumps if the lower 32 bits of `a` are `value`. To 64 bits an immediate would extend its sign.
    pub(super) fn jump_if_equal(&mut self, a: Reg, value: u32, to: Label) {
        self.jump_if(JMP32 | JEQ, a, Reg::R0, value.cast_signed(), to);
    }

    /// Jumps if the lower 32 bits of `a` are not `value`.
    pub(super) fn jump_unless_equal(&mut self, a: Reg, value: u32, to: Label) {
        self.jump_if(JMP32 | JNE, a, Reg::R0, value.cast_signed(), to);
    }

    /// Calls a function of the kernel's with R1 to R5; its answer is in R0.
    pub(super) fn call(&mut self, helper: i32) {
        self.put(JMP | CALL, Reg::R0, Reg::R0, 0, helper);
    }

    pub(super) fn exit(&mut self) {
        self.put(JMP | EXIT, Reg::R0, Reg::R0, 0, 0);
    }

    /// Fills in how far the jumps go.
    pub(super) fn finish(mut self) -> Code {
        for (at, label) in self.jumps {
            let target = self.labels[label.0].expect("a label that is bound");
            let forward = target.checked_sub(at + 1).expect("a jump ahead");
            self.instructions[at].offset = i16::try_from(forward).expect("a jump of less than 2^15");
        }
        Code { instructions: self.instructions, map_at: self.map_at.expect("a map") }
    }

    fn jump_if(&mut self, opcode: u8, a: Reg, b: Reg, value: i32, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.put(opcode, a, b, 0, value);
    }

    fn put(&mut self, opcode: u8, destination: Reg, source: Reg, offset: i16, immediate: i32) {
        self.instructions.push(Instruction { opcode, destination, source, offset, immediate });
    }
}

impl Instruction {
    /// As the kernel of this machine takes it.
    pub(super) fn to_bytes(self) -> [u8; 8] {
        let (low, high) = if cfg!(target_endian = "little") {
            (self.destination, self.source)
        } else {
            (self.source, self.destination)
        };
        let [o0, o1] = self.offset.to_ne_bytes();
        let [i0, i1, i2, i3] = self.immediate.to_ne_bytes();
        [self.opcode, (high as u8) << 4 | low as u8, o0, o1, i0, i1, i2, i3]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(code: &Code) -> Vec<[u8; 8]> {
        code.instructions.iter().map(|instruction| instruction.to_bytes()).collect()
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn instructions_are_encoded_as_rfc_9669_says() {
        let mut asm = Assembler::default();
        let end = asm.label();
        asm.copy(Reg::R6, Reg::R1);
        asm.set(Reg::R3, 2);
        asm.add(Reg::R4, 42);
        asm.and(Reg::R5, 0xf0);
        asm.swap_16(Reg::R5);
        asm.load(Width::Byte, Reg::R5, Reg::R2, 14);
        asm.load(Width::Half, Reg::R5, Reg::R2, 12);
        asm.load(Width::Word, Reg::R2, Reg::R1, 4);
        asm.load_map(Reg::R1);
        asm.jump(end);
        asm.jump_if_above(Reg::R4, Reg::R3, end);
        asm.jump_if_above_value(Reg::R5, 1480, end);
        asm.jump_if_equal(Reg::R5, 0xffff_fffe, end);
        asm.jump_unless_equal(Reg::R5, 17, end);
        asm.call(51);
        asm.bind(end);
        asm.exit();
        let code = asm.finish();
        assert_eq!(code.map_at, 8);
        assert_eq!(
            bytes(&code),
            [
                [0xbf, 0x16, 0, 0, 0, 0, 0, 0],
                [0xb7, 0x03, 0, 0, 2, 0, 0, 0],
                [0x07, 0x04, 0, 0, 42, 0, 0, 0],
                [0x57, 0x05, 0, 0, 0xf0, 0, 0, 0],
                [0xdc, 0x05, 0, 0, 16, 0, 0, 0],
                [0x71, 0x25, 14, 0, 0, 0, 0, 0],
                [0x69, 0x25, 12, 0, 0, 0, 0, 0],
                [0x61, 0x12, 4, 0, 0, 0, 0, 0],
                [0x18, 0x01, 0, 0, 0, 0, 0, 0],
                [0; 8],
                [0x05, 0x00, 5, 0, 0, 0, 0, 0],
                [0x2d, 0x34, 4, 0, 0, 0, 0, 0],
                [0x26, 0x05, 3, 0, 0xc8, 0x05, 0, 0],
                [0x16, 0x05, 2, 0, 0xfe, 0xff, 0xff, 0xff],
                [0x56, 0x05, 1, 0, 17, 0, 0, 0],
                [0x85, 0x00, 0, 0, 51, 0, 0, 0],
                [0x95, 0x00, 0, 0, 0, 0, 0, 0],
            ]
        );
    }

    #[test]
    fn a_jump_to_the_next_instruction_goes_no_further() {
        let mut asm = Assembler::default();
        let (near, far) = (asm.label(), asm.label());
        asm.jump(far);
        asm.jump(near);
        asm.bind(near);
        asm.load_map(Reg::R1);
        asm.bind(far);
        asm.exit();
        let offsets =
            asm.finish().instructions.iter().map(|instruction| instruction.offset).collect::<Vec<_>>();
        assert_eq!(offsets, [3, 0, 0, 0, 0]);
    }

    #[test]
    #[should_panic(expected = "a label that is bound")]
    fn a_jump_to_nowhere_is_a_bug() {
        let mut asm = Assembler::default();
        let nowhere = asm.label();
        asm.jump(nowhere);
        asm.load_map(Reg::R1);
        asm.finish();
    }
}
