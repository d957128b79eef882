//! Reads Perfetto's traces as systing and Perfetto's own recorder write them: system calls by name
//! as slices of a thread's track, or the kernel's events of entry and return with the registers.
//!
//! Numbers of fields are those of `perfetto_trace.proto`,
//! <https://perfetto.dev/docs/reference/trace-packet-proto>.

mod order;
mod tracks;
mod wire;

#[cfg(test)]
mod message;
#[cfg(test)]
mod tests;

use crate::call::{Call, Syscall, Times, Written};
use crate::pending::{Entered, Pending};
use crate::trace::{Timed, Trace};
use flate2::bufread::ZlibDecoder;
use order::{Begun, Event, NO_STACK, Order, Slice, What};
use std::io::{self, BufRead, BufReader, Read};
use systoll_model::{Machine, ProblemKind, Sysno};
use tracks::{Member, Name, Tracks, process_tree};
use wire::{Field, PACKET, Packets, Value, fields, numbers};

/// Number of bytes that are read to recognise a file.
const HEAD: u64 = 1 << 16;
/// Largest size of an inflated packet of packets, bytes.
const INFLATED: u64 = 64 << 20;
/// Largest number of a packet's fields that are looked at to recognise a file.
const MOST_LOOKED_AT: usize = 1_000;
/// Least number of a clock that is a sequence's own, so that it tells no time that others share.
const OWN_CLOCKS: u64 = 64;
/// The flag `SEQ_INCREMENTAL_STATE_CLEARED`.
const CLEARED: u64 = 1;

/// Returns the beginning of a file that may be a trace of Perfetto, for [`recognise`]. Returns
/// nothing, and takes nothing from the reader, if it surely is none.
pub(crate) fn head(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    if reader.fill_buf()?.first() == Some(&PACKET) {
        reader.take(HEAD).read_to_end(&mut head)?;
    }
    Ok(head)
}

/// Returns true if a file that begins with `head` is a trace of Perfetto: its first packet is one,
/// as far as can be seen, and another follows. Text that begins with an empty line is not: its
/// second byte would be the length of something that is no message.
pub(crate) fn recognise(head: &[u8]) -> bool {
    let Some((packet, rest)) = wire::first(head) else { return false };
    let mut inside = fields(packet);
    let some = inside.by_ref().take(MOST_LOOKED_AT).count() > 0;
    match rest {
        // The packet goes on beyond `head`, most likely in the middle of a field.
        None => some,
        Some(rest) => {
            !inside.broken && (some || wire::first(rest).is_some()) && rest.first().is_none_or(|b| *b == PACKET)
        }
    }
}

/// Reads a file to its end.
pub(crate) fn read(trace: &mut Trace, reader: impl BufRead) -> io::Result<()> {
    trace.clock.count_from_nothing();
    let mut file = Perfetto::default();
    let mut packets = Packets::new(reader);
    while let Some(packet) = packets.next()? {
        if let Some(compressed) = file.packet(trace, packet) {
            let inner = BufReader::new(ZlibDecoder::new(compressed).take(INFLATED));
            let mut inner = Packets::new(inner);
            // A packet that can't be inflated is noted, and the next ones are read.
            let broken = loop {
                match inner.next() {
                    Ok(Some(packet)) => file.packet(trace, packet),
                    Ok(None) => break inner.cut,
                    Err(_) => break true,
                };
            };
            file.unread += u64::from(broken) + inner.passed_over;
        }
    }
    file.finish(trace, packets.cut, packets.passed_over);
    Ok(())
}

/// The state of reading one file of Perfetto.
#[derive(Default)]
struct Perfetto {
    tracks: Tracks,
    order: Order,
    begun: Begun,
    pending: Pending,
    /// The machine whose kernel numbered the calls; `None` if it is one that we do not know.
    machine: Numbers,
    /// True if buffers were too small for the trace.
    lost: bool,
    /// Number of packets that can't be read to their end.
    unread: u64,
    /// Number of events whose clocks tell no time that others share.
    untimed: u64,
}

/// The machine by whose table calls are numbered.
struct Numbers(Option<Machine>);

impl Default for Numbers {
    fn default() -> Self {
        Self(Some(Machine::X86_64))
    }
}

/// The facts that a packet tells about itself.
#[derive(Clone, Copy, Default)]
struct About {
    at_ns: u64,
    clock: u64,
    sequence: u64,
    cleared: bool,
}

