//! A call that can be priced, and the way to repeat it.

use crate::child::{Outcome, Refused};
use crate::fixture::{Fixture, MAX_MADE};
use crate::measure::Meter;
use crate::sys::{self, Args};
use systoll_model::{Errno, Machine, Sysno};

/// Returns the arguments of a call.
pub(super) type Make = fn(&Fixture) -> Args;
/// Returns the arguments of the call that makes the `i`th of several objects.
pub(super) type MakeNth = fn(&Fixture, usize) -> Args;
/// Undoes making the `i`th object, given the call's result.
pub(super) type Undo = fn(&Fixture, usize, isize);

/// The way to repeat a call.
enum How {
    /// The same call each time.
    Same(Make),
    /// Two calls that undo each other, in turns; the price is half of both.
    Turns(Make, Make),
    /// Several objects are made, then all undone; the price is that of making.
    Make(MakeNth, Undo),
    /// Several objects are made by the named call, then all undone; the price is that of undoing.
    Undo(i64, MakeNth, Undo),
    /// The same call, with another call before each batch of this size.
    After(u32, Make, i64, Make),
}

/// A call that can be priced.
pub(crate) struct Bench {
    pub(super) nr: i64,
    /// The errno with which the call fails; `None` if it succeeds.
    pub(super) errno: Option<u16>,
    how: How,
}

pub(super) const fn same(nr: i64, args: Make) -> Bench {
    Bench { nr, errno: None, how: How::Same(args) }
}

pub(super) const fn fails(nr: i64, errno: i32, args: Make) -> Bench {
    Bench { nr, errno: Some(errno as u16), how: How::Same(args) }
}

pub(super) const fn turns(nr: i64, one: Make, other: Make) -> Bench {
    Bench { nr, errno: None, how: How::Turns(one, other) }
}

pub(super) const fn make(nr: i64, args: MakeNth, undo: Undo) -> Bench {
    Bench { nr, errno: None, how: How::Make(args, undo) }
}

pub(super) const fn undo(nr: i64, maker: i64, args: MakeNth, undo: Undo) -> Bench {
    Bench { nr, errno: None, how: How::Undo(maker, args, undo) }
}

pub(super) const fn after(nr: i64, most: u32, args: Make, first: i64, first_args: Make) -> Bench {
    Bench { nr, errno: None, how: How::After(most, args, first, first_args) }
}

impl Bench {
    /// Returns the system call.
    pub(crate) fn sysno(&self) -> Sysno {
        Machine::HERE.call(self.nr as u32)
    }

    /// Measures the call. Only for a child: it changes descriptors, masks and mappings of the
    /// calling process.
    pub(crate) fn run(&self, meter: &Meter, f: &Fixture) -> Outcome {
        match self.how {
            How::Same(args) => {
                let args = args(f);
                self.expected(call(self.nr, args))?;
                Ok(meter.spread(|| {
                    call(self.nr, args);
                }))
            }
            How::Turns(one, other) => {
                let (one, other) = (one(f), other(f));
                self.expected(call(self.nr, one))?;
                self.expected(call(self.nr, other))?;
                let mut turn = false;
                Ok(meter.spread(|| {
                    turn = !turn;
                    call(self.nr, if turn { one } else { other });
                }))
            }
            How::Make(args, undo) => Ok(self.pair(meter, f, self.nr, args, undo)?.0),
            How::Undo(maker, args, undo) => Ok(self.pair(meter, f, maker, args, undo)?.1),
            How::After(most, args, first, first_args) => {
                let (args, first_args) = (args(f), first_args(f));
                self.expected(call(first, first_args))?;
                self.expected(call(self.nr, args))?;
                Ok(meter.spread_between(
                    most,
                    || {
                        call(self.nr, args);
                    },
                    || {
                        call(first, first_args);
                    },
                ))
            }
        }
    }

    fn pair(
        &self,
        meter: &Meter,
        f: &Fixture,
        maker: i64,
        args: MakeNth,
        undo: Undo,
    ) -> Result<(systoll_model::Spread, systoll_model::Spread), Refused> {
        let made = call(maker, args(f, 0));
        self.expected(made)?;
        undo(f, 0, made);
        let spreads =
            meter.spread_pair(MAX_MADE as u32, |i| f.keep(i, call(maker, args(f, i))), |i| undo(f, i, f.kept(i)));
        // Descriptors may have run out: then some of the timed calls failed.
        (0..MAX_MADE).try_for_each(|i| self.expected(f.kept(i)))?;
        Ok(spreads)
    }

    /// Checks that the call did what it is priced for.
    fn expected(&self, result: isize) -> Result<(), Refused> {
        match (sys::errno(result), self.errno) {
            (got, wanted) if got == wanted => Ok(()),
            (Some(errno), _) => Err(Refused::Call(self.sysno().name().unwrap_or("the call"), Errno(errno))),
            (None, _) => Err(Refused::Because("it did not fail as it should")),
        }
    }
}

#[inline(always)]
fn call(nr: i64, args: Args) -> isize {
    // SAFETY: the table's arguments point to scratch memory or to strings that are only read, and
    // change only the child itself (the table's invariant).
    unsafe { sys::call(nr, args) }
}
