//! Blocking jobs of calls, while other calls are served.

#[macro_use]
mod support;

use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use gpurpc_capi::*;
use support::{ABANDONED, CALL, NewOptions, SUCCESS, Server};

/// A latch that jobs wait for, and the channel of their reports.
struct Latch {
    open: Mutex<Receiver<u64>>,
    reports: Mutex<Sender<&'static str>>,
}

impl Latch {
    fn report(&self, what: &'static str) {
        let reports = self.reports.lock().expect("no thread panics");
        reports.send(what).expect("the test receives");
    }
}

/// Both ends of a leaked latch: a thread may use it when the test ends.
fn latch() -> (&'static Latch, Sender<u64>, Receiver<&'static str>) {
    let ((opener, open), (reports, heard)) = (channel(), channel());
    let latch = Latch {
        open: Mutex::new(open),
        reports: Mutex::new(reports),
    };
    (Box::leak(Box::new(latch)), opener, heard)
}

/// State of a call, on the stack of its callback.
struct Task {
    latch: *const Latch,
    value: u64,
}

unsafe extern "C" fn wait(data: *mut c_void) {
    // SAFETY: the data is that of the call.
    unsafe {
        let task = &mut *data.cast::<Task>();
        (*task.latch).report("work");
        let open = (*task.latch).open.lock().expect("no thread panics");
        task.value += open.recv().expect("the test opens the latch");
    }
}

unsafe extern "C" fn keep(buffer: *mut CBuffer, _: u32, data: *mut c_void) {
    // SAFETY: the buffer is valid; the data is that of the call.
    unsafe { (*data.cast::<Task>()).value = (*buffer).data[0] }
}

unsafe extern "C" fn write_value(buffer: *mut CBuffer, _: u32, data: *mut c_void) {
    // SAFETY: the buffer is valid; the data is that of the call.
    unsafe { (*buffer).data[0] = (*data.cast::<Task>()).value }
}

unsafe extern "C" fn slow(call: *mut Blocking, data: *mut c_void) {
    let mut task = Task {
        latch: data.cast(),
        value: 0,
    };
    let state = (&raw mut task).cast();
    // SAFETY: the call is valid, and the data is a latch.
    unsafe {
        assert_eq!(gpurpc_blocking_recv(call, Some(keep), state), SUCCESS);
        let status = gpurpc_blocking_run(call, Some(wait), state);
        assert!([SUCCESS, ABANDONED].contains(&status));
        assert_eq!(gpurpc_blocking_send(call, Some(write_value), state), status);
        (*data.cast::<Latch>()).report("end");
    }
}

unsafe extern "C" fn quick(call: *mut Blocking, _: *mut c_void) {
    // SAFETY: the call is valid.
    let status = unsafe { gpurpc_blocking_recv_and_send(call, None, std::ptr::null_mut()) };
    assert_eq!(status, SUCCESS);
}

fn other_calls_are_served_during_a_blocking_job(options: NewOptions) {
    let (latch, opener, heard) = latch();
    let server = Server::new();
    assert_eq!(server.register(CALL, slow, latch), SUCCESS);
    assert_eq!(server.register(CALL + 1, quick, &()), SUCCESS);
    let options = options(2, 1);
    let device = server.add(&options).expect("the device can be added");
    let client = server.client(device, &options);
    let mut waits = client.open(CALL, 1);
    waits.send(|packets| packets.set_word(0, 0, 40));
    assert!(server.poll());
    assert_eq!(heard.recv(), Ok("work"));

    let mut call = client.open(CALL + 1, 1);
    call.send(|packets| packets.set_word(0, 0, 7));
    assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(7));
    drop(call);

    opener.send(2).expect("the job waits");
    server.1.set(true);
    assert_eq!(waits.recv(|packets| packets.word(0, 0)), Some(42));
    drop(waits);
    assert_eq!(heard.recv(), Ok("end"));
}

fn a_call_of_a_removed_device_ends_with_its_job(options: NewOptions) {
    let (latch, opener, heard) = latch();
    let server = Server::new();
    assert_eq!(server.register(CALL, slow, latch), SUCCESS);
    let options = options(1, 1);
    let device = server.add(&options).expect("the device can be added");
    let client = server.client(device, &options);
    let mut waits = client.open(CALL, 1);
    waits.send(|_| {});
    assert!(server.poll());
    assert_eq!(heard.recv(), Ok("work"));
    // The client never polls again.
    std::mem::forget(waits);
    let opening = thread::spawn(move || {
        // Makes it likely that the removal waits by now; the result does not depend on it.
        thread::sleep(Duration::from_millis(20));
        assert!(heard.try_recv().is_err());
        opener.send(2).expect("the job waits");
        heard
    });
    // Waits for the job, which uses the stack of the callback.
    assert_eq!(server.remove(device), SUCCESS);
    let heard = opening.join().expect("no thread panics");
    assert_eq!(heard.try_recv(), Ok("end"));
}

for_each_generation!(
    other_calls_are_served_during_a_blocking_job,
    a_call_of_a_removed_device_ends_with_its_job,
);
