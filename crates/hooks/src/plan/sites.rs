//! Finds a file's calls, and plans the hooks for which each has room.

use super::calls::{SYSCALL_LEN, bytes_of, has_call, is_interrupt, may_have_call};
use super::effects::{ends, goes_on, is_plausible};
use super::extents::Extent;
use super::frame_depth::Depths;
use super::ghc;
use super::image::{Image, Region};
use super::labels::{Labels, MOST_CALLS, Numbers};
use super::patch_span::Block;
use super::planner::Planner;
use super::reachable::{gets_number, is_inside};
use super::tail_calls::function_of;
use super::types::{Site, Span, UnpatchableReason, Unplanned};
use crate::numbers::{
    ARCH_PRCTL, BRK, CLONE, CLONE3, EXECVE, EXECVEAT, EXIT, EXIT_GROUP, FORK, GETEGID, GETEUID, GETGID, GETPID,
    GETPPID, GETTID, GETUID, MADVISE, MLOCKALL, MMAP, MPROTECT, MREMAP, MUNMAP, PKEY_MPROTECT, PRCTL, PRLIMIT64,
    REMAP_FILE_PAGES, RSEQ, RT_SIGACTION, RT_SIGPROCMASK, RT_SIGRETURN, SECCOMP, SET_ROBUST_LIST, SET_TID_ADDRESS,
    SETRLIMIT, SHMAT, VFORK,
};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, Register};
use std::collections::HashSet;
use std::ops::Range;

/// Instructions decoded at a time (40 bytes each); in a longer function, sites at a seam may get fewer hooks.
const BLOCK: usize = 1 << 16;
/// Instructions after which decoding from a wrong start has resynchronised.
const OUT_OF_STEP: usize = 16;

/// Calls that are made in our code: they make processes, images or code, so that the launcher must write hooks first,
/// or they may take away what hooks need.
const WRAPPED: &[u32] = &[CLONE, FORK, VFORK, EXECVE, EXECVEAT, CLONE3, MMAP, PRCTL, ARCH_PRCTL, SECCOMP, MLOCKALL];

/// Calls that may hit memory of ours, or bound it. They are examined when all their arguments are in their registers,
/// which is certain only right before the call.
const LOOKED_AT: &[u32] =
    &[MUNMAP, MPROTECT, PKEY_MPROTECT, MREMAP, MADVISE, SHMAT, REMAP_FILE_PAGES, SETRLIMIT, PRLIMIT64];

/// Calls that never return to where they are made.
const LEAVES: &[u32] = &[RT_SIGRETURN, EXIT, EXIT_GROUP];

/// Calls that never wait and are no cancellation points, so that no unwinder needs their address. If nothing can be
/// hooked behind them they may be made elsewhere, so that their errors are seen.
const AT_ONCE: &[u32] = &[
    MPROTECT,
    MUNMAP,
    BRK,
    RT_SIGACTION,
    RT_SIGPROCMASK,
    MADVISE,
    GETPID,
    GETUID,
    GETGID,
    GETEUID,
    GETEGID,
    GETPPID,
    ARCH_PRCTL,
    GETTID,
    SET_TID_ADDRESS,
    SET_ROBUST_LIST,
    RSEQ,
];

/// Operation ARCH_SET_GS of `arch_prctl` (the kernel's asm/prctl.h).
const ARCH_SET_GS: u32 = 0x1001;

/// Extends functions with calls over the gap behind them if they continue into it: glibc's clone has no call frame
/// information between its call and the new thread's start.
pub(super) fn join(image: &Image<'_>, extents: &mut Vec<Extent>) {
    let mut gone = Vec::new();
    for n in 1..extents.len() {
        let (Some(previous), Some(gap)) = (extents.get(n - 1).copied(), extents.get(n).copied()) else { continue };
        let adjoining = previous.known && !gap.known && previous.end == gap.start;
        // The shorter of the two is decoded first.
        let is_joined = || match gap.end - gap.start <= previous.end - previous.start {
            true => has_call(image, &gap) && runs_on(image, &previous),
            false => may_have_call(image, &gap) && runs_on(image, &previous) && has_call(image, &gap),
        };
        if adjoining && is_joined() {
            gone.push(n);
        }
    }
    for n in gone.into_iter().rev() {
        let gap = extents.remove(n);
        if let Some(previous) = extents.get_mut(n - 1) {
            previous.end = gap.end;
        }
    }
}

