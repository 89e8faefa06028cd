//! The calls of LLVM's own tests, from warps of 1, 32 and 64 lanes.

use gpurpc::opcode;

use crate::rig::{
    Result, for_lanes, layouts, masks, messages, quiet, run_program, send_words, word,
};

#[test]
fn numbers_are_exchanged_in_all_orders() -> Result {
    for layout in layouts() {
        run_program(layout, quiet().llvm_tests(), |program| {
            for mask in masks(layout.lanes()) {
                for is_client_last in [1, 0] {
                    let mut call = program.open_call(opcode::TEST_INTERFACE, mask);
                    let first = |lane: u32| u64::from(lane) * 100;
                    send_words(&mut call, |_| [is_client_last, 0, 0]);
                    // Each side sends the number that follows.
                    let last = if is_client_last == 1 { 1 } else { -1 };
                    let directions = [1, -1, 1, -1, 1, 1, -1, -1, last];
                    for (count, direction) in (1..).zip(directions) {
                        if direction == 1 {
                            send_words(&mut call, |lane| [first(lane) + count, 0, 0]);
                        } else {
                            let expected = for_lanes(mask, |lane| first(lane) + count);
                            assert_eq!(word(&mut call), expected, "number {count}");
                        }
                    }
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn messages_come_back() -> Result {
    for layout in layouts() {
        run_program(layout, quiet().llvm_tests(), |program| {
            for mask in masks(layout.lanes()) {
                let text = |lane: u32| format!("{lane} ").repeat(lane as usize * 7);
                let texts = for_lanes(mask, |lane| text(lane).into_bytes());
                let mut call = program.open_call(opcode::TEST_STREAM, mask);
                call.send_n(|lane| &texts[&lane]);
                assert_eq!(messages(&mut call), texts);
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Programs do not get them unasked.
#[test]
fn services_alone_do_not_answer_tests() -> Result {
    for layout in layouts().take(1) {
        run_program(layout, quiet(), |program| {
            let mut call = program.open_call(opcode::TEST_STREAM, 1);
            send_words(&mut call, |_| [0, 0, 0]);
            assert_eq!(program.fault().opcode, opcode::TEST_STREAM);
            Ok(())
        })?;
    }
    Ok(())
}
