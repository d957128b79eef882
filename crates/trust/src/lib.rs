//! Folders and files that no other user can have changed, or can change before they are used.
//!
//! systoll writes code into processes from its files on disk, and makes programs load libraries
//! from there. A user who can put a file into such a place runs code as the user who runs systoll.
//! A path is as safe as its weakest component: the owner of any folder on the way, or anyone who
//! may write to it, can replace everything below.
//!
//! Invariant: paths that this crate returns were walked from `/` component by component, each
//! opened, and its owner and mode read from the descriptor. Each component belongs to root or to
//! this user, and no other user may write to it. A folder to which others may write (`/tmp`) must
//! be sticky, so that they can't rename our files. Such a path leads to the same files for everyone
//! who walks it later: the loader, a shell, a child.
//!
//! This protects against other users only. Root, and this user's own programs, can do as they like
//! anyway.
//!
//! # Example
//!
//! ```
//! use std::path::Path;
//!
//! // Root owns each folder on the way, and no other user may write to one.
//! assert!(systoll_trust::check(Path::new("/bin/sh")).is_ok());
//!
//! // Every user can put a file into /tmp: what lies there is trusted only if it is root's or ours.
//! assert!(systoll_trust::check(Path::new("/tmp/no-such-library.so")).is_err());
//! ```
#![forbid(unsafe_code)]

mod folder;
mod helper;
mod places;
mod walk;

pub use folder::Folder;
pub use helper::helper;
pub use places::{cache, data, own_temporary, temporary};
pub use walk::{Untrusted, check};
