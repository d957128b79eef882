//! The chain of callers in a report: the API, the user's frame, the frames above it.

use super::finding::VAGUE;
use super::screen::{DETAIL, Report};
use crate::access::{frame, module, row, stack};
use crate::style::{Line, Role};
use crate::text::clean;
use crate::units::percent_of;
use std::cmp::Reverse;
use systoll_judge::caller_bounds;
use systoll_model::{Frame, FrameClass, FrameId, Phase, Row, RowId, before_thread, short_file};

/// Frames of a chain that are shown without `-k`.
const FRAMES: usize = 4;

/// Columns of a function's name in a chain, at most.
const NAME: usize = 56;

/// Columns of a file's name and line, at most.
const PLACE: usize = 40;

/// The frames of a row from the system call outwards.
struct Chain {
    frames: Vec<FrameId>,
    /// Number of leading frames that all samples share.
    sure: usize,
    /// Share of the row's calls, as text, whose samples have the frames behind the first `sure` ones too; `None` if it is
    /// unknown or nearly all.
    share: Option<String>,
}

impl Report<'_> {
    /// Returns the chain of a finding's most expensive row, on as many lines as it needs.
    pub(super) fn chain(&self, id: RowId, phase: Phase) -> Vec<Line> {
        let Some(row) = row(self.rec, id) else { return vec![] };
        if self.options.stacks {
            return self.stacks_of(id, DETAIL);
        }
        let mut links = self.api_link(row).into_iter().collect::<Vec<_>>();
        let chain = self.whole_chain(id, row);
        let frames = self.callers(row, &chain.frames);
        let last = frames.len().min(FRAMES).saturating_sub(1);
        for (i, (at, f)) in frames.iter().take(FRAMES).enumerate() {
            let next = frames.get(i + 1).filter(|_| i < last);
            let mut of_frame = self.frame_links(f, next.map(|(_, f)| *f));
            // Outwards of this frame the calls of the row have different callers, so the share is shown.
            if let (true, Some(share), Some(link)) = (*at == chain.sure, &chain.share, of_frame.first_mut()) {
                link.push(Role::Faint, format!(" in {share}"));
            }
            links.extend(of_frame);
        }
        let mut links = dedup(links);
        if phase == Phase::StartUp && self.in_constructor(row) {
            match links.last_mut() {
                Some(last) => last.push(Role::Faint, ", constructor"),
                None => links.push(Line::of(Role::Faint, "a constructor")),
            }
        }
        self.join_links(links)
    }

    /// Returns the place of the user's frame: `parse app.c:40`.
    pub(super) fn place(&self, row: &Row) -> Option<Line> {
        self.place_of(row.user?)
    }

    /// Returns the place that calls the function of a row's own place, `shown`, if its line is known: `work serve.c:33`.
    pub(super) fn place_outwards(&self, id: RowId, shown: FrameId) -> Option<Line> {
        let row = row(self.rec, id)?;
        let chain = self.whole_chain(id, row);
        let frames = self.callers(row, &chain.frames);
        let mut outwards = frames.iter().skip_while(|(at, _)| chain.frames.get(*at) != Some(&shown)).skip(1);
        let caller = outwards.next()?.1;
        let has_line = caller.shown_locations().first().is_some_and(|at| at.line.is_some());
        self.frame_links(caller, None).into_iter().next().filter(|_| has_line)
    }

    /// Returns a frame's place.
    pub(super) fn place_of(&self, id: FrameId) -> Option<Line> {
        self.frame_links(frame(self.rec, id)?, None).into_iter().next()
    }

    /// Returns the API that a row's user frame called, or the system call's own wrapper.
    pub(super) fn api_link(&self, row: &Row) -> Option<Line> {
        // The C library's function for any system call tells nothing; the function of Node's library does.
        let any_call = row.api.as_deref() == Some("syscall");
        let of_library = if any_call { systoll_judge::node_function(self.rec, row) } else { None };
        let api = if any_call { row.syscall.name() } else { row.api.as_deref() };
        of_library.or_else(|| api.map(str::to_owned)).map(|api| {
            let mut link = Line::default();
            link.push_name(Role::Name, self.style.name(&clean(&api), NAME));
            link
        })
    }

    /// Returns the frames of `ids` from the user's frame outwards (or from the system call, if
    /// there is none), each with its index.
    fn callers(&self, row: &Row, ids: &[FrameId]) -> Vec<(usize, &Frame)> {
        let of = |is: &dyn Fn(&FrameId) -> bool| ids.iter().position(is);
        // Without a user's frame, what lies inside of the API is not its caller.
        let is_api = |id: &FrameId| frame(self.rec, *id).is_some_and(|f| row.api.as_deref() == Some(f.function()));
        let after_api = || of(&is_api).map_or(0, |at| at + 1);
        let start = row.user.and_then(|user| of(&|id| *id == user)).unwrap_or_else(after_api);
        let named = ids.iter().enumerate().skip(start);
        let mut frames: Vec<_> = named.filter_map(|(at, id)| Some((at, frame(self.rec, *id)?))).collect();
        // Once a script's lines are shown, the interpreter's functions between them add nothing.
        if frames.iter().any(|(_, f)| f.language.is_some()) {
            frames.retain(|(_, f)| f.language.is_some() || f.class == FrameClass::User);
        }
        // The callers of `main`, or of a constructor, are the same in every program.
        let ours = |(_, f): &(usize, &Frame)| !matches!(f.class, FrameClass::Libc | FrameClass::Loader);
        let end = match frames.iter().position(|(_, f)| f.language.is_none() && f.function() == "main") {
            Some(main) => main + 1,
            None => frames.iter().rposition(ours).map_or(frames.len(), |last| last + 1),
        };
        frames.truncate(end);
        let told: Vec<&Frame> = frames.iter().map(|(_, frame)| *frame).collect();
        frames.truncate(before_thread(&told));
        frames
    }

    /// Returns a row's frames from the system call outwards. If the row has several whole stacks,
    /// they are those of the stack with most calls.
    fn whole_chain(&self, id: RowId, row: &Row) -> Chain {
        let of = |id| stack(self.rec, id).map_or(&[][..], |s| &s.frames);
        let (context, outer) = (of(row.context), of(row.outer));
        let sure = context.len() + outer.len();
        let trunks = self.rec.trunks_of(id);
        let all = trunks.iter().fold(0u64, |sum, t| sum.saturating_add(t.weight));
        let most = trunks.iter().max_by_key(|t| (t.weight, Reverse(t.stack))).filter(|_| row.lines.is_empty());
        // The stack is used only if it has more than half of the calls; otherwise it would show a
        // minority.
        let most = most.filter(|t| t.weight > all / 2 && of(t.stack).len() > outer.len());
        let above = most.map_or(outer, |t| of(t.stack));
        let share = most.and_then(|t| percent_of(t.weight, Some(all))).filter(|share| share != "100 %");
        let is_vague = |above| caller_bounds(self.rec, id, above).is_none_or(|(low, high)| high - low > VAGUE);
        let share =
            share.map(|share| if most.is_some_and(|t| is_vague(t.stack)) { "some calls".into() } else { share });
        Chain { frames: context.iter().chain(above).copied().collect(), sure, share }
    }

    fn frame_ids(&self, row: &Row) -> Vec<FrameId> {
        let of = |id| stack(self.rec, id).map_or(&[][..], |s| &s.frames);
        of(row.context).iter().chain(of(row.outer)).copied().collect()
    }

    /// Returns true if the loader called the outermost frame, which is then a constructor, run
    /// before `main`.
    pub(super) fn in_constructor(&self, row: &Row) -> bool {
        let last = self.frame_ids(row).last().and_then(|id| frame(self.rec, *id));
        last.is_some_and(|f| f.class == FrameClass::Loader)
    }

    /// Returns a frame's functions, inlined ones first. A function without a source line gets its
    /// module's name, unless the `next` frame is of the same module.
    fn frame_links(&self, f: &Frame, next: Option<&Frame>) -> Vec<Line> {
        let silent = next.is_some_and(|n| n.module == f.module && n.locations.iter().all(|l| l.file.is_none()));
        let links = f.shown_locations().iter().map(|l| {
            let mut link = Line::default();
            let name = |file: &str| self.style.name(&clean(short_file(file)), PLACE);
            if let (Some(_), Some(file)) = (f.language, &l.file) {
                link.push_name(Role::Plain, name(file));
                link.push(Role::Plain, l.line.map_or_else(String::new, |n| format!(":{n}")));
                link.push(Role::Faint, " in ");
                link.push_name(Role::Plain, self.style.name(&clean(&l.function), NAME));
                return link;
            }
            link.push_name(Role::Plain, self.style.name(&clean(&l.function), NAME));
            if let Some(file) = &l.file {
                link.push_name(Role::Faint, format!(" {}", name(file)));
                link.push(Role::Faint, l.line.map_or_else(String::new, |n| format!(":{n}")));
            } else if let (Some(module), false) = (module(self.rec, f.module), silent) {
                // The placeholder of a function without a name already contains its module's name.
                if !l.function.contains("+0x") {
                    link.push_name(Role::Faint, format!(" {}", self.style.name(&clean(module.file_name()), PLACE)));
                }
            }
            link
        });
        links.collect()
    }

    fn join_links(&self, links: Vec<Line>) -> Vec<Line> {
        let indent = " ".repeat(DETAIL);
        let room = self.style.columns().saturating_sub(2 * DETAIL);
        let max = if self.style.whole_names { usize::MAX } else { room };
        let mut lines = vec![];
        let mut line = Line::of(Role::Plain, indent.clone());
        let mut fresh = true;
        for link in links {
            let mut pieces = link.broken(max).into_iter();
            let Some(link) = pieces.next() else { continue };
            if !fresh {
                if line.width() + 5 + link.width() > self.style.columns() {
                    lines.push(std::mem::replace(&mut line, Line::of(Role::Plain, indent.clone())));
                }
                line.push(Role::Faint, "  <  ");
            }
            line.append(link);
            fresh = false;
            // These are the remaining pieces of a link that is too long for a line.
            for piece in pieces {
                lines.push(std::mem::replace(&mut line, Line::of(Role::Plain, " ".repeat(2 * DETAIL))));
                line.append(piece);
            }
        }
        if !fresh {
            lines.push(line);
        }
        lines
    }
}

/// Joins equal neighbours (recursion) into one.
fn dedup(links: Vec<Line>) -> Vec<Line> {
    let plain = |l: &Line| l.render(&crate::style::Style { color: false, width: 0, whole_names: false });
    let mut out: Vec<(Line, u32)> = vec![];
    for link in links {
        match out.last_mut() {
            Some((last, times)) if plain(last) == plain(&link) => *times += 1,
            _ => out.push((link, 1)),
        }
    }
    out.into_iter().map(|(link, n)| if n > 1 { link.with(Role::Faint, format!(" (×{n})")) } else { link }).collect()
}