fn runs_on(image: &Image<'_>, extent: &Extent) -> bool {
    Decoder::with_ip(64, bytes_of(image, extent), extent.start, DecoderOptions::NONE).iter().last().is_some_and(|i| {
        i.next_ip() == extent.end && goes_on(&i) && !matches!(i.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
    })
}

/// The kind of code in which a call lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CodeConfidence {
    /// A function whose jumps are all known.
    Function,
    /// Code, or data, between functions.
    Between,
    /// A function with jumps to unknown places ([`Labels`]).
    Labels,
    /// A function that may contain data.
    Mixed,
}

/// Facts about the function, or the gap between functions, in which a block lies.
#[derive(Clone, Copy)]
struct Ground<'a> {
    confidence: CodeConfidence,
    /// Jumps to unknown places, if the function has any.
    labels: Option<&'a Labels>,
}

/// The calls of a block that get hooks. The plan has a site for each, in the same order.
struct BlockCalls<'a> {
    /// Index of the first call's site in the plan.
    first_site: usize,
    /// Positions of the calls in the block's code.
    positions: &'a [usize],
    /// True if control flow may arrive at any instruction of the function ([`Labels`]).
    in_labels: bool,
}

impl BlockCalls<'_> {
    /// Returns the index of each call's site, and the call's position in the block's code.
    fn by_site(&self) -> impl Iterator<Item = (usize, usize)> {
        (self.first_site..).zip(self.positions.iter().copied())
    }

    /// Returns true if a jump may replace `span`: where control flow may arrive anywhere, it must be one instruction.
    fn allows(&self, span: &Span) -> bool {
        !self.in_labels || span.instructions == 1 && span.padding == 0
    }
}

