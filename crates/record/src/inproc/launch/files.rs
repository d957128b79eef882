//! Files of watched programs: planned once, assembled once for each distance.

use super::super::cache::{Cache, Key, Kind};
use super::ahead::{Ahead, Placed};
use super::code::Code;
use super::memory::{CodeRoom, Runs};
use std::collections::HashMap;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use systoll_hooks::assemble::{Blob, Options, assemble};
use systoll_hooks::layout::{IMAGE, NODE_SIZE, image};
use systoll_hooks::plan::{Evidence, Plan};
use systoll_symbols::{ModuleKey, Symbols};

/// Room left free between a file and its code, so that neither a heap nor a neighbour is in the way.
const DISTANCES: [u64; 7] = [16 << 20, 32 << 20, 64 << 20, 128 << 20, 256 << 20, 512 << 20, 1 << 30];
/// Jumps reach two GiB; something is kept for what lies between.
const REACH: u64 = (2 << 30) - (64 << 20);
/// Lowest address a program may map (vm.mmap_min_addr as distributions set it).
const LOWEST: u64 = 0x1_0000;
/// Behind it, without ASLR right behind the loader, there is room for the stack alone (the kernel: MIN_GAP).
const HIGHEST: u64 = 0x7fff_f800_0000;

/// What [`Symbols::fixed`] tells of a file, in the cache.
const FIXED: Kind = Kind { name: "fixed", version: 1 };
/// The most kept of one file.
const MOST_FIXED: usize = 4096;
/// Assembled code in the cache.
const CODE: Kind = Kind { name: "code", version: 7 };

/// What is known of a file.
pub(super) struct Known {
    pub(super) plan: Plan,
    /// Address of its region of roots, the same in every image.
    pub(super) region: u64,
    /// What it is known by in the cache.
    id: Option<Key>,
}

/// Why a file is not watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unwatchable {
    /// It uses the gs segment itself, by this instruction.
    UsesGs(Evidence),
    /// It has an order of its own for all its memory.
    GuardsMemory,
    /// Anything else, in words.
    Other(String),
}

/// Where files' roots lie in every image, given out by whichever thread has a plan first.
#[derive(Clone, Debug)]
pub(super) struct Regions(Arc<AtomicU64>);

impl Default for Regions {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(IMAGE + image::ROOTS)))
    }
}

impl Regions {
    /// A region for a file of this plan; `None` where there is no more room.
    pub(super) fn give(&self, plan: &Plan) -> Option<u64> {
        // Tables take more than roots, and only those who assemble know where: room for the most.
        let tables = plan.sites.iter().filter(|s| s.number.is_none()).count() as u64;
        let size = (plan.sites.len() + plan.entries.len()) as u64 * NODE_SIZE + tables * TABLE;
        // Nobody shares a region, and a file may have no sites.
        let behind = |region: u64| {
            let fits = region + size <= IMAGE + image::SLOTS;
            fits.then(|| (region + size.max(NODE_SIZE)).next_multiple_of(4096))
        };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, behind).ok()
    }
}

/// All files seen in a run.
pub(super) struct Files {
    known: HashMap<ModuleKey, Result<Option<Rc<Known>>, Unwatchable>>,
    codes: HashMap<(ModuleKey, i64), Rc<Code>>,
    /// What files are known by in the cache, and how much of [`Symbols::fixed`] is kept there.
    fixed: HashMap<ModuleKey, (Key, usize)>,
    cache: Arc<Cache>,
    maker: Maker,
    ahead: Ahead,
}

impl Files {
    pub(super) fn new(maker: Maker, cache: Arc<Cache>, ahead: Ahead) -> Self {
        Self { known: HashMap::new(), codes: HashMap::new(), fixed: HashMap::new(), cache, maker, ahead }
    }

    /// The file's plan, `None` where it has nothing to hook.
    ///
    /// # Errors
    /// Where it can't be watched.
    pub(super) fn known(&mut self, symbols: &mut Symbols, key: ModuleKey) -> Result<Option<Rc<Known>>, Unwatchable> {
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let known = self.look(symbols, key);
        self.known.insert(key, known.clone());
        known
    }

