//! Calls that wait for nothing, sockets, pipes, and descriptors for events.

use super::bench::{Bench, fails, make, same, undo};
#[cfg(target_arch = "aarch64")]
use crate::arch::absent::*;
use crate::fixture::Fixture;
use crate::sys::{self, Args, SIGSET_BYTES};
use libc::*;

fn close(_: &Fixture, _: usize, fd: isize) {
    sys::close(fd);
}

fn close_pair(f: &Fixture, i: usize, _: isize) {
    f.close_pair(i);
}

fn none(_: &Fixture, _: usize) -> Args {
    [0; 6]
}

fn send(f: &Fixture, _: usize) -> Args {
    [f.sockets[0], f.data(), 1, 0, 0, 0]
}

fn receive(f: &Fixture, _: usize, _: isize) {
    // SAFETY: writes one byte to scratch memory.
    unsafe { sys::call(SYS_recvfrom, [f.sockets[1], f.out(), 1, 0, 0, 0]) };
}

fn receive_message(f: &Fixture, _: usize, _: isize) {
    // SAFETY: writes one byte and the message's header, all in scratch memory.
    unsafe { sys::call(SYS_recvmsg, [f.sockets[1], f.msg(), 0, 0, 0, 0]) };
}

fn socket_pair(f: &Fixture, i: usize) -> Args {
    [AF_UNIX as usize, SOCK_STREAM as usize, 0, f.pair(i), 0, 0]
}

/// Returns the arguments of a select that examines nothing: an empty set up to descriptor 0.
fn empty_set(f: &Fixture) -> Args {
    [1, f.zeros(), 0, 0, f.zeros() + 1024, 0]
}

fn option(f: &Fixture) -> Args {
    [f.sockets[0], SOL_SOCKET as usize, SO_KEEPALIVE as usize, f.one(), 4, 0]
}

pub(super) const CALLS: &[Bench] = &[
    same(SYS_poll, |f| [f.poll(), 1, 0, 0, 0, 0]),
    same(SYS_ppoll, |f| [f.poll(), 1, f.zeros(), 0, SIGSET_BYTES, 0]),
    same(SYS_select, empty_set),
    same(SYS_pselect6, empty_set),
    same(SYS_epoll_wait, |f| [f.epoll, f.out(), 1, 0, 0, 0]),
    same(SYS_epoll_pwait, |f| [f.epoll, f.out(), 1, 0, 0, SIGSET_BYTES]),
    same(SYS_epoll_ctl, |f| [f.epoll, EPOLL_CTL_MOD as usize, f.pipe[0], f.epoll_event(), 0, 0]),
    make(SYS_epoll_create1, none, close),
    make(SYS_eventfd2, none, close),
    make(SYS_timerfd_create, none, close),
    make(SYS_pipe, |f, i| [f.pair(i), 0, 0, 0, 0, 0], close_pair),
    make(SYS_pipe2, |f, i| [f.pair(i), O_CLOEXEC as usize, 0, 0, 0, 0], close_pair),
    make(SYS_socket, |_, _| [AF_UNIX as usize, SOCK_STREAM as usize, 0, 0, 0, 0], close),
    make(SYS_socketpair, socket_pair, close_pair),
    same(SYS_getsockopt, |f| [f.sockets[0], SOL_SOCKET as usize, SO_ERROR as usize, f.out(), f.length(), 0]),
    same(SYS_setsockopt, option),
    same(SYS_getsockname, |f| [f.sockets[0], f.out(), f.length(), 0, 0, 0]),
    same(SYS_getpeername, |f| [f.sockets[0], f.out(), f.length(), 0, 0, 0]),
    make(SYS_sendto, send, receive),
    undo(SYS_recvfrom, SYS_sendto, send, receive),
    fails(SYS_recvfrom, EAGAIN, |f| [f.sockets[1], f.out(), 1, 0, 0, 0]),
    make(SYS_sendmsg, |f, _| [f.sockets[0], f.msg(), 0, 0, 0, 0], receive),
    undo(SYS_recvmsg, SYS_sendto, send, receive_message),
    fails(SYS_recvmsg, EAGAIN, |f| [f.sockets[1], f.msg(), 0, 0, 0, 0]),
];
