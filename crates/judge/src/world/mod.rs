//! What windows show of the world: each call with everything known of it, the state that calls meet, and what may have changed in between.

pub(crate) mod barrier;
pub(crate) mod bounds;
pub(crate) mod changers;
pub(crate) mod contested;
pub(crate) mod dirents;
pub(crate) mod file_ends;
pub(crate) mod one_shots;
pub(crate) mod replay;
pub(crate) mod settled;
pub(crate) mod step;
pub(crate) mod wanderers;
pub(crate) mod whole_rows;
