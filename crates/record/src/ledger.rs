//! The ledger of a run: the questions about objects that expensive calls have asked, see [`systoll_model::Notes`].

use crate::table::Table;
use systoll_model::{ArgData, Before, Looked, Notes, Question, QuestionAsked, Sysno};

/// A sampled call, with the fields that the ledger needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampledCall<'a> {
    pub(crate) row: u32,
    pub(crate) args: &'a [u64; 6],
    pub(crate) data: &'a [ArgData],
    pub(crate) fd: Option<&'a str>,
    pub(crate) result: Option<i64>,
    pub(crate) entry_ns: u64,
    /// Number of calls of the row that this sample stands for; 0 if the ledger does not count it.
    pub(crate) stands_for: u64,
}

/// Questions of sampled calls, from windows and from single samples alike.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    notes: Notes,
}

impl Ledger {
    /// Notes a call of a process ([`Table::process`]). Returns the question that it asked.
    pub(crate) fn note(&mut self, table: &Table, process: u32, call: SampledCall<'_>) -> Option<QuestionAsked> {
        let syscall = table.rows.get(call.row as usize)?.syscall;
        let question = question(syscall, call)?;
        let (row, at_ns, stands_for) = (call.row, call.entry_ns, call.stands_for);
        self.notes.add(Looked { process, row, syscall, question: &question, at_ns, stands_for });
        Some(QuestionAsked::new(process, &question))
    }

    /// Notes a sampled call that is part of no window.
    pub(crate) fn note_look(&mut self, look: Looked<'_>) {
        self.notes.add(look);
    }

    /// Returns the relation of a question, asked at `at_ns`, to earlier ones.
    pub(crate) fn before(&self, asked: &QuestionAsked, at_ns: u64) -> Before {
        self.notes.before(asked, at_ns)
    }

    /// Returns the finished ledgers, by row.
    pub(crate) fn ledgers(&self) -> Vec<systoll_model::Ledger> {
        self.notes.ledgers()
    }
}

fn question(syscall: Sysno, call: SampledCall<'_>) -> Option<Question<'_>> {
    Question::of(syscall.signature()?, call.args, call.data, call.fd, call.result)
}
