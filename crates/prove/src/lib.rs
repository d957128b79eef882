//! prove
