//! Writes the code of one site: chooses its parts and their order.

use super::asking_site::AskingSite;
use super::blob::{Base, CountedPlace, Refused, Unhooked};
use super::emitter::{Emitted, Emitter, Origin, asm};
use super::entry::{Entry, before};
use super::hook::{Hook, SiteCode};
use super::on_return::{Bytes, Return, after, made_executable, mapped, rseq_learnt};
use super::relocate::{BASE, decode, displace, movable, sees_the_hook, tail_movable};
use super::sampling::Timing;
use super::signal_exits::signal_ends;
use super::tree_walk::{Start, walk_in_vdso};
use super::{
    Options, call_kinds, early_signal, elide_ids, elide_masks, faults_served, own_memory, process_calls, rseq_areas,
    stack_bounds,
};
use crate::layout;
use crate::numbers::{EXIT, EXIT_GROUP, MMAP, RSEQ, RT_SIGPROCMASK, RT_SIGRETURN};
use crate::plan::{CfaOffset, Entry as VdsoEntry, Site, Span};
use iced_x86::code_asm::*;
use iced_x86::{Code, Instruction};

/// The place in memory at which a site counts.
#[derive(Clone, Copy)]
pub(super) struct SiteAddresses {
    /// Address of the site's root.
    pub(super) root: u64,
    /// Address of the file's region.
    pub(super) region: u64,
    /// Offset in the region of the site's table, if the site needs one.
    pub(super) table: u64,
}

/// The form in which a site is hooked.
struct Shape<'a> {
    site: &'a Site,
    /// The instructions that the jump to the entry replaces.
    window: &'a Span,
    /// Instructions that run before counting.
    head: Vec<Instruction>,
    /// True if the call is made in our code.
    wrapped: bool,
    /// Instructions behind the call, and the address of their end; `None` if nothing is hooked there.
    tail: Option<(Vec<Instruction>, u64)>,
    /// The instructions that the jump to the code behind the call replaces, if they are not `window`.
    behind: Option<&'a Span>,
    /// Bytes by which rsp is higher at `behind` than at the call.
    lifted: u8,
    /// True if our code may continue right behind the call, because nothing lies between hook and call.
    adjacent: bool,
}

/// Returns true if calls never return to where they are made.
fn leaves(number: u32) -> bool {
    matches!(number, EXIT | EXIT_GROUP | RT_SIGRETURN)
}

/// Returns true if calls must be made in our code, because they return in another thread too, or may be the last one
/// that is hooked.
fn must_be_here(site: &Site) -> bool {
    site.number.is_none_or(|n| call_kinds::clones(n) || call_kinds::may_end_watching(n))
}

/// Returns true if the launcher must be asked something behind the call in any case.
fn asks_behind(number: u32) -> bool {
    call_kinds::brings_code(number) || call_kinds::execs(number)
}

impl<'a> Shape<'a> {
    fn of(site: &'a Site, options: &Options) -> Result<Self, Unhooked> {
        let placed = Self::placed(site);
        let elided = options.elide && site.number.is_some_and(elide_ids::elidable);
        let here = must_be_here(site);
        let looked_at = site.number.is_some_and(own_memory::may_touch);
        let behind = site.number.is_some_and(|n| asks_behind(n) || (options.results && !leaves(n)));
        match placed {
            Some(shape) if (shape.adjacent || !(here || elided || looked_at)) && (shape.tail.is_some() || !behind) => {
                Ok(shape)
            }
            placed => match Self::wrapped(site) {
                Some(shape) => Ok(shape),
                None if here && placed.is_some() => Err(Unhooked::Whole),
                None => placed.ok_or(Unhooked::Site),
            },
        }
    }

    /// Describes a site whose call stays at its place.
    fn placed(site: &'a Site) -> Option<Self> {
        let window = site.entry_span.as_ref()?;
        let head = decode(window).filter(|i| i.iter().all(movable))?;
        let adjacent = window.resume() == site.address;
        let tail = |span: &Span| {
            let tail = decode(span).filter(|i| tail_movable(i) && !sees_the_hook(i))?;
            Some((tail, span.resume()))
        };
        let here = site.return_span.as_ref().filter(|span| span.start == site.address + 2);
        let (behind, lifted) = match (here, &site.returned) {
            (None, Some(there)) => (Some(there), 8),
            (here, _) => (here, 0),
        };
        let tail = behind.and_then(tail);
        let behind = behind.filter(|_| tail.is_some());
        Some(Self { site, window, head, wrapped: false, tail, behind, lifted, adjacent })
    }

