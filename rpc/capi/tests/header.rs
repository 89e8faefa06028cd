//! Compares the headers with the code: functions and their types, statuses, structs and opcodes.

use std::mem::{offset_of, size_of};

use gpurpc::Generation;
use gpurpc_capi::{CBuffer, CDevice, CFault, DeviceOptions, LibcOptions, ServerOptions};

const HEADER: &str = concat!(
    include_str!("../include/gpurpc.h"),
    include_str!("../include/gpurpc_blocking.h"),
    include_str!("../include/gpurpc_libc.h")
);
const OPCODES: &str = include_str!("../include/gpurpc_opcodes.h");
const CODE: [&str; 3] = [
    include_str!("../src/blocking.rs"),
    include_str!("../src/client.rs"),
    include_str!("../src/lib.rs"),
];
const CALLBACKS: &str = include_str!("../src/callback.rs");
const STATUSES: &str = include_str!("../src/status.rs");

/// A type of the code in C.
fn c_type(rust: &str) -> String {
    for (mark, word) in [("*const ", "const "), ("*mut ", "")] {
        if let Some(target) = rust.strip_prefix(mark) {
            let target = c_type(target);
            // `const` qualifies the pointee, whose type comes first, or a pointer.
            return match target.strip_suffix('*') {
                Some(_) => format!("{target}{}*", word),
                None => format!("{word}{target} *"),
            };
        }
    }
    if let Some(function) = rust.strip_prefix("Option<") {
        return c_type(function.trim_end_matches('>'));
    }
    match rust {
        "c_char" => "char",
        "c_int" => "int",
        "c_void" => "void",
        "usize" => "size_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "i64" => "int64_t",
        "Server" => "gpurpc_server_t",
        "Blocking" => "gpurpc_blocking_t",
        "BlockingCallback" => "gpurpc_blocking_callback_ty",
        "CDevice" => "gpurpc_device_t",
        "CBuffer" => "gpurpc_buffer_t",
        "CFault" => "gpurpc_fault_t",
        "ServerOptions" => "gpurpc_server_options_t",
        "DeviceOptions" => "gpurpc_device_options_t",
        "LibcOptions" => "gpurpc_libc_options_t",
        "Alloc" => "gpurpc_alloc_ty",
        "Free" => "gpurpc_free_ty",
        "PortCallback" => "gpurpc_port_callback_ty",
        "WarpCallback" => "gpurpc_warp_callback_ty",
        "PlainCallback" => "gpurpc_callback_ty",
        "WaitCallback" => "gpurpc_wait_ty",
        "FaultCallback" => "gpurpc_fault_callback_ty",
        "ReadCallback" => "gpurpc_read_ty",
        "WriteCallback" => "gpurpc_write_ty",
        "ExitCallback" => "gpurpc_exit_ty",
        "DeviceCallback" => "gpurpc_device_callback_ty",
        "DeviceMalloc" => "gpurpc_malloc_ty",
        "DeviceFree" => "gpurpc_malloc_free_ty",
        "SystemCallback" => "gpurpc_system_ty",
        "HostCallCallback" => "gpurpc_host_call_ty",
        other => panic!("no C type for {other}"),
    }
    .to_owned()
}

