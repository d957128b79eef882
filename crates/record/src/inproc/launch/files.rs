//! Files of watched programs: planned once, assembled once for each distance.

use super::super::assemble::{AssembleError, Blob, Options, Unhooked, assemble, origins_table};
use super::super::cache::{Cache, Key, Kind};
use super::super::layout::{IMAGE, NODE_SIZE, code, image, node};
use super::super::plan::Plan;
use super::ahead::Ahead;
use super::memory::{Area, Memory, Runs};
use super::target::Jumps;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;
use std::sync::Arc;
use systoll_symbols::{ModuleKey, Symbols};

/// Room left free between a file and its code, so that neither a heap nor a neighbour is in the way.
const DISTANCES: [u64; 7] = [16 << 20, 32 << 20, 64 << 20, 128 << 20, 256 << 20, 512 << 20, 1 << 30];
/// Jumps reach two GiB; something is kept for what lies between.
const REACH: u64 = (2 << 30) - (64 << 20);
/// Lowest address a program may map (vm.mmap_min_addr as distributions set it).
const LOWEST: u64 = 0x1_0000;
/// Behind it nothing of a program's lies.
const HIGHEST: u64 = 0x7fff_0000_0000;

/// Ways to begin a file's records that are kept: there are as many as programs with other files.
const MOST_ROOTS: usize = 16;
/// Assembled code in the cache.
const CODE: Kind = Kind { name: "code", version: 4 };

/// A file's trampolines, in the shared memory.
pub(super) struct Code {
    /// Without its bytes.
    pub(super) blob: Blob,
    /// How many they are.
    len: u64,
    pub(super) jumps: Jumps,
    /// Places of the file whose calls nobody counts.
    pub(super) uncounted: usize,
    /// What its roots are in an image, by their first record: it depends on the files before it.
    roots: RefCell<HashMap<u64, Rc<Runs>>>,
    /// Where it lies in the shared file.
    pub(super) offset: u64,
    /// Entries of the table behind it, see [`origins_table`].
    origins: u64,
    /// See [`Plan::signal_return`].
    signal_return: Option<u64>,
}

impl Code {
    /// Bytes it takes, in whole pages.
    pub(super) fn size(&self) -> u64 {
        (self.table_at() + 8 * self.origins).next_multiple_of(4096)
    }

    fn table_at(&self) -> u64 {
        self.len.next_multiple_of(8)
    }

    /// The roots in the file's `region` of an image, with records from `first` on.
    ///
    /// # Errors
    /// Those of [`Blob::roots`].
    pub(super) fn roots(&self, region: u64, first: u64) -> Result<Rc<Runs>, AssembleError> {
        if let Some(known) = self.roots.borrow().get(&first) {
            return Ok(Rc::clone(known));
        }
        let mut words: BTreeMap<u64, u64> = self.blob.roots(region, first)?.into_iter().collect();
        // Sites that tell no contexts apart: nobody asks there before a window is due.
        let unasked = (0u64..).zip(&self.blob.sites).filter(|(_, s)| s.offset.is_none() && s.results && !s.vdso);
        words.extend(unasked.map(|(i, _)| (region + i * NODE_SIZE - IMAGE + node::WINDOW_AT, 1)));
        let roots = Rc::new(Runs::new(words));
        let mut known = self.roots.borrow_mut();
        if known.len() < MOST_ROOTS {
            known.insert(first, Rc::clone(&roots));
        }
        Ok(roots)
    }

    /// Has unwinders of the process whose image `area` is find what the code stands for, where it
    /// is mapped `at`. Beyond what there is room for they find nothing.
    pub(super) fn announce(&self, area: &Area, at: u64) {
        if self.origins != 0 {
            announce(area, at..at + self.len, (at + self.table_at(), self.origins));
        }
        if let Some(start) = self.signal_return {
            // Unwinders look for the byte before a return address.
            let start = at.wrapping_add_signed(-self.blob.delta).wrapping_add(start);
            announce(area, start - 1..start + SIGNAL_RETURN_LEN, (IMAGE + image::SIGNAL_TABLE, 1));
        }
    }
}

/// Bytes of `mov $15,%rax; syscall`.
const SIGNAL_RETURN_LEN: u64 = 9;

/// Adds an entry to [`image::CODES`]: code, and where its table lies and how long it is.
fn announce(area: &Area, code: Range<u64>, (table, len): (u64, u64)) {
    let n = area.get(image::CODE_COUNT);
    if n >= image::CODES_LEN {
        return;
    }
    let size = code.end - code.start;
    let fields = [(code::START, code.start), (code::SIZE, size), (code::TABLE, table), (code::LEN, len)];
    for (field, word) in fields {
        area.set(image::CODES + n * image::CODE_ENTRY + field, word);
    }
    area.set(image::CODE_COUNT, n + 1);
}

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
    /// It uses the gs segment itself.
    UsesGs,
    /// Anything else, in words.
    Other(String),
}

/// All files seen in a run.
pub(super) struct Files {
    known: HashMap<ModuleKey, Result<Option<Rc<Known>>, Unwatchable>>,
    codes: HashMap<(ModuleKey, i64), Rc<Code>>,
    next_region: u64,
    cache: Arc<Cache>,
    maker: Maker,
    ahead: Ahead,
}

impl Files {
    pub(super) fn new(maker: Maker, cache: Arc<Cache>, ahead: Ahead) -> Self {
        Self { known: HashMap::new(), codes: HashMap::new(), next_region: IMAGE + image::ROOTS, cache, maker, ahead }
    }

