//! Rows with one disease, as parts by object, and what a group is about.

pub(crate) mod by_object;
pub(crate) mod group;
pub(crate) mod judged_view;
pub(crate) mod late_waits;
pub(crate) mod program_facts;
pub(crate) mod row_order;
pub(crate) mod strands;
pub(crate) mod subject;