impl Planner<'_> {
    /// Plans the calls of `extent`.
    pub(super) fn extent(&mut self, extent: &Extent) {
        let image = self.image;
        let Some(region) = image.region(extent.start) else { return };
        let bytes = region.slice(extent.start, extent.end);
        let labels = if extent.known { Labels::of(region, extent) } else { None };
        let confidence = match extent.known {
            false => CodeConfidence::Between,
            true if labels.is_some() => CodeConfidence::Labels,
            true if self.reached.is_some() && self.doubtful.contains(&extent.start) => CodeConfidence::Mixed,
            true => CodeConfidence::Function,
        };
        let ground = Ground { confidence, labels: labels.as_ref() };
        let mut decoder = Decoder::with_ip(64, bytes, extent.start, DecoderOptions::NONE);
        while decoder.can_decode() {
            let code: Vec<_> = decoder.iter().take(BLOCK).collect();
            self.block(&code, ground, region);
        }
        match confidence {
            CodeConfidence::Function | CodeConfidence::Mixed => {
                self.depths(extent.start..extent.end, extent.start..extent.end, region)
            }
            CodeConfidence::Between => self.depths_between(extent, region),
            CodeConfidence::Labels => {}
        }
    }

    /// Does the work of [`Planner::depths`] for code between functions: for each call from the last place before it
    /// to which something certainly leads, as from a function's entry. Its users check the result against a real
    /// stack first.
    fn depths_between(&mut self, extent: &Extent, region: &Region<'_>) {
        const FAR: u64 = 256;
        let here = |s: &&Site| (extent.start..extent.end).contains(&s.address);
        let calls: Vec<u64> = self.plan.sites.iter().filter(here).map(|s| s.address).collect();
        for call in calls {
            let back = extent.start.max(call.saturating_sub(FAR))..call;
            if let Some(entry) = back.rev().find(|at| self.targets.is_sure(*at)) {
                self.depths(entry..call.saturating_add(2).min(extent.end), call..call + 1, region);
            }
        }
    }

    /// Computes, for the calls of `sites`, the distance of the return address from rsp, where call frame information
    /// uses another register or does not exist.
    fn depths(&mut self, function: Range<u64>, sites: Range<u64>, region: &Region<'_>) {
        let entry = self.cfi.cfa_offset(function.start).map_or(8, |cfa| i64::from(cfa.0));
        let here = |s: &&mut Site| sites.contains(&s.address);
        let unknown = |s: &&mut Site| s.cfa.is_none() || s.entry_span.is_some() && s.hook_cfa.is_none();
        let mut depths = None;
        for site in self.plan.sites.iter_mut().filter(here).filter(unknown) {
            let depths = depths.get_or_insert_with(|| Depths::of(region, function.clone(), entry, &mut self.effects));
            site.cfa = site.cfa.or_else(|| depths.at(site.address));
            let hook = site.entry_span.as_ref().map_or(site.address, Span::end);
            site.hook_cfa = site.hook_cfa.or_else(|| site.entry_span.as_ref().and_then(|_| depths.at(hook)));
            let at_both = depths.above_rbp(site.address).filter(|there| depths.above_rbp(hook) == Some(*there));
            site.from_rbp =
                at_both.filter(|_| site.cfa.is_none() || site.entry_span.is_some() && site.hook_cfa.is_none());
        }
    }

    /// Plans the calls of `code`, a part of an extent that is described by `ground`.
    fn block(&mut self, code: &[Instruction], ground: Ground<'_>, region: &Region<'_>) {
        let (sure, unsure) = self.classify(code, ground, region);
        self.note_unsure(code, &unsure, ground, region);
        self.note_interrupts(code, ground, region);
        let block = Block { code, targets: self.targets, region, can_call: !self.image.shadow_stack };
        let calls =
            BlockCalls { first_site: self.plan.sites.len(), positions: &sure, in_labels: ground.labels.is_some() };
        // Plan the hooks before calls first, since these count: a hook behind one call must not take the room before
        // another.
        let obstacles = self.plan_entry_spans(&block, &calls);
        self.wrap_where_needed(&block, &calls, &obstacles);
        self.plan_return_spans(&block, &calls);
        if calls.in_labels {
            return;
        }
        self.make_room(&block, calls.first_site, calls.positions);
        self.wrap_unseen(&block, &calls);
        self.keep_in_pages(&block, &calls);
    }

    /// Returns the positions of the `syscall`s in `code`: those that are certainly calls and may be hooked, and those
    /// that may be data or are in doubt otherwise.
    fn classify(&self, code: &[Instruction], ground: Ground<'_>, region: &Region<'_>) -> (Vec<usize>, Vec<usize>) {
        let calls = code.iter().enumerate().filter(|(_, i)| i.mnemonic() == Mnemonic::Syscall);
        let calls: Vec<usize> = calls.filter(|(_, i)| !self.is_ghcs(i, region)).map(|(n, _)| n).collect();
        let few = calls.len() <= MOST_CALLS;
        // With prefixes, an instruction begins before the two bytes of a `syscall`.
        let is_bare = |n: &usize| code.get(*n).is_some_and(|i| i.len() == SYSCALL_LEN);
        calls.into_iter().partition(|n| match ground.confidence {
            CodeConfidence::Function => is_bare(n),
            // In a file with data among its code, the targets of that code are uncertain.
            CodeConfidence::Between => is_bare(n) && self.is_code(code, *n) && self.is_reached(code, *n),
            CodeConfidence::Mixed => is_bare(n) && self.is_reached(code, *n),
            CodeConfidence::Labels => {
                let numbers = || self.numbers.get_or_init(|| Numbers::of(self.image));
                few && is_bare(n) && ground.labels.is_some_and(|labels| labels.leave_alone(code, *n, numbers()))
            }
        })
    }

    /// Adds the `syscall`s at the positions `unsure` to the plan, without hooks, unless they are data.
    fn note_unsure(&mut self, code: &[Instruction], unsure: &[usize], ground: Ground<'_>, region: &Region<'_>) {
        for n in unsure {
            let Some(call) = code.get(*n) else { continue };
            let is_data = match ground.confidence {
                CodeConfidence::Between => self.is_data(code, *n) || self.is_aside(code, *n, region),
                CodeConfidence::Mixed => self.is_aside(code, *n, region),
                CodeConfidence::Labels | CodeConfidence::Function => false,
            };
            if is_data {
                continue;
            }
            let address = call.next_ip() - SYSCALL_LEN as u64;
            self.plan.sites.push(Site::new(address, None));
            self.plan.unplanned.push(Unplanned { address, why: UnpatchableReason::NotSurelyCode });
        }
    }

    /// Adds calls by `int 0x80` to those that the plan leaves out.
    fn note_interrupts(&mut self, code: &[Instruction], ground: Ground<'_>, region: &Region<'_>) {
        let interrupts = code.iter().enumerate().filter(|(_, i)| is_interrupt(i) && !self.is_ghcs(i, region));
        let calls = interrupts.filter(|(n, _)| match ground.confidence {
            CodeConfidence::Between => self.is_code(code, *n) && self.is_reached(code, *n),
            CodeConfidence::Mixed => self.is_reached(code, *n),
            CodeConfidence::Function | CodeConfidence::Labels => true,
        });
        let calls = calls.map(|(_, i)| Unplanned { address: i.ip(), why: UnpatchableReason::Int80 });
        let calls: Vec<Unplanned> = calls.collect();
        self.plan.unplanned.extend(calls);
    }

    /// Adds a site for each of `calls`, with its entry span. Returns for each the reason why it has none.
    fn plan_entry_spans(&mut self, block: &Block<'_>, calls: &BlockCalls<'_>) -> Vec<Option<UnpatchableReason>> {
        let mut obstacles = Vec::new();
        for n in calls.positions {
            let number = self.number(block.code, *n);
            let keeps_flags = block.flags_cross(*n) && number.is_none_or(|number| !LEAVES.contains(&number));
            let span = match keeps_flags && number.is_none_or(|number| WRAPPED.contains(&number)) {
                true => Err(UnpatchableReason::FlagsInUse),
                false => block.entry_span(*n, (number, keeps_flags), &mut self.effects, &self.reserved),
            };
            let span = match span {
                Ok(span) if !calls.allows(&span) => Err(UnpatchableReason::NotSurelyCode),
                other => other,
            };
            let mut site = Site::new(block.code.get(*n).map_or(0, Instruction::ip), number);
            obstacles.push(span.as_ref().err().copied());
            site.entry_span = span.ok();
            site.keeps_flags = keeps_flags && site.entry_span.is_some();
            self.take(site.entry_span.as_ref(), site.address);
            self.plan.sites.push(site);
        }
        obstacles
    }

    /// Plans wrap spans for the calls that must be made in our code and for those that have no entry span
    /// (`obstacles` tells why). A call that gets neither span is left out of the plan.
    fn wrap_where_needed(
        &mut self,
        block: &Block<'_>,
        calls: &BlockCalls<'_>,
        obstacles: &[Option<UnpatchableReason>],
    ) {
        for ((at, n), obstacle) in calls.by_site().zip(obstacles) {
            let Some(site) = self.plan.sites.get_mut(at) else { return };
            let resumes = |span: &Span| span.resume() == site.address;
            let is_of = |numbers: &[u32]| site.number.is_some_and(|number| numbers.contains(&number));
            let wants_whole = obstacle.is_some()
                || is_of(WRAPPED)
                || is_of(LOOKED_AT) && !site.keeps_flags && !site.entry_span.as_ref().is_some_and(resumes);
            if wants_whole && !calls.in_labels {
                site.wrap_span = block.wrap_span(n, &self.reserved);
            }
            if let (Some(why), None) = (*obstacle, &site.wrap_span) {
                self.plan.unplanned.push(Unplanned { address: site.address, why });
            }
            let (whole, address) = (site.wrap_span.clone(), site.address);
            self.take(whole.as_ref(), address);
        }
    }

    /// Plans return spans for `calls`, and notes where their frames lie.
    fn plan_return_spans(&mut self, block: &Block<'_>, calls: &BlockCalls<'_>) {
        for (at, n) in calls.by_site() {
            let Some(site) = self.plan.sites.get_mut(at) else { return };
            site.return_span = block.return_span(n, &self.reserved).filter(|span| calls.allows(span));
            site.return_is_target = calls.in_labels || self.targets.contains(site.address.saturating_add(2));
            site.cfa = self.cfi.cfa_offset(site.address);
            site.hook_cfa = site.entry_span.as_ref().and_then(|span| self.cfi.cfa_offset(span.end()));
            let (after, address) = (site.return_span.clone(), site.address);
            self.take(after.as_ref(), address);
        }
    }

    /// Plans wrap spans for calls without a return span, and for those of unknown number, that may be made elsewhere.
    /// Notes the functions whose exits may be hooked instead.
    fn wrap_unseen(&mut self, block: &Block<'_>, calls: &BlockCalls<'_>) {
        for (at, n) in calls.by_site() {
            let Some(site) = self.plan.sites.get_mut(at) else { return };
            let unseen = site.return_span.is_none();
            if unseen && site.number.is_none() && site.entry_span.is_some() && !is_told_of(self.image, site) {
                self.returning.extend(function_of(block.code, n, self.targets));
            }
            if site.wrap_span.is_none() && may_move(self.image, site) && (unseen || site.number.is_none()) {
                site.wrap_span = block.wrap_span(n, &self.reserved);
            }
            let (whole, address) = (site.wrap_span.clone(), site.address);
            if whole.is_some() {
                // The reason does not hold any more, since room was released meanwhile.
                self.plan.unplanned.retain(|u| u.address != address);
            }
            self.take(whole.as_ref(), address);
        }
    }

    /// Moves calls whose jumps would lie across two pages to our code, if that is allowed and the jump around the call
    /// lies in one page.
    fn keep_in_pages(&mut self, block: &Block<'_>, calls: &BlockCalls<'_>) {
        for (at, n) in calls.by_site() {
            let Some(site) = self.plan.sites.get_mut(at) else { return };
            let crossing = [&site.entry_span, &site.return_span].into_iter().flatten().any(Span::jump_crosses_pages);
            if !crossing || site.keeps_flags || !may_move(self.image, site) {
                continue;
            }
            let whole = site.wrap_span.clone().or_else(|| block.wrap_span(n, &self.reserved));
            let Some(whole) = whole.filter(|whole| !whole.jump_crosses_pages()) else { continue };
            for span in [site.entry_span.take(), site.return_span.take(), site.wrap_span.take()].iter().flatten() {
                self.reserved.release(span);
            }
            self.reserved.add(&whole, site.address);
            (site.hook_cfa, site.wrap_span) = (None, Some(whole));
        }
    }

    pub(super) fn take(&mut self, span: Option<&Span>, site: u64) {
        if let Some(span) = span {
            self.reserved.add(span, site);
        }
    }

    fn number(&mut self, code: &[Instruction], n: usize) -> Option<u32> {
        let number = self.effects.constant(code, n, Register::RAX, self.targets);
        if number == Some(ARCH_PRCTL) {
            let what = self.effects.constant(code, n, Register::RDI, self.targets);
            let call = code.get(n).filter(|_| what == Some(ARCH_SET_GS));
            let evidence = call.and_then(|call| super::gs::evidence(self.image, call.ip()));
            self.plan.uses_gs = self.plan.uses_gs.take().or(evidence);
        }
        number
    }

    /// Returns true if the call at `code[n]`, found between functions, belongs to code: something certainly leads
    /// there, no nearby target contradicts the decoding, and the path contains no implausible instruction.
    fn is_code(&self, code: &[Instruction], n: usize) -> bool {
        let (before, from) = code.split_at_checked(n).unwrap_or_default();
        let led_to = |i: &Instruction| self.targets.is_sure(i.ip());
        let back = before.iter().rev().take_while(|i| is_plausible(i) && !ends(i));
        let led_to = from.first().is_some_and(led_to) || back.clone().any(led_to);
        let on = from.iter().take(OUT_OF_STEP).position(ends).map_or(OUT_OF_STEP, |end| end + 1);
        let near = back.take(OUT_OF_STEP).chain(from.iter().take(on));
        led_to && { near }.all(|i| is_plausible(i) && self.targets.inside(i.ip(), i.next_ip()).is_none())
    }

    /// Returns true if the bytes of the call `i` belong to GHC's code and are no call.
    fn is_ghcs(&self, i: &Instruction, region: &Region<'_>) -> bool {
        // With prefixes, an instruction begins before the two bytes of a `syscall`.
        let at = i.next_ip().saturating_sub(SYSCALL_LEN as u64);
        self.has_ghcs_runtime && ghc::is_own(self.image, &self.cfi, region, at)
    }

    /// Returns true if control flow reaches `code[n]`.
    fn is_reached(&self, code: &[Instruction], n: usize) -> bool {
        self.reached.zip(code.get(n)).is_none_or(|(reached, i)| reached.contains(i.ip()))
    }

    /// Returns true if the bytes of a `syscall` at `code[n]` are part of a constant, in a file with data among its
    /// code: nothing leads there, and nothing before it could set a call's number.
    fn is_aside(&self, code: &[Instruction], n: usize, region: &Region<'_>) -> bool {
        let Some((reached, call)) = self.reached.zip(code.get(n)) else { return false };
        // With prefixes, an instruction begins before the two bytes of a `syscall`.
        let at = call.next_ip().saturating_sub(SYSCALL_LEN as u64);
        let is_reached = reached.contains(call.ip());
        !is_reached && (is_inside(self.image, reached, at) || !gets_number(region.slice(region.start, at)))
    }

    /// Adds `syscall`s that control flow reaches but linear decoding missed, because data before them desynchronised
    /// it.
    pub(super) fn note_out_of_step(&mut self) {
        let Some(reached) = self.reached else { return };
        let known: HashSet<u64> = self.plan.sites.iter().map(|s| s.address).collect();
        for region in &self.image.code {
            let pairs = (region.start..).zip(region.bytes.windows(SYSCALL_LEN));
            let calls = pairs.filter(|(_, pair)| **pair == [0x0f, 0x05]).map(|(at, _)| at);
            let is_ghcs = |at| self.has_ghcs_runtime && ghc::is_own(self.image, &self.cfi, region, at);
            for address in calls.filter(|at| reached.contains(*at) && !known.contains(at) && !is_ghcs(*at)) {
                self.plan.sites.push(Site::new(address, None));
                self.plan.unplanned.push(Unplanned { address, why: UnpatchableReason::NotSurelyCode });
            }
        }
    }

    /// Returns true if the bytes of a `syscall` at `code[n]`, found between functions, are certainly a constant:
    /// nothing leads there, and execution would run straight into an invalid instruction (OpenSSL keeps its tables
    /// among its code).
    fn is_data(&self, code: &[Instruction], n: usize) -> bool {
        let (before, from) = code.split_at_checked(n).unwrap_or_default();
        let back = before.iter().rev().take_while(|i| i.mnemonic() != Mnemonic::INVALID && !ends(i));
        let led_to = from.iter().take(1).chain(back).any(|i| self.targets.is_sure(i.ip()));
        let straight = from.iter().skip(1).take(OUT_OF_STEP);
        let stop = straight.clone().find(|i| i.flow_control() != FlowControl::Next || i.is_invalid());
        !led_to && stop.is_some_and(Instruction::is_invalid)
    }
}

/// Returns true if unwinders know the call's frame; Go's unwinder needs no such tables.
fn is_told_of(image: &Image<'_>, site: &Site) -> bool {
    site.cfa.is_some() || image.pclntab.is_some()
}

/// Returns true if the call may be made elsewhere, because no unwinder needs its address.
pub(super) fn may_move(image: &Image<'_>, site: &Site) -> bool {
    site.number.is_none_or(|number| AT_ONCE.contains(&number) || !is_told_of(image, site))
}
