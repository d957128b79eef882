//! The calls of bpf(2) that the backend makes, with their arguments as the kernel lays them out (linux/bpf.h).

use std::ffi::CStr;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Types of maps (`enum bpf_map_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MapType {
    Hash = 1,
    Array = 2,
    Queue = 22,
    Ring = 27,
}

/// The type of programs at raw tracepoints (BPF_PROG_TYPE_RAW_TRACEPOINT).
const RAW_TRACEPOINT: u32 = 17;
/// Flag of a map that programs only read (BPF_F_RDONLY_PROG): once frozen, its values are constants to the verifier.
pub(super) const READ_ONLY_TO_PROGRAMS: u32 = 1 << 7;
/// Bytes of the verifier's log that are kept of a program that was refused.
const LOG: usize = 1 << 16;

/// Times that a program is loaded again if a signal has kept the verifier from its end.
const TRIES: usize = 5;

/// Numbers of the commands (`enum bpf_cmd`).
mod command {
    pub(super) const MAP_CREATE: libc::c_long = 0;
    pub(super) const MAP_LOOKUP: libc::c_long = 1;
    pub(super) const MAP_UPDATE: libc::c_long = 2;
    pub(super) const PROG_LOAD: libc::c_long = 5;
    pub(super) const PROG_TEST_RUN: libc::c_long = 10;
    pub(super) const OBJ_GET_INFO: libc::c_long = 15;
    pub(super) const RAW_TRACEPOINT_OPEN: libc::c_long = 17;
    pub(super) const MAP_LOOKUP_AND_DELETE: libc::c_long = 21;
    pub(super) const MAP_FREEZE: libc::c_long = 22;
    pub(super) const MAP_LOOKUP_BATCH: libc::c_long = 24;
    pub(super) const MAP_DELETE_BATCH: libc::c_long = 27;
}

/// Arguments of a command: words that the kernel reads and partly writes. Unset ones are zero, which is the default of
/// each argument.
#[repr(C, align(8))]
struct Arguments([u8; 128]);

impl Arguments {
    fn new() -> Self {
        Self([0; 128])
    }

    fn word(mut self, at: usize, value: u32) -> Self {
        self.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn long(mut self, at: usize, value: u64) -> Self {
        self.0[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn name(mut self, at: usize, name: &str) -> Self {
        // The kernel wants at most 15 bytes and a zero.
        let name = &name.as_bytes()[..name.len().min(15)];
        self.0[at..at + name.len()].copy_from_slice(name);
        self
    }

    fn word_at(&self, at: usize) -> u32 {
        u32::from_ne_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }
}

/// Makes a call of bpf(2). Returns its result, which is not negative.
///
/// # Safety
/// Each address among the arguments points to memory that the command may read, and write if it does so, of the length
/// that the command takes.
unsafe fn bpf(command: libc::c_long, arguments: &mut Arguments) -> Result<i32> {
    // SAFETY: the arguments' own memory is valid for its whole length; for addresses in it, the caller vouches.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, arguments.0.as_mut_ptr(), arguments.0.len()) };
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result as i32) }
}

/// Makes a call of bpf(2) that returns a descriptor.
///
/// # Safety
/// As [`bpf`].
unsafe fn descriptor(command: libc::c_long, arguments: &mut Arguments) -> Result<OwnedFd> {
    // SAFETY: the caller vouches for the arguments; the descriptor is new and ours alone.
    unsafe { bpf(command, arguments).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

/// Plain data without padding, of which any bytes are a value: it is exchanged with the kernel as bytes.
///
/// # Safety
/// The type is `repr(C)` or a number, has no padding, and every bit pattern is a value of it.
pub(super) unsafe trait Plain: Copy + Default {}

// SAFETY: numbers.
unsafe impl Plain for u16 {}
// SAFETY: numbers.
unsafe impl Plain for u32 {}
// SAFETY: numbers.
unsafe impl Plain for u64 {}

/// A map of the kernel's: of keys `K` and values `V`.
#[derive(Debug)]
pub(super) struct Map<K, V> {
    fd: OwnedFd,
    types: std::marker::PhantomData<(K, V)>,
}

impl<K: Plain, V: Plain> Map<K, V> {
    /// Makes a map.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn new(kind: MapType, name: &str, entries: u32, flags: u32) -> Result<Self> {
        let (key, value) = match kind {
            MapType::Queue => (0, size_of::<V>()),
            MapType::Ring => (0, 0),
            MapType::Hash | MapType::Array => (size_of::<K>(), size_of::<V>()),
        };
        let mut arguments = Arguments::new()
            .word(0, kind as u32)
            .word(4, key as u32)
            .word(8, value as u32)
            .word(12, entries)
            .word(16, flags)
            .name(28, name);
        // SAFETY: the command reads no memory but its arguments.
        let fd = unsafe { descriptor(command::MAP_CREATE, &mut arguments)? };
        Ok(Self { fd, types: std::marker::PhantomData })
    }

    /// Returns the value of a key.
    ///
    /// # Errors
    /// ENOENT if there is none.
    pub(super) fn get(&self, key: K) -> Result<V> {
        let mut value = V::default();
        let mut arguments = self.element(&raw const key as u64, &raw mut value as u64);
        // SAFETY: the map was made for keys and values of these sizes, and any bytes are a value.
        unsafe { bpf(command::MAP_LOOKUP, &mut arguments)? };
        Ok(value)
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn set(&self, key: K, value: V) -> Result<()> {
        let mut arguments = self.element(&raw const key as u64, &raw const value as u64);
        // SAFETY: the map was made for keys and values of these sizes, which have no padding.
        unsafe { bpf(command::MAP_UPDATE, &mut arguments).map(drop) }
    }

    /// Adds a value to a queue.
    ///
    /// # Errors
    /// E2BIG if it is full.
    pub(super) fn push(&self, value: V) -> Result<()> {
        let mut arguments = self.element(0, &raw const value as u64);
        // SAFETY: a queue has no keys; it was made for values of this size.
        unsafe { bpf(command::MAP_UPDATE, &mut arguments).map(drop) }
    }

    /// Takes a value from a queue.
    ///
    /// # Errors
    /// ENOENT if it is empty.
    pub(super) fn pop(&self) -> Result<V> {
        let mut value = V::default();
        let mut arguments = self.element(0, &raw mut value as u64);
        // SAFETY: a queue has no keys; it was made for values of this size, and any bytes are one.
        unsafe { bpf(command::MAP_LOOKUP_AND_DELETE, &mut arguments)? };
        Ok(value)
    }

    /// Makes the map's values constant: from now on we can't change them either.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn freeze(&self) -> Result<()> {
        let mut arguments = Arguments::new().word(0, self.fd.as_raw_fd() as u32);
        // SAFETY: the command reads no memory but its arguments.
        unsafe { bpf(command::MAP_FREEZE, &mut arguments).map(drop) }
    }

    /// Calls `each` with all entries, of which programs may change and add some meanwhile.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn read(&self, batch: usize, each: impl FnMut(K, V)) -> Result<()> {
        self.read_first(usize::MAX, batch, each)
    }

    /// Does the same with the first `most` entries, or some more, of an array.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn read_first(&self, most: usize, batch: usize, mut each: impl FnMut(K, V)) -> Result<()> {
        let (mut keys, mut values) = (vec![K::default(); batch], vec![V::default(); batch]);
        // The kernel keeps its place in the map here: a number of a bucket, or a key.
        let (mut place, mut next) = ([0u64; 8], [0u64; 8]);
        let (mut begun, mut all) = (false, 0);
        loop {
            let from = if begun { &raw const place as u64 } else { 0 };
            let mut arguments = Arguments::new()
                .long(0, from)
                .long(8, &raw mut next as u64)
                .long(16, keys.as_mut_ptr() as u64)
                .long(24, values.as_mut_ptr() as u64)
                .word(32, batch as u32)
                .word(36, self.fd.as_raw_fd() as u32);
            // SAFETY: keys and values have room for a batch, the place for any key of ours; any bytes are a value.
            let result = unsafe { bpf(command::MAP_LOOKUP_BATCH, &mut arguments) };
            let ended = match result {
                Ok(_) => false,
                Err(e) if e.raw_os_error() == Some(libc::ENOENT) => true,
                Err(e) => return Err(e),
            };
            let got = (arguments.word_at(32) as usize).min(batch);
            keys.iter().zip(&values).take(got).for_each(|(key, value)| each(*key, *value));
            all += got;
            if ended || all >= most {
                return Ok(());
            }
            (place, begun) = (next, true);
        }
    }

    /// Removes keys, which are all there.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn remove(&self, keys: &[K]) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut arguments = Arguments::new()
            .long(16, keys.as_ptr() as u64)
            .word(32, keys.len() as u32)
            .word(36, self.fd.as_raw_fd() as u32);
        // SAFETY: the command reads as many keys as there are.
        unsafe { bpf(command::MAP_DELETE_BATCH, &mut arguments).map(drop) }
    }

    fn element(&self, key: u64, value: u64) -> Arguments {
        Arguments::new().word(0, self.fd.as_raw_fd() as u32).long(8, key).long(16, value)
    }

    pub(super) fn fd(&self) -> &OwnedFd {
        &self.fd
    }
}

/// An instruction of BPF (`struct bpf_insn`).
pub(super) type Instruction = [u8; 8];

/// A program that the kernel has accepted.
#[derive(Debug)]
pub(super) struct Program(OwnedFd);

impl Program {
    /// Loads a program for raw tracepoints. If the kernel refuses it, returns the last line of its verifier's log.
    ///
    /// # Errors
    /// The kernel's, with what its verifier says.
    pub(super) fn load(name: &str, code: &[Instruction], license: &CStr) -> std::result::Result<Self, (Error, String)> {
        let arguments = |log: &mut [u8]| {
            Arguments::new()
                .word(0, RAW_TRACEPOINT)
                .word(4, code.len() as u32)
                .long(8, code.as_ptr() as u64)
                .long(16, license.as_ptr() as u64)
                .word(24, u32::from(!log.is_empty()))
                .word(28, log.len() as u32)
                .long(32, if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 })
                .name(48, name)
        };
        // SAFETY: the code has as many instructions as it says, and the licence ends with a zero.
        let load = || unsafe { descriptor(command::PROG_LOAD, &mut arguments(&mut [])) };
        let mut first = load();
        // The verifier gives up when a signal is pending (bpf_check in kernel/bpf/verifier.c).
        for _ in 0..TRIES {
            match &first {
                Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => first = load(),
                _ => break,
            }
        }
        first.map(Self).map_err(|error| {
            let mut log = vec![0; LOG];
            // SAFETY: as above; the log has the room that it says.
            drop(unsafe { descriptor(command::PROG_LOAD, &mut arguments(&mut log)) });
            let end = log.iter().position(|b| *b == 0).unwrap_or(log.len());
            let text = String::from_utf8_lossy(&log[..end]).into_owned();
            let said = text.lines().rfind(|line| !line.starts_with("processed ") && !line.is_empty());
            (error, said.unwrap_or_default().to_owned())
        })
    }

    /// Has the kernel run the program whenever a tracepoint is passed, until the result is dropped.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn attach(&self, tracepoint: &CStr) -> Result<OwnedFd> {
        let mut arguments = Arguments::new().long(0, tracepoint.as_ptr() as u64).word(8, self.0.as_raw_fd() as u32);
        // SAFETY: the name ends with a zero.
        unsafe { descriptor(command::RAW_TRACEPOINT_OPEN, &mut arguments) }
    }

    /// Runs the program once, in the calling thread, without a context.
    ///
    /// # Errors
    /// The kernel's: EINVAL or ENOTSUPP before Linux 5.10.
    pub(super) fn run(&self) -> Result<()> {
        let mut arguments = Arguments::new().word(0, self.0.as_raw_fd() as u32);
        // SAFETY: the command gets no addresses.
        unsafe { bpf(command::PROG_TEST_RUN, &mut arguments).map(drop) }
    }

    /// Returns the number of times that the kernel has left the program out because it was running on the same
    /// processor (`recursion_misses`, since Linux 5.12); 0 if the kernel does not say.
    pub(super) fn left_out(&self) -> u64 {
        /// Offset of the number in `struct bpf_prog_info`, which ends behind it in the version that we ask for.
        const AT: usize = 208;
        let mut info = [0u64; AT / 8 + 1];
        let mut arguments = Arguments::new()
            .word(0, self.0.as_raw_fd() as u32)
            .word(4, size_of_val(&info) as u32)
            .long(8, info.as_mut_ptr() as u64);
        // SAFETY: the kernel writes no more than the length that it was given. The zeroes say that nothing further,
        // such as the code, is wanted.
        match unsafe { bpf(command::OBJ_GET_INFO, &mut arguments) } {
            Ok(_) => info[AT / 8],
            Err(_) => 0,
        }
    }
}
