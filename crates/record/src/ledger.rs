//! The ledger of a run: what dear calls that name an object were about, see [`systoll_model::Notes`].

use crate::table::{ImageId, Table};
use crate::windows::RawCall;
use systoll_model::{Before, Looked, Notes, Question, Sysno};

/// Filled with calls as they are looked at, by whichever way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    notes: Notes,
}

impl Ledger {
    /// Notes a call of an image.
    pub(crate) fn note(&mut self, table: &Table, image: ImageId, call: &RawCall) {
        let Some(syscall) = table.rows.get(call.row as usize).map(|row| row.syscall) else { return };
        let Some(question) = question(syscall, call) else { return };
        let (process, row) = (image.index() as u32, call.row);
        let (at_ns, stands_for) = (call.entry_ns, call.stands_for);
        self.notes.add(Looked { process, row, syscall, question: &question, at_ns, stands_for });
    }

    /// How the question of a call of an image is known from before.
    pub(crate) fn before(&self, table: &Table, image: ImageId, call: &RawCall) -> Before {
        let asked = table.rows.get(call.row as usize).and_then(|row| question(row.syscall, call));
        asked.map_or(Before::Unknown, |q| self.notes.before(image.index() as u32, &q, call.entry_ns))
    }

    /// What came of it, by rows.
    pub(crate) fn ledgers(&self) -> Vec<systoll_model::Ledger> {
        self.notes.ledgers()
    }
}

fn question(syscall: Sysno, call: &RawCall) -> Option<Question> {
    Question::of(syscall.signature()?, &call.args, &call.data, call.fd.as_deref(), call.result)
}
