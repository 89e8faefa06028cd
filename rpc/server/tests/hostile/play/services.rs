//! Services for the driver's clients.

use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use super::script::{BUDGET, COPIED, ECHO, Input, Setting, WARP};
use gpurpc::Error;
use gpurpc::libc::{LibcLimits, Services};
use gpurpc::server::{Budget, Handlers, Limits};

/// Slot for the budget of a device.
pub type Kept = Arc<Mutex<Option<Arc<Budget>>>>;

/// Input that returns nothing, and ends when the sender is dropped.
struct Silent(Receiver<()>);

impl Read for Silent {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        let _ = self.0.recv();
        Ok(0)
    }
}

/// All services of the host, and the sender that keeps the standard input open.
pub fn services(
    setting: Setting,
    root: Option<&Path>,
    limits: Limits,
    handlers: &mut Handlers,
) -> Result<Option<Sender<()>>, Error> {
    let (open, silent) = channel();
    let (allocated, freed) = (AtomicU64::new(1), AtomicU64::new(1));
    let services = Services::new()
        .stdout(io::sink())
        .stderr(io::sink())
        .on_exit(|_| ())
        .on_abort(|| ())
        .memory(
            move |size| match size {
                0..4096 => 64 * allocated.fetch_add(1, Ordering::Relaxed),
                _ => 0,
            },
            move |_| {
                freed.fetch_add(1, Ordering::Relaxed);
            },
        )
        .system(|command| command.to_bytes().len() as i32)
        .host_call(|function, arguments| {
            arguments.reverse();
            function
        })
        .limits(LibcLimits {
            files: 4,
            read: limits.message,
            print: 4096,
            allocations: 1000,
        });
    let services = match setting.input {
        Input::Empty => services.stdin(io::empty()),
        Input::Text => services.stdin(&b"some text\nand more\n\nof it"[..]),
        Input::Silent => services.stdin(Silent(silent)),
    };
    #[cfg(feature = "files")]
    let services = match root {
        Some(root) => services.files(root).expect("the directory is there"),
        None => services,
    };
    #[cfg(not(feature = "files"))]
    let _ = root;
    services.register(handlers)?;
    Ok(Some(open))
}

/// Registers the driver's own services, with their numbers for either kind of client. Returns the slot of
/// the budget.
pub fn register_own(handlers: &mut Handlers) -> Result<Kept, Error> {
    let budget = Kept::default();
    for narrow in [false, true] {
        let number = |opcode: u32| {
            if narrow {
                0x8000 | opcode & 0xffff
            } else {
                opcode
            }
        };
        handlers.on_session(number(ECHO), |mut port| async move {
            let messages = port.recv_n().await?;
            port.send_n(|lane| messages.get(lane).unwrap_or_default())
                .await;
            Ok(port)
        })?;
        #[cfg(feature = "blocking")]
        handlers.on_blocking(number(super::script::BLOCKING), |call| {
            let messages = call.recv_n()?;
            call.send_n(|lane| messages.get(lane).unwrap_or_default())
        })?;
        handlers.on_warp(number(COPIED), 8, |warp| {
            for lane in warp.lanes() {
                let words = *warp.input().get(lane);
                for (word, value) in words.into_iter().rev().enumerate() {
                    warp.set_word(lane, word, value);
                }
            }
        })?;
        handlers.on_warp(number(WARP), 2, |warp| {
            for lane in warp.lanes() {
                let [first, second, ..] = *warp.input().get(lane);
                warp.set_word(lane, 7, first ^ second);
            }
        })?;
        let place = Arc::clone(&budget);
        handlers.on_session(number(BUDGET), move |mut port| {
            let place = Arc::clone(&place);
            async move {
                port.recv(|_| ()).await;
                *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(port.budget());
                Ok(port)
            }
        })?;
    }
    Ok(budget)
}
