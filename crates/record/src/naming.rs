//! Turns the table that every backend fills into a recording's rows, windows and names.

use crate::raw_window::{RawCall, RawWindow};
use crate::row_lines::Line;
use crate::samples::WeighedSample;
use crate::stacks::RawStack;
use crate::table::{RawRow, Table};
use crate::trunks::{RawTrunk, Trunks};
use crate::whole_stacks::MergedTrunks;
use crate::windows::Windows;
use foldhash::{HashMap, HashMapExt};
use std::sync::Arc;
use systoll_model::{
    Before, Frame, FrameClass, FrameId, Module, ModuleId, ObjectSample, Problem, ProblemKind, RequestKindId, Row,
    RowId, RowLine, RowTrunk, Stack, StackId, Sysno, Thread, VdsoRow, WholeStack, Window, WindowCall,
};
use systoll_symbols::{Lines, ModuleKey, RawFrame, Symbols};

/// Number of whole stacks that must agree on the user's frame if a context does not reach it.
const ENOUGH_STACKS: u64 = 4;

/// The call that returns from a signal handler; the program itself does not make it.
const RT_SIGRETURN: Sysno = Sysno(15);

/// Notes as problems that the table has merged entries to stay within its bounds.
pub(crate) fn note_bounds(table: &Table, problems: &mut Vec<Problem>) {
    if table.rows_folded {
        problems.push(Problem::new(
            ProblemKind::Bounded,
            "too many calling contexts: some calls are counted without theirs",
        ));
    }
    if table.images_folded() {
        problems.push(Problem::new(
            ProblemKind::Bounded,
            "very many processes: later ones of a program are counted together",
        ));
    }
}

/// Returns the rows of the table, with names.
pub(crate) fn rows(table: &Table, names: &Names, symbols: &mut Symbols) -> Vec<Row> {
    // Processes of one program share most contexts, each of them with a row of its own.
    let mut entered: HashMap<*const [RawFrame], ApiEntry> = HashMap::new();
    let lent = table.lent_lines();
    let row = |(at, raw): (usize, &RawRow)| {
        let context = context(raw, table, symbols);
        let entered = entered.entry(context).or_insert_with(|| ApiEntry::by(context, names, symbols));
        let ApiEntry { api, api_module, user } = entered.clone();
        let lines = lent.get(&at).map_or_else(|| names.lines_of(raw), |lent| names.sorted(lent));
        // An interpreter's first frame tells nothing about the user; the line of its script does.
        let of_runtime = || context.last().filter(|f| symbols.is_interpreter(**f)).and_then(|f| names.frame_id(f));
        let user = user.or(lines.first().map(|l| l.frame)).or_else(of_runtime);
        Row {
            process: raw.image.process(),
            syscall: raw.syscall,
            context: StackId(raw.context),
            outer: names.outer_of(at, raw, table),
            api,
            api_module,
            user: user.filter(|_| raw.syscall != RT_SIGRETURN),
            lines,
            counts: raw.counts.clone(),
        }
    };
    table.rows.iter().enumerate().map(row).collect()
}

/// The API function by which a context enters the C library, and the user's frame.
#[derive(Clone)]
struct ApiEntry {
    api: Option<Arc<str>>,
    api_module: Option<ModuleId>,
    user: Option<FrameId>,
}

impl ApiEntry {
    fn by(context: &[RawFrame], names: &Names, symbols: &mut Symbols) -> Self {
        let (api, module) = symbols.api(context).unzip();
        let api_module = module.flatten().and_then(|key| names.module_of(key));
        Self { api, api_module, user: names.user_of(context) }
    }
}

/// Returns a row's context up to the user's frame. The tree of contexts may end earlier, where return addresses do not
/// lie at constant places; then whole stacks supply the rest: with certainty if every call's stack was sampled,
/// otherwise if several random ones agree.
fn context<'t>(row: &RawRow, table: &'t Table, symbols: &mut Symbols) -> &'t [RawFrame] {
    let context = table.stacks.get(row.context as usize).map_or(&[][..], |s| &s.frames);
    let mut has_user = |frames: &[RawFrame]| {
        frames.iter().position(|f| matches!(symbols.class(*f), FrameClass::User | FrameClass::Unknown))
    };
    let looks = row.lines.iter().fold(0u64, |sum, l| sum.saturating_add(l.looks));
    let shared = |l: &Line| table.stacks.get(l.whole as usize).and_then(|s| s.frames.get(..l.shared));
    let Some(whole) = row.lines.first().and_then(shared).filter(|_| looks >= row.entered.min(ENOUGH_STACKS)) else {
        return context;
    };
    let has_none = has_user(context).is_none();
    let Some(found) =
        has_user(whole).and_then(|user| whole.get(..=user)).filter(|f| has_none && f.starts_with(context))
    else {
        return context;
    };
    let agree = row.lines.iter().all(|l| shared(l).is_some_and(|s| s.starts_with(found)));
    if agree { found } else { context }
}

