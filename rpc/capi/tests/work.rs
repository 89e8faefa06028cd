//! Work of calls that waits, while others are served.

mod support;

use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use gpurpc_capi::*;
use support::{CALL, SUCCESS, Server, options};

/// A gate that work waits at, and what it tells.
struct Gate {
    open: Mutex<Receiver<u64>>,
    told: Mutex<Sender<&'static str>>,
}

impl Gate {
    fn tell(&self, what: &'static str) {
        let told = self.told.lock().expect("nobody panics");
        told.send(what).expect("the test listens");
    }
}

/// Both ends of a gate, which stays: a thread may come through it as the test ends.
fn gate() -> (&'static Gate, Sender<u64>, Receiver<&'static str>) {
    let ((opener, open), (told, heard)) = (channel(), channel());
    let gate = Gate {
        open: Mutex::new(open),
        told: Mutex::new(told),
    };
    (Box::leak(Box::new(gate)), opener, heard)
}

/// In the memory of a call.
struct Task {
    gate: *const Gate,
    value: u64,
}

unsafe extern "C" fn wait(data: *mut c_void) {
    // SAFETY: the data is that of the call.
    unsafe {
        let task = &mut *data.cast::<Task>();
        (*task.gate).tell("work");
        let open = (*task.gate).open.lock().expect("nobody panics");
        task.value += open.recv().expect("the test opens it");
    }
}

unsafe extern "C" fn keep(buffer: *mut CBuffer, _: u32, data: *mut c_void) {
    // SAFETY: the buffer is there; the data is that of the call.
    unsafe { (*data.cast::<Task>()).value = (*buffer).data[0] }
}

unsafe extern "C" fn tell(buffer: *mut CBuffer, _: u32, data: *mut c_void) {
    // SAFETY: the buffer is there; the data is that of the call.
    unsafe { (*buffer).data[0] = (*data.cast::<Task>()).value }
}

unsafe extern "C" fn end(data: *mut c_void) {
    // SAFETY: the data is a gate.
    unsafe { (*data.cast::<Gate>()).tell("end") }
}

unsafe extern "C" fn slow(port: *mut Call, data: *mut c_void) {
    // SAFETY: the port is there, and the data is a gate.
    unsafe {
        let task = gpurpc_port_alloc(port, size_of::<Task>() as u64);
        (*task.cast::<Task>()).gate = data.cast();
        assert_eq!(gpurpc_port_on_close(port, Some(end), data), SUCCESS);
        assert_eq!(gpurpc_recv(port, Some(keep), task), SUCCESS);
        assert_eq!(gpurpc_run_blocking(port, Some(wait), task), SUCCESS);
        assert_eq!(gpurpc_send(port, Some(tell), task), SUCCESS);
    }
}

unsafe extern "C" fn quick(port: *mut Call, _: *mut c_void) {
    // SAFETY: the port is there.
    let status = unsafe { gpurpc_recv_and_send(port, None, std::ptr::null_mut()) };
    assert_eq!(status, SUCCESS);
}

#[test]
fn others_are_served_while_a_call_works() {
    let (gate, opener, heard) = gate();
    let server = Server::new();
    assert_eq!(server.register(CALL, slow, gate), SUCCESS);
    assert_eq!(server.register(CALL + 1, quick, &()), SUCCESS);
    let options = options(2, 1);
    let device = server.add(&options).expect("it can be added");
    let client = server.client(device, &options);
    let mut waits = client.open(CALL, 1);
    waits.send(|packets| packets.set_word(0, 0, 40));
    assert!(server.poll());
    assert_eq!(heard.recv(), Ok("work"));

    let mut call = client.open(CALL + 1, 1);
    call.send(|packets| packets.set_word(0, 0, 7));
    assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(7));
    drop(call);

    opener.send(2).expect("work waits for it");
    server.1.set(true);
    assert_eq!(waits.recv(|packets| packets.word(0, 0)), Some(42));
    drop(waits);
    assert_eq!(heard.recv(), Ok("end"));
}

#[test]
fn a_call_of_a_device_that_is_removed_ends_with_its_work() {
    let (gate, opener, heard) = gate();
    let server = Server::new();
    assert_eq!(server.register(CALL, slow, gate), SUCCESS);
    let options = options(1, 1);
    let device = server.add(&options).expect("it can be added");
    let client = server.client(device, &options);
    let mut waits = client.open(CALL, 1);
    waits.send(|_| {});
    assert!(server.poll());
    assert_eq!(heard.recv(), Ok("work"));
    // Its client never looks again.
    std::mem::forget(waits);
    assert_eq!(server.remove(device), SUCCESS);
    assert!(heard.try_recv().is_err());
    opener.send(2).expect("work waits for it");
    assert_eq!(heard.recv(), Ok("end"));
}
