//! Tables and lists that suit the judge: most hold one element or are asked millions of times.

pub(crate) mod bits;
pub(crate) mod hash;
pub(crate) mod named;
pub(crate) mod small_list;
pub(crate) mod sums;