impl Perfetto {
    /// Takes in a packet. Returns the compressed packets in it, if it holds some.
    fn packet<'a>(&mut self, trace: &mut Trace, packet: &'a [u8]) -> Option<&'a [u8]> {
        let mut about = About::default();
        let mut all = fields(packet);
        for field in &mut all {
            match field.number {
                8 => about.at_ns = field.value.number(),
                58 => about.clock = field.value.number(),
                10 => about.sequence = field.value.number(),
                13 => about.cleared |= field.value.number() & CLEARED != 0,
                41 => about.cleared |= field.value.number() != 0,
                42 => self.lost |= field.value.number() != 0,
                _ => {}
            }
        }
        self.unread += u64::from(all.broken);
        if about.cleared {
            self.tracks.forget(about.sequence);
        }
        let of = |wanted| fields(packet).filter(move |field| field.number == wanted).map(|field| field.value.bytes());
        of(12).for_each(|data| self.tracks.intern(about.sequence, data));
        let mut compressed = None;
        for Field { number, value } in fields(packet) {
            match number {
                1 => self.kernels_events(trace, value.bytes()),
                2 => process_tree(value.bytes()).for_each(|member| tell(trace, member)),
                11 => self.track_event(trace, about, value.bytes()),
                45 => {
                    if let Some(name) = machine(value.bytes()) {
                        self.machine = Numbers(str::from_utf8(name).ok().and_then(Machine::from_name));
                        trace.machine = self.machine.0;
                    }
                }
                50 => compressed = Some(value.bytes()),
                60 => {
                    if let Some(member) = self.tracks.describe(value.bytes()) {
                        tell(trace, member);
                    }
                }
                _ => {}
            }
        }
        compressed
    }

    /// Takes in an event of a track (`TrackEvent`).
    fn track_event(&mut self, trace: &mut Trace, about: About, event: &[u8]) {
        let (mut kind, mut track, mut name, mut named) = (0, 0, 0, None);
        for field in fields(event) {
            match field.number {
                9 => kind = field.value.number(),
                11 => track = field.value.number(),
                10 => name = field.value.number(),
                23 => named = Some(field.value.bytes()),
                _ => {}
            }
        }
        let Some(tid) = self.tracks.of_calls(track) else { return };
        if about.clock >= OWN_CLOCKS {
            self.untimed += 1;
            return;
        }
        let what = match kind {
            1 => {
                let name = match named {
                    Some(name) => Some(Name::of(name)),
                    None => self.tracks.name(about.sequence, name).cloned(),
                };
                What::Begins(call_of(trace, name))
            }
            2 => What::Ends,
            _ => return,
        };
        self.add(trace, Event { at_ns: about.at_ns, tid, what });
    }

    /// Takes in events of one processor (`FtraceEventBundle`).
    fn kernels_events(&mut self, trace: &mut Trace, bundle: &[u8]) {
        for field in fields(bundle) {
            match field.number {
                2 => {
                    if let Some(event) = self.kernels_event(field.value.bytes()) {
                        self.add(trace, event);
                    }
                }
                3 => self.lost |= field.value.number() != 0,
                _ => {}
            }
        }
    }

    fn kernels_event(&self, event: &[u8]) -> Option<Event> {
        let (mut at_ns, mut tid, mut what) = (0, 0, None);
        let known = |id: u64| Some(self.machine.0?.call(u32::try_from(id).ok()?));
        for field in fields(event) {
            match field.number {
                1 => at_ns = field.value.number(),
                2 => tid = field.value.number() as u32,
                329 => {
                    let (mut id, mut args, mut filled) = (u64::MAX, [0; 6], 0);
                    let mut add = |word| {
                        if let Some(place) = args.get_mut(filled) {
                            (*place, filled) = (word, filled + 1);
                        }
                    };
                    for told in fields(field.value.bytes()) {
                        match (told.number, told.value) {
                            (1, value) => id = value.number(),
                            (2, Value::Number(word)) => add(word),
                            (2, Value::Bytes(packed)) => numbers(packed).take(6).for_each(&mut add),
                            _ => {}
                        }
                    }
                    what = Some(What::Enters(known(id), args));
                }
                330 => {
                    let (mut id, mut result) = (u64::MAX, 0);
                    for told in fields(field.value.bytes()) {
                        match told.number {
                            1 => id = told.value.number(),
                            2 => result = told.value.number() as i64,
                            _ => {}
                        }
                    }
                    what = Some(What::Returns(known(id), result));
                }
                _ => {}
            }
        }
        Some(Event { at_ns, tid, what: what? })
    }

    fn add(&mut self, trace: &mut Trace, event: Event) {
        if let Some(event) = self.order.add(event) {
            self.happened(trace, event);
        }
    }

    /// Takes in an event whose turn has come.
    fn happened(&mut self, trace: &mut Trace, Event { at_ns, tid, what }: Event) {
        match what {
            What::Begins(syscall) => self.begun.begin(tid, Slice { syscall, began_ns: at_ns }),
            What::Ends => match self.begun.end(tid) {
                Some(Slice { syscall, began_ns }) => {
                    let elapsed_ns = at_ns.saturating_sub(began_ns);
                    let syscall = syscall.unwrap_or(Sysno::UNKNOWN);
                    trace.timed(Timed { tid, syscall, entry_ns: began_ns, elapsed_ns });
                }
                None => trace.notes.without_beginning += 1,
            },
            What::Enters(number, args) => {
                let text = args.map(|word| format!("{word:x}")).join(",").into_bytes();
                let syscall = numbered(trace, number);
                trace.entered(tid, syscall.0, &text);
                let written = Written::Registers;
                let entered = Entered { syscall, text, written, entry_ns: Some(at_ns), ..Entered::default() };
                if let Some(before) = self.pending.enter(tid, entered) {
                    let (call, _) = before.returned(tid, None, None);
                    trace.call(&call, NO_STACK);
                }
            }
            What::Returns(number, result) => {
                let call = match self.pending.take(tid) {
                    Some(entered) => {
                        let elapsed = entered.entry_ns.map(|from| at_ns.saturating_sub(from));
                        entered.returned(tid, Some(result), elapsed).0
                    }
                    None => {
                        trace.notes.without_beginning += 1;
                        let times = Times { entry_ns: Some(at_ns), elapsed_ns: None };
                        let (syscall, written) = (numbered(trace, number), Written::Registers);
                        Call { tid, syscall, written, result: Some(result), times, ..Call::default() }
                    }
                };
                trace.call(&call, NO_STACK);
            }
        }
    }

    fn finish(mut self, trace: &mut Trace, cut: bool, passed_over: u64) {
        while let Some(event) = self.order.next() {
            self.happened(trace, event);
        }
        let left = self.pending.drain();
        trace.notes.unfinished += left.len() as u64 + self.begun.left();
        for (tid, entered) in left {
            let (call, _) = entered.returned(tid, None, None);
            trace.call(&call, NO_STACK);
        }
        trace.notes.cut |= cut;
        let unread = self.unread + passed_over;
        if unread > 0 {
            let text =
                format!("{unread} packets are too long, broken, or can't be inflated: what they held is left out");
            trace.notes.add(ProblemKind::Lost, text);
        }
        if self.untimed > 0 {
            let text = format!("{} events have times of a clock of their own and were left out", self.untimed);
            trace.notes.add(ProblemKind::Lost, text);
        }
        if self.lost {
            trace.notes.add(ProblemKind::Lost, "the tracer says that it lost events".into());
        }
    }
}

/// Passes on the facts about a process or thread.
fn tell(trace: &mut Trace, member: Member) {
    trace.family.told(member.tid, member.pid, member.words);
}

fn call_of(trace: &mut Trace, name: Option<Name>) -> Option<Sysno> {
    match name {
        Some(Name::Call(syscall)) => return Some(syscall),
        Some(Name::Other(name)) => trace.notes.nameless(&name),
        None => trace.notes.nameless(b"?"),
    }
    None
}

fn numbered(trace: &mut Trace, number: Option<Sysno>) -> Syscall {
    let known = number.map(|number| Sysno::made(number.0)).filter(|number| *number != Sysno::UNKNOWN);
    if known.is_none() {
        trace.notes.nameless(b"?");
    }
    Syscall(known.unwrap_or(Sysno::UNKNOWN))
}

/// Returns the machine in a description of the system (`SystemInfo`).
fn machine(info: &[u8]) -> Option<&[u8]> {
    let within = |message, wanted| fields(message).find(|field: &Field<'_>| field.number == wanted);
    let utsname = within(info, 1)?.value.bytes();
    Some(within(utsname, 4)?.value.bytes())
}
