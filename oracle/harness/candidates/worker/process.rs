//! One child process that is talked to line by line.
//!
//! # The idea
//!
//! Three threads serve a child: one writes requests, one reads lines, one keeps the end of standard error. Whoever
//! waits for an answer waits for the reader with a deadline, while the writer goes on; so a child that writes while a
//! large request is on its way blocks nobody. The reader hands over one line at a time and reads on when it is taken:
//! never more than one line within the limit is held.
//!
//! The command is run by `sh`, in a process group of its own. The group is killed as a whole, before the child is
//! waited for, so that its number cannot have gone to somebody else meanwhile. Processes that left the group are killed
//! with it ([`super::descendants`]).
//!
//! No process of the worker outlives this one: a watch waits for the end of a pipe that only this process can write to,
//! and kills the group, and all that carry the worker's mark, when that comes. It comes when this process ends, SIGKILL
//! included.
//!
//! # What it does not do
//!
//! It knows nothing of messages.

use super::descendants;
use crate::stop::Stop;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::io::{self, BufRead, BufReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of standard error that are kept.
const TAIL: usize = 8 << 10;
/// How long a process may take to end after `bye` or the end of its input.
pub(super) const END: Duration = Duration::from_secs(5);
/// How often an end is looked for.
const POLL: Duration = Duration::from_millis(2);
/// How often whoever waits for a line looks whether the child is still there.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// How long a worker is waited for when a stop was asked for.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// How long what a child says by its end is waited for when it has closed its output. A busy machine needs a while.
const LAST: Duration = Duration::from_secs(2);

/// The limits of a process.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Time for each answer.
    pub request: Duration,
    /// Time for `hello`.
    pub start: Duration,
    /// Bytes of an answer.
    pub answer: usize,
    /// Bytes of address space of each of its processes; `None`: any. Torch maps some tens of gigabytes.
    pub memory: Option<u64>,
    /// When it is asked for, nobody waits longer than a second.
    pub stop: Stop,
}

impl Default for Limits {
    /// 30 seconds for an answer, a minute to start (importing torch takes 5 seconds on an idle machine), 64 MiB for an
    /// answer, any memory.
    fn default() -> Limits {
        let (request, start) = (Duration::from_secs(30), Duration::from_secs(60));
        Limits { request, start, answer: 64 << 20, memory: None, stop: Stop::default() }
    }
}

/// Why there is no line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Silence {
    /// The deadline has passed.
    Late,
    /// Standard output is closed.
    Ended,
    /// A line beyond the limit.
    TooLong,
    /// A stop was asked for.
    Stopped,
}

enum Event {
    Line(Vec<u8>),
    TooLong,
}

/// A running child.
pub(super) struct Process {
    child: Child,
    /// Closed when the input of the child is to end.
    requests: Option<Sender<Vec<u8>>>,
    lines: Receiver<Event>,
    tail: Arc<Mutex<Vec<u8>>>,
    complaints: Option<JoinHandle<()>>,
    status: Option<ExitStatus>,
    /// What its processes are known by.
    mark: String,
    stop: Stop,
    /// Closed when we end, and with it the group.
    _lifeline: PipeWriter,
    /// Requests that it has answered.
    pub served: u64,
}

/// Runs the command `$0` under a watch, which has no parent and not the mark that it looks for.
const WATCHED: &str = r#"(env -u MARK /bin/sh -c '
    read -r _
    for process in /proc/[0-9]*; do
        grep -qsF "MARK=$1" "$process/environ" && kill -KILL "${process#/proc/}"
    done
    kill -KILL 0' sh "$MARK" >/dev/null 2>&1 </dev/fd/LIFELINE &)
LIMIT
exec /bin/sh -c "$0""#;

