//! Paths by number. A program asks about the same few paths again and again, so that the parts of a path are found
//! once and then looked up.

use crate::collections::hash::Spellings;
use std::borrow::Cow;
use std::ops::{Deref, Range};
use std::rc::Rc;
use systoll_model::WindowCall;

/// Usual length of paths and of their parts, bytes.
const USUAL: usize = 32;

/// A text's number: equal texts have equal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PathId(u32);

impl PathId {
    /// Returns the number as an index.
    pub(crate) fn place(self) -> usize {
        self.0 as usize
    }

    /// Returns the number's bytes, for keys.
    pub(crate) fn to_bytes(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }
}

/// The text of a path, from the recording or made by the judge. Each step of a window has a copy.
#[derive(Clone, Debug)]
pub(crate) enum Text<'a> {
    /// A text in the recording.
    Seen(&'a str),
    /// A text that the judge made.
    Made(Rc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Seen(text) => text,
            Self::Made(text) => text,
        }
    }
}

impl<'a> From<Cow<'a, str>> for Text<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        match text {
            Cow::Borrowed(text) => Self::Seen(text),
            Cow::Owned(text) => Self::Made(text.into()),
        }
    }
}

/// The parts of a path that has a slash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Offset of the last slash, bytes.
    pub slash: usize,
    /// The part before the last slash.
    pub folder: PathId,
    /// The part after the last slash.
    pub name: PathId,
    /// The name without its ending: a search tries several endings in turn.
    pub stem: PathId,
}

/// A text and its cached properties.
struct KnownText<'a> {
    text: Text<'a>,
    /// For bytes that are not UTF-8: the number of the text that they are shown as.
    shown: Option<PathId>,
    /// The path's parts, once they were asked for; `Some(None)` if it has no slash.
    parts: Option<Option<Parts>>,
}

/// All paths met so far, and their parts.
#[derive(Default)]
pub(crate) struct Paths<'a> {
    numbers: Spellings,
    known: Vec<KnownText<'a>>,
    /// The argument that was looked up last, since a call's argument is asked for several times.
    last: Option<(Argument<'a>, Option<PathId>)>,
}

/// A path argument of a call.
#[derive(Clone, Copy)]
pub(crate) struct Argument<'a> {
    /// The call.
    pub call: &'a WindowCall,
    /// The position of the argument with the descriptor of the folder in which the path begins.
    pub at: Option<u8>,
    /// The position of the argument that points to the path.
    pub path: u8,
}

impl Argument<'_> {
    fn is(&self, other: &Self) -> bool {
        std::ptr::eq(self.call, other.call) && (self.at, self.path) == (other.at, other.path)
    }
}

impl<'a> Paths<'a> {
    /// Returns an empty table with room for `paths` paths.
    pub(crate) fn with_room(paths: usize) -> Self {
        Self { numbers: Spellings::with_room(paths, USUAL), known: Vec::with_capacity(paths), last: None }
    }

    /// Returns the number of the path in an argument: the last look-up's if that was the same argument, else that of
    /// `look_up`.
    pub(crate) fn of_argument(
        &mut self,
        argument: Argument<'a>,
        look_up: impl FnOnce(&mut Self) -> Option<PathId>,
    ) -> Option<PathId> {
        match self.last.filter(|(last, _)| last.is(&argument)) {
            Some((_, known)) => known,
            None => {
                let found = look_up(self);
                self.last = Some((argument, found));
                found
            }
        }
    }

    /// Returns the number of a text; `None` if there are too many.
    pub(crate) fn number(&mut self, text: Cow<'a, str>) -> Option<PathId> {
        let number = self.numbers.number(text.as_bytes())?;
        if self.known.len() == number as usize {
            self.known.push(KnownText { text: text.into(), shown: None, parts: None });
        }
        Some(PathId(number))
    }

    /// Returns the number of a part of a text. The part is copied only if it is new and the judge made the text.
    fn number_part(&mut self, text: &Text<'a>, part: Range<usize>) -> Option<PathId> {
        let number = self.numbers.number(text.get(part.clone())?.as_bytes())?;
        if self.known.len() == number as usize {
            let text = match text {
                Text::Seen(text) => Text::Seen(text.get(part)?),
                Text::Made(text) => Text::Made(text.get(part)?.into()),
            };
            self.known.push(KnownText { text, shown: None, parts: None });
        }
        Some(PathId(number))
    }

