//! As much of HTTP/1.1 as a page on this machine needs: one request a connection, of bounded size and time.

use super::form;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// How long a request may take to arrive, and an answer to leave.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much is read at once.
const PIECE: usize = 1 << 16;

/// A request.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) method: String,
    /// The path, decoded.
    pub(super) path: String,
    /// What the address says behind `?`, and what the form of the body holds.
    pub(super) fields: Vec<(String, String)>,
    headers: Vec<(String, String)>,
}

/// An answer.
#[derive(Clone, Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) body: String,
}

/// The most bytes of the parts of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    pub(super) head: usize,
    pub(super) body: usize,
}

impl Request {
    /// A field by its name; an empty one counts as absent.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        found.filter(|value| !value.trim().is_empty())
    }

    /// A header by its name in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Reads a request.
    ///
    /// # Errors
    /// What to answer where there is none that can be read.
    pub(super) fn read(stream: &mut TcpStream, most: Most) -> Result<Request, Response> {
        let fail = |status: u16, why: &str| Response { status, body: why.to_string() };
        let until = Instant::now() + PATIENCE;
        let (mut bytes, mut seen) = (Vec::new(), 0usize);
        let end = loop {
            let from = seen.saturating_sub(3);
            if let Some(end) = bytes[from..].windows(4).position(|four| four == b"\r\n\r\n") {
                break from + end;
            }
            seen = bytes.len();
            if bytes.len() > most.head {
                return Err(fail(431, "The head of the request is too long."));
            }
            if more(stream, &mut bytes, until).map_err(|why| fail(408, &why.to_string()))? == 0 {
                return Err(fail(400, "The request ends in its head."));
            }
        };
        let head = std::str::from_utf8(&bytes[..end]).map_err(|_| fail(400, "The head is not UTF-8."))?;
        let mut request =
            Request::parsed(head).ok_or_else(|| fail(400, "This is no request of HTTP/1.1."))?;
        // Which of two would count is somebody's guess.
        if ["host", "content-length"]
            .iter()
            .any(|&key| request.headers.iter().filter(|(k, _)| k == key).count() > 1)
        {
            return Err(fail(400, "A header is given twice."));
        }
        if request.header("transfer-encoding").is_some() {
            return Err(fail(411, "The length of the body is missing."));
        }
        let length = request.header("content-length").map_or(Ok(0), str::parse::<usize>);
        let length = length.map_err(|_| fail(400, "The length of the body is no number."))?;
        if length > most.body {
            return Err(fail(413, "The body is too long: --limit request=SIZE allows more."));
        }
        let mut body = bytes.split_off(end + 4);
        if body.len() < length && request.header("expect").is_some() {
            let _ = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        while body.len() < length {
            if more(stream, &mut body, until).map_err(|why| fail(408, &why.to_string()))? == 0 {
                return Err(fail(400, "The request ends in its body."));
            }
        }
        body.truncate(length);
        let form = form::fields(&body).ok_or_else(|| fail(400, "The form is not UTF-8."))?;
        request.fields.extend(form);
        Ok(request)
    }

    /// The head of a request: its first line, and headers.
    fn parsed(head: &str) -> Option<Request> {
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if !version.starts_with("HTTP/1.") || words.next().is_some() || !target.starts_with('/') {
            return None;
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let header = |line: &str| {
            let (key, value) = line.split_once(':')?;
            Some((key.to_ascii_lowercase(), value.trim().to_string()))
        };
        Some(Request {
            method: method.to_string(),
            path: form::decoded(path.as_bytes(), false)?,
            fields: form::fields(query.as_bytes())?,
            headers: lines.map(header).collect::<Option<_>>()?,
        })
    }
}

/// Reads what has arrived, or waits for it.
fn more(stream: &mut TcpStream, bytes: &mut Vec<u8>, until: Instant) -> io::Result<usize> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "The request takes too long."));
    }
    stream.set_read_timeout(Some(left))?;
    let mut piece = vec![0; PIECE];
    let count = stream.read(&mut piece)?;
    bytes.extend_from_slice(&piece[..count]);
    Ok(count)
}

/// Ends a connection. What was sent and not read would else break it off before the answer has arrived.
fn leave(stream: &mut TcpStream) {
    const MOST: usize = 256;
    let _ = stream.shutdown(Shutdown::Write);
    let until = Instant::now() + Duration::from_secs(2);
    let mut unread = Vec::new();
    for _ in 0..MOST {
        unread.clear();
        if !matches!(more(stream, &mut unread, until), Ok(1..)) {
            return;
        }
    }
}

impl Response {
    /// A page.
    pub(super) fn page(body: String) -> Response {
        Response { status: 200, body }
    }

    /// Writes the answer. Whoever has gone away does not get it.
    pub(super) fn write(&self, stream: &mut TcpStream) {
        let reason = match self.status {
            200 => "OK",
            400..500 => "Refused",
            _ => "Failed",
        };
        let head = format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
             X-Content-Type-Options: nosniff\r\nReferrer-Policy: same-origin\r\nCache-Control: no-store\r\n\
             X-Frame-Options: DENY\r\nCross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n\r\n",
            self.status,
            self.body.len()
        );
        let _ = stream.set_write_timeout(Some(PATIENCE));
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(self.body.as_bytes()));
        let _ = stream.flush();
        leave(stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_and_what_is_none_is_not() {
        let request = Request::parsed("GET /in/a%20b?x=1&y=%3C HTTP/1.1\r\nHost: localhost:1").unwrap();
        assert_eq!(
            (&*request.path, request.field("x"), request.field("y")),
            ("/in/a b", Some("1"), Some("<"))
        );
        assert_eq!(request.header("host"), Some("localhost:1"));
        for head in
            ["", "GET /", "GET x HTTP/1.1", "GET / HTTP/2", "GET / HTTP/1.1\r\nnone", "GET / HTTP/1.1 x"]
        {
            assert!(Request::parsed(head).is_none(), "{head:?}");
        }
        assert!(Request::parsed("GET /%ff HTTP/1.1").is_none());
    }
}
