//! Maps memory and sets the gs base in this process, for code that is tried out here.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

// These are numbers of asm/prctl.h.
const ARCH_SET_GS: libc::c_int = 0x1001;
const ARCH_GET_GS: libc::c_int = 0x1004;

/// Returns the calling thread's gs base.
pub(crate) fn gs_base() -> Option<u64> {
    let mut base = 0u64;
    // SAFETY: the kernel writes one unsigned long to the address given.
    let result = unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_GET_GS, &raw mut base) };
    (result == 0).then_some(base)
}

/// Sets the calling thread's gs base, which neither Rust nor the C library uses on x86-64.
pub(crate) fn set_gs_base(base: u64) -> Option<()> {
    // SAFETY: the kernel takes any canonical address; none of our code uses gs.
    let result = unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, base) };
    (result == 0).then_some(())
}

/// Memory of this process, unmapped when dropped.
pub(crate) struct Mapping {
    at: NonNull<c_void>,
    len: usize,
}

impl Mapping {
    /// Maps `len` bytes at `address` if they are free. Only touched pages take memory.
    pub(crate) fn at(address: u64, len: u64) -> Option<Self> {
        let mapping = Self::map(address, len, libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE)?;
        // Kernels that do not know the flag use the address as a hint.
        (mapping.address() == address).then_some(mapping)
    }

    /// Maps `len` bytes anywhere.
    pub(crate) fn anywhere(len: u64) -> Option<Self> {
        Self::map(0, len, 0)
    }

    fn map(address: u64, len: u64, flags: libc::c_int) -> Option<Self> {
        let len = usize::try_from(len).ok()?;
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping; MAP_FIXED_NOREPLACE replaces none.
        let at = unsafe { libc::mmap(address as *mut c_void, len, protection, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            return None;
        }
        NonNull::new(at).map(|at| Self { at, len })
    }

    pub(crate) fn address(&self) -> u64 {
        self.at.as_ptr() as u64
    }

    /// Returns the whole mapping as words.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned and lives as long as `self`; code that runs here changes it behind our
        // back, which atomics allow.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr().cast(), self.len / 8) }
    }

    /// Copies `bytes` to `offset`. Returns `None` if there is no room.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> Option<()> {
        let offset = usize::try_from(offset).ok()?;
        offset.checked_add(bytes.len()).filter(|end| *end <= self.len)?;
        // SAFETY: within our mapping, which is writable until it is made executable.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at.as_ptr().cast::<u8>().add(offset), bytes.len())
        };
        Some(())
    }

    /// Makes the mapping executable and read-only.
    pub(crate) fn into_code(self) -> Option<Code> {
        // SAFETY: our own mapping, to which there is no reference.
        let result = unsafe { libc::mprotect(self.at.as_ptr(), self.len, libc::PROT_READ | libc::PROT_EXEC) };
        (result == 0).then_some(Code(self))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our own mapping; all references into it borrow `self`.
        unsafe { libc::munmap(self.at.as_ptr(), self.len) };
    }
}

/// Memory of this process that holds code and is executable.
pub(crate) struct Code(Mapping);

impl Code {
    pub(crate) fn address(&self) -> u64 {
        self.0.address()
    }

    /// Calls the function at `offset` with one argument.
    ///
    /// # Safety
    /// A function that keeps to the ABI must start there, and all it reaches must exist.
    pub(crate) unsafe fn call(&self, offset: u64, argument: u64) {
        // SAFETY: the caller promises it; the code is mapped as long as `self` lives.
        unsafe {
            let function = std::mem::transmute::<u64, extern "C" fn(u64)>(self.address() + offset);
            function(argument);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_mapped_at_the_requested_address_or_not_at_all() {
        const FREE: u64 = 0x2900_0000_0000;
        let mapping = Mapping::at(FREE, 8192).unwrap();
        assert_eq!((mapping.address(), mapping.words().len()), (FREE, 1024));
        assert!(Mapping::at(FREE + 4096, 4096).is_none());
        drop(mapping);
        assert!(Mapping::at(FREE + 4096, 4096).is_some());
    }

    #[test]
    fn code_runs_and_writes_beyond_the_end_are_refused() {
        let mut mapping = Mapping::anywhere(4096).unwrap();
        assert!(mapping.write(4095, &[0xc3, 0xc3]).is_none() && mapping.write(u64::MAX, &[0xc3]).is_none());
        // This is `ret`.
        mapping.write(16, &[0xc3]).unwrap();
        let code = mapping.into_code().unwrap();
        // SAFETY: a function that returns at once.
        unsafe { code.call(16, 1) };
    }
}
