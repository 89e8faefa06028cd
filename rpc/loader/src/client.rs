//! RPC client in an image.

use gpurpc::{Generation, Layout, Symbol};

use crate::error::{Code, Error, Result};
use crate::runtime::{Global, Gpu, Handle};

/// Location for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    /// Generation of the protocol.
    pub generation: &'static Generation,
    /// Address of the variable that the symbol names.
    address: u64,
}

impl Client {
    /// Finds the client of an image; nothing if the image never calls the host.
    ///
    /// # Errors
    ///
    /// If the client has an unknown size.
    pub fn find(gpu: &Gpu, module: Handle) -> Result<Option<Self>> {
        // Later releases first, so that a current image is searched for one symbol only.
        let mut symbols: Vec<Symbol> = Generation::ALL
            .into_iter()
            .rev()
            .map(|generation| generation.symbol)
            .collect();
        symbols.dedup();
        for symbol in symbols {
            let name = symbol.name();
            let Some(Global { address, size }) = gpu.global(module, name)? else {
                continue;
            };
            return match Generation::find(name, size) {
                Some(generation) => Ok(Some(Self {
                    generation,
                    address,
                })),
                None => Err(unknown_size(symbol, size)),
            };
        }
        Ok(None)
    }

    /// Writes a client for memory that the device sees at `buffer`.
    pub fn install(self, gpu: &Gpu, layout: Layout, buffer: u64) -> Result<()> {
        let client = layout.client(buffer);
        match self.generation.symbol {
            Symbol::Object(_) => gpu.write(self.address, &client),
            Symbol::Pointer(_) => {
                // In device memory, because only the device uses the locks.
                let memory = gpu.device_memory(client.len())?;
                gpu.write(memory, &client)?;
                gpu.write(self.address, &memory.to_ne_bytes())
            }
        }
    }
}

/// Refuses a client of a generation that is newer than this program, or that LLVM never had.
fn unknown_size(symbol: Symbol, size: usize) -> Error {
    let mut known = Vec::new();
    for generation in Generation::ALL {
        if generation.symbol.name() == symbol.name() {
            known.push(format!("{} in {generation}", generation.symbol_size()));
        }
    }
    let message = format!(
        "`{}` has {size} bytes in the image, but {}",
        symbol.name().to_string_lossy(),
        known.join(" and ")
    );
    let [first, .., last] = Generation::ALL;
    let help = format!(
        "use a newer gpurpc-loader if the image is of a newer LLVM; this one knows the libc of LLVM {} to {}, and \
         gpurpc_client.h",
        first.first_release, last.last_release
    );
    Error::new(Code::NotRunnable, message).help(help)
}
