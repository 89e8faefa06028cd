//! The client in an image: what its calls of the host go through.

use std::ffi::CStr;

use gpurpc::server::Opcodes;
use gpurpc::{CLIENT_SIZE, Layout};

use crate::error::{Code, Error, Result};
use crate::runtime::{Gpu, Handle};

/// The client itself (LLVM 20 and later; `gpurpc_client.h`), and a pointer to one (LLVM 19).
const OBJECT: &CStr = c"__llvm_rpc_client";
const POINTER: &CStr = c"__llvm_libc_rpc_client";

const POINTER_SIZE: usize = 8;

/// Where a client is to be put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// Into the variable at this address.
    Object(u64),
    /// Into memory that the variable at this address is to point to.
    Pointer(u64),
}

impl Client {
    /// The client of an image; nothing if it never calls the host.
    ///
    /// # Errors
    ///
    /// If it has the size of another one.
    pub fn find(gpu: &Gpu, module: Handle) -> Result<Option<Self>> {
        for (name, size, form) in [
            (OBJECT, CLIENT_SIZE, Self::Object as fn(u64) -> Self),
            (POINTER, POINTER_SIZE, Self::Pointer),
        ] {
            if let Some(global) = gpu.global(module, name)? {
                if global.size == size {
                    return Ok(Some(form(global.address)));
                }
                let message = format!(
                    "`{}` has {} bytes in the image, and {size} in the protocol that is spoken here",
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

    /// How its opcodes are written, unless somebody knows better: those of LLVM 19 have 16 bits.
    pub fn opcodes(self) -> Opcodes {
        match self {
            Self::Object(_) => Opcodes::Wide,
            Self::Pointer(_) => Opcodes::Narrow,
        }
    }

    /// Puts a client there that uses the memory which the device sees at `buffer`.
    pub fn install(self, gpu: &Gpu, layout: Layout, buffer: u64) -> Result<()> {
        let client = layout.client(buffer);
        match self {
            Self::Object(at) => gpu.write(at, &client),
            Self::Pointer(at) => {
                // Of the device: its locks are for the device alone.
                let memory = gpu.device_memory(CLIENT_SIZE)?;
                gpu.write(memory, &client)?;
                gpu.write(at, &memory.to_ne_bytes())
            }
        }
    }
}
