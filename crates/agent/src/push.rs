//! Sends messages to a receiver over HTTP/1.1, and never makes the watching wait.
//!
//! Each receiver has a queue, which is bounded, and a thread. A message that finds no room drops the oldest. A receiver
//! that is absent, slow or overloaded gets a message [`TRIES`] times, each within [`PATIENCE`]; then it is dropped.
//! Written on the standard library, as `serve.rs` is: a request is one POST, and of an answer only the status counts.

use crate::serve::left;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Messages and their bytes that wait, at most. A collector refuses a message of 20 MiB.
const MESSAGES: usize = 256;
const BYTES: usize = 16 << 20;
/// Time that a receiver may take for a message.
const PATIENCE: Duration = Duration::from_secs(10);
/// Times that a message is sent, at most, and the pause before the second time; before the third it is twice as long.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);
/// Bytes of an answer that are read, at most: its first line.
const ANSWER: usize = 1 << 10;

/// An HTTP receiver: `http://HOST[:PORT][/PATH]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// Host and port, as the request names them.
    authority: String,
    host: String,
    port: u16,
    /// Path that each message's own path follows, without a slash at its end.
    path: String,
}

impl std::str::FromStr for Receiver {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        let wanted = "http://HOST[:PORT][/PATH]; for https, let a collector on this host send it on";
        let rest = url.strip_prefix("http://").ok_or(wanted)?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        // A colon within brackets belongs to an address of IPv6.
        let colon = authority.rfind(':').filter(|at| *at > authority.rfind(']').unwrap_or(0));
        let (host, port) = authority.split_at(colon.unwrap_or(authority.len()));
        let port = if port.is_empty() { Ok(80) } else { port.trim_start_matches(':').parse() };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_plain = url.bytes().all(|b| b.is_ascii_graphic() && !b"@?#".contains(&b));
        match port {
            Ok(port) if !host.is_empty() && is_plain => Ok(Self {
                authority: authority.to_owned(),
                host: host.to_owned(),
                port,
                path: path.trim_end_matches('/').to_owned(),
            }),
            _ => Err(wanted.to_owned()),
        }
    }
}

/// A message to a receiver.
pub(crate) struct Message {
    /// The name of its kind, by which dropped ones are counted.
    pub(crate) what: &'static str,
    /// Path and query behind the receiver's.
    pub(crate) target: String,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
}

/// The messages that wait for a receiver, and the number that was dropped.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<Message>,
    bytes: usize,
    /// The kind of the message that is being sent.
    sending: Option<&'static str>,
    dropped: BTreeMap<&'static str, u64>,
    /// The reason why the last message was not taken.
    failure: Option<String>,
    ends: bool,
}

impl Queue {
    fn drop_message(&mut self, what: &'static str) {
        *self.dropped.entry(what).or_default() += 1;
    }

    fn take(&mut self) -> Option<Message> {
        let message = self.waiting.pop_front()?;
        self.bytes -= message.body.len();
        Some(message)
    }
}

/// The queue and its thread.
#[derive(Clone)]
pub(crate) struct Pusher {
    shared: Arc<(Mutex<Queue>, Condvar)>,
}

impl Pusher {
    /// Starts a thread that sends, until this process ends.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn start(receiver: Receiver) -> io::Result<Self> {
        let pusher = Self { shared: Arc::default() };
        let sender = pusher.clone();
        std::thread::Builder::new().name("systoll-push".into()).spawn(move || sender.send_all(&receiver))?;
        Ok(pusher)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message into the queue.
    pub(crate) fn push(&self, mut message: Message) {
        // What a body has room for is memory too: as it was written, up to twice its bytes.
        message.body.shrink_to_fit();
        let mut queue = self.queue();
        queue.bytes += message.body.len();
        queue.waiting.push_back(message);
        while queue.waiting.len() > MESSAGES || queue.bytes > BYTES {
            let Some(oldest) = queue.take() else { break };
            queue.drop_message(oldest.what);
        }
        self.shared.1.notify_all();
    }

    /// Counts a message that could not be made as dropped.
    pub(crate) fn lose(&self, what: &'static str) {
        self.queue().drop_message(what);
    }

