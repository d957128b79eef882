//! Which frames of a row are told to people: not those inside the API that was called.

use crate::names::{FrameClass, FrameId};
use crate::recording::Recording;
use crate::row::Row;

impl Recording {
    /// The frames from the one that called the row's API outwards; without an API, all frames there are. Where
    /// scripts' lines are among them, the interpreter's own functions between them are left out.
    /// Panics as [`Recording::row`] does.
    pub fn told_frames(&self, row: &Row) -> Vec<FrameId> {
        let context = &self.stack(row.context).frames;
        let inside = if row.api.is_some() { self.inside_api(context, row.user) } else { 0 };
        let outer = &self.stack(row.outer).frames;
        let frames: Vec<FrameId> = context.iter().skip(inside).chain(outer).copied().collect();
        // A script's lines say what the interpreter's own functions between them do.
        let script = frames.iter().any(|f| self.frame(*f).language.is_some());
        let shown = |f: &FrameId| {
            let frame = self.frame(*f);
            !script || frame.language.is_some() || frame.class == FrameClass::User
        };
        frames.into_iter().filter(shown).collect()
    }

    /// How many of the context's frames lie inside the API: those below the user's, or, where
    /// that is not known, the C library's own at the leaf.
    fn inside_api(&self, context: &[FrameId], user: Option<FrameId>) -> usize {
        let at_user = user.and_then(|user| context.iter().position(|f| *f == user));
        let of_libc = |f: &&FrameId| matches!(self.frame(**f).class, FrameClass::Libc | FrameClass::Vdso);
        at_user.unwrap_or_else(|| context.iter().take_while(of_libc).count())
    }
}
