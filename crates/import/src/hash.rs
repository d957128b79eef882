//! The importer's hash table. With the standard hash, hashing would be a third of the time of
//! reading. foldhash begins with random numbers of the process, so that nobody can write a trace
//! whose keys all collide.

/// A hash table; its order has no meaning.
pub(crate) type Map<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
