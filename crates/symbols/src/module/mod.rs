//! All that is known of one file: its tables, each read when it is first needed, its separate debug file,
//! whose code it holds, and which language runtime it is.

mod asked;
mod class;
pub(crate) mod debug_file;
mod preload;
mod tables;

pub use asked::{
    FrameAnswers, FrameQuestion, KeptAnswers, LineAnswers, MOST_LAST_JUMPS, NameAnswer, NameAnswers, NameCounts,
    NameQuestion,
};
pub(crate) use class::is_libc;
pub use preload::{Preloaded, PreloadedFile, libraries_of, make_decoder_ready};
pub(crate) use tables::Module;
