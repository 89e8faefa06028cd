//! Services of LLVM's own start-up tests (`libc/test/integration/startup/gpu`), which its server answers as well
//! (`libc/shared/rpc_server.h`, llvm-project #160206).

use crate::error::Error;
use crate::opcode;
use crate::server::{Handlers, Port};

/// Highest number of lanes of a warp.
const MAX_LANES: usize = 64;

/// Registers the services. `TEST_INCREMENT` also serves to measure round trips.
pub(crate) fn register(handlers: &mut Handlers) -> Result<(), Error> {
    handlers.on_warp(opcode::TEST_INCREMENT, 1, |warp| {
        for lane in warp.lanes() {
            warp.set_word(lane, 0, warp.input().get(lane)[0].wrapping_add(1));
        }
    })?;
    handlers.on_session(opcode::TEST_INTERFACE, |mut port| async {
        exchange_numbers(&mut port).await;
        Ok(port)
    })?;
    handlers.on_session(opcode::TEST_STREAM, |mut port| async {
        let messages = port.recv_n().await?;
        port.send_n(|lane| messages.get(lane).unwrap_or_default())
            .await;
        Ok(port)
    })?;
    Ok(())
}

/// Packets in all orders: each side sends the number that follows the last one. The first packet says whether the client
/// sends the last one.
async fn exchange_numbers(port: &mut Port) {
    let mut numbers = [0; MAX_LANES];
    recv(port, &mut numbers).await;
    let is_client_last = port.lanes().any(|lane| numbers[lane as usize] != 0);
    recv(port, &mut numbers).await;
    send(port, &mut numbers).await;
    recv(port, &mut numbers).await;
    send(port, &mut numbers).await;
    recv(port, &mut numbers).await;
    recv(port, &mut numbers).await;
    send(port, &mut numbers).await;
    send(port, &mut numbers).await;
    if is_client_last {
        recv(port, &mut numbers).await;
    } else {
        send(port, &mut numbers).await;
    }
}

/// Receives the number of each lane.
async fn recv(port: &mut Port, numbers: &mut [u64; MAX_LANES]) {
    port.recv(|packets| {
        for lane in packets.lanes() {
            numbers[lane as usize] = packets.word(lane, 0);
        }
    })
    .await;
}

/// Sends the next number to each lane.
async fn send(port: &mut Port, numbers: &mut [u64; MAX_LANES]) {
    port.send(|packets| {
        for lane in packets.lanes() {
            let number = &mut numbers[lane as usize];
            *number = number.wrapping_add(1);
            packets.set_word(lane, 0, *number);
        }
    })
    .await;
}
