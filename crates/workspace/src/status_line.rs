//! Status line of long work: one line on a terminal, which is removed at the end.

use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time between two changes of the line.
const STEP: Duration = Duration::from_millis(100);

/// Whether a status line is on the terminal. Locked while the line is drawn or removed.
static IS_DRAWN: Mutex<bool> = Mutex::new(false);

/// Conditions for status lines.
#[derive(Debug, Clone, Copy)]
pub struct StatusLines {
    /// Whether standard error may show them.
    pub enabled: bool,
    /// Work that takes no longer has no line. Zero: the line is drawn with each change, for tests.
    pub after: Duration,
}

impl StatusLines {
    /// No status lines.
    pub const OFF: Self = Self {
        enabled: false,
        after: Duration::ZERO,
    };

    /// Status lines after a time, if standard error is a terminal. `terminal` is the variable `TERM`.
    pub fn new(after: Duration, terminal: Option<&str>) -> Self {
        let has_escapes = terminal.is_some_and(|name| name != "dumb");
        Self {
            enabled: has_escapes && io::stderr().is_terminal(),
            after,
        }
    }
}

/// The status line of one piece of work. No other output is written to standard error before it is dropped, except by
/// [`StatusLine::forward`].
#[derive(Debug)]
pub struct StatusLine {
    /// Verb of the line, styled and aligned.
    verb: String,
    shared: Option<Arc<Shared>>,
    drawing: Option<JoinHandle<()>>,
    is_immediate: bool,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    text: String,
    drawn: String,
    has_ended: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws the line at once, then at most once per step, until the work ends.
    fn draw_after(&self, verb: &str, after: Duration) {
        let mut wait = after;
        loop {
            let (mut state, _) = self
                .ended
                .wait_timeout_while(self.state(), wait, |state| !state.has_ended)
                .unwrap_or_else(PoisonError::into_inner);
            if state.has_ended {
                return;
            }
            draw(&mut state, verb);
            wait = STEP;
        }
    }
}

/// Draws the line if it has changed. A failure only costs the line.
fn draw(state: &mut State, verb: &str) {
    if state.text == state.drawn {
        return;
    }
    let mut is_drawn = is_drawn();
    // The terminal cuts the line at its edge (DECAWM off) and continues after it.
    let line = format!("\r\x1b[K\x1b[?7l{verb} {}\x1b[?7h", state.text);
    let _ = io::stderr().write_all(line.as_bytes());
    state.drawn.clone_from(&state.text);
    *is_drawn = true;
}

/// Removes the line from the terminal.
fn erase(state: &mut State) {
    state.drawn.clear();
    erase_drawn(&mut is_drawn());
}

fn erase_drawn(is_drawn: &mut bool) {
    if mem::take(is_drawn) {
        let _ = io::stderr().write_all(b"\r\x1b[K");
    }
}

fn is_drawn() -> MutexGuard<'static, bool> {
    IS_DRAWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the line from the terminal, for good: the process ends.
pub fn erase_at_end() {
    let mut is_drawn = is_drawn();
    erase_drawn(&mut is_drawn);
    mem::forget(is_drawn);
}

impl StatusLine {
    /// Begins a piece of work.
    pub fn new(lines: StatusLines, verb: String) -> Self {
        let shared = lines.enabled.then(Arc::<Shared>::default);
        let is_immediate = lines.after.is_zero();
        let drawing = shared.clone().filter(|_| !is_immediate).and_then(|shared| {
            // Without another thread there is no line.
            let verb = verb.clone();
            thread::Builder::new()
                .spawn(move || shared.draw_after(&verb, lines.after))
                .ok()
        });
        Self {
            verb,
            shared,
            drawing,
            is_immediate,
        }
    }

    /// Sets the current item, for example a file.
    pub fn show(&self, text: impl FnOnce() -> String) {
        if let Some(shared) = &self.shared {
            let mut state = shared.state();
            state.text = text();
            if self.is_immediate {
                draw(&mut state, &self.verb);
            }
        }
    }

    /// Whether the line may be drawn.
    pub fn is_enabled(&self) -> bool {
        self.shared.is_some()
    }

    /// Writes the lines of another program above the status line, until the program closes its stream.
    pub fn forward(&self, lines: impl Read) {
        let mut lines = BufReader::new(lines);
        let mut line = Vec::new();
        while lines
            .read_until(b'\n', &mut line)
            .is_ok_and(|size| size > 0)
        {
            if let Some(shared) = &self.shared {
                let mut state = shared.state();
                erase(&mut state);
                let _ = io::stderr().write_all(&line);
                if self.is_immediate {
                    draw(&mut state, &self.verb);
                }
            }
            line.clear();
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        let Some(shared) = &self.shared else {
            return;
        };
        shared.state().has_ended = true;
        shared.ended.notify_all();
        if let Some(drawing) = self.drawing.take() {
            let _ = drawing.join();
        }
        erase(&mut shared.state());
    }
}
