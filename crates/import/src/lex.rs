//! Splits a call's arguments as strace writes them: strings, structs, files of descriptors,
//! comments.
//!
//! Works on bytes and looks at each once, except for brackets that never close. Whatever the bytes
//! are, it ends and gives slices of them.

/// True for each byte that has a meaning between a call's brackets.
static MEANS: [bool; 256] = {
    let mut means = [false; 256];
    let (bytes, mut at) = (b"\"/<([{)]},", 0);
    while at < bytes.len() {
        means[bytes[at] as usize] = true;
        at += 1;
    }
    means
};

/// Returns the offset of the bracket behind a call's name.
pub(crate) fn name_end(body: &[u8]) -> Option<usize> {
    let end = body.iter().position(|b| !(b.is_ascii_alphanumeric() || b"_@?.:~".contains(b)))?;
    (end > 0 && body.get(end) == Some(&b'(')).then_some(end)
}

/// Largest number of a text's descriptor brackets that never close. Each further one is taken to
/// end at the next closing bracket, since to look for the right one costs a walk to the text's end.
const MOST_UNCLOSED: u32 = 64;

/// Largest number of arguments of a call; more than the kernel's six, since one may be written as
/// several.
const MOST: usize = 12;

/// The arguments of a call as they were written, and the text behind them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments<'a> {
    all: [&'a [u8]; MOST],
    count: usize,
    /// The text behind the closing bracket; `None` if there is none.
    pub(crate) rest: Option<&'a [u8]>,
}

impl<'a> Arguments<'a> {
    /// Returns the arguments in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        self.all.iter().take(self.count).copied()
    }

    /// Returns the argument at `index`, or an empty one.
    pub(crate) fn get(&self, index: usize) -> &'a [u8] {
        self.all.get(index).copied().unwrap_or_default()
    }

    fn push(&mut self, argument: &'a [u8]) {
        if let Some(place) = self.all.get_mut(self.count) {
            *place = argument.trim_ascii();
            self.count += 1;
        }
    }
}

/// Splits the text behind a call's opening bracket.
pub(crate) fn arguments(text: &[u8]) -> Arguments<'_> {
    let mut found = Arguments { all: [&[]; MOST], count: 0, rest: None };
    let (mut from, mut at, mut depth, mut unclosed) = (0, 0, 0usize, 0);
    while let Some(byte) = text.get(at) {
        if !MEANS[usize::from(*byte)] {
            at += 1;
            continue;
        }
        match byte {
            b'"' => at = string_end(text, at),
            b'/' if text.get(at + 1) == Some(&b'*') => at = comment_end(text, at),
            b'<' if is_behind(text, at) => at = behind_end(text, at, &mut unclosed),
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                let last = slice(text, from, at);
                if found.count > 0 || !last.trim_ascii().is_empty() {
                    found.push(last);
                }
                found.rest = Some(slice(text, at + 1, text.len()));
                return found;
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                found.push(slice(text, from, at));
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    let last = slice(text, from, text.len());
    if !last.trim_ascii().is_empty() {
        found.push(last);
    }
    found
}

/// Returns the members of a struct or array whose brackets were taken off; at most `most`.
pub(crate) fn members(text: &[u8], most: usize) -> Vec<&[u8]> {
    let mut all = Vec::new();
    let (mut from, mut at, mut depth, mut unclosed) = (0, 0, 0usize, 0);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => at = string_end(text, at),
            b'/' if text.get(at + 1) == Some(&b'*') => at = comment_end(text, at),
            b'<' if is_behind(text, at) => at = behind_end(text, at, &mut unclosed),
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                all.push(slice(text, from, at).trim_ascii());
                from = at + 1;
                if all.len() >= most {
                    return all;
                }
            }
            _ => {}
        }
        at += 1;
    }
    let last = slice(text, from, text.len()).trim_ascii();
    if !last.is_empty() {
        all.push(last);
    }
    all
}

/// Returns the text between `open` at its start and `close` at its end.
pub(crate) fn within(text: &[u8], open: u8, close: u8) -> Option<&[u8]> {
    text.strip_prefix(&[open])?.strip_suffix(&[close])
}

/// Splits `3</etc/passwd>` into the number and the file behind the descriptor.
pub(crate) fn behind(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    let Some(open) = memchr::memchr(b'<', text).filter(|at| is_behind(text, *at)) else { return (text, None) };
    let close = behind_end(text, open, &mut 0);
    (slice(text, 0, open), Some(slice(text, open + 1, close)))
}

fn slice(text: &[u8], from: usize, to: usize) -> &[u8] {
    text.get(from..to.min(text.len())).unwrap_or_default()
}

/// Returns the offset of the quote that ends the string beginning at `at`, or the text's length.
pub(crate) fn string_end(text: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    loop {
        match memchr::memchr2(b'"', b'\\', text.get(at..).unwrap_or_default()) {
            Some(found) if text.get(at + found) == Some(&b'\\') => at += found + 2,
            Some(found) => return at + found,
            None => return text.len(),
        }
    }
}

/// Returns the offset at which a few bytes first stand, found by the rare one among them, at `by`.
/// A search that is prepared for any text costs more than most texts searched here.
pub(crate) fn find(text: &[u8], wanted: &[u8], by: usize) -> Option<usize> {
    let found = memchr::memchr_iter(*wanted.get(by)?, text).filter_map(|at| at.checked_sub(by));
    found.into_iter().find(|at| text.get(*at..).is_some_and(|text| text.starts_with(wanted)))
}