impl Process {
    /// Starts `command`, a line for `sh`.
    pub fn start(command: &str, limits: &Limits) -> io::Result<Process> {
        let (watched, lifeline) = io::pipe()?;
        // The reading end is for the child; that others have it too does no harm.
        fcntl_setfd(&watched, FdFlags::empty())?;
        let limit =
            limits.memory.map_or(String::new(), |bytes| format!("ulimit -v {} || exit 125", bytes >> 10));
        let script = WATCHED
            .replace("LIFELINE", &watched.as_raw_fd().to_string())
            .replace("LIMIT", &limit)
            .replace("MARK", descendants::MARK);
        let mark = descendants::new_mark();
        let mut child = Command::new("/bin/sh")
            .args(["-c", &script, command])
            .env(descendants::MARK, &mark)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("a child without pipes"));
        };
        let (requests, queue) = channel::<Vec<u8>>();
        let (to_lines, lines) = sync_channel(0);
        let tail = Arc::new(Mutex::new(Vec::new()));
        let (kept, limit) = (tail.clone(), limits.answer);
        let thread = |name: &str| std::thread::Builder::new().name(format!("worker {name}"));
        // A child that reads no more is found out by its answers.
        thread("input").spawn(move || {
            for request in queue {
                if stdin.write_all(&request).and_then(|()| stdin.flush()).is_err() {
                    break;
                }
            }
        })?;
        thread("output").spawn(move || read_lines(stdout, limit, &to_lines))?;
        let complaints = thread("errors").spawn(move || keep_end(stderr, &kept))?;
        Ok(Process {
            child,
            requests: Some(requests),
            lines,
            tail,
            complaints: Some(complaints),
            status: None,
            mark,
            stop: limits.stop.clone(),
            _lifeline: lifeline,
            served: 0,
        })
    }

    /// Writes bytes, at leisure.
    pub fn send(&self, bytes: Vec<u8>) {
        if let Some(requests) = &self.requests {
            let _ = requests.send(bytes);
        }
    }

    /// The next line, without its end.
    pub fn receive(&self, deadline: Instant) -> Result<Vec<u8>, Silence> {
        let mut had_ended = false;
        let patience = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left.min(CHECK_INTERVAL)) {
                Ok(Event::Line(line)) => return Ok(line),
                Ok(Event::TooLong) => return Err(Silence::TooLong),
                Err(RecvTimeoutError::Disconnected) => return Err(Silence::Ended),
                Err(RecvTimeoutError::Timeout) if left <= CHECK_INTERVAL => return Err(Silence::Late),
                Err(RecvTimeoutError::Timeout) if self.stop.is_requested() && Instant::now() >= patience => {
                    return Err(Silence::Stopped);
                }
                // A grandchild may hold the output open after the child has ended. What the child said last is read
                // within one glance more.
                Err(RecvTimeoutError::Timeout) if had_ended => return Err(Silence::Ended),
                Err(RecvTimeoutError::Timeout) => had_ended = self.has_ended(),
            }
        }
    }

    /// A line that is there already.
    pub fn waiting(&self) -> Option<Result<Vec<u8>, Silence>> {
        match self.receive(Instant::now()) {
            Err(Silence::Late) => None,
            other => Some(other),
        }
    }

    /// Ends the input of the child, after what is still to be written.
    pub fn close_input(&mut self) {
        self.requests = None;
    }

    /// Whether it ends by itself within `time`. Its output is read meanwhile, so that it does not wait for a reader.
    pub fn ends_within(&mut self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        while !self.has_ended() {
            if Instant::now() >= deadline {
                return false;
            }
            let _ = self.receive(Instant::now() + POLL);
            std::thread::sleep(POLL);
        }
        true
    }

    /// Kills the whole group and returns what is known about how it went: how the child ended (`None`: it was killed
    /// here), and the end of standard error.
    pub fn kill(&mut self) -> (Option<ExitStatus>, String) {
        // A child whose output has ended is about to end; what it says by that is worth a moment.
        let by_itself = self.has_ended() || (self.lines_ended() && self.ends_within(LAST));
        let status = self.end_group();
        let deadline = Instant::now() + Duration::from_millis(200);
        while self.complaints.as_ref().is_some_and(|thread| !thread.is_finished())
            && Instant::now() < deadline
        {
            std::thread::sleep(POLL);
        }
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        (status.filter(|_| by_itself), String::from_utf8_lossy(&tail).into_owned())
    }

    /// Whether the child has ended. It is not waited for: until then its number is its own.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(Pid::from_child(&self.child)), options), Ok(None))
    }

    fn lines_ended(&self) -> bool {
        matches!(self.lines.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected))
    }

    fn end_group(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            let child = Pid::from_child(&self.child);
            let _ = kill_process_group(child, Signal::STOP);
            descendants::kill(Some(child), &self.mark);
            let _ = kill_process_group(child, Signal::KILL);
            self.status = self.child.wait().ok();
            // One may have been started meanwhile.
            descendants::kill(None, &self.mark);
        }
        self.status
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end_group();
    }
}

/// How a child ended, in words. `sh` tells a signal by a status above 128.
pub(super) fn ending(status: ExitStatus) -> String {
    let signal = status.signal().or(status.code().filter(|code| *code > 128).map(|code| code - 128));
    match (signal, status.code()) {
        (Some(signal), _) => format!("is ended by {}", signal_name(signal)),
        (None, Some(code)) => format!("ends with exit status {code}"),
        (None, None) => "ends".to_string(),
    }
}

/// Names where there are some: they stay readable where numbers are blanked.
fn signal_name(signal: i32) -> String {
    let name = match signal {
        2 => "SIGINT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        _ => return format!("signal {signal}"),
    };
    name.to_string()
}

fn read_lines(from: impl Read, limit: usize, to: &SyncSender<Event>) {
    let mut reader = BufReader::with_capacity(1 << 16, from);
    loop {
        let mut line = Vec::new();
        let event = match read_line(&mut reader, limit, &mut line) {
            Reading::Line => Event::Line(line),
            Reading::TooLong => Event::TooLong,
            Reading::End => return,
        };
        let is_last = matches!(event, Event::TooLong);
        if to.send(event).is_err() || is_last {
            return;
        }
    }
}

enum Reading {
    Line,
    TooLong,
    End,
}

fn read_line(reader: &mut impl BufRead, limit: usize, line: &mut Vec<u8>) -> Reading {
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    match reader.take(most).read_until(b'\n', line) {
        Ok(_) if line.last() == Some(&b'\n') => {
            line.pop();
            Reading::Line
        }
        Ok(_) if line.len() > limit => Reading::TooLong,
        // What is cut off by the end is no line.
        Ok(_) | Err(_) => Reading::End,
    }
}

fn keep_end(mut from: impl Read, tail: &Mutex<Vec<u8>>) {
    let mut piece = [0; 4096];
    while let Ok(read) = from.read(&mut piece) {
        if read == 0 {
            return;
        }
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(&piece[..read]);
        let excess = tail.len().saturating_sub(TAIL);
        tail.drain(..excess);
    }
}
