//! Changes of a run, unwatched runs, and the small sick programs of `systoll demo`.
//!
//! Invariant: everything built here is in a private folder that is removed with its [`PrivateFolder`],
//! also after a fatal signal; a program that was started has ended when the call returns. A shim is
//! loaded only from a file that no other user can have written, at a path that no other user can
//! redirect; the demo's programs run from such paths too.
//!
//! # Example
//!
//! ```
//! use systoll_cure::{Spec, Streams, run_unwatched};
//! use systoll_model::{EnvChange, Exit};
//!
//! // What `systoll cure tz-unset -- CMD` does: CMD with a variable set, and nothing watched.
//! let spec = Spec::new("sh").arg("-c").arg("test -n \"$TZ\"");
//! let cured = spec.clone().env(EnvChange::Set("TZ".into(), ":/etc/localtime".into()));
//! let usage = run_unwatched(&cured, Streams::null(), None)?;
//! assert_eq!(usage.exit, Exit::Code(0));
//! println!("{} ns of wall time, {} ns of processor time", usage.wall_ns, usage.user_ns + usage.sys_ns);
//! # Ok::<(), systoll_cure::RunError>(())
//! ```

mod cc;
mod interrupt;
mod private_folder;
mod reach;
mod server;
mod shim;
mod spec;
mod story;
mod tree;
mod unwatched;

pub use cc::compiler;
pub use interrupt::{Temporary, catch_interrupts, end_at_once, interrupted, interrupted_after, settle, spare, telling};
pub use private_folder::PrivateFolder;
pub use reach::{Unreached, reached};
pub use server::Running;
pub use shim::{Shim, preload};
pub use spec::Spec;
pub use story::{Built, Pair, Story, stories, story};
pub use tree::{children, kill_tree};
pub use unwatched::{Deadline, RunError, Streams, Usage, children_so_far, run_unwatched};

use std::io;
use std::path::PathBuf;

/// The reason why a cure or a demo program is not available.
#[derive(Debug, thiserror::Error)]
pub enum CureError {
    /// No C compiler was found.
    #[error(
        "can't build the demo's programs: none of {tried} is installed\n\
         any C compiler will do, e.g.: apt-get install gcc"
    )]
    NoCompiler {
        /// The names tried, for a person.
        tried: String,
    },
    /// The compiler refused.
    #[error("can't build the demo program {name}: {compiler} said\n{message}")]
    Compile {
        /// The program's name.
        name: String,
        /// The compiler's name.
        compiler: String,
        /// The compiler's output.
        message: String,
    },
    /// A file or folder could not be created.
    #[error("can't write {}: {source}", path.display())]
    Write {
        /// The path of the file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// There is no folder in which programs can be built and run safely.
    #[error("no folder to build the demo's programs in: {0}\na folder of your own will do: TMPDIR=FOLDER")]
    NoFolder(#[source] Box<systoll_trust::Untrusted>),
    /// The compiler could not be started or watched.
    #[error("can't run {compiler}: {source}")]
    RunCompiler {
        /// The compiler's name.
        compiler: String,
        /// The system's error.
        source: io::Error,
    },
}