fn words(text: &str) -> String {
    // A status is an `int` by another name; `const` may be on either side of the pointee's name.
    let text = text.replace("gpurpc_status_t", "int");
    let text = text.replace('*', " * ").replace(['(', ')', ','], " , ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Signature after `fn name` in the code: arguments, and the result.
fn signature(rest: &str) -> (Vec<String>, String) {
    let (arguments, rest) = rest.split_once(')').unwrap();
    let end = rest.find([';', '{']).unwrap();
    let result = rest[..end].trim().strip_prefix("-> ").map(str::trim);
    let arguments = arguments.split(',').map(str::trim);
    let arguments = arguments.filter(|one| !one.is_empty()).map(|one| {
        let (name, of) = one.split_once(": ").unwrap();
        format!("{} {}", c_type(of), name.trim_start_matches("r#"))
    });
    (
        arguments.collect(),
        result.map_or_else(|| "void".to_owned(), c_type),
    )
}

/// The declarations of the header, each in a line without comments.
fn declarations() -> Vec<String> {
    let mut text = String::new();
    for part in HEADER.split("/*") {
        text += part.split_once("*/").map_or(part, |(_, code)| code);
    }
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let text = lines.collect::<Vec<_>>().join(" ");
    text.split([';', '{', '}'])
        .map(|one| one.trim().to_owned())
        .collect()
}

#[test]
fn functions_have_the_same_types() {
    let mut code: Vec<_> = CODE
        .iter()
        .flat_map(|code| code.split("extern \"C\" fn ").skip(1))
        .map(|rest| {
            let (name, rest) = rest.split_once('(').unwrap();
            let (arguments, result) = signature(rest);
            words(&format!("{result} {name}({})", arguments.join(", ")))
        })
        .collect();
    let declarations = declarations();
    let functions = declarations
        .iter()
        .filter(|one| one.contains('(') && one.contains(" *gpurpc_") | one.contains(" gpurpc_"))
        .filter(|one| !one.starts_with("typedef") && !one.starts_with("GPURPC_ASSERT"));
    let mut header: Vec<_> = functions.map(|one| words(one)).collect();
    code.sort();
    header.sort();
    assert!(code.len() > 20);
    assert_eq!(header, code);
}

#[test]
fn function_pointers_have_the_same_types() {
    let mut code: Vec<_> = [CALLBACKS, CODE[0]]
        .iter()
        .flat_map(|code| code.split("\npub type ").skip(1))
        .map(|rest| {
            let (name, rest) = rest.split_once(" =").unwrap();
            let (_, rest) = rest.split_once("extern \"C\" fn(").unwrap();
            let (arguments, result) = signature(rest);
            let name = c_type(name);
            words(&format!("{result} (*{name})({})", arguments.join(", ")))
        })
        .collect();
    let declarations = declarations();
    let typedefs = declarations
        .iter()
        .filter_map(|one| one.strip_prefix("typedef "))
        .filter(|one| one.contains("(*"));
    let mut header: Vec<_> = typedefs.map(words).collect();
    code.sort();
    header.sort();
    assert!(code.len() > 5);
    assert_eq!(header, code);
}

#[test]
fn statuses_have_the_same_numbers() {
    let code: Vec<_> = STATUSES
        .lines()
        .filter_map(|line| line.strip_prefix("const "))
        .map(|line| line.trim_end_matches(';').replace(": c_int", ""))
        .collect();
    let header: Vec<_> = HEADER
        .lines()
        .filter_map(|line| line.strip_prefix("    GPURPC_STATUS_"))
        .map(|line| line.trim_end_matches(',').to_owned())
        .collect();
    assert!(code.len() > 10);
    assert_eq!(header, code);
}

#[test]
fn every_status_has_a_text() {
    let text = |status| {
        // SAFETY: the function returns a static string.
        unsafe { std::ffi::CStr::from_ptr(gpurpc_capi::gpurpc_strerror(status)) }
    };
    let other = text(-1);
    for line in STATUSES
        .lines()
        .filter_map(|line| line.strip_prefix("const "))
    {
        let (name, number) = line.trim_end_matches(';').split_once(": c_int = ").unwrap();
        let number = match number.strip_prefix("0x") {
            Some(hex) => i32::from_str_radix(hex, 16).unwrap(),
            None => number.parse().unwrap(),
        };
        assert_eq!(text(number) == other, name == "ERROR", "{name}");
    }
}

#[test]
fn opcodes_are_those_of_the_server() {
    let header: Vec<_> = OPCODES
        .lines()
        .filter_map(|line| line.strip_prefix("    GPURPC_OPCODE_"))
        .map(|line| {
            let (name, number) = line.trim_end_matches(',').split_once(" = 0x").unwrap();
            (name, u32::from_str_radix(number, 16).unwrap())
        })
        .collect();
    assert_eq!(header, gpurpc::opcode::ALL);
}

/// The members of a struct of the header: type and name.
fn members(name: &str) -> Vec<(String, String)> {
    let declarations = declarations();
    let start = format!("typedef struct {name}");
    let at = declarations.iter().position(|one| *one == start).unwrap();
    let end = format!("{name}_t");
    let members = declarations[at + 1..].iter().take_while(|one| **one != end);
    members
        .filter(|one| !one.is_empty())
        .map(|one| {
            let at = one.rfind([' ', '*']).unwrap() + 1;
            (one[..at].trim().to_owned(), one[at..].to_owned())
        })
        .collect()
}

/// Compares a struct of the code with that of the header, as C lays out its members.
macro_rules! same {
    ($type:ty, $name:literal, $($member:ident),*) => {
        let (mut at, mut align) = (0_usize, 1);
        let mut laid_out = Vec::new();
        for (of, name) in members($name) {
            let size = match &of[..] {
                "uint32_t" | "gpurpc_status_t" => 4,
                "uint64_t" | "gpurpc_device_t" => 8,
                pointer if pointer.ends_with('*') || pointer.ends_with("_ty") => size_of::<usize>(),
                other => panic!("{other}: how large is it?"),
            };
            at = at.next_multiple_of(size);
            laid_out.push((name, at));
            at += size;
            align = align.max(size);
        }
        let code = [$((stringify!($member).to_owned(), offset_of!($type, $member))),*];
        assert_eq!(laid_out, code, $name);
        // Without padding: the size identifies a newer struct.
        assert_eq!(at, at.next_multiple_of(align), $name);
        assert_eq!(size_of::<$type>(), at, $name);
    };
}

#[test]
fn structs_have_the_same_members() {
    same!(
        ServerOptions,
        "gpurpc_server_options",
        struct_size,
        spin_count,
        yield_count,
        max_sleep_ns,
        wait,
        wake,
        data,
        max_wait_ns
    );
    same!(
        DeviceOptions,
        "gpurpc_device_options",
        struct_size,
        ports,
        lanes,
        memory,
        memory_size,
        alloc,
        free,
        data,
        opcodes,
        generation,
        message_limit,
        memory_limit,
        doorbell_value,
        doorbell_mailbox,
        doorbell_event,
        flags,
        stack_size
    );
    same!(
        LibcOptions,
        "gpurpc_libc_options",
        struct_size,
        read,
        write,
        root,
        exit,
        abort,
        malloc,
        free,
        system,
        host_call,
        release,
        data,
        file_limit,
        read_limit,
        print_limit,
        allocation_limit
    );
    same!(
        CFault,
        "gpurpc_fault",
        device,
        port,
        opcode,
        status,
        reserved,
        text
    );
    same!(CDevice, "gpurpc_device", handle);
    assert_eq!(
        members("gpurpc_buffer"),
        [("uint64_t".into(), "data[8]".into())]
    );
    assert_eq!(size_of::<CBuffer>(), 64);
}

#[test]
fn numbers_are_those_of_the_code() {
    for (name, number) in [
        ("GPURPC_CLIENT_SIZE", Generation::LLVM_20.client_size),
        (
            "GPURPC_CLIENT_SIZE_LLVM_23",
            Generation::LLVM_23.client_size,
        ),
        (
            "GPURPC_MAXIMUM_PORT_COUNT",
            Generation::LLVM_20.max_ports as usize,
        ),
        (
            "GPURPC_MAXIMUM_PORT_COUNT_LLVM_23",
            Generation::LLVM_23.max_ports as usize,
        ),
        ("GPURPC_OPCODES_WIDE", 0),
        ("GPURPC_OPCODES_NARROW", 1),
    ] {
        let line = format!("\n#define {name} {number}\n");
        assert!(HEADER.contains(&line), "{name}");
    }
}

#[test]
fn pkg_config_has_the_version() {
    let line = format!("\nVersion: {}\n", env!("CARGO_PKG_VERSION"));
    assert!(include_str!("../gpurpc.pc").contains(&line), "{line}");
}
