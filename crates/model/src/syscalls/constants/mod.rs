//! Numbers of the kernel's interface by their names in its uapi headers for x86-64: those that
//! describe calls ([`crate::WindowCall::option`]), and others that only tables of meaning need.
//!
//! Each number is in one place only. `tests/all/constants.rs` compares the described ones with strace's
//! own words.
//!
//! ```
//! use systoll_model::constants::{F_SETFD, FD_CLOEXEC};
//! assert_eq!((F_SETFD, FD_CLOEXEC), (2, 1));
//! ```

/// Declares constants by rising number, and the table that turns their numbers back into names.
macro_rules! named {
    ($(#[$doc:meta])* $table:ident { $($name:ident = $value:literal),* $(,)? }) => {
        $(
            #[doc = concat!("`", stringify!($name), "` of the kernel's headers.")]
            pub const $name: u32 = $value;
        )*
        $(#[$doc])*
        pub(crate) static $table: &$crate::syscalls::constants::table::Names = &[$(($name, stringify!($name))),*];
    };
}

mod by_name;
mod files;
mod ioctls;
mod names;
mod sockets;
mod table;

pub use by_name::number_of;
pub use files::*;
pub use ioctls::*;
pub use names::*;
pub use sockets::*;
pub(crate) use table::Names;
