//! The server's loop: reads lines, writes answers, runs calls in threads.

use crate::calls::{Calls, Cancelled};
use crate::lines::{MAX_LINE, ReadLine, next_line};
use crate::message::{Id, Message, Refusal, answer, read};
use crate::outbox::{Gone, Outbox};
use crate::session::{Era, Session, Wanted, result_of, stamped};
use crate::tool::{Answer, Call, Server, Tool};
use serde_json::{Map, Value};
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Scope};
use std::time::Duration;

/// Calls that are served at once, at most; more are refused.
pub const MAX_AT_ONCE: usize = 16;
/// Lines that are read ahead, at most.
const AHEAD: usize = 4;
/// Interval between checks if serving should end.
const LOOK: Duration = Duration::from_millis(20);
/// Time to write the last answers.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Serves until `from` ends, `to` is closed, or `is_over` returns true. Calls in progress are then
/// cancelled and waited for.
///
/// # Errors
/// If the threads for reading or writing can't be started, or if reading `from` fails.
pub fn serve(
    server: &Server,
    from: impl BufRead + Send + 'static,
    to: impl Write + Send + 'static,
    is_over: &dyn Fn() -> bool,
) -> io::Result<()> {
    let lines = read_ahead(from)?;
    let (outbox, written) = Outbox::new(to)?;
    let calls = Calls::default();
    let served = thread::scope(|scope| {
        let mut desk = Desk { scope, server, outbox: &outbox, calls: &calls, session: Session::default() };
        let served = desk.serve(&lines, is_over);
        calls.cancel_all();
        served
    });
    drop(outbox);
    written.wait(LAST_WORDS);
    served
}

/// Returns all answers to `asked`, in order. Each call has ended before the next line is read. This
/// is for tests and examples.
pub fn answers(server: &Server, asked: &[u8]) -> String {
    #[derive(Clone, Default)]
    struct Heard(Arc<Mutex<Vec<u8>>>);
    impl Write for Heard {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let heard = Heard::default();
    let Ok((outbox, written)) = Outbox::new(heard.clone()) else { return String::new() };
    let calls = Calls::default();
    let mut session = Session::default();
    let mut from = asked;
    while let Ok(line) = next_line(&mut from) {
        if line == ReadLine::End {
            break;
        }
        session = thread::scope(|scope| {
            let session = std::mem::take(&mut session);
            let mut desk = Desk { scope, server, outbox: &outbox, calls: &calls, session };
            // The client can't be gone, since it is in this process.
            let _ = desk.line(line);
            desk.session
        });
    }
    drop(outbox);
    written.wait(LAST_WORDS * 20);
    let heard = heard.0.lock().unwrap_or_else(PoisonError::into_inner);
    String::from_utf8_lossy(&heard).into_owned()
}

/// Reads lines in a separate thread, which ends with the stream or the process.
fn read_ahead(mut from: impl BufRead + Send + 'static) -> io::Result<Receiver<io::Result<ReadLine>>> {
    let (lines, read) = sync_channel(AHEAD);
    thread::Builder::new().name("systoll-hear".into()).spawn(move || {
        loop {
            let line = next_line(&mut from);
            let last = !matches!(line, Ok(ReadLine::Whole(_) | ReadLine::TooLong));
            if lines.send(line).is_err() || last {
                break;
            }
        }
    })?;
    Ok(read)
}

/// State of the server's loop.
struct Desk<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    server: &'env Server,
    outbox: &'env Outbox,
    calls: &'env Calls,
    session: Session,
}

impl<'scope, 'env> Desk<'scope, 'env> {
    fn serve(&mut self, lines: &Receiver<io::Result<ReadLine>>, is_over: &dyn Fn() -> bool) -> io::Result<()> {
        while !is_over() {
            match lines.recv_timeout(LOOK) {
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) | Ok(Ok(ReadLine::End)) => break,
                Ok(Err(e)) => return Err(e),
                Ok(Ok(line)) => {
                    if let Err(Gone) = self.line(line) {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn line(&mut self, line: ReadLine) -> Result<(), Gone> {
        let line = match line {
            ReadLine::Whole(line) if line.trim_ascii().is_empty() => return Ok(()),
            ReadLine::Whole(line) => line,
            ReadLine::TooLong | ReadLine::End => {
                let refusal = Refusal::invalid(format!("a message of more than {MAX_LINE} bytes"));
                return self.outbox.put(answer(None, Err(refusal)));
            }
        };
        match read(&line) {
            Message::Wrong(id, refusal) => self.outbox.put(answer(id.as_ref(), Err(refusal))),
            Message::Answer => Ok(()),
            Message::Notification { method, params } => {
                let id = params.get("requestId").and_then(Id::of);
                if let Some(id) = id.filter(|_| method == "notifications/cancelled") {
                    self.calls.cancel(&id);
                }
                Ok(())
            }
            Message::Request { id, method, params } => match self.session.request(self.server, &method, params) {
                Err(refusal) => self.outbox.put(answer(Some(&id), Err(refusal))),
                Ok(Wanted::Result(result)) => self.outbox.put(answer(Some(&id), Ok(result))),
                Ok(Wanted::Call { tool, arguments, token, era }) => {
                    let Some(tool) = self.server.tools.get(tool) else { return Ok(()) };
                    match self.admit(&id) {
                        Err(refusal) => self.outbox.put(answer(Some(&id), Err(refusal))),
                        Ok(cancelled) => self.start(tool.as_ref(), Served { id, arguments, token, era, cancelled }),
                    }
                }
            },
        }
    }

    /// Returns the flag that cancels a call, if the call may begin.
    fn admit(&self, id: &Id) -> Result<Cancelled, Refusal> {
        if self.calls.count() >= MAX_AT_ONCE {
            return Err(Refusal::busy(format!("{MAX_AT_ONCE} calls are being served: wait for one to end")));
        }
        self.calls.begin(id).ok_or_else(|| Refusal::invalid("a request with this id is being served"))
    }

    fn start(&self, tool: &'env dyn Tool, served: Served) -> Result<(), Gone> {
        let (server, outbox, calls) = (self.server, self.outbox, self.calls);
        let id = served.id.clone();
        let work = move || {
            let call = Call { outbox, token: served.token, cancelled: &served.cancelled };
            // A tool's panic affects only its own call.
            let done = catch_unwind(AssertUnwindSafe(|| tool.call(&served.arguments, &call)));
            let done = done.unwrap_or_else(|_| Answer::Failed("the tool failed: a mistake of its own".into()));
            calls.end(&served.id);
            // A cancelled call gets no answer.
            if !served.cancelled.load(Ordering::Acquire) {
                // If the client is gone, the loop finds that out itself.
                let _ = outbox.put(answer(Some(&served.id), Ok(stamped(server, result_of(done), served.era))));
            }
        };
        if thread::Builder::new().name("systoll-tool".into()).spawn_scoped(self.scope, work).is_err() {
            calls.end(&id);
            return outbox.put(answer(Some(&id), Err(Refusal::internal("there can be no thread for it"))));
        }
        Ok(())
    }
}

/// A call that is about to start.
struct Served {
    id: Id,
    arguments: Map<String, Value>,
    token: Option<Value>,
    era: Era,
    cancelled: Cancelled,
}
