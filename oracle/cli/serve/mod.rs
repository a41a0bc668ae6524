//! `graph-oracle serve`: pages in a browser, made by this machine for this machine.
//!
//! # The idea
//!
//! A request is a command in other clothes: its page is what the command writes with `--html -` (`routes`). So nothing
//! is judged here, and nothing is written anywhere.
//!
//! # Who may ask
//!
//! It listens on addresses of this machine only. A page of somebody else's that is open in the same browser could still
//! send requests here, or call this machine by another name; so a request must call it by a name that only this machine
//! has, and a form must come from a page of its own. Requests have a size, a time in which they must have come, and a
//! time in which they are answered; few are worked on at once.
//!
//! # What it does not do
//!
//! It follows no link out of its folder, runs no worker, and has no users: whoever can open a connection on this
//! machine may look.

mod folder;
mod form;
mod http;
mod routes;

use super::{CouldNotRun, Status, print, signals};
use crate::limits::{Limit, Limits};
use clap::Args;
use http::{Most, Request, Response};
use routes::Site;
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

#[derive(Args, Debug)]
pub(super) struct Serve {
    /// A folder to look through: graphs and cases, stores of campaigns, traces. Without one there is the form alone.
    folder: Option<PathBuf>,
    /// The address to listen on: one of this machine only.
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    address: IpAddr,
    /// The port; 0: one that is free.
    #[arg(long, value_name = "N", default_value_t = 8787)]
    port: u16,
    /// Seconds that an answer may take.
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
}

/// Requests that are read at once, and those that are worked on. Those that took too long for their answer count until
/// they are done.
const READ: usize = 32;
const WORKED_ON: usize = 4;

/// How often it is looked whether somebody asks, or a stop was asked for.
const POLL: Duration = Duration::from_millis(10);

/// The stack of a thread that judges, bytes: as much as a main thread has. Rules follow chains of nodes.
const STACK: usize = 8 << 20;

impl Serve {
    pub(super) fn run(&self, limits: &Limits, out: &mut dyn Write) -> Result<Status, CouldNotRun> {
        if !self.address.is_loopback() {
            let why = "others could reach it, who may not look: give 127.0.0.1 or ::1";
            return Err(CouldNotRun::new(format_args!("--address {}: {why}", self.address)));
        }
        let site = Site::new(self.folder.as_deref(), limits)?;
        let stop = signals::stop_on_signals()?;
        let asked = SocketAddr::new(self.address, self.port);
        let failed = |error| CouldNotRun::new(format_args!("{asked}: {error}"));
        let listener = TcpListener::bind(asked).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        print(out, &format!("http://{address}/\n"))?;
        let most =
            Most { head: limits.get(Limit::RequestHead) as usize, body: limits.get(Limit::Request) as usize };
        let server = Arc::new(Server {
            site: Arc::new(site),
            address,
            most,
            patience: Duration::from_secs(self.seconds),
            reading: AtomicUsize::new(0),
            working: Arc::new(AtomicUsize::new(0)),
        });
        while !stop.is_requested() {
            match listener.accept() {
                Ok((stream, _)) => server.clone().take(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(POLL),
                // Whoever asked has gone away, or there are too many connections for now.
                Err(_) => thread::sleep(POLL),
            }
        }
        Ok(stop.signal().map_or(Status::Sound, signals::status))
    }
}

struct Server {
    site: Arc<Site>,
    address: SocketAddr,
    most: Most,
    patience: Duration,
    reading: AtomicUsize,
    working: Arc<AtomicUsize>,
}

/// A place among those that something is done for; given back when it is dropped.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(places: &'a AtomicUsize, most: usize) -> Option<Place<'a>> {
        let taken = places.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| (n < most).then_some(n + 1));
        taken.ok().map(|_| Place(places))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Server {
    /// Answers a connection in a thread of its own.
    fn take(self: Arc<Server>, mut stream: TcpStream) {
        let spawned = thread::Builder::new().spawn(move || {
            if stream.set_nonblocking(false).is_err() {
                return;
            }
            let Some(_place) = Place::take(&self.reading, READ) else {
                return refusal(503, "Too many ask at once.").write(&mut stream);
            };
            let response = match Request::read(&mut stream, self.most) {
                Ok(request) => self.answer(request),
                Err(response) => refusal(response.status, &response.body),
            };
            response.write(&mut stream);
        });
        // Without a thread nobody is answered, and the connection is closed.
        drop(spawned);
    }

    fn answer(&self, request: Request) -> Response {
        if let Some(why) = self.foreign(&request) {
            return refusal(403, why);
        }
        let (give, answer) = mpsc::channel();
        let (site, working) = (self.site.clone(), self.working.clone());
        let work = move || {
            let Some(_place) = Place::take(&working, WORKED_ON) else {
                let _ = give.send(refusal(503, "Too much is being worked on: ask again later."));
                return;
            };
            let _ = give.send(site.answer(&request).unwrap_or_else(|why| refusal(422, &why.to_string())));
        };
        if thread::Builder::new().stack_size(STACK).spawn(work).is_err() {
            return refusal(503, "There is no room for another thread.");
        }
        match answer.recv_timeout(self.patience) {
            Ok(response) => response,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                refusal(504, "This takes longer than an answer may (--seconds): ask on the command line.")
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => refusal(500, "The work on it broke off."),
        }
    }

    /// Why a request does not come from a page of this server or from its address.
    fn foreign(&self, request: &Request) -> Option<&'static str> {
        let host = request.header("host").unwrap_or("");
        let port = self.address.port();
        let own = ["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{port}"));
        if host != self.address.to_string() && !own.iter().any(|name| name == host) {
            return Some("This machine is not called so.");
        }
        match request.header("origin") {
            Some(origin) if origin != format!("http://{host}") => {
                Some("A page of somebody else's may not ask.")
            }
            _ => None,
        }
    }
}

/// A page that says why there is no other one.
fn refusal(status: u16, why: &str) -> Response {
    Response { status, body: pages::serve::refusal(why) }
}
