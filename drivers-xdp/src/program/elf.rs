//! The object file that loaders of BPF take: code, the map that it names, a licence.

use object::write::{Object, Relocation, SectionId, Symbol, SymbolId, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, RelocationFlags, SectionKind, SymbolFlags, SymbolKind,
    SymbolScope, elf,
};

use super::asm::Code;

/// The program's name.
pub(super) const PROGRAM: &str = "wraith";
/// The map's name: sockets by queue.
pub(super) const SOCKETS: &str = "SOCKETS";

/// What the kernel learns; nothing that the filter calls asks for the GPL.
const LICENCE: &[u8] = b"MIT OR Apache-2.0\0";
/// The section's name says of the program that it is for XDP, and that it takes frames in several pieces.
const SECTION: &str = "xdp.frags";
/// `BPF_MAP_TYPE_XSKMAP` of linux/bpf.h.
const XSKMAP: u32 = 17;

/// The file, for a device of `queues` queues.
pub(super) fn object(code: &Code, queues: u32) -> Vec<u8> {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::Bpf, Endianness::default());
    section(&mut object, "license", SectionKind::Data, LICENCE);
    // `struct bpf_map_def`: type, size of key and of value, entries, flags.
    let definition: Vec<u8> = [XSKMAP, 4, 4, queues, 0].into_iter().flat_map(u32::to_ne_bytes).collect();
    let maps = section(&mut object, "maps", SectionKind::Data, &definition);
    let map = symbol(&mut object, SOCKETS, SymbolKind::Data, maps, definition.len());
    let bytes: Vec<u8> = code.instructions.iter().flat_map(|instruction| instruction.to_bytes()).collect();
    let text = section(&mut object, SECTION, SectionKind::Text, &bytes);
    symbol(&mut object, PROGRAM, SymbolKind::Text, text, bytes.len());
    let relocation = Relocation {
        offset: code.map_at as u64 * 8,
        symbol: map,
        addend: 0,
        flags: RelocationFlags::Elf { r_type: elf::R_BPF_64_64 },
    };
    object.add_relocation(text, relocation).expect("a kind of relocation that BPF has");
    object.write().expect("an object file of few sections")
}

fn section(object: &mut Object<'_>, name: &str, kind: SectionKind, data: &[u8]) -> SectionId {
    let section = object.add_section(Vec::new(), name.into(), kind);
    object.set_section_data(section, data.to_vec(), 8);
    section
}

fn symbol(
    object: &mut Object<'_>,
    name: &str,
    kind: SymbolKind,
    section: SectionId,
    size: usize,
) -> SymbolId {
    object.add_symbol(Symbol {
        name: name.into(),
        value: 0,
        size: size as u64,
        kind,
        scope: SymbolScope::Dynamic,
        weak: false,
        section: SymbolSection::Section(section),
        flags: SymbolFlags::None,
    })
}