    fn look(&mut self, symbols: &mut Symbols, key: ModuleKey) -> Result<Option<Rc<Known>>, Unwatchable> {
        let state = symbols.state(key);
        let id = self.cache.key_of(state.as_ref(), symbols.build_id(key), || symbols.bytes(key));
        let read = |id: &Key| {
            Some(Placed { plan: self.cache.kept_plan(id)?, region: None, fixed: kept_fixed(&self.cache, id) })
        };
        let kept = id.as_ref().and_then(|id| self.ahead.plans.take(id, || read(id)));
        let Placed { plan, region, fixed } = match kept {
            Some(placed) => placed,
            None => {
                let bytes = symbols.bytes(key).ok_or_else(|| Unwatchable::Other("it can't be read".into()))?;
                let new = self.cache.new_plan(id.as_ref(), &bytes);
                let plan = new.map_err(|e| Unwatchable::Other(e.to_string()))?;
                Placed { plan, region: None, fixed: Vec::new() }
            }
        };
        self.fixed.extend(id.clone().map(|id| (key, (id, fixed.len()))));
        symbols.know_fixed(key, fixed);
        if plan.guards_memory {
            return Err(Unwatchable::GuardsMemory);
        }
        if let Some(evidence) = plan.uses_gs {
            return Err(Unwatchable::UsesGs(evidence));
        }
        if plan.sites.is_empty() && !plan.unplanned.is_empty() {
            return Err(Unwatchable::Other("they are made by int $0x80, as 32-bit programs make them".into()));
        }
        if plan.sites.is_empty() && plan.entries.is_empty() && plan.unwinder.is_none() {
            return Ok(None);
        }
        let region = region.or_else(|| self.ahead.regions.give(&plan));
        let region = region.ok_or_else(|| Unwatchable::Other("no room for more files".into()))?;
        Ok(Some(Rc::new(Known { plan, region, id })))
    }

    /// Tells who reads ahead how many records of roots come before those of the next file.
    pub(super) fn expect_roots(&self, first: u64) {
        // Only the first program's are of use.
        let _ = self.ahead.first_roots.set(first);
    }

    /// What every image begins with.
    pub(super) fn blank(&self) -> &Runs {
        self.ahead.blank()
    }

    /// Keeps for later runs what was found out about files by decoding them.
    pub(super) fn keep_fixed(&self, symbols: &Symbols) {
        for (key, (id, kept)) in &self.fixed {
            let fixed = symbols.fixed(*key).take(MOST_FIXED);
            if fixed.len() > *kept {
                let words = fixed.map(|(address, fixed)| address << 1 | u64::from(fixed));
                self.cache.put(FIXED, id, &words.flat_map(u64::to_le_bytes).collect::<Vec<u8>>());
            }
        }
    }

    /// The file's code at a distance where it is free to lie, and the address, in a process that
    /// has the file at `bias`.
    ///
    /// # Errors
    /// In words, where there is no such place or no code.
    pub(super) fn code(
        &mut self,
        room_for: &CodeRoom,
        key: ModuleKey,
        known: &Known,
        bias: u64,
        is_free: &dyn Fn(&Range<u64>) -> bool,
    ) -> Result<(Rc<Code>, u64), String> {
        let mut room = first_room(&known.plan);
        loop {
            let Some(at) = place(&known.plan, bias, room, is_free) else { return Err("no room near it".into()) };
            let code = self.stored(room_for, key, known, at.wrapping_sub(bias) as i64)?;
            if code.size() <= room {
                return Ok((code, at));
            }
            room = code.size() + 4096;
        }
    }

    /// The file's code at this distance, in the shared memory.
    fn stored(&mut self, room: &CodeRoom, key: ModuleKey, known: &Known, delta: i64) -> Result<Rc<Code>, String> {
        if let Some(code) = self.codes.get(&(key, delta)) {
            return Ok(Rc::clone(code));
        }
        let id = known.id.as_ref().and_then(|id| self.maker.key(id, delta));
        let ahead = id.as_ref().and_then(|id| self.ahead.codes.take(id, || None));
        let code = match ahead.filter(|code| code.blob.delta == delta && code.region == known.region) {
            Some(code) => code,
            None => Code::store(self.blob(known, id.as_ref(), delta)?, &known.plan, known.region, room)?,
        };
        let code = Rc::new(code);
        self.codes.insert((key, delta), Rc::clone(&code));
        Ok(code)
    }