/// Returns the calls of each thread that made any.
pub(crate) fn threads(table: &Table) -> Vec<Thread> {
    let told = table.threads.iter().filter(|(_, t)| !t.calls.is_empty());
    told.map(|((image, tid), thread)| Thread {
        process: image.process(),
        tid: *tid,
        name: thread.name.clone().filter(|_| *tid != 0).unwrap_or_default(),
        calls: thread.calls.values().copied().collect(),
    })
    .collect()
}

/// Returns the calls into the vDSO, most frequent first.
pub(crate) fn vdso_rows(table: &Table, names: &Names, symbols: &mut Symbols) -> Vec<VdsoRow> {
    let mut rows: Vec<VdsoRow> = Vec::with_capacity(table.vdso.len());
    for ((image, function, context), calls) in &table.vdso {
        let frames = table.stacks.get(*context as usize).map_or(&[][..], |s| &s.frames);
        rows.push(VdsoRow {
            process: image.process(),
            function: (*function).into(),
            context: StackId(*context),
            api: symbols.api(frames).map(|(name, _)| name),
            user: names.user_of(frames),
            calls: *calls,
        });
    }
    rows.sort_by(|a, b| {
        let rest = |r: &VdsoRow| (r.process, r.context);
        b.calls.cmp(&a.calls).then_with(|| a.function.cmp(&b.function)).then_with(|| rest(a).cmp(&rest(b)))
    });
    rows
}

/// Returns the windows `all`, with names. `kept` provides the names of sockets and the ledger, `numbers` those of the kinds
/// of requests.
pub(crate) fn windows(kept: &Windows, all: Vec<RawWindow>, numbers: &[u32]) -> Vec<Window> {
    let sockets = kept.socket_names();
    let named = |fd: Arc<str>| sockets.get(&*fd).cloned().unwrap_or(fd);
    let call = |c: RawCall| WindowCall {
        before: c.asked.map_or(Before::Unknown, |asked| kept.ledger.before(&asked, c.entry_ns)),
        row: RowId(c.row),
        nth: c.nth,
        args: c.args,
        data: c.data,
        fd: c.fd.map(named),
        result: c.result,
        entry_ns: c.entry_ns,
        elapsed_ns: c.elapsed_ns,
        waited_ns: c.waited_ns,
        signals_before: c.signals_before,
        faults: c.faults,
        stack: c.stack.map(StackId),
        request: c.request.and_then(|number| numbers.get(number as usize)).copied().map(RequestKindId),
    };
    let window = |w: RawWindow| Window {
        process: w.image.process(),
        thread: w.thread,
        row: RowId(w.row),
        octave: w.octave,
        calls: w.calls.into_iter().map(call).collect(),
    };
    all.into_iter().map(window).collect()
}

/// Names of everything to which the table refers.
pub(crate) struct Names {
    pub(crate) modules: Vec<Module>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) stacks: Vec<Stack>,
    pub(crate) problems: Vec<Problem>,
    ids: HashMap<RawFrame, FrameId>,
    module_ids: HashMap<ModuleKey, ModuleId>,
    /// Ids of the parts of whole stacks.
    parts: HashMap<Part, StackId>,
    /// The merged whole stacks of each row that has no script lines.
    told: Vec<Option<MergedTrunks>>,
    empty: StackId,
}

/// A part of a whole stack: the stack's id, the index of its first frame, and the end index.
type Part = (u32, usize, usize);

