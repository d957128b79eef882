//! All facts about one file: its tables, each read when first needed, its separate debug file, the class of its code,
//! and its language runtime.

mod answers;
mod class;
pub(crate) mod debug_file;
mod preload;
mod tables;

pub use answers::{
    FrameAnswers, FrameQuestion, KeptAnswers, LineAnswers, MOST_LAST_JUMPS, NameAnswer, NameAnswers, NameCounts,
    NameQuestion,
};
pub(crate) use class::is_libc;
pub use preload::{Preloaded, PreloadedFile, libraries_of, make_decoder_ready};
pub(crate) use tables::Module;