    /// The code from an earlier run, or assembled now.
    fn blob(&self, known: &Known, id: Option<&Key>, delta: i64) -> Result<Blob, String> {
        let kept = id.and_then(|id| self.maker.kept(&self.cache, id));
        if let Some(blob) = kept.filter(|b| b.delta == delta) {
            return Ok(blob);
        }
        let blob = assemble(&known.plan, &self.maker.options, delta).map_err(|e| e.to_string())?;
        if let Some(id) = id {
            self.cache.put(CODE, id, &blob.to_bytes());
        }
        Ok(blob)
    }
}

/// What an earlier run has found out about a file by decoding it.
pub(super) fn kept_fixed(cache: &Cache, id: &Key) -> Vec<(u64, bool)> {
    let bytes = cache.get(FIXED, id).unwrap_or_default();
    let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    words.map(|word| (word >> 1, word & 1 == 1)).collect()
}

/// What code is made by.
#[derive(Clone, Debug)]
pub(super) struct Maker {
    options: Options,
    assembler: Option<String>,
}

impl Maker {
    pub(super) fn new(options: Options) -> Self {
        Self { options, assembler: assembler() }
    }

    /// What the code of the file `id` is known by, `None` where nothing tells this assembler from others.
    pub(super) fn key(&self, id: &Key, delta: i64) -> Option<Key> {
        let assembler = self.assembler.as_deref()?;
        Some(id.with(&format!("{delta:x}-{:x}-{assembler}", self.options.bits())))
    }

    /// The code in the cache.
    pub(super) fn kept(&self, cache: &Cache, key: &Key) -> Option<Blob> {
        Blob::from_bytes(cache.get(CODE, key)?)
    }
}

/// Lowest address a file wants.
fn lowest(plan: &Plan) -> u64 {
    plan.segments.iter().map(|s| s.vaddr & !4095).min().unwrap_or(0)
}

/// Room for a file's code, as far as that can be told before it is made.
pub(super) fn first_room(plan: &Plan) -> u64 {
    (plan.sites.len() + plan.entries.len()) as u64 * ROOM_PER_SITE + 8192
}

/// Where `room` bytes are free within reach of a file.
pub(super) fn place(plan: &Plan, bias: u64, room: u64, is_free: &dyn Fn(&Range<u64>) -> bool) -> Option<u64> {
    let lowest = lowest(plan);
    let extent = plan.segments.iter().map(|s| s.vaddr.saturating_add(s.memory_size)).max().unwrap_or(0);
    let room = room.next_multiple_of(4096);
    let first = bias.wrapping_add(lowest);
    let below = DISTANCES.iter().filter_map(|d| first.checked_sub(d + room.next_multiple_of(1 << 20)));
    let bottom = first.checked_sub(room).map(|_| LOWEST);
    let above = bias.wrapping_add(extent).next_multiple_of(4096).checked_add(1 << 30);
    below.chain(bottom).chain(above).find(|at| {
        let (at, end) = (*at, at.saturating_add(room));
        let reach = bias.wrapping_add(extent).max(end).saturating_sub(first.min(at));
        let fits = at >= LOWEST && end <= HIGHEST && reach <= REACH && (at >= first || end <= first);
        fits && is_free(&(at..end))
    })
}

/// What tells one assembler from another: any new build of this program may write other code.
pub(super) fn assembler() -> Option<String> {
    let exe = std::fs::metadata("/proc/self/exe").ok()?;
    let words = [exe.dev(), exe.ino(), exe.size(), exe.ctime() as u64, exe.ctime_nsec() as u64];
    Some(words.map(|w| format!("{w:x}")).join("-"))
}

/// Bytes of code a site comes to, with everything; more is seen when it is there.
const ROOM_PER_SITE: u64 = 1400;

/// Bytes of a table of roots by number.
const TABLE: u64 = systoll_hooks::layout::TABLE_LEN * 8;