impl Names {
    /// Names all distinct addresses of the table at once.
    pub(crate) fn resolve(table: &Table, symbols: &mut Symbols) -> Self {
        let mut distinct = Vec::new();
        let mut ids = HashMap::new();
        let mut id_of = |frame: &RawFrame| {
            *ids.entry(*frame).or_insert_with(|| {
                distinct.push(*frame);
                FrameId(distinct.len() as u32 - 1)
            })
        };
        let numbered = |s: &RawStack| Stack { frames: s.frames.iter().map(&mut id_of).collect(), complete: s.complete };
        let mut stacks: Vec<Stack> = table.stacks.iter().map(numbered).collect();
        table.sampled_calls.lines().iter().for_each(|line| {
            id_of(line);
        });
        let resolved = symbols.resolve_lines(&distinct, Lines::OutsideLibc);
        let frames_of = |raw: &[RawFrame]| raw.iter().filter_map(|f| ids.get(f).copied()).collect();
        let name = |frame: &RawFrame| ids.get(frame).and_then(|id: &FrameId| resolved.frames.get(id.0 as usize));
        let same = |a: &RawFrame, b: &RawFrame| {
            a == b
                || name(a).zip(name(b)).is_some_and(|(a, b)| {
                    a.locations == b.locations && a.module == b.module && a.class != FrameClass::Unknown
                })
        };
        let lent = table.lent_stacks();
        let rows = || table.rows.iter().enumerate();
        let told: Vec<Option<MergedTrunks>> =
            rows().map(|(at, row)| MergedTrunks::of(row, lent.get(&at), table, same)).collect();
        let mut parts = HashMap::new();
        let outers = rows().zip(&told).filter_map(|((_, row), told)| outer_part(row, told.as_ref(), table));
        let trunks = rows().zip(&told).flat_map(|((_, row), told)| {
            let trunks = several(row, told.as_ref()).all.into_iter();
            trunks.filter_map(|trunk| whole_part(row, &trunk, table)).collect::<Vec<_>>()
        });
        let samples = table.rows.iter().flat_map(|row| {
            let stacks = row.weighed_samples().into_iter();
            stacks.filter_map(|sample| part_above(row, sample.stack.whole, table)).collect::<Vec<_>>()
        });
        for part in outers.chain(trunks).chain(samples) {
            parts.entry(part).or_insert_with(|| {
                let (whole, from, to) = part;
                let source = table.stacks.get(whole as usize);
                let frames = source.and_then(|s| s.frames.get(from..to.max(from))).unwrap_or_default();
                let complete = source.is_some_and(|s| s.complete && to == s.frames.len());
                stacks.push(Stack { frames: frames_of(frames), complete });
                StackId(stacks.len() as u32 - 1)
            });
        }
        let empty = StackId(stacks.len() as u32);
        stacks.push(Stack::default());
        Self {
            modules: resolved.modules,
            frames: resolved.frames,
            stacks,
            problems: resolved.problems,
            ids,
            module_ids: resolved.module_ids,
            parts,
            told,
            empty,
        }
    }

    pub(crate) fn frame_id(&self, frame: &RawFrame) -> Option<FrameId> {
        self.ids.get(frame).copied()
    }

    /// Returns the user's own frame. Usually it is the last, but a library function may have the user's code inlined.
    fn user_of(&self, context: &[RawFrame]) -> Option<FrameId> {
        let is_users = |id: &FrameId| self.frames.get(id.0 as usize).is_some_and(|f| f.class == FrameClass::User);
        context.iter().filter_map(|f| self.frame_id(f)).find(is_users)
    }

    fn module_of(&self, key: ModuleKey) -> Option<ModuleId> {
        self.module_ids.get(&key).copied()
    }

    /// Returns the script lines of a row's calls, those with the most calls first.
    fn lines_of(&self, row: &RawRow) -> Vec<RowLine> {
        if !row.lines_tell() {
            return Vec::new();
        }
        let mut lines = self.sorted(&row.lines);
        let main = row.main_line().and_then(|l| self.frame_id(&l.line?));
        lines.sort_by_key(|l| (Some(l.frame) != main, std::cmp::Reverse(l.weight), l.frame));
        lines
    }

    /// Returns script lines, those with the most calls first.
    fn sorted(&self, lines: &[Line]) -> Vec<RowLine> {
        let line = |l: &Line| Some(RowLine { frame: self.frame_id(&l.line?)?, looks: l.looks, weight: l.weight });
        let mut lines: Vec<RowLine> = lines.iter().filter_map(line).collect();
        lines.sort_by_key(|l| (std::cmp::Reverse(l.weight), l.frame));
        lines
    }

    fn outer_of(&self, at: usize, row: &RawRow, table: &Table) -> StackId {
        let part = outer_part(row, self.told.get(at).and_then(Option::as_ref), table);
        part.and_then(|part| self.parts.get(&part).copied()).unwrap_or(self.empty)
    }

    /// Returns the samples by object of rows that serve several lines or callers. A row without samples of its own has those
    /// of the same calls in other processes of its script.
    pub(crate) fn object_samples(&self, table: &Table) -> Vec<ObjectSample> {
        let lent = table.lent_samples();
        let of_row = |(at, row): (usize, &RawRow)| {
            let source = lent.get(&at).and_then(|at| table.rows.get(*at)).unwrap_or(row);
            let sample = |sample: WeighedSample| {
                Some(ObjectSample {
                    row: RowId(at as u32),
                    object: sample.object,
                    line: sample.stack.line.and_then(|line| self.frame_id(&line)),
                    above: *self.parts.get(&part_above(source, sample.stack.whole, table)?)?,
                    whole: StackId(sample.stack.full),
                    looks: sample.looks,
                    weight: sample.weight,
                    squares: sample.squares,
                })
            };
            source.weighed_samples().into_iter().filter_map(sample).collect::<Vec<_>>()
        };
        table.rows.iter().enumerate().flat_map(of_row).collect()
    }