    /// The file's plan, `None` where it has nothing to hook.
    ///
    /// # Errors
    /// Where it can't be watched.
    pub(super) fn known(&mut self, symbols: &Symbols, key: ModuleKey) -> Result<Option<Rc<Known>>, Unwatchable> {
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let known = self.look(symbols, key);
        self.known.insert(key, known.clone());
        known
    }

    fn look(&mut self, symbols: &Symbols, key: ModuleKey) -> Result<Option<Rc<Known>>, Unwatchable> {
        let state = symbols.state(key);
        let id = self.cache.key_of(state.as_ref(), symbols.build_id(key), || symbols.bytes(key));
        let kept = id.as_ref().and_then(|id| self.ahead.plans.take(id, || self.cache.kept_plan(id)));
        let plan = match kept {
            Some(plan) => plan,
            None => {
                let bytes = symbols.bytes(key).ok_or_else(|| Unwatchable::Other("it can't be read".into()))?;
                self.cache.new_plan(id.as_ref(), &bytes).map_err(|e| Unwatchable::Other(e.to_string()))?
            }
        };
        if plan.uses_gs {
            return Err(Unwatchable::UsesGs);
        }
        if plan.sites.is_empty() && !plan.unplanned.is_empty() {
            return Err(Unwatchable::Other("they are made by int $0x80, as 32-bit programs make them".into()));
        }
        if plan.sites.is_empty() && plan.entries.is_empty() && plan.unwinder.is_none() {
            return Ok(None);
        }
        // Tables take more than roots, and only those who assemble know where: room for the most.
        let tables = plan.sites.iter().filter(|s| s.number.is_none()).count() as u64;
        let size = (plan.sites.len() + plan.entries.len()) as u64 * NODE_SIZE + tables * TABLE;
        let region = self.next_region;
        if region + size > IMAGE + image::NODES {
            return Err(Unwatchable::Other("no room for more files".into()));
        }
        // Nobody shares a region, and a file may have no sites.
        self.next_region = (region + size.max(NODE_SIZE)).next_multiple_of(4096);
        Ok(Some(Rc::new(Known { plan, region, id })))
    }

    /// The file's code at a distance where it is free to lie, and the address, in a process that
    /// has the file at `bias` and the ranges `taken` in use.
    ///
    /// # Errors
    /// In words, where there is no such place or no code.
    pub(super) fn code(
        &mut self,
        memory: &mut Memory,
        key: ModuleKey,
        known: &Known,
        bias: u64,
        taken: &[Range<u64>],
    ) -> Result<(Rc<Code>, u64), String> {
        let mut room = first_room(&known.plan);
        loop {
            let Some(at) = place(&known.plan, bias, room, taken) else { return Err("no room near it".into()) };
            let code = self.assembled(memory, key, known, at.wrapping_sub(bias) as i64)?;
            if code.size() <= room {
                return Ok((code, at));
            }
            room = code.size() + 4096;
        }
    }

    fn assembled(
        &mut self,
        memory: &mut Memory,
        key: ModuleKey,
        known: &Known,
        delta: i64,
    ) -> Result<Rc<Code>, String> {
        if let Some(code) = self.codes.get(&(key, delta)) {
            return Ok(Rc::clone(code));
        }
        let mut blob = self.blob(known, delta)?;
        let mut bytes = std::mem::take(&mut blob.code);
        let len = bytes.len() as u64;
        blob.settle(&mut bytes, known.region).map_err(|e| e.to_string())?;
        let (table, origins) = origins_table(&blob);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.extend(table);
        let offset = memory.add_code(&bytes).ok_or("no room for more code")?;
        let jumps = Jumps::new(&known.plan, &blob)?;
        let uncounted = uncounted(known, &blob);
        let signal_return = known.plan.signal_return;
        let roots = RefCell::default();
        let code = Rc::new(Code { blob, len, jumps, uncounted, roots, offset, origins, signal_return });
        self.codes.insert((key, delta), Rc::clone(&code));
        Ok(code)
    }

    /// The code from an earlier run, or assembled now.
    fn blob(&self, known: &Known, delta: i64) -> Result<Blob, String> {
        let id = known.id.as_ref().and_then(|id| self.maker.key(id, delta));
        let kept = id.as_ref().and_then(|id| self.ahead.codes.take(id, || self.maker.kept(&self.cache, id)));
        if let Some(blob) = kept.filter(|b| b.delta == delta) {
            return Ok(blob);
        }
        let blob = assemble(&known.plan, &self.maker.options, delta).map_err(|e| e.to_string())?;
        if let Some(id) = &id {
            self.cache.put(CODE, id, &blob.to_bytes());
        }
        Ok(blob)
    }
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
pub(super) fn place(plan: &Plan, bias: u64, room: u64, taken: &[Range<u64>]) -> Option<u64> {
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
        let free = at >= LOWEST && end <= HIGHEST && !taken.iter().any(|r| at < r.end && r.start < end);
        free && reach <= REACH && (at >= first || end <= first)
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
const TABLE: u64 = super::super::layout::NUMBERS * 8;

/// Places of a file whose calls nobody counts.
fn uncounted(known: &Known, blob: &Blob) -> usize {
    let refused = blob.refused.iter().filter(|r| r.what != Unhooked::Return);
    let addresses: std::collections::HashSet<u64> =
        refused.map(|r| r.address).chain(known.plan.unplanned.iter().map(|u| u.address)).collect();
    addresses.len()
}
