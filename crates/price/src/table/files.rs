//! Files: look-ups of a regular file's path, and transfers of one byte on a file in memory.

use super::bench::{Bench, after, fails, make, same, undo};
#[cfg(target_arch = "aarch64")]
use crate::arch::absent::*;
use crate::fixture::{BULK, Fixture};
use crate::sys::{self, Args, CWD};
use libc::*;

fn plain(f: &Fixture) -> usize {
    f.paths.plain.as_ptr() as usize
}

fn link(f: &Fixture) -> usize {
    f.paths.link.as_ptr() as usize
}

fn missing(f: &Fixture) -> usize {
    f.paths.missing.as_ptr() as usize
}

fn close(_: &Fixture, _: usize, fd: isize) {
    sys::close(fd);
}

fn open_plain(f: &Fixture, _: usize) -> Args {
    [CWD, plain(f), O_RDONLY as usize, 0, 0, 0]
}

fn rewind(f: &Fixture) -> Args {
    [f.file, 0, SEEK_SET as usize, 0, 0, 0]
}

pub(super) const CALLS: &[Bench] = &[
    same(SYS_stat, |f| [plain(f), f.out(), 0, 0, 0, 0]),
    fails(SYS_stat, ENOENT, |f| [missing(f), f.out(), 0, 0, 0, 0]),
    same(SYS_lstat, |f| [link(f), f.out(), 0, 0, 0, 0]),
    same(SYS_newfstatat, |f| [CWD, plain(f), f.out(), 0, 0, 0]),
    fails(SYS_newfstatat, ENOENT, |f| [CWD, missing(f), f.out(), 0, 0, 0]),
    same(SYS_statx, |f| [CWD, plain(f), 0, STATX_BASIC_STATS as usize, f.out(), 0]),
    fails(SYS_statx, ENOENT, |f| [CWD, missing(f), 0, STATX_BASIC_STATS as usize, f.out(), 0]),
    same(SYS_fstat, |f| [f.file, f.out(), 0, 0, 0, 0]),
    same(SYS_access, |f| [plain(f), R_OK as usize, 0, 0, 0, 0]),
    fails(SYS_access, ENOENT, |f| [missing(f), R_OK as usize, 0, 0, 0, 0]),
    same(SYS_faccessat, |f| [CWD, plain(f), R_OK as usize, 0, 0, 0]),
    fails(SYS_faccessat, ENOENT, |f| [CWD, missing(f), R_OK as usize, 0, 0, 0]),
    same(SYS_faccessat2, |f| [CWD, plain(f), R_OK as usize, 0, 0, 0]),
    fails(SYS_faccessat2, ENOENT, |f| [CWD, missing(f), R_OK as usize, 0, 0, 0]),
    same(SYS_readlink, |f| [link(f), f.out(), 1024, 0, 0, 0]),
    fails(SYS_readlink, EINVAL, |f| [plain(f), f.out(), 1024, 0, 0, 0]),
    fails(SYS_readlink, ENOENT, |f| [missing(f), f.out(), 1024, 0, 0, 0]),
    same(SYS_readlinkat, |f| [CWD, link(f), f.out(), 1024, 0, 0]),
    same(SYS_statfs, |f| [plain(f), f.out(), 0, 0, 0, 0]),
    same(SYS_fstatfs, |f| [f.file, f.out(), 0, 0, 0, 0]),
    same(SYS_getcwd, |f| [f.out(), 4096, 0, 0, 0, 0]),
    same(SYS_chdir, |_| [c"/".as_ptr() as usize, 0, 0, 0, 0, 0]),
    make(SYS_open, |f, _| [plain(f), O_RDONLY as usize, 0, 0, 0, 0], close),
    fails(SYS_open, ENOENT, |f| [missing(f), O_RDONLY as usize, 0, 0, 0, 0]),
    make(SYS_openat, open_plain, close),
    fails(SYS_openat, ENOENT, |f| [CWD, missing(f), O_RDONLY as usize, 0, 0, 0]),
    undo(SYS_close, SYS_openat, open_plain, close),
    fails(SYS_close, EBADF, |_| [usize::MAX, 0, 0, 0, 0, 0]),
    make(SYS_dup, |f, _| [f.file, 0, 0, 0, 0, 0], close),
    same(SYS_dup2, |f| [f.file, f.spare, 0, 0, 0, 0]),
    same(SYS_dup3, |f| [f.file, f.spare, 0, 0, 0, 0]),
    make(SYS_memfd_create, |_, _| [c"systoll-price".as_ptr() as usize, 0, 0, 0, 0, 0], close),
    after(SYS_read, BULK as u32, |f| [f.file, f.data(), 1, 0, 0, 0], SYS_lseek, rewind),
    fails(SYS_read, EAGAIN, |f| [f.pipe[0], f.data(), 1, 0, 0, 0]),
    after(SYS_readv, BULK as u32, |f| [f.file, f.iov(), 1, 0, 0, 0], SYS_lseek, rewind),
    same(SYS_pread64, |f| [f.file, f.data(), 1, 0, 0, 0]),
    after(SYS_write, BULK as u32, |f| [f.file, f.data(), 1, 0, 0, 0], SYS_lseek, rewind),
    after(SYS_writev, BULK as u32, |f| [f.file, f.iov(), 1, 0, 0, 0], SYS_lseek, rewind),
    same(SYS_pwrite64, |f| [f.file, f.data(), 1, 0, 0, 0]),
    same(SYS_lseek, |f| [f.file, 0, SEEK_CUR as usize, 0, 0, 0]),
    fails(SYS_lseek, ESPIPE, |f| [f.pipe[0], 0, SEEK_CUR as usize, 0, 0, 0]),
    same(SYS_fcntl, |f| [f.file, F_GETFL as usize, 0, 0, 0, 0]),
    same(SYS_ioctl, |f| [f.pipe[0], FIONREAD as usize, f.out(), 0, 0, 0]),
    fails(SYS_ioctl, ENOTTY, |f| [f.sink, TCGETS as usize, f.out(), 0, 0, 0]),
    same(SYS_fadvise64, |f| [f.file, 0, 0, POSIX_FADV_NORMAL as usize, 0, 0]),
    same(SYS_flock, |f| [f.file, (LOCK_EX | LOCK_NB) as usize, 0, 0, 0, 0]),
    fails(SYS_getxattr, ENODATA, |f| [plain(f), c"user.systoll".as_ptr() as usize, f.out(), 16, 0, 0]),
];