    /// Returns how many messages of each kind were dropped since the last call, and the reason why the last message was not
    /// taken.
    pub(crate) fn outcome(&self) -> (BTreeMap<&'static str, u64>, Option<String>) {
        let mut queue = self.queue();
        (std::mem::take(&mut queue.dropped), queue.failure.clone())
    }

    /// Waits until all is sent, or `end`; then counts the rest as dropped.
    pub(crate) fn finish(&self, end: Instant) {
        let mut queue = self.queue();
        queue.ends = true;
        self.shared.1.notify_all();
        let is_busy = |queue: &mut Queue| queue.sending.is_some() || !queue.waiting.is_empty();
        let left = end.saturating_duration_since(Instant::now());
        queue = self.shared.1.wait_timeout_while(queue, left, is_busy).unwrap_or_else(PoisonError::into_inner).0;
        if let Some(what) = queue.sending {
            queue.drop_message(what);
        }
        while let Some(message) = queue.take() {
            queue.drop_message(message.what);
        }
    }

    fn send_all(&self, receiver: &Receiver) {
        loop {
            let is_empty = |queue: &mut Queue| queue.waiting.is_empty();
            let mut queue = self.shared.1.wait_while(self.queue(), is_empty).unwrap_or_else(PoisonError::into_inner);
            let Some(message) = queue.take() else { continue };
            queue.sending = Some(message.what);
            drop(queue);
            let sent = self.send(receiver, &message);
            let mut queue = self.queue();
            queue.sending = None;
            queue.failure = sent.err();
            if queue.failure.is_some() {
                queue.drop_message(message.what);
            }
            self.shared.1.notify_all();
        }
    }

    /// Sends a message, again if that may help.
    fn send(&self, receiver: &Receiver, message: &Message) -> Result<(), String> {
        let mut tries = 1;
        loop {
            let reason = match post(receiver, message) {
                Ok(200..=299) => return Ok(()),
                // These say "later" (OTLP 1.10, "Retryable Response Codes").
                Ok(status @ (429 | 502 | 503 | 504)) => format!("it answers {status}"),
                Ok(status) => return Err(format!("it answers {status}")),
                Err(error) => timed_out(error).to_string(),
            };
            if tries == TRIES || self.rest(PAUSE * tries) {
                return Err(reason);
            }
            tries += 1;
        }
    }

    /// Waits, and returns true if the agent ends.
    fn rest(&self, pause: Duration) -> bool {
        let going_on = |queue: &mut Queue| !queue.ends;
        let rested = self.shared.1.wait_timeout_while(self.queue(), pause, going_on);
        rested.unwrap_or_else(PoisonError::into_inner).0.ends
    }
}

/// Sends a request, and returns the status of the answer.
fn post(receiver: &Receiver, message: &Message) -> io::Result<u16> {
    let end = Instant::now() + PATIENCE;
    let mut stream = Err(io::Error::other("the name has no address"));
    for address in (receiver.host.as_str(), receiver.port).to_socket_addrs()? {
        stream = left(end).and_then(|left| TcpStream::connect_timeout(&address, left));
        if stream.is_ok() {
            break;
        }
    }
    let mut stream = stream?;
    let head = format!(
        "POST {}{} HTTP/1.1\r\nHost: {}\r\nUser-Agent: systoll/{}\r\nContent-Type: {}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        receiver.path,
        message.target,
        receiver.authority,
        env!("CARGO_PKG_VERSION"),
        message.content_type,
        message.body.len()
    );
    for mut rest in [head.as_bytes(), &message.body] {
        while !rest.is_empty() {
            stream.set_write_timeout(Some(left(end)?))?;
            let written = stream.write(rest)?;
            rest = rest.get(written..).unwrap_or_default();
        }
    }
    let mut answer = Vec::new();
    while !answer.contains(&b'\n') && answer.len() < ANSWER {
        let mut some = [0; ANSWER];
        stream.set_read_timeout(Some(left(end)?))?;
        let bytes = stream.read(&mut some)?;
        if bytes == 0 {
            return Err(io::Error::other("it closes the connection without an answer"));
        }
        answer.extend(some.iter().take(bytes));
    }
    let line = String::from_utf8_lossy(&answer);
    let mut words = line.split_ascii_whitespace();
    let version = words.next().unwrap_or_default();
    let status = words.next().filter(|_| version.starts_with("HTTP/1.")).and_then(|status| status.parse().ok());
    status.ok_or_else(|| io::Error::other("its answer is not HTTP"))
}

