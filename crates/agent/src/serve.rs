//! Answers scrapers over HTTP/1.1.
//!
//! Written on the standard library: there is one page, for a GET, and each answer ends its connection. A crate for HTTP
//! would bring a run-time or a thread for each connection; here one thread answers one connection at a time, and each of
//! them within [`PATIENCE`]. A scraper that is slow keeps others waiting that long, and never the watching.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use systoll_export::{BoxMetrics, MetricsFormat};

/// Time that an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a request's head, at most.
const HEAD: usize = 8 << 10;
/// Pause after an error of the listener, which may be a lack of descriptors.
const PAUSE: Duration = Duration::from_secs(1);

/// Starts a thread that answers, until this process ends. Returns the address at which it listens.
///
/// # Errors
/// If the address can't be listened on, or no thread can be started.
pub(crate) fn serve(address: SocketAddr, metrics: Arc<Mutex<BoxMetrics>>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let at = listener.local_addr()?;
    std::thread::Builder::new().name("systoll-scrape".into()).spawn(move || {
        for stream in listener.incoming() {
            match stream {
                // A scraper that goes away is its own affair.
                Ok(stream) => drop(answer(stream, &metrics)),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    })?;
    Ok(at)
}

fn answer(mut stream: TcpStream, metrics: &Mutex<BoxMetrics>) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    let head = read_head(&mut stream, end)?;
    let (status, kind, body) = respond(&head, metrics);
    let length = body.len();
    let head_only = head.starts_with("HEAD ");
    let text =
        format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    let mut rest = text.into_bytes();
    if !head_only {
        rest.extend(body);
    }
    let mut rest = rest.as_slice();
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(end)?))?;
        let written = stream.write(rest)?;
        rest = rest.get(written..).unwrap_or_default();
    }
    Ok(())
}

/// Reads a request up to the empty line behind its head.
fn read_head(stream: &mut TcpStream, end: Instant) -> io::Result<String> {
    let mut head = Vec::new();
    let mut some = [0; 1024];
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        stream.set_read_timeout(Some(left(end)?))?;
        let bytes = stream.read(&mut some)?;
        head.extend(some.iter().take(bytes));
        if bytes == 0 || head.len() > HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Returns the time until `end`.
///
/// # Errors
/// If it has come.
pub(crate) fn left(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Returns status, type and body of the answer to a request.
fn respond(head: &str, metrics: &Mutex<BoxMetrics>) -> (&'static str, &'static str, Vec<u8>) {
    const PLAIN: &str = "text/plain; charset=utf-8";
    let mut words = head.split_ascii_whitespace();
    match (words.next(), words.next().and_then(|target| target.split('?').next())) {
        (Some("GET" | "HEAD"), Some("/metrics")) => {
            let wants_open = head.to_ascii_lowercase().contains("application/openmetrics-text");
            let format = if wants_open { MetricsFormat::OpenMetrics } else { MetricsFormat::Prometheus };
            let mut body = Vec::new();
            let metrics = metrics.lock().unwrap_or_else(PoisonError::into_inner);
            match metrics.write(format, &mut body) {
                Ok(()) => ("200 OK", format.content_type(), body),
                Err(_) => ("500 Internal Server Error", PLAIN, Vec::new()),
            }
        }
        (Some("GET" | "HEAD"), Some(_)) => ("404 Not Found", PLAIN, b"GET /metrics\n".to_vec()),
        _ => ("405 Method Not Allowed", PLAIN, b"GET /metrics\n".to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(at: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(at).unwrap();
        // The other end may have refused the rest.
        let _ = stream.write_all(request);
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn scrapers_are_answered_and_others_are_told() {
        let at = serve("127.0.0.1:0".parse().unwrap(), Arc::default()).unwrap();
        let plain = ask(at, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(plain.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{plain}");
        let open = ask(at, b"GET /metrics?x=1 HTTP/1.1\r\nAccept: application/openmetrics-text;version=1.0.0\r\n\r\n");
        assert!(open.contains("application/openmetrics-text") && open.ends_with("# EOF\n"), "{open}");
        assert!(ask(at, b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(at, b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        assert!(ask(at, b"HEAD /metrics HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
        assert_eq!(ask(at, &vec![b'x'; HEAD + 2048]), "");
        assert!(ask(at, b"\xff\xfe \r\n\r\n").starts_with("HTTP/1.1 405"));
    }
}
