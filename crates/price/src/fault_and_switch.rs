//! Measures page faults and context switches in a child while the caller continues.

use crate::child::{Refused, Running};
use crate::fault::fault;
use crate::switch::switch;
use crate::sys;
use std::time::Duration;
use systoll_model::Spread;

/// Time limit of the child.
const DEADLINE: Duration = Duration::from_secs(4);
const FAULT: usize = 0;
const SWITCH: usize = 1;

/// The prices to measure besides those of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultAndSwitch {
    /// True to measure a page fault.
    pub faults: bool,
    /// True to measure a context switch.
    pub switches: bool,
}

/// The measured prices, in ns; `None` if one was not requested or can't be measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultAndSwitchPrices {
    /// A minor fault on a page of anonymous memory, small pages: the trap, finding a page, clearing
    /// and mapping it.
    pub fault: Option<Spread>,
    /// A switch from one thread of a process to another on one processor, with the call that
    /// yields.
    pub switch: Option<Spread>,
}

/// A measurement in progress, which takes 1 to 2 ms. Dropping it ends it.
pub struct Measurement(Option<Running>);

impl FaultAndSwitch {
    /// Starts to measure, if anything is requested.
    pub fn begin(self) -> Measurement {
        let child = (self != Self::default()).then(|| {
            Running::begin(2, DEADLINE, |figures| {
                let pinned = sys::pin().is_some();
                if self.faults {
                    figures.set(FAULT, fault());
                }
                if self.switches {
                    let not = Err(Refused::Because("it could not be kept on one processor"));
                    figures.set(SWITCH, if pinned { switch() } else { not });
                }
            })
        });
        Measurement(child)
    }
}

impl Measurement {
    /// Waits for the child's measurements and returns the prices.
    pub fn wait(self) -> FaultAndSwitchPrices {
        let outcomes = self.0.map(Running::outcomes).unwrap_or_default();
        let figure = |index: usize| outcomes.get(index).copied()?.ok().filter(|s| s.min > 0.0);
        FaultAndSwitchPrices { fault: figure(FAULT), switch: figure(SWITCH) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(faults: bool, switches: bool) -> FaultAndSwitchPrices {
        FaultAndSwitch { faults, switches }.begin().wait()
    }

    #[test]
    fn a_fault_costs_something_and_not_the_world() {
        let fault = measured(true, false).fault.unwrap();
        assert!(fault.min > 20.0 && fault.min < 1_000_000.0, "{fault:?}");
        assert!(fault.min <= fault.median && fault.median <= fault.high, "{fault:?}");
    }

    #[test]
    fn a_switch_costs_more_than_a_crossing_and_not_the_world() {
        let both = measured(true, true);
        assert!(both.fault.is_some());
        let (switch, crossing) = (both.switch.unwrap(), crate::crossing(Duration::from_millis(2)));
        assert!(switch.min > crossing.min && switch.min < 1_000_000.0, "{switch:?} {crossing:?}");
        assert!(switch.min <= switch.median && switch.median <= switch.high, "{switch:?}");
    }

    #[test]
    fn only_requested_prices_are_measured() {
        assert_eq!(measured(false, false), FaultAndSwitchPrices::default());
        assert_eq!(measured(true, false).switch, None);
        assert_eq!(measured(false, true).fault, None);
    }
}
