//! The importer's tables: with the standard hash, hashing would be a third of what reading takes. foldhash begins with
//! random numbers of the process's own, so that no trace can be written whose keys all fall together.

/// A table; its order says nothing.
pub(crate) type Map<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