    /// Returns the number of the text that bytes are shown as.
    pub(crate) fn of_bytes(&mut self, bytes: &'a [u8]) -> Option<PathId> {
        let number = self.numbers.number(bytes)?;
        if self.known.len() == number as usize {
            let text = String::from_utf8_lossy(bytes);
            self.known.push(KnownText { text: text.clone().into(), shown: None, parts: None });
            if let Cow::Owned(_) = text {
                let shown = self.number(text);
                self.known.get_mut(number as usize)?.shown = shown;
            }
        }
        Some(self.known.get(number as usize)?.shown.unwrap_or(PathId(number)))
    }

    /// Returns the text with this number.
    pub(crate) fn text(&self, path: PathId) -> Text<'a> {
        self.known.get(path.place()).map_or(Text::Seen(""), |known| known.text.clone())
    }

    /// Returns true if the path begins at the root.
    pub(crate) fn is_absolute(&self, path: PathId) -> bool {
        self.known.get(path.place()).is_some_and(|known| known.text.starts_with('/'))
    }

    /// Returns the path's parts; `None` if it has no slash.
    pub(crate) fn parts(&mut self, path: PathId) -> Option<Parts> {
        let known = self.known.get(path.place())?;
        if let Some(parts) = known.parts {
            return parts;
        }
        let text = known.text.clone();
        let parts = self.take_apart(&text);
        self.known.get_mut(path.place())?.parts = Some(parts);
        parts
    }

    fn take_apart(&mut self, path: &Text<'a>) -> Option<Parts> {
        let slash = path.bytes().rposition(|byte| byte == b'/')?;
        let (behind, end) = (slash + 1, path.len());
        let name = self.number_part(path, behind..end)?;
        let stem = match behind + stem(path.get(behind..)?).len() {
            all if all == end => name,
            dot => self.number_part(path, behind..dot)?,
        };
        Some(Parts { slash, folder: self.number_part(path, 0..slash)?, name, stem })
    }

    /// Returns the folder that a path lies in, without slashes at the path's end.
    pub(crate) fn folder(&mut self, path: PathId) -> Option<PathId> {
        let text = self.text(path);
        if !text.ends_with('/') {
            return self.parts(path).map(|parts| parts.folder);
        }
        let (folder, _) = text.trim_end_matches('/').rsplit_once('/')?;
        self.number_part(&text, 0..folder.len())
    }
}

/// Returns the name up to its first dot; a dot at its beginning does not count.
fn stem(name: &str) -> &str {
    let dot = name.bytes().skip(1).position(|byte| byte == b'.');
    dot.and_then(|at| name.get(..at + 1)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_equal_numbers_and_parts() {
        let mut paths = Paths::default();
        let mut number = |text: &'static str| paths.number(text.into()).unwrap();
        let (header, folder, name, stem, plain) =
            (number("/usr/include/a.b.h"), number("/usr/include"), number("a.b.h"), number("a"), number("x"));
        let parts = paths.parts(header).unwrap();
        assert_eq!(parts, Parts { slash: 12, folder, name, stem });
        assert_eq!(paths.parts(header), Some(parts));
        assert!(paths.parts(plain).is_none() && paths.is_absolute(header) && !paths.is_absolute(plain));
        let slashes = paths.number("/usr/include/a.b.h//".into()).unwrap();
        assert_eq!((paths.folder(header), paths.folder(slashes)), (Some(folder), Some(folder)));
        assert_eq!(super::stem(".x.y"), ".x");
    }

    #[test]
    fn bytes_that_are_no_text_are_what_they_are_shown_as() {
        let mut paths = Paths::default();
        let [one, other, shown] = [&b"/a\xff"[..], b"/a\xfe", "/a\u{fffd}".as_bytes()].map(|b| paths.of_bytes(b));
        assert!(one.is_some() && one == other && one == shown);
        assert_eq!(&*paths.text(one.unwrap()), "/a\u{fffd}");
    }
}