    /// Returns the whole stacks of rows that have several.
    pub(crate) fn trunks(&self, table: &Table) -> Vec<RowTrunk> {
        let of_row = |(at, row): (usize, &RawRow)| {
            let Trunks { all, others } = several(row, self.told.get(at).and_then(Option::as_ref));
            let id = RowId(at as u32);
            let told = |trunk: RawTrunk| {
                let part = whole_part(row, &trunk, table)?;
                Some(RowTrunk { row: id, stack: *self.parts.get(&part)?, weight: trunk.weight, looks: trunk.looks })
            };
            // The remaining stacks are known only by the frames that all of them share.
            let others = RowTrunk { row: id, stack: self.outer_of(at, row, table), weight: others, looks: 0 };
            all.into_iter().filter_map(told).chain((others.weight > 0).then_some(others)).collect::<Vec<_>>()
        };
        table.rows.iter().enumerate().flat_map(of_row).collect()
    }
}

/// Returns the sampled stacks, with the interpreter's own frames, of rows of which the other stacks leave some out. Rows
/// with more stacks than are remembered have none: some of their calls came by unknown ones.
pub(crate) fn whole_stacks(table: &Table) -> Vec<WholeStack> {
    let leaves_out = |row: &RawRow| row.trunks.others == 0 && row.trunks.all.iter().any(|t| t.full != t.whole);
    let rows = table.rows.iter().enumerate().filter(|(_, row)| leaves_out(row));
    rows.flat_map(|(at, row)| {
        row.trunks.all.iter().map(move |trunk| WholeStack {
            row: RowId(at as u32),
            stack: StackId(trunk.full),
            weight: trunk.weight,
            looks: trunk.looks,
        })
    })
    .collect()
}

/// Returns a row's whole stacks if there are several and they cover enough of its calls.
fn several(row: &RawRow, told: Option<&MergedTrunks>) -> Trunks {
    match told {
        Some(told) => Some(&told.trunks).filter(|_| told.differ()),
        None => Some(&row.trunks).filter(|trunks| row.lines_tell() && (trunks.all.len() > 1 || trunks.others > 0)),
    }
    .cloned()
    .unwrap_or_default()
}

/// Returns the part of a trunk that lies above a row's context.
fn whole_part(row: &RawRow, trunk: &RawTrunk, table: &Table) -> Option<Part> {
    part_above(row, trunk.whole, table)
}

/// Returns the part of a whole stack that lies above a row's context.
fn part_above(row: &RawRow, whole: u32, table: &Table) -> Option<Part> {
    let context = table.stacks.get(row.context as usize)?.frames.len();
    Some((whole, context, table.stacks.get(whole as usize)?.frames.len()))
}

/// Returns the part above a row's context that all its whole stacks share. If they already differ below the script's
/// line, returns that line and the callers that all stacks with it share.
fn outer_part(row: &RawRow, told: Option<&MergedTrunks>, table: &Table) -> Option<Part> {
    let context = table.stacks.get(row.context as usize)?.frames.len();
    if let Some((told, first)) = told.and_then(|told| Some((told, told.trunks.all.first()?))) {
        return Some((first.whole, context, told.shared));
    }
    let Line { line, whole, shared, .. } = *row.main_line()?;
    let line = line.filter(|_| row.lines_tell());
    let stack = table.stacks.get(whole as usize)?;
    let at = line.and_then(|line| stack.frames.iter().position(|f| *f == line));
    let Some(at) = at.filter(|at| *at >= shared) else { return Some((whole, context, shared)) };
    let outwards = stack.frames.get(at..)?;
    let of_trunk = |trunk: &RawTrunk| {
        let frames = &table.stacks.get(trunk.whole as usize)?.frames;
        let from = frames.iter().position(|frame| Some(frame) == outwards.first())?;
        Some(frames.get(from..)?.iter().zip(outwards).take_while(|(a, b)| a == b).count())
    };
    // Of stacks that were not kept, the callers are unknown.
    let shared = if row.trunks.others > 0 { None } else { row.trunks.all.iter().filter_map(of_trunk).min() };
    Some((whole, at, at + shared.unwrap_or(1)))
}