/// Says what a timeout of a socket means: the system calls it "Resource temporarily unavailable".
fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            io::Error::other(format!("it does not answer within {} s", PATIENCE.as_secs()))
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn message(bytes: usize) -> Message {
        Message { what: "metrics", target: "/v1/metrics".into(), content_type: "x/y", body: vec![b'x'; bytes] }
    }

    fn pusher_to(listener: &TcpListener) -> Pusher {
        Pusher::start(format!("http://{}/base/", listener.local_addr().unwrap()).parse().unwrap()).unwrap()
    }

    fn answer(listener: &TcpListener, with: &str) -> String {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut request, mut some) = (String::new(), [0; 1024]);
        while !request.ends_with("xxx") {
            let bytes = stream.read(&mut some).unwrap();
            request.push_str(std::str::from_utf8(&some[..bytes]).unwrap());
        }
        stream.write_all(with.as_bytes()).unwrap();
        request
    }

    #[test]
    fn receivers_are_urls_of_plain_http() {
        let parsed = |url: &str| url.parse::<Receiver>().map(|r| (r.host, r.port, r.path));
        assert_eq!(parsed("http://h:4318/"), Ok(("h".into(), 4318, String::new())));
        assert_eq!(parsed("http://[::1]:80/a/b/"), Ok(("::1".into(), 80, "/a/b".into())));
        assert_eq!(parsed("http://[::1]"), Ok(("::1".into(), 80, String::new())));
        for url in ["https://h", "h:4318", "http://", "http://h:x", "http://u@h", "http://h/?a", "http://h/\r\nX: y"] {
            assert!(parsed(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_message_is_sent_again_only_to_a_receiver_that_says_later() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let pusher = pusher_to(&listener);
        pusher.push(message(3));
        answer(&listener, "HTTP/1.1 503 Service Unavailable\r\n\r\n");
        let request = answer(&listener, "HTTP/1.1 200 OK\r\n\r\n");
        assert!(request.starts_with("POST /base/v1/metrics HTTP/1.1\r\nHost: 127.0.0.1:"), "{request}");
        assert!(
            request.ends_with("Content-Type: x/y\r\nContent-Length: 3\r\nConnection: close\r\n\r\nxxx"),
            "{request}"
        );
        pusher.push(message(3));
        answer(&listener, "HTTP/1.1 400 Bad Request\r\n\r\n");
        pusher.finish(Instant::now() + PATIENCE);
        assert_eq!(pusher.outcome(), (BTreeMap::from([("metrics", 1)]), Some("it answers 400".into())));
    }

    #[test]
    fn the_oldest_messages_are_dropped() {
        // This one accepts and never answers.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let pusher = pusher_to(&listener);
        pusher.push(message(3));
        let _hangs = listener.accept().unwrap();
        for _ in 0..MESSAGES + 5 {
            pusher.push(message(1));
        }
        assert_eq!(pusher.outcome().0, BTreeMap::from([("metrics", 5)]));
        pusher.push(message(BYTES));
        assert_eq!(pusher.queue().bytes, BYTES);
        assert_eq!(pusher.outcome().0, BTreeMap::from([("metrics", MESSAGES as u64)]));
        pusher.push(message(BYTES + 1));
        assert_eq!(pusher.queue().bytes, 0);
        assert_eq!(pusher.outcome().0, BTreeMap::from([("metrics", 2)]));
        let began = Instant::now();
        pusher.finish(began + Duration::from_millis(100));
        assert!(began.elapsed() < Duration::from_secs(5));
        assert_eq!(pusher.outcome().0, BTreeMap::from([("metrics", 1)]));
    }
}
