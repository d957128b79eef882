//! price
