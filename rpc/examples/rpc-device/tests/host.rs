//! The kernel on a host: threads are its lanes.

use std::error::Error;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread;

use gpurpc::Layout;
use gpurpc::libc::Services;
use gpurpc::memory::Region;
use gpurpc::server::{Device, Handlers, IdlePolicy, Limits, Server};
use gpurpc_device::host;

const WARP: u32 = 32;

/// Output of the kernel.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs the kernel with one block, and returns its output.
fn launch(threads: u32, argument: Option<&str>) -> Result<String, Box<dyn Error>> {
    let output = Output::default();
    let mut handlers = Handlers::new();
    let services = Services::new().stdout(output.clone()).files("files")?;
    services.register(&mut handlers)?;
    let layout = Layout::new(4, WARP)?;
    let memory = Region::zeroed(layout)?;
    let client = client(layout, &memory)?;
    let server = Server::new(IdlePolicy::default());
    let (handlers, limits) = (Arc::new(handlers), Limits::default());
    server.add_device(Device::new(memory, handlers, limits));
    // SAFETY: the server keeps the memory, and the kernel ends before the connection.
    let connection = unsafe { host::connect(&client) };
    let kernel = || rpc_device::run(argument).expect("the file exists");
    let ran = thread::scope(|scope| {
        scope.spawn(|| server.serve());
        let ran = catch_unwind(AssertUnwindSafe(|| host::launch(1, threads, WARP, kernel)));
        server.stop();
        ran
    });
    drop(connection);
    ran.map_err(|_| "the kernel panicked")?;
    let output = output.0.lock().expect("no panic").clone();
    Ok(String::from_utf8(output)?)
}

fn client(layout: Layout, memory: &Region) -> Result<[u8; host::CLIENT_SIZE], Box<dyn Error>> {
    let client = layout.client(memory.start().as_ptr() as u64);
    Ok(*client.first_chunk().ok_or("a client of another size")?)
}

#[test]
fn each_thread_prints_a_line() -> Result<(), Box<dyn Error>> {
    let output = launch(40, None)?;
    let mut lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines.len(), 40);
    lines.sort_unstable();
    assert_eq!(lines[0], "hello from thread 0 of block 0");
    Ok(())
}

#[test]
fn the_first_thread_prints_a_file() -> Result<(), Box<dyn Error>> {
    let output = launch(2, Some("poem.txt"))?;
    let poem = std::fs::read_to_string("files/poem.txt")?;
    assert!(output.ends_with(&poem), "{output}");
    Ok(())
}

/// On a device the report goes to the host, which ends the program.
#[test]
fn an_index_out_of_bounds_panics() -> Result<(), Box<dyn Error>> {
    let error = launch(4, Some("panic")).expect_err("there are three squares");
    assert_eq!(error.to_string(), "the kernel panicked");
    assert_eq!(
        launch(3, Some("panic"))?.lines().last(),
        Some("the square of 2 is 4")
    );
    Ok(())
}
