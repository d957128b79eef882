//! The systoll that watches a running program for `prove --live`.

use crate::failure::Failure;
use crate::output::to_stderr;
use crate::turns::{self, Answer, LeftState};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::{Duration, Instant};
use systoll_cure::{interrupted, spare};
use systoll_model::Elision;
use systoll_prove::Ended;
use systoll_record::{TurnOrder, TurnTotals};

/// Time that an answer may take: entering plans the program's files first.
const ANSWERS: Duration = Duration::from_secs(120);
/// Time that leaving may take.
const LEAVES: Duration = Duration::from_secs(60);
/// Time between two looks for an interrupt.
const LOOK: Duration = Duration::from_millis(20);

/// The reason why there are no totals.
pub(super) enum Told {
    /// The processes are not watched any more, or systoll is to end.
    Over(Ended),
    /// The processes could not be entered; holds the reason, and the command that helps.
    Refused(String, Option<String>),
}

/// A systoll that watches.
pub(super) struct Watching {
    child: Child,
    /// Pipe for orders to the child. Closing the pipe ends the watching.
    orders: Option<ChildStdin>,
    answers: Receiver<Answer>,
    left: Option<LeftState>,
}

impl Watching {
    /// Starts a systoll that watches the processes `pids` and can answer the calls `elided`.
    pub(super) fn begin(pids: &[i32], elided: &[Elision]) -> Result<Self, Failure> {
        let own = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
        let names: Vec<&str> = elided.iter().map(|call| call.name()).collect();
        let numbers: Vec<String> = pids.iter().map(i32::to_string).collect();
        let mut command = Command::new(&own);
        command.args(["attach", "-q", "--elide", &names.join(","), "-p", &numbers.join(",")]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // Ctrl-C is for this process, which tells the other one to leave.
        command.process_group(0);
        let mut child = command.spawn().map_err(|e| Failure::Exec(own, e))?;
        spare(child.id());
        let (sender, answers) = channel();
        if let Some(out) = child.stdout.take() {
            // Without the thread no answer comes, and the processes are left.
            let _ = std::thread::Builder::new().name("systoll-answers".into()).spawn(move || {
                let lines = BufReader::new(out).lines().map_while(Result::ok);
                for answer in lines.map_while(|line| turns::read(&line)) {
                    if sender.send(answer).is_err() {
                        return;
                    }
                }
            });
        }
        let orders = child.stdin.take();
        Ok(Self { child, orders, answers, left: None })
    }

    /// Gives an order, and returns the totals after it.
    pub(super) fn ask(&mut self, order: TurnOrder) -> Result<TurnTotals, Told> {
        if let Some(orders) = &mut self.orders {
            // If the child has ended, its last answer says so, or no answer comes.
            let _ = turns::write_order(orders, order);
        }
        let end = Instant::now() + ANSWERS;
        while Instant::now() < end {
            match self.answers.recv_timeout(LOOK) {
                Ok(Answer::Totals(totals)) if totals.processes > 0 => return Ok(totals),
                Ok(Answer::Totals(_)) => return Err(gone("the program has ended")),
                Ok(Answer::Refused(reason, advice)) => return Err(Told::Refused(reason, advice)),
                Ok(Answer::Left(left)) => {
                    self.left = Some(left);
                    return Err(gone("the program has ended"));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(gone(STOPPED)),
                Err(RecvTimeoutError::Timeout) if interrupted().is_some() => {
                    return Err(Told::Over(Ended::Interrupted));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        Err(gone("the systoll that watches it does not answer"))
    }

    /// Returns the reason why the processes are not watched any more; `None` if they are.
    pub(super) fn is_over(&mut self) -> Option<String> {
        match self.answers.try_recv() {
            Ok(Answer::Left(left)) => {
                self.left = Some(left);
                Some("the program has ended".into())
            }
            Ok(_) | Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(STOPPED.into()),
        }
    }

    /// Makes the other systoll leave the processes, and returns the state in which it left them. If it was killed,
    /// removes what it has left behind in them.
    pub(super) fn end(mut self, pids: &[i32]) -> Result<Option<LeftState>, Failure> {
        self.orders = None;
        let end = Instant::now() + LEAVES;
        while self.left.is_none() && Instant::now() < end {
            match self.answers.recv_timeout(LOOK) {
                Ok(Answer::Left(left)) => self.left = Some(left),
                Err(RecvTimeoutError::Disconnected) => break,
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
        if self.left.is_none() {
            // The child may have ended already.
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
        if self.left.is_some() {
            return Ok(self.left);
        }
        for pid in pids.iter().filter(|pid| std::fs::exists(format!("/proc/{pid}")).unwrap_or(false)) {
            systoll_record::clean(*pid)?;
            to_stderr(&format!("systoll: what was left in process {pid} has been taken out\n"));
        }
        Ok(None)
    }
}

const STOPPED: &str = "the systoll that watches it was ended";

fn gone(why: &str) -> Told {
    Told::Over(Ended::Gone(why.into()))
}
