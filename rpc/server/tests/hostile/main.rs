//! Clients that do anything: the server lives, serves the others, and holds no more than it may.
#![cfg(feature = "std")]

mod play;

use std::alloc::{GlobalAlloc, Layout, System};
use std::env;
use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use play::{hostile, script_of};

/// Counts the bytes of the process, and the most that there were.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn more(size: usize) {
    let now = NOW.fetch_add(size, Ordering::Relaxed) + size;
    MOST.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: as the system's, which does it all.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }

    /// As memory that grows where it lies.
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        more(size);
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One test at a time: bytes are those of the process.
static ONE: Mutex<()> = Mutex::new(());

/// What a device holds beside messages: the shared memory of 72 ports with 64 lanes, handlers, and what a
/// call has for each lane.
const BESIDE: usize = 1 << 20;

/// Where numbers begin, if not where they always do: to play again what failed.
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
        let before = NOW.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
        let survived = hostile(&data, Some(directory.path()), storm);
        let held = MOST.load(Ordering::Relaxed).saturating_sub(before);
        assert!(
            held <= survived.memory + BESIDE,
            "{held} bytes were held, {} are allowed",
            survived.memory
        );
        nothing_beside(directory.path())?;
        most = most.max(held.saturating_sub(survived.memory));
        dropped += survived.dropped;
        answered += survived.answered;
    }
    println!("{dropped} ports dropped, {answered} calls answered, at most {most} bytes beside");
    assert!(dropped > 0 && answered > 0);
    Ok(())
}

/// Files are below the directory, and named as asked.
fn nothing_beside(directory: &Path) -> Result<(), Box<dyn Error>> {
    for found in std::fs::read_dir(directory)? {
        assert!(found?.file_type()?.is_file());
    }
    Ok(())
}

/// Says how to play it again.
struct Say(u64);

impl Drop for Say {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to play it again: {SEED}={}", self.0);
        }
    }
}

#[test]
fn a_hostile_client_costs_its_own_ports_only() -> Result<(), Box<dyn Error>> {
    soak(50, false)
}

/// What the server reads twice differs.
#[test]
fn what_changes_all_the_time_costs_its_own_ports_only() -> Result<(), Box<dyn Error>> {
    soak(15, true)
}

#[test]
#[ignore = "takes minutes: ./tests/run --all"]
fn heavy_hostile_clients() -> Result<(), Box<dyn Error>> {
    soak(4000, false)?;
    soak(1500, true)
}
