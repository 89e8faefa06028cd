//! Arbitrary clients: the server survives, serves the others, and stays within its memory limits.
#![cfg(feature = "std")]

mod play;

use std::alloc::{GlobalAlloc, Layout, System};
use std::env;
use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use play::{hostile, script_of};

/// Counts the allocated bytes of the process, and their maximum.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn record_allocation(size: usize) {
    let now = LIVE.fetch_add(size, Ordering::Relaxed) + size;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: forwards all calls to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        record_allocation(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        record_allocation(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }

    /// Counts as memory that grows in place.
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        record_allocation(size);
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Serializes the tests: bytes are counted for the whole process.
static ONE: Mutex<()> = Mutex::new(());

/// Memory of a device in addition to messages: the shared memory of 72 ports with 64 lanes, handlers, and
/// the state of a call for each lane.
const BESIDE: usize = 1 << 20;

/// Variable with the first seed, to repeat a failed run.
const SEED: &str = "GPUSTUB_TEST_SEED";

#[allow(clippy::disallowed_methods, reason = "nothing is built here")]
fn first_seed() -> u64 {
    let given = env::var(SEED).ok();
    given.map_or(0, |seed| seed.parse().expect("a seed is a number"))
}

fn soak(count: u64, storm: bool) -> Result<(), Box<dyn Error>> {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let first = first_seed();
    let (mut dropped, mut answered, mut most) = (0, 0, 0);
    for seed in first..first + count {
        let _say = Say(seed);
        let directory = tempfile::tempdir()?;
        let data = script_of(seed);
        let before = LIVE.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let survived = hostile(&data, Some(directory.path()), storm);
        let held = PEAK.load(Ordering::Relaxed).saturating_sub(before);
        assert!(
            held <= survived.memory + BESIDE,
            "{held} bytes were held, {} are allowed",
            survived.memory
        );
        assert_files_below(directory.path())?;
        most = most.max(held.saturating_sub(survived.memory));
        dropped += survived.dropped;
        answered += survived.answered;
    }
    println!("{dropped} ports dropped, {answered} calls answered, at most {most} bytes beside");
    assert!(dropped > 0 && answered > 0);
    Ok(())
}

/// Asserts that all files are below the directory, with the requested names.
fn assert_files_below(directory: &Path) -> Result<(), Box<dyn Error>> {
    for found in std::fs::read_dir(directory)? {
        assert!(found?.file_type()?.is_file());
    }
    Ok(())
}

/// Prints how to repeat a failed run.
struct Say(u64);

impl Drop for Say {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to repeat the run: {SEED}={}", self.0);
        }
    }
}

#[test]
fn a_hostile_client_costs_its_own_ports_only() -> Result<(), Box<dyn Error>> {
    soak(50, false)
}

/// Two reads of a word by the server return different values.
#[test]
fn changing_memory_costs_its_own_ports_only() -> Result<(), Box<dyn Error>> {
    soak(15, true)
}

#[test]
#[ignore = "takes minutes: ./tests/run --all"]
fn heavy_hostile_clients() -> Result<(), Box<dyn Error>> {
    soak(4000, false)?;
    soak(1500, true)
}
