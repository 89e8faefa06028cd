//! RPC client in an image.

use std::ffi::CStr;

use gpurpc::server::Opcodes;
use gpurpc::{CLIENT_SIZE, Layout};

use crate::error::{Code, Error, Result};
use crate::runtime::{Gpu, Handle};

/// Symbols of a client (LLVM 20 and later; `gpurpc_client.h`) and of a pointer to one (LLVM 19).
const OBJECT: &CStr = c"__llvm_rpc_client";
const POINTER: &CStr = c"__llvm_libc_rpc_client";

const POINTER_SIZE: usize = 8;

/// Location for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// The variable at this address.
    Object(u64),
    /// Memory to which the variable at this address will point.
    Pointer(u64),
}

impl Client {
    /// Finds the client of an image; nothing if the image never calls the host.
    ///
    /// # Errors
    ///
    /// If the client has an unknown size.
    pub fn find(gpu: &Gpu, module: Handle) -> Result<Option<Self>> {
        for (name, size, location) in [
            (OBJECT, CLIENT_SIZE, Self::Object as fn(u64) -> Self),
            (POINTER, POINTER_SIZE, Self::Pointer),
        ] {
            if let Some(global) = gpu.global(module, name)? {
                if global.size == size {
                    return Ok(Some(location(global.address)));
                }
                let message = format!(
                    "`{}` has {} bytes in the image, but {size} in the supported protocols",
                    name.to_string_lossy(),
                    global.size
                );
                let help =
                    "build the image with the libc of LLVM 19 or later, or with gpurpc_client.h";
                return Err(Error::new(Code::NotRunnable, message).help(help));
            }
        }
        Ok(None)
    }

    /// Default encoding of opcodes: 16 bits in LLVM 19.
    pub fn opcodes(self) -> Opcodes {
        match self {
            Self::Object(_) => Opcodes::Wide,
            Self::Pointer(_) => Opcodes::Narrow,
        }
    }

    /// Writes a client for memory that the device sees at `buffer`.
    pub fn install(self, gpu: &Gpu, layout: Layout, buffer: u64) -> Result<()> {
        let client = layout.client(buffer);
        match self {
            Self::Object(at) => gpu.write(at, &client),
            Self::Pointer(at) => {
                // In device memory, because only the device uses the locks.
                let memory = gpu.device_memory(CLIENT_SIZE)?;
                gpu.write(memory, &client)?;
                gpu.write(at, &memory.to_ne_bytes())
            }
        }
    }
}