    /// Describes a site whose call is made in our code.
    fn wrapped(site: &'a Site) -> Option<Self> {
        let window = site.wrap_span.as_ref()?;
        let mut head = decode(window)?;
        let call = head.iter().position(|i| i.code() == Code::Syscall && i.ip() == site.address)?;
        let tail = head.split_off(call + 1);
        head.pop();
        let good = head.iter().all(movable) && tail_movable(&tail) && !sees_the_hook(&tail);
        let tail = Some((tail, window.resume()));
        good.then_some(Self { site, window, head, wrapped: true, tail, behind: None, lifted: 0, adjacent: true })
    }

    /// Returns the distance of the return address from rsp or rbp where the hook counts.
    fn offset(&self) -> Option<(u32, Base)> {
        let cfa = if self.wrapped { self.site.cfa } else { self.site.hook_cfa };
        let from = |cfa: Option<CfaOffset>, base| cfa.and_then(|cfa| cfa.0.checked_sub(8)).map(|o| (o, base));
        from(cfa, Base::Rsp).or_else(|| from(self.site.from_rbp, Base::Rbp))
    }
}

/// Writes the code of a site.
pub(super) fn write_site(e: &mut Emitter, options: &Options, site: &Site, place: SiteAddresses) -> Emitted<SiteCode> {
    if !site.exits.is_empty() {
        return super::signal_exits::write(e, options, site, place.root);
    }
    let refused = |what| Some(Refused { address: site.address, what });
    let shape = match Shape::of(site, options) {
        Ok(shape) => shape,
        Err(what) => return Ok(SiteCode { refused: refused(what), ..SiteCode::default() }),
    };
    let returns = !site.number.is_some_and(leaves);
    let results = options.results && returns && shape.tail.is_some();
    let wants_return = options.results || site.number.is_some_and(asks_behind);
    let missed = wants_return && returns && shape.tail.is_none();
    let table = site.number.is_none().then_some(place.table as u32);
    let offset = shape.offset().filter(|_| site.number != Some(RT_SIGRETURN) && !options.totals);
    let counted = CountedPlace {
        address: site.address,
        number: site.number,
        offset: offset.map(|o| o.0),
        base: offset.map_or(Base::Rsp, |o| o.1),
        table,
        results,
        vdso: false,
    };
    let start = table.map_or(Start::Root(place.root), |_| Start::Numbers(place.region + place.table));
    let stays = results && site.number.is_none_or(|n| !call_kinds::clones(n) && !call_kinds::execs(n));
    let timing = match site.number {
        _ if !options.time || !stays => Timing::None,
        _ if !options.sampled => Timing::All,
        number => Timing::of_sampled(number),
    };
    let arms = stays && (options.waited || options.elide);
    let entry = Entry { number: site.number, start, base: offset.map(|o| o.1.register()), results, timing, arms };
    let hooks = Writer { shape, place, options, entry }.write(e)?;
    Ok(SiteCode { hooks, counted: Some(counted), refused: refused(Unhooked::Return).filter(|_| missed) })
}

struct Writer<'a> {
    shape: Shape<'a>,
    place: SiteAddresses,
    options: &'a Options,
    entry: Entry,
}

