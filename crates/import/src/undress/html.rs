//! Takes off tags and entities of a page, if a trace was copied from its source.

/// Tags that end a line.
const BREAKS: &[&[u8]] = &[b"br", b"p", b"div", b"tr", b"li", b"/p", b"/div", b"/tr", b"/li", b"/pre"];
/// Tags without a meaning here. Other tags stay: strace writes `<unfinished ...>` and `<0.000012>`.
const TAGS: &[&[u8]] = &[
    b"pre",
    b"code",
    b"span",
    b"a",
    b"b",
    b"i",
    b"em",
    b"strong",
    b"tt",
    b"td",
    b"th",
    b"table",
    b"tbody",
    b"ul",
    b"ol",
    b"font",
    b"samp",
    b"blockquote",
    b"html",
    b"body",
    b"h1",
    b"h2",
    b"h3",
    b"h4",
    b"section",
    b"article",
    b"mark",
    b"u",
    b"small",
];
/// Largest length of a tag with its attributes, bytes.
const MOST: usize = 400;

/// Returns true if a line has tags or entities outside of strings, which may hold a page that the
/// program wrote.
pub(super) fn is_in(line: &[u8]) -> bool {
    let outside = line.split(|b| *b == b'"').step_by(2);
    let at = |text: &[u8]| memchr::memchr2_iter(b'<', b'&', text).any(|at| text.get(at..).is_some_and(is_markup));
    memchr::memchr2(b'<', b'&', line).is_some() && outside.into_iter().any(at)
}

fn is_markup(text: &[u8]) -> bool {
    tag(text).is_some() || entity(text).is_some()
}

/// Hands on the lines between a line's tags, entities decoded.
pub(super) fn lines(line: &[u8], to: &mut dyn FnMut(&[u8])) {
    let (mut plain, mut rest, mut broken) = (Vec::with_capacity(line.len()), line, false);
    while let Some(at) = memchr::memchr2(b'<', b'&', rest) {
        plain.extend_from_slice(rest.get(..at).unwrap_or_default());
        rest = rest.get(at..).unwrap_or_default();
        let taken = match rest.first() {
            Some(b'<') => match tag(rest) {
                Some(Tag { length, breaks }) => {
                    if breaks {
                        broken = true;
                        to(&plain);
                        plain.clear();
                    }
                    length
                }
                None => copied(&mut plain, rest),
            },
            _ => match entity(rest) {
                Some((length, character)) => {
                    plain.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    length
                }
                None => copied(&mut plain, rest),
            },
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    plain.extend_from_slice(rest);
    if !broken || !plain.is_empty() {
        to(&plain);
    }
}

/// Copies one byte. Returns the number of bytes copied, 1.
fn copied(plain: &mut Vec<u8>, rest: &[u8]) -> usize {
    plain.extend(rest.first());
    1
}

/// A tag at the beginning of a text.
struct Tag {
    length: usize,
    breaks: bool,
}

fn tag(text: &[u8]) -> Option<Tag> {
    let text = text.get(..MOST.min(text.len()))?;
    let end = memchr::memchr(b'>', text)?;
    let inner = text.get(1..end)?.to_ascii_lowercase();
    let name = inner.split(|b| b.is_ascii_whitespace()).next().unwrap_or_default();
    let name = if name.len() > 1 { name.strip_suffix(b"/").unwrap_or(name) } else { name };
    let breaks = BREAKS.contains(&name);
    let known = breaks || TAGS.contains(&name.strip_prefix(b"/").unwrap_or(name));
    known.then_some(Tag { length: end + 1, breaks })
}

/// Returns the length of an entity at the beginning of a text, and the character that it stands
/// for.
fn entity(text: &[u8]) -> Option<(usize, char)> {
    let end = memchr::memchr(b';', text.get(..12.min(text.len()))?)?;
    let name = std::str::from_utf8(text.get(1..end)?).ok()?;
    let character = match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "hellip" => '…',
        "ldquo" | "rdquo" => '"',
        _ => {
            let number = name.strip_prefix('#')?;
            let hexadecimal = number.strip_prefix(['x', 'X']);
            let code = hexadecimal.map_or_else(|| number.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok())?;
            // A no-break space is a space to a tracer.
            char::from_u32(code).map(|c| if c == '\u{a0}' { ' ' } else { c })?
        }
    };
    Some((end + 1, character))
}

#[cfg(test)]
mod tests {
    fn plain(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        super::lines(text.as_bytes(), &mut |line| all.push(String::from_utf8_lossy(line).into_owned()));
        all
    }

    #[test]
    fn tags_and_entities() {
        assert_eq!(plain("<pre class=\"x\"><code>a &lt;b&gt;</code>"), ["a <b>"]);
        assert_eq!(plain("a<br/>b<BR>"), ["a", "b"]);
        assert_eq!(
            plain("poll( <unfinished ...> &#34;&#x3c;&bogus; & <0.018>"),
            ["poll( <unfinished ...> \"<&bogus; & <0.018>"]
        );
        assert_eq!(plain("a < b <"), ["a < b <"]);
    }
}
