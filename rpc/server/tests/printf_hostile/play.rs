//! Properties that hold for any format: the body of the tests here, and of the fuzz target `printf`.

use gpurpc::libc::printf::Format;
use gpurpc::server::Fault;

/// Prints the format before the first byte that is 0. The bytes after it, repeated as needed, are its
/// arguments and each string. Panics on a violated property; returns whether `data` was printed.
pub fn printf(data: &[u8]) -> bool {
    const LIMIT: usize = 4096;
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let text = parts.next().unwrap_or_default();
    let rest = parts.next().unwrap_or_default();
    let source = if rest.is_empty() { &[0] } else { rest };
    let printed = [false, true].map(|packed| {
        let format = Format::parse(text, packed).ok()?;
        let size = format.arguments_size();
        let arguments: Vec<u8> = source.iter().copied().cycle().take(size).collect();
        let strings = vec![rest; format.strings(&arguments).len()];
        if let Some(fewer) = size.checked_sub(1) {
            let missing = format.print(&arguments[..fewer], &strings, LIMIT);
            assert!(missing.is_err(), "an argument is missing");
        }
        match format.print(&arguments, &strings, LIMIT) {
            Ok(text) => {
                assert!(text.len() <= LIMIT);
                Some(())
            }
            // The only possible faults.
            Err(fault) => {
                let long = Fault::Other("printf: output exceeds the limit");
                assert_eq!(fault, long);
                None
            }
        }
    });
    printed.iter().any(Option::is_some)
}