impl Writer<'_> {
    fn write(&self, e: &mut Emitter) -> Emitted<Vec<Hook>> {
        let (entry, behind, plain) = (e.label(), e.label(), e.label());
        let site = self.shape.site;
        let entry = e.here(entry)?;
        displace(e, &self.shape.head)?;
        let counts_at = if self.shape.wrapped { site.address } else { self.shape.window.resume() };
        e.stands_for(Origin::Address(counts_at));
        let back = e.label();
        let lifted = self.shape.lifted != 0;
        // If rsp is lifted, the code behind the call runs after the call's function has returned.
        let (made, new) = if lifted { (back, back) } else { (behind, plain) };
        self.before(e, made, new)?;
        if self.shape.wrapped || site.number.is_some_and(call_kinds::clones) {
            self.call(e, made, new)?;
        } else {
            asm!(e; jmp(BASE.wrapping_add(counts_at)););
        }
        e.stands_for(Origin::Address(site.address + 2));
        if lifted {
            e.here(back)?;
            asm!(e; jmp(BASE.wrapping_add(site.address + 2)););
        }
        if let Some(span) = self.shape.behind {
            e.stands_for(Origin::Address(span.start));
        }
        let behind = e.here(behind)?;
        self.behind(e)?;
        e.here(plain)?;
        let (tail, resume) = match &self.shape.tail {
            Some((tail, resume)) => (tail.as_slice(), *resume),
            None => (&[][..], site.address + 2),
        };
        displace(e, tail)?;
        e.stands_for(Origin::Address(resume));
        asm!(e; jmp(BASE.wrapping_add(resume)););
        let hook = |span: &Span, label| Hook { start: span.start, bytes: span.bytes.len(), label };
        let mut hooks = vec![hook(self.shape.window, entry)];
        let needed = self.entry.results || site.number.is_some_and(asks_behind);
        if let (true, Some(span)) = (needed, self.shape.behind) {
            hooks.push(hook(span, behind));
        }
        Ok(hooks)
    }

    /// Returns true if the code behind the call runs only for this call, and right behind it.
    fn learns(&self) -> bool {
        let target = self.shape.site.return_is_target && !self.shape.wrapped;
        self.entry.results && self.shape.lifted == 0 && !target
    }

    /// Returns true if calls made by number here can be answered.
    fn answers_by_number(&self) -> bool {
        self.options.elide && self.shape.site.number.is_none() && self.shape.adjacent && self.learns()
    }

    fn asking(&self) -> AskingSite {
        let (root, adjacent) = (self.place.root, self.shape.adjacent);
        AskingSite { root, entry: self.entry, elide: self.options.elide, adjacent }
    }

    /// Writes the code before the call: the counting, and what the number requires.
    fn before(&self, e: &mut Emitter, behind: CodeLabel, plain: CodeLabel) -> Emitted {
        let Some(number) = self.shape.site.number else {
            if self.options.elide {
                if self.answers_by_number() {
                    elide_ids::try_by_number(e, self.entry, plain)?;
                }
                elide_ids::forget(e)?;
            }
            let cancels = self.entry.results && early_signal::is_cancellation_point(&self.shape.head);
            if cancels {
                early_signal::begin(e)?;
            }
            before(e, self.options, self.entry)?;
            if cancels {
                early_signal::end_at_cancellation_point(e, plain)?;
            }
            let ways = process_calls::Ways { parent: behind, child: plain, noted: self.entry.results };
            return process_calls::by_number(e, self.asking(), ways);
        };
        if !self.shape.site.keeps_flags {
            return self.before_number(e, number, plain);
        }
        // eax holds only the number, so it can carry the flags meanwhile; memory could not, as a handler's calls may
        // come between.
        asm!(e; lahf(); seto(al););
        self.before_number(e, number, plain)?;
        // 1 + 127 overflows, and sahf restores all other flags.
        asm!(e; add(al, 127); sahf(); mov(eax, number););
        Ok(())
    }

    /// Does the work of [`Writer::before`] for a known number, which eax need not hold.
    fn before_number(&self, e: &mut Emitter, number: u32, plain: CodeLabel) -> Emitted {
        if number == RT_SIGRETURN {
            return signal_ends(e, self.options, self.entry);
        }
        if self.options.elide {
            match number {
                n if elide_ids::elidable(n) && self.shape.adjacent && self.learns() => {
                    elide_ids::try_answer(e, n, self.entry, plain)?;
                }
                RT_SIGPROCMASK => elide_masks::forget_mask(e)?,
                n => elide_ids::before_others(e, n)?,
            }
        }
        if number == RSEQ {
            rseq_areas::give_way(e)?;
        }
        let sleeps = self.entry.results && early_signal::sleeps(number);
        if sleeps {
            early_signal::begin(e)?;
        }
        before(e, self.options, self.entry)?;
        match number {
            EXIT | EXIT_GROUP => process_calls::leaving(e, Some(number))?,
            _ => {}
        }
        process_calls::ask_before(e, number, self.asking(), plain)?;
        stack_bounds::before(e, number)?;
        faults_served::before(e, number)?;
        if sleeps {
            early_signal::end(e, number, plain)?;
        }
        if self.learns_mask() {
            elide_masks::lend_old(e)?;
        }
        Ok(())
    }

    /// Returns true if signal masks are answered and learnt here.
    fn learns_mask(&self) -> bool {
        let shape = &self.shape;
        self.options.elide && shape.site.number == Some(RT_SIGPROCMASK) && shape.adjacent && self.learns()
    }

    /// Writes the call itself.
    fn call(&self, e: &mut Emitter, behind: CodeLabel, plain: CodeLabel) -> Emitted {
        match self.shape.site.number {
            Some(number) if call_kinds::clones(number) => process_calls::clone(
                e,
                number,
                process_calls::Ways { parent: behind, child: plain, noted: self.entry.results },
            ),
            _ => {
                asm!(e; syscall(););
                Ok(())
            }
        }
    }

    /// Writes the code behind the call.
    fn behind(&self, e: &mut Emitter) -> Emitted {
        let site = self.shape.site;
        if self.learns_mask() {
            elide_masks::take_old_back(e)?;
        }
        if self.entry.results {
            let bytes = match site.number {
                Some(number) if layout::transfers(number) => Bytes::Yes,
                Some(_) => Bytes::No,
                None => Bytes::ByNode,
            };
            let lifted = self.shape.lifted;
            let is_target = site.return_is_target && !self.shape.wrapped || lifted != 0;
            let site = Return { root: self.place.root, timing: self.entry.timing, bytes, is_target, lifted };
            after(e, self.options, site)?;
        }
        if self.answers_by_number() {
            elide_ids::remember_by_number(e)?;
        }
        let Some(number) = site.number else { return Ok(()) };
        if self.options.elide {
            elide_ids::code_comes(e, number)?;
        }
        match number {
            MMAP => mapped(e, self.place.root)?,
            n if call_kinds::brings_code(n) => made_executable(e, self.place.root)?,
            RSEQ if self.options.waited || self.options.elide => rseq_learnt(e)?,
            n if call_kinds::execs(n) => {
                let done = e.label();
                process_calls::exec_failed(e, self.place.root, done)?;
                e.here(done)?;
            }
            RT_SIGPROCMASK if self.learns_mask() => elide_masks::mask_changed(e)?,
            n if self.options.elide && self.learns() => {
                if let Some(answer) = elide_ids::answer(n) {
                    elide_ids::remember(e, answer)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Writes the code of a vDSO function's entry, where only rax and r11 are free.
pub(super) fn write_entry(e: &mut Emitter, entry: &VdsoEntry, root: u64) -> Emitted<SiteCode> {
    let Some(head) = decode(&entry.span).filter(|i| i.iter().all(movable)) else {
        let refused = Some(Refused { address: entry.address, what: Unhooked::Site });
        return Ok(SiteCode { refused, ..SiteCode::default() });
    };
    let label = e.label();
    e.stands_for(Origin::Address(entry.span.start));
    let label = e.here(label)?;
    walk_in_vdso(e, root)?;
    super::entry::count(e, rax)?;
    displace(e, &head)?;
    let resume = entry.span.resume();
    e.stands_for(Origin::Address(resume));
    asm!(e; jmp(BASE.wrapping_add(resume)););
    let hook = Hook { start: entry.span.start, bytes: entry.span.bytes.len(), label };
    let counted = CountedPlace {
        address: entry.address,
        number: None,
        offset: Some(0),
        base: Base::Rsp,
        table: None,
        results: false,
        vdso: true,
    };
    Ok(SiteCode { hooks: vec![hook], counted: Some(counted), refused: None })
}
