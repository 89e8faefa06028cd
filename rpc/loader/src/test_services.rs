//! Services of the tests of LLVM's libc (`libc/test/integration/startup/gpu`), which LLVM's own server has as well:
//! `handle_libc_opcodes` in `libc/src/__support/RPC/rpc_server.h`.

use gpurpc::opcode;
use gpurpc::server::{BlockingCall, Fault, Handlers};

/// Registers the services.
pub fn register(handlers: &mut Handlers) -> Result<(), gpurpc::Error> {
    // Also for measurements of a round trip.
    handlers.on_warp(opcode::TEST_INCREMENT, 1, |warp| {
        for lane in warp.lanes() {
            warp.set_word(lane, 0, warp.input().get(lane)[0].wrapping_add(1));
        }
    })?;
    handlers.on_blocking(opcode::TEST_INTERFACE, count_in_turns)?;
    handlers.on_blocking(opcode::TEST_STREAM, |call| {
        let messages = call.recv_n()?;
        call.send_n(|lane| messages.get(lane).unwrap_or_default())
    })?;
    Ok(())
}

/// Number of each lane.
type Counts = [u64; 64];

/// Exchanges packets in all orders. A received packet has a lane's number, a sent one the next number. The first packet
/// says whether the client sends the last one.
fn count_in_turns(call: &mut BlockingCall<'_>) -> Result<(), Fault> {
    let mut counts = [0; 64];
    let client_sends_last =
        call.recv(|packets| packets.lanes().any(|lane| packets.word(lane, 0) != 0))?;
    receive(call, &mut counts)?;
    answer(call, &mut counts)?;
    receive(call, &mut counts)?;
    answer(call, &mut counts)?;
    receive(call, &mut counts)?;
    receive(call, &mut counts)?;
    answer(call, &mut counts)?;
    answer(call, &mut counts)?;
    if client_sends_last {
        receive(call, &mut counts)
    } else {
        answer(call, &mut counts)
    }
}

fn receive(call: &mut BlockingCall<'_>, counts: &mut Counts) -> Result<(), Fault> {
    call.recv(|packets| {
        for lane in packets.lanes() {
            counts[lane as usize] = packets.word(lane, 0);
        }
    })
}

fn answer(call: &mut BlockingCall<'_>, counts: &mut Counts) -> Result<(), Fault> {
    call.send(|packets| {
        for lane in packets.lanes() {
            let count = &mut counts[lane as usize];
            *count = count.wrapping_add(1);
            packets.set_word(lane, 0, *count);
        }
    })
}
