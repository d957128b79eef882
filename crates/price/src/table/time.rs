//! Clocks and timers through the kernel, not the vDSO.

use super::bench::{Bench, same};
#[cfg(target_arch = "aarch64")]
use crate::arch::absent::*;
use libc::*;

const CLOCK: usize = CLOCK_MONOTONIC as usize;

pub(super) const CALLS: &[Bench] = &[
    same(SYS_clock_gettime, |f| [CLOCK, f.out(), 0, 0, 0, 0]),
    same(SYS_clock_getres, |f| [CLOCK, f.out(), 0, 0, 0, 0]),
    same(SYS_gettimeofday, |f| [f.out(), 0, 0, 0, 0, 0]),
    same(SYS_time, |_| [0; 6]),
    same(SYS_times, |f| [f.out(), 0, 0, 0, 0, 0]),
    same(SYS_getitimer, |f| [ITIMER_REAL as usize, f.out(), 0, 0, 0, 0]),
    same(SYS_setitimer, |f| [ITIMER_REAL as usize, f.zeros(), 0, 0, 0, 0]),
    same(SYS_alarm, |_| [0; 6]),
    same(SYS_timerfd_settime, |f| [f.timer, 0, f.zeros(), 0, 0, 0]),
    same(SYS_timerfd_gettime, |f| [f.timer, f.out(), 0, 0, 0, 0]),
];
