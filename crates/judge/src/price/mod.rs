//! What needless calls cost, and what is won without them.

pub(crate) mod could_explain;
pub(crate) mod deferred_cost;
pub(crate) mod expected_gain;
pub(crate) mod figures;
pub(crate) mod joint_bounds;
pub(crate) mod per_unit;
pub(crate) mod share_out;
