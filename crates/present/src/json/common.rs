//! Parts that all JSON documents share.

use super::parts::User;
use crate::access::{frame, module};
use std::collections::BTreeMap;
use systoll_model::{Exit, FrameId, Recording};

/// Version of the contract. It rises when a field changes its meaning, not when one is added.
pub const SCHEMA_VERSION: u32 = 1;

pub(super) fn exit(exit: Exit) -> BTreeMap<&'static str, i32> {
    BTreeMap::from([match exit {
        Exit::Code(code) => ("code", code),
        Exit::Signal(signal) => ("signal", signal),
    }])
}

pub(super) fn user(rec: &Recording, id: FrameId) -> Option<User<'_>> {
    let frame = frame(rec, id)?;
    let place = frame.location()?;
    Some(User {
        function: &place.function,
        file: place.file.as_deref(),
        line: place.line,
        module: module(rec, frame.module).map(|m| &*m.path),
    })
}
