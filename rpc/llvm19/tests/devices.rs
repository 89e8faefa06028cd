//! Devices with warps, on the thread of the server.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::ptr::{NonNull, null_mut};

use gpurpc::client::{Client, HostLocks, Locks};
use gpurpc::memory::SharedMemory;
use gpurpc::{Error, Generation, Layout, PortIndex, opcode};
use llvmlibc_rpc_server::*;

const SUCCESS: c_int = 0;
const ERROR: c_int = 0x1000;
const UNHANDLED_OPCODE: c_int = 0x1001;
const CALL: u16 = 0x8001;

/// Calls of the program's functions.
#[derive(Default)]
struct Program {
    device: Cell<Option<RpcDevice>>,
    events: RefCell<Vec<&'static str>>,
}

impl Program {
    fn event(&self, what: &'static str) {
        self.events.borrow_mut().push(what);
    }
}

/// # Safety
///
/// The data is a program.
unsafe fn program<'p>(data: *mut c_void) -> &'p Program {
    // SAFETY: as the caller promises.
    unsafe { &*data.cast() }
}

unsafe extern "C" fn allocate(size: u64, _: *mut c_void) -> *mut c_void {
    let words = vec![7_u64; size.div_ceil(8) as usize];
    Box::into_raw(words.into_boxed_slice()).cast()
}

/// Memory is leaked: its size is not known here.
unsafe extern "C" fn release(_: *mut c_void, data: *mut c_void) {
    // SAFETY: the data is a program.
    unsafe { program(data) }.event("released");
}

/// A device, whose client polls while it waits.
struct Rig {
    device: RpcDevice,
    client: Client<SharedMemory, Polling>,
}

struct Polling(RpcDevice, HostLocks);

impl Locks for Polling {
    fn try_lock(&self, port: PortIndex) -> bool {
        self.1.try_lock(port)
    }

    fn unlock(&self, port: PortIndex) {
        self.1.unlock(port);
    }

    fn relax(&self) {
        // SAFETY: the device is valid.
        assert_eq!(unsafe { rpc_handle_server(self.0) }, SUCCESS);
    }
}

impl Rig {
    fn new(ports: u32, lanes: u32) -> Result<Self, Error> {
        let mut device = RpcDevice { handle: 0 };
        let allocate: Option<Alloc> = Some(allocate);
        // SAFETY: a place for the device.
        let status =
            unsafe { rpc_server_init(&mut device, ports.into(), lanes, allocate, null_mut()) };
        assert_eq!(status, SUCCESS);
        let layout = Layout::with_generation(Generation::LLVM_19, ports, lanes)?;
        // SAFETY: the second word of the client is the address of the memory.
        let start = unsafe { rpc_get_client_buffer(device).cast::<usize>().add(1).read() };
        let start = NonNull::new(std::ptr::with_exposed_provenance_mut(start));
        // SAFETY: the memory has this layout, and is never released.
        let memory =
            unsafe { SharedMemory::new(start.expect("there is memory"), layout.size(), layout) };
        let client = Client::new(memory?, Polling(device, HostLocks::new()));
        Ok(Self { device, client })
    }

    fn register(&self, opcode: u16, callback: OpcodeCallback, program: &Program) {
        program.device.set(Some(self.device));
        let data = std::ptr::from_ref(program).cast_mut().cast();
        // SAFETY: the device is valid.
        let status = unsafe { rpc_register_callback(self.device, opcode, Some(callback), data) };
        assert_eq!(status, SUCCESS);
    }

    fn serve(&self) -> c_int {
        // SAFETY: the device is valid.
        unsafe { rpc_handle_server(self.device) }
    }

    fn shut_down(self, program: &Program) {
        let data = std::ptr::from_ref(program).cast_mut().cast();
        // SAFETY: the device is valid, and not used later.
        let status = unsafe { rpc_server_shutdown(self.device, Some(release), data) };
        assert_eq!(status, SUCCESS);
    }
}

unsafe extern "C" fn echo(port: RpcPort, data: *mut c_void) {
    let (mut messages, mut sizes) = ([null_mut(); 64], [0; 64]);
    // SAFETY: the port is valid, and the arrays have an element for each lane.
    unsafe {
        assert_eq!(port.lane_size, 64);
        rpc_recv_n(
            port,
            messages.as_mut_ptr(),
            sizes.as_mut_ptr(),
            Some(allocate),
            data,
        );
        let messages = messages.as_ptr().cast();
        rpc_send_n(port, messages, sizes.as_mut_ptr());
        program(data).event("echoed");
    }
}

#[test]
fn messages_of_all_lanes_are_echoed() -> Result<(), Error> {
    let (rig, program) = (Rig::new(3, 64)?, Program::default());
    rig.register(CALL, echo, &program);
    for mask in [1, 0x8000_0000_0000_0100, u64::MAX] {
        let mut call = rig.client.open(CALL.into(), mask);
        let text = |lane: u32| vec![lane as u8; 3 * lane as usize];
        let texts: Vec<_> = (0..64).map(text).collect();
        call.send_n(|lane| &texts[lane as usize]);
        let mut received = vec![Vec::<u8>::new(); 64];
        call.recv_n(|lane, _, bytes| received[lane as usize].extend(bytes));
        for lane in call.lanes() {
            assert_eq!(received[lane as usize], texts[lane as usize]);
        }
    }
    rig.shut_down(&program);
    assert_eq!(
        program.events.take(),
        ["echoed", "echoed", "echoed", "released"]
    );
    Ok(())
}

