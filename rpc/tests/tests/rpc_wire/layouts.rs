//! Sizes and offsets in the headers of LLVM's libc, compared with the generations of the protocol.

use std::fmt::Write;

use gpurpc::server::Opcodes;
use gpurpc::{Generation, HEADER_SIZE, Layout, PACKET_SIZE, PortIndex};
use gpurpc_tests::components::component;
use gpurpc_tests::{Result, scratch};

use crate::programs::Llvm;

/// Output of `tests/programs/llvm-rpc/layout.cpp` for a generation.
fn expected(generation: &'static Generation) -> Result<String> {
    let mut text = String::new();
    let mut line = |name: &str, value: usize| writeln!(text, "{name} {value}");
    line("client_size", generation.client_size)?;
    line("server_size", generation.client_size)?;
    line("max_ports", generation.max_ports as usize)?;
    line("lock_offset", generation.lock_offset)?;
    line("lock_words", generation.lock_words)?;
    line("port_count", 0)?;
    line("inbox", generation.pointers.inbox)?;
    line("outbox", generation.pointers.outbox)?;
    line("header", generation.pointers.header)?;
    line("packet", generation.pointers.packet)?;
    if let Some(doorbell) = generation.pointers.doorbell {
        line("doorbell", doorbell)?;
        // As the server writes them.
        for (word, name) in ["value", "mailbox", "event_id"].into_iter().enumerate() {
            line(&format!("doorbell.{name}"), 8 * word)?;
        }
    }
    line("alignment", generation.alignment)?;
    line("header_size", HEADER_SIZE)?;
    line("header.mask", 0)?;
    line("header.opcode", 8)?;
    line(
        "opcode_bytes",
        if generation.opcodes == Opcodes::Narrow {
            2
        } else {
            4
        },
    )?;
    line("packet_size", PACKET_SIZE)?;
    for ports in [1, 2, 3, 63, 64, 65, 1000, 4096, generation.max_ports] {
        for lanes in [1, 32, 64] {
            let layout = Layout::with_generation(generation, ports, lanes)?;
            writeln!(text, "size {ports} {lanes} {}", layout.size())?;
            let (primary, secondary) = (layout.primary(), layout.secondary());
            let port = PortIndex::new(0);
            let (header, packet) = (layout.header(port), layout.packet(port, 0));
            writeln!(
                text,
                "parts {ports} {lanes} {primary} {secondary} {header} {packet}"
            )?;
        }
    }
    Ok(text)
}

fn is_known(llvm: Llvm) -> Result<()> {
    let dir = scratch()?;
    let generation = llvm.generation()?;
    assert_eq!(
        llvm.layout(dir.path())?,
        expected(generation)?,
        "{generation}"
    );
    Ok(())
}

#[test]
#[ignore = "needs the sources of LLVM 19, 21 and 22: ./tests/run --all"]
fn heavy_layouts_are_those_of_llvm() -> Result<()> {
    [19, 21, 22].map(Llvm).into_iter().try_for_each(is_known)
}

/// The newest release that is packaged. A generation of the protocol is missing if this fails.
#[test]
#[ignore = "needs the sources of the newest LLVM: ./tests/run --all"]
fn heavy_newest_layout_is_known() -> Result<()> {
    let mut releases = Vec::new();
    for entry in std::fs::read_dir(component("")?)? {
        let name = entry?.file_name();
        let release = name
            .to_str()
            .and_then(|name| name.strip_prefix("llvm-libc-"));
        releases.extend(release.map(str::parse::<u32>).transpose()?);
    }
    let newest = releases
        .into_iter()
        .max()
        .ok_or("no component of LLVM's libc")?;
    let [.., last] = Generation::ALL;
    assert!(
        newest >= last.last_release,
        "LLVM {newest}, but {last} is known"
    );
    let packaged = std::fs::read_to_string(component("llvm-releases")?)?;
    let packaged = packaged.lines().map(str::parse::<u32>);
    let packaged = packaged.collect::<std::result::Result<Vec<_>, _>>()?;
    let packaged = packaged.into_iter().max().ok_or("Debian lists no LLVM")?;
    assert!(
        newest >= packaged,
        "LLVM {packaged} is packaged: add it to tests/components/moving-sources.list"
    );
    is_known(Llvm(newest))
}