fn comment_end(text: &[u8], at: usize) -> usize {
    find(text.get(at..).unwrap_or_default(), b"*/", 1).map_or(text.len(), |found| at + found + 1)
}

/// Returns true if the bracket at `at` opens the name of a descriptor's file or of a process: it
/// stands right behind a number or name.
fn is_behind(text: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| text.get(at));
    before.is_some_and(u8::is_ascii_alphanumeric) && !matches!(text.get(at + 1), Some(b'<' | b'=' | b' '))
}

/// Returns the offset of the bracket that closes the one at `at`. Arrows between the ends of
/// sockets hold brackets, and devices are described in brackets of their own. `unclosed` counts the
/// brackets of the text that never close.
fn behind_end(text: &[u8], at: usize, unclosed: &mut u32) -> usize {
    let (mut depth, mut square) = (0usize, 0usize);
    let mut before = b' ';
    let looked_through = if *unclosed < MOST_UNCLOSED { text.get(at..).unwrap_or_default() } else { &[] };
    for (offset, byte) in looked_through.iter().enumerate() {
        match byte {
            b'[' => square += 1,
            b']' => square = square.saturating_sub(1),
            b'<' if square == 0 => depth += 1,
            b'>' if square == 0 && before != b'-' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + offset;
                }
            }
            _ => {}
        }
        before = *byte;
    }
    *unclosed += 1;
    // A path may hold a bracket that never closes: the next closing bracket then ends the name.
    memchr::memchr(b'>', text.get(at..).unwrap_or_default()).map_or(text.len(), |found| at + found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn taken_apart(text: &str) -> (Vec<String>, Option<String>) {
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let found = arguments(text.as_bytes());
        (found.iter().map(said).collect(), found.rest.map(said))
    }

    #[test]
    fn commas_and_brackets_of_values_are_theirs() {
        let (all, rest) = taken_apart(r#"3</tmp/a,b(c)>, "x\",)\\", {a=[1, 2], b=f(3, 4)} /* , ) */, NULL) = 0"#);
        assert_eq!(all, [r"3</tmp/a,b(c)>", r#""x\",)\\""#, "{a=[1, 2], b=f(3, 4)} /* , ) */", "NULL"]);
        assert_eq!(rest.as_deref(), Some(" = 0"));
    }

    #[test]
    fn sockets_and_devices_have_brackets_of_their_own() {
        let (all, _) = taken_apart(
            "4<TCP:[127.0.0.1:80->127.0.0.1:4711]>, 1</dev/pts/0<char 136:0>>, 5<UNIX-STREAM:[1->2,\"/run/a\"]>) = 1",
        );
        assert_eq!(all.len(), 3);
        assert_eq!(behind(all[1].as_bytes()), (&b"1"[..], Some(&b"/dev/pts/0<char 136:0>"[..])));
        assert_eq!(behind(b"1<<CAP_CHOWN"), (&b"1<<CAP_CHOWN"[..], None));
        let (all, rest) = taken_apart("7</tmp/a[b>, 1) = 2");
        assert_eq!((all.len(), rest.as_deref()), (2, Some(" = 2")));
    }

    #[test]
    fn brackets_that_never_close_cost_no_time() {
        // If each bracket were looked for up to the line's end, this would take minutes.
        let many = b"a<[>".repeat(1 << 18);
        let began = std::time::Instant::now();
        assert_eq!(arguments(&many).iter().count(), 1);
        assert_eq!(members(&many, 8).len(), 1);
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
        // Brackets are looked for to the end if they are few.
        let (all, rest) = taken_apart("7</tmp/a[b>, 8</tmp/a[b>, 9<TCP:[1->2]>) = 2");
        assert_eq!((all.len(), rest.as_deref()), (3, Some(" = 2")));
    }

    #[test]
    fn what_is_cut_has_no_end() {
        assert_eq!(taken_apart(r#"1, "hello"#), (vec!["1".into(), r#""hello"#.into()], None));
        assert_eq!(taken_apart(") = 5"), (vec![], Some(" = 5".into())));
        assert_eq!(taken_apart(""), (vec![], None));
    }

    proptest! {
        #[test]
        fn what_is_found_is_where_it_first_stands(text in "[a=> /*]{0,60}") {
            for (wanted, by) in [("/*", 0), ("*/", 1), (" => ", 1), (" /* ", 1)] {
                prop_assert_eq!(find(text.as_bytes(), wanted.as_bytes(), by), text.find(wanted));
            }
        }

        #[test]
        fn any_bytes_come_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let found = arguments(&bytes);
            prop_assert!(found.iter().count() <= MOST && found.get(MOST).is_empty());
            prop_assert!(members(&bytes, 8).len() <= 9);
            behind(&bytes);
        }

        #[test]
        fn any_marks_come_to_an_end(text in r#"[]\[{}()<>",/* \\a1-]{0,120}"#) {
            let found = arguments(text.as_bytes());
            let long: usize = found.iter().map(<[u8]>::len).sum();
            prop_assert!(long <= text.len());
        }
    }
}
