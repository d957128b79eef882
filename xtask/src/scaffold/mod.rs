//! Writes the files of a new cause or detector, with the places that must be filled in.

mod cause;
mod detector;
mod language;
mod place;

pub(crate) use cause::new_cause;
pub(crate) use detector::new_detector;
pub(crate) use place::unfilled;