unsafe extern "C" fn add_one(buffer: *mut RpcBuffer, _: *mut c_void) {
    // SAFETY: the buffer is valid.
    unsafe { (*buffer).data[0] += 1 }
}

unsafe extern "C" fn answer(port: RpcPort, data: *mut c_void) {
    // SAFETY: the port is valid; the data is a program.
    unsafe {
        let device = program(data).device.get().expect("it is registered");
        // Both leave the device alone.
        assert_eq!(rpc_handle_server(device), SUCCESS);
        assert_eq!(rpc_server_shutdown(device, Some(release), data), ERROR);
        rpc_recv_and_send(port, Some(add_one), null_mut());
        program(data).event("answered");
    }
}

/// Own callbacks of libc's opcodes, of its two for memory, and of numbers that later releases use.
#[test]
fn callbacks_of_the_program_win() -> Result<(), Error> {
    let (rig, program) = (Rig::new(1, 1)?, Program::default());
    let numbers = [
        opcode::WRITE_TO_STDOUT,
        opcode::MALLOC,
        opcode::HOST_CALL,
        opcode::RENAME,
    ];
    for number in numbers {
        rig.register(number as u16, answer, &program);
    }
    rig.register(27, answer, &program);
    for number in [2, 10, 12, 28, 27] {
        let mut call = rig.client.open(number, 1);
        call.send(|packets| packets.set_word(0, 0, 5));
        assert_eq!(call.recv(|packets| packets.word(0, 0)), Some(6), "{number}");
    }
    // A new opcode, while the device is served.
    rig.register(CALL, answer, &program);
    let mut call = rig.client.open(CALL.into(), 1);
    call.send(|_| {});
    assert!(call.recv(|_| {}).is_some());
    drop(call);
    // Free was not registered.
    rig.client.open(11, 1).send(|_| {});
    assert_eq!([rig.serve(), rig.serve()], [UNHANDLED_OPCODE; 2]);
    rig.shut_down(&program);
    Ok(())
}

unsafe extern "C" fn wait(port: RpcPort, data: *mut c_void) {
    // SAFETY: the port is valid; the data is a program.
    unsafe {
        rpc_recv(port, None, null_mut());
        program(data).event("began");
        rpc_recv(port, None, null_mut());
        program(data).event("continued");
    }
}

/// LLVM's functions cannot report that the device is gone.
#[test]
fn a_waiting_callback_does_not_continue_after_shutdown() -> Result<(), Error> {
    let (rig, program) = (Rig::new(2, 1)?, Program::default());
    rig.register(CALL, wait, &program);
    for _ in 0..2 {
        let mut call = rig.client.open(CALL.into(), 1);
        call.send(|_| {});
        assert_eq!(rig.serve(), SUCCESS);
        // Another call is served meanwhile; one of two continues.
        std::mem::forget(call);
    }
    assert_eq!(program.events.take(), ["began", "began"]);
    rig.shut_down(&program);
    assert_eq!(program.events.take(), ["released"]);
    Ok(())
}

#[test]
fn a_message_that_is_too_large_is_an_error() -> Result<(), Error> {
    let (rig, program) = (Rig::new(1, 64)?, Program::default());
    rig.register(CALL, echo, &program);
    let mut call = rig.client.open(CALL.into(), 1);
    call.send(|packets| packets.set_word(0, 0, 1 << 40));
    assert_eq!([rig.serve(), rig.serve()], [ERROR; 2]);
    drop(call);
    rig.shut_down(&program);
    assert_eq!(program.events.take(), ["released"]);
    Ok(())
}

#[test]
fn wrong_arguments_are_refused() {
    let mut device = RpcDevice { handle: 0 };
    let mut init = |ports, lanes, alloc| {
        // SAFETY: a place for the device.
        unsafe { rpc_server_init(&mut device, ports, lanes, alloc, null_mut()) }
    };
    assert_eq!(init(1, 3, Some(allocate as _)), 0x1002);
    for (ports, alloc) in [
        (0, Some(allocate as Alloc)),
        (4097, Some(allocate)),
        (1 << 40, Some(allocate)),
        (1, None),
    ] {
        assert_eq!(init(ports, 32, alloc), ERROR);
    }
    // SAFETY: a null device is allowed.
    unsafe {
        assert_eq!(rpc_handle_server(device), ERROR);
        assert_eq!(rpc_server_shutdown(device, None, null_mut()), ERROR);
        assert_eq!(
            rpc_register_callback(device, CALL, Some(wait), null_mut()),
            ERROR
        );
        assert!(rpc_get_client_buffer(device).is_null());
    }
    assert_eq!(rpc_get_client_size(), 552);
}
