//! Runs tools in parallel, within the tokens of cargo's jobserver.
//!
//! A build script owns one token without asking; every tool beyond the first needs one more (GNU
//! make's manual, "POSIX Jobserver Interaction", which cargo follows).

use std::io;
use std::sync::mpsc;
use std::thread;

use jobserver::{Acquired, Client};

/// Source of tokens, each of which permits one more tool.
pub(crate) struct Tokens {
    client: Client,
}

impl Tokens {
    /// Tokens of cargo; without a jobserver, `jobs` at a time.
    pub(crate) fn new(jobs: usize) -> io::Result<Self> {
        // SAFETY: cargo opens the descriptors that its variables name before it starts a build
        // script, and no code here has closed or reused one.
        let inherited = unsafe { Client::from_env() };
        let client = match inherited {
            Some(client) => client,
            None => Client::new(jobs.max(1) - 1)?,
        };
        Ok(Self { client })
    }

    /// Runs the jobs, each of which runs one tool at most, and returns their results, in their order. After the
    /// first failure no other job is started: its result is `None`.
    pub(crate) fn run<T: Send + 'static>(
        self,
        jobs: Vec<impl FnOnce() -> io::Result<T> + Send>,
        is_success: &dyn Fn(&T) -> bool,
    ) -> io::Result<Vec<Option<T>>> {
        enum Event<T> {
            Token(io::Result<Acquired>),
            Done(usize, io::Result<T>),
        }
        let (sender, events) = mpsc::channel();
        let token_sender = sender.clone();
        let helper = self.client.into_helper_thread(move |token| {
            // Fails after the last job, when the receiver is gone: the token is returned.
            let _ = token_sender.send(Event::Token(token));
        })?;
        for _ in 1..jobs.len() {
            helper.request_token();
        }
        let mut results: Vec<Option<T>> = jobs.iter().map(|_| None).collect();
        let mut pending = jobs.into_iter().enumerate();
        let mut failed = None;
        thread::scope(|scope| {
            let mut running = 0;
            let mut tokens = Vec::new();
            loop {
                while failed.is_none() && running <= tokens.len() {
                    let Some((index, job)) = pending.next() else {
                        break;
                    };
                    running += 1;
                    let sender = sender.clone();
                    scope.spawn(move || {
                        let _ = sender.send(Event::Done(index, job()));
                    });
                }
                if running == 0 {
                    break;
                }
                match events.recv() {
                    Ok(Event::Token(Ok(token))) => tokens.push(token),
                    // Running jobs continue; waiting ones share the tokens that are held.
                    Ok(Event::Token(Err(_))) | Err(_) => {}
                    Ok(Event::Done(index, result)) => {
                        running -= 1;
                        match result {
                            Ok(result) => {
                                if !is_success(&result) && failed.is_none() {
                                    failed = Some(Ok(()));
                                }
                                results[index] = Some(result);
                            }
                            Err(error) => failed = Some(Err(error)),
                        }
                        // Releases tokens that no job here can use.
                        let jobs = match failed {
                            None => running + pending.len(),
                            Some(_) => running,
                        };
                        tokens.truncate(jobs.saturating_sub(1));
                    }
                }
            }
        });
        drop(helper);
        match failed {
            Some(Err(error)) => Err(error),
            _ => Ok(results),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;
    use std::process::{Command, Output};

    fn run(client: Client, commands: Vec<Command>) -> io::Result<Vec<Option<Output>>> {
        let jobs = commands
            .into_iter()
            .map(|mut command| move || command.output());
        let is_success = |output: &Output| output.status.success();
        Tokens { client }.run(jobs.collect(), &is_success)
    }

    /// A command that records the number of its kind that run at the same time.
    fn counting(dir: &Path, index: usize) -> Command {
        let mut command = Command::new("sh");
        command.current_dir(dir).arg("-c").arg(format!(
            "touch run.{index}; ls run.* | wc -l >> running; sleep 0.05; ls run.* | wc -l >> running; rm run.{index}; echo {index}"
        ));
        command
    }

    /// The greatest of the recorded numbers.
    fn max_running(dir: &Path) -> usize {
        let text = fs::read_to_string(dir.join("running")).unwrap();
        text.lines()
            .map(|l| l.trim().parse().unwrap())
            .max()
            .unwrap()
    }

    #[test]
    fn parallel_jobs_are_limited_by_tokens() {
        for tokens in [1, 3] {
            let directory = tempfile::tempdir().unwrap();
            let dir = directory.path();
            let client = Client::new(tokens - 1).unwrap();
            let commands = (0..12).map(|index| counting(dir, index)).collect();
            let outputs = run(client, commands).unwrap();
            let printed: Vec<_> = outputs
                .into_iter()
                .map(|o| String::from_utf8(o.unwrap().stdout).unwrap())
                .collect();
            let expected: Vec<_> = (0..12).map(|index| format!("{index}\n")).collect();
            assert_eq!(printed, expected);
            let max_running = max_running(dir);
            assert!((1..=tokens).contains(&max_running), "{max_running}");
        }
    }

    #[test]
    fn tokens_are_returned() {
        let client = Client::new(3).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let commands = (0..8).map(|index| counting(dir.path(), index)).collect();
        run(client.clone(), commands).unwrap();
        assert_eq!(client.available().unwrap(), 3);
    }

    #[test]
    fn nothing_is_started_after_a_failure() {
        let client = Client::new(0).unwrap();
        let commands = ["true", "false", "true"].map(Command::new).into();
        let outputs = run(client, commands).unwrap();
        let successes: Vec<_> = outputs
            .iter()
            .map(|o| o.as_ref().map(|o| o.status.success()))
            .collect();
        assert_eq!(successes, [Some(true), Some(false), None]);
    }

    #[test]
    fn a_missing_program_is_an_error() {
        let client = Client::new(1).unwrap();
        let missing = Command::new("/nonexistent/nvcc");
        let error = run(client, vec![missing]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
