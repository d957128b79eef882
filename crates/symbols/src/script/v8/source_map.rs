//! Source maps: the lines of TypeScript, or of whatever else a script was compiled from.
//!
//! A script that ends with `//# sourceMappingURL=FILE` has its map in that file, or in the comment itself (`data:`). A
//! map is JSON; its `mappings` are numbers in base 64, each relative to the one before (ECMA-426).

use super::heap::{Heap, Piece};
use super::sources::{Place, Script, path};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine, alphabet};
use foldhash::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// Beginnings of the comment that names a script's map.
const COMMENTS: [&[u8]; 2] = [b"//# sourceMappingURL=", b"//@ sourceMappingURL="];
/// Units at the end of a script in which the comment is looked for; a longer one holds the map itself.
const TAIL: u32 = 512;
/// Units of a script, or bytes of a map, that are read, at most.
const MAX_MAP: u32 = 8 << 20;
/// Scripts whose maps are remembered, at most.
const MAX_SCRIPTS: usize = 4096;
/// Segments of all maps that are kept, at most.
const MAX_SEGMENTS: usize = 4 << 20;
/// Bits of a digit in base 64 that belong to the number; the next one tells that more digits follow.
const DIGIT_BITS: u32 = 5;

/// The maps of a process's scripts.
#[derive(Debug, Default)]
pub(crate) struct SourceMaps {
    /// Maps by the script's number and name; `None` for a script without a map.
    known: HashMap<(Option<i32>, Arc<str>), Option<SourceMap>>,
    /// Number of segments of all maps.
    segments: usize,
}

/// The map of one script.
#[derive(Debug)]
struct SourceMap {
    /// Paths of the sources.
    sources: Vec<Arc<str>>,
    /// The segments, by line and column.
    segments: Vec<Segment>,
}

/// A piece of a script's line that was compiled from one line of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    /// Line of the script, from 0 on.
    line: u32,
    /// Column at which the piece begins, in units of UTF-16.
    column: u32,
    /// Index of the source and its line, from 0 on; `None` if the piece comes from no source.
    origin: Option<(u32, u32)>,
}

/// A line of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) file: Arc<str>,
    /// The line, from 1 on.
    pub(crate) line: u32,
}

impl SourceMaps {
    /// Returns the source's line from which a place in a script was compiled; `None` if no map tells it. `tid` is a
    /// thread of the process, whose files are read.
    pub(crate) fn origin(
        &mut self,
        heap: &mut Heap<'_, '_, '_>,
        (script, place): (&Script, Place),
        tid: i32,
    ) -> Option<Origin> {
        let name = script.name.clone()?;
        if self.known.len() >= MAX_SCRIPTS || self.segments >= MAX_SEGMENTS {
            *self = Self::default();
        }
        let map = match self.known.entry((script.number(heap), name)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let map = read(heap, script, tid);
                self.segments += map.as_ref().map_or(0, |map| map.segments.len());
                unknown.insert(map)
            }
        };
        map.as_ref()?.origin(place)
    }
}

impl SourceMap {
    /// Reads a map's JSON; `folder` is that of the file that holds it.
    fn of(json: &[u8], folder: &str) -> Option<Self> {
        let map: serde_json::Value = serde_json::from_slice(json.strip_prefix(b")]}'").unwrap_or(json)).ok()?;
        (map.get("version")?.as_u64()? == 3).then_some(())?;
        let root = map.get("sourceRoot").and_then(|root| root.as_str()).unwrap_or_default();
        let named = |source: &serde_json::Value| source_path(folder, root, source.as_str().unwrap_or_default());
        let sources: Vec<Arc<str>> = map.get("sources")?.as_array()?.iter().map(named).collect();
        let segments = segments(map.get("mappings")?.as_str()?)?;
        Some(Self { sources, segments })
    }

    fn origin(&self, place: Place) -> Option<Origin> {
        let line = place.line.checked_sub(1)?;
        let behind = self.segments.partition_point(|s| (s.line, s.column) <= (line, place.column));
        let segment = self.segments.get(behind.checked_sub(1)?).filter(|segment| segment.line == line)?;
        let (source, written) = segment.origin?;
        let file = self.sources.get(source as usize).filter(|file| !file.is_empty())?;
        Some(Origin { file: Arc::clone(file), line: written.checked_add(1)? })
    }
}

/// Returns the map that a script's last comment names.
fn read(heap: &mut Heap<'_, '_, '_>, script: &Script, tid: i32) -> Option<SourceMap> {
    let source = script.source(heap)?;
    let length = heap.string_length(source).filter(|length| *length <= MAX_MAP)?;
    let end = text(heap, source, length.saturating_sub(TAIL)..length)?;
    let url = match mapping_url(&end) {
        Some(url) => url.to_vec(),
        // A comment without an end in sight holds the map itself.
        None if length > TAIL && !end.trim_ascii().contains(&b'\n') => {
            mapping_url(&text(heap, source, 0..length)?)?.to_vec()
        }
        None => return None,
    };
    let file = path(script.name.as_ref()?);
    let folder = file.rsplit_once('/').map(|(folder, _)| folder).filter(|_| file.starts_with('/'));
    if let Some(data) = url.strip_prefix(b"data:") {
        let at = memchr::memmem::find(data, b";base64,")?;
        return SourceMap::of(&base64(data.get(at + b";base64,".len()..)?)?, folder.unwrap_or_default());
    }
    let url = String::from_utf8(url).ok().filter(|url| url.starts_with("file:///") || !url.contains("://"))?;
    // The escapes of a relative URL are those of a whole one.
    let url = if url.starts_with("file://") { url } else { format!("file://{url}") };
    let map = joined(folder?, &path(&url.into()));
    let (folder, _) = map.rsplit_once('/')?;
    let most = u64::from(MAX_MAP);
    let json =
        systoll_files::head(format!("/proc/{tid}/root{map}"), most).ok().filter(|json| json.len() < most as usize)?;
    SourceMap::of(&json, folder)
}

/// Returns the units `range` of a string as bytes; a unit beyond one byte becomes a question mark.
fn text(heap: &mut Heap<'_, '_, '_>, string: u64, range: std::ops::Range<u32>) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    heap.pieces(string, range, &mut |piece| {
        match piece {
            Piece::Narrow(bytes) => text.extend_from_slice(bytes),
            Piece::Wide(units) => {
                let byte = |unit: &[u8; 2]| u8::try_from(u16::from_le_bytes(*unit)).unwrap_or(b'?');
                text.extend(units.as_chunks().0.iter().map(byte));
            }
        }
        true
    })?;
    Some(text)
}

/// Returns the URL in the comment with which a script ends; `None` if code follows it, or there is none.
fn mapping_url(text: &[u8]) -> Option<&[u8]> {
    let (at, comment) = COMMENTS.iter().filter_map(|c| Some((memchr::memmem::rfind(text, c)?, c))).max()?;
    let rest = text.get(at + comment.len()..)?;
    let url = rest.get(..rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len()))?;
    let is_last = rest.get(url.len()..)?.iter().all(u8::is_ascii_whitespace);
    (is_last && !url.is_empty()).then_some(url)
}

/// Returns the path of a source, as a report shows it: a URL with a scheme stays as it is.
fn source_path(folder: &str, root: &str, source: &str) -> Arc<str> {
    let source = match root.trim_end_matches('/') {
        "" => source.to_owned(),
        root => format!("{root}/{source}"),
    };
    match source.strip_prefix("file://") {
        Some(_) => path(&source.into()),
        None if source.contains("://") => source.into(),
        None => joined(folder, &source).into(),
    }
}

/// Returns a path that is relative to a folder, without `.` and `..`.
fn joined(folder: &str, file: &str) -> String {
    if file.is_empty() {
        return String::new();
    }
    let mut parts: Vec<&str> = if file.starts_with('/') { vec![] } else { folder.split('/').collect() };
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/"))
}

/// Returns the segments of a map's `mappings`, in order; `None` if they are not written as they have to be.
fn segments(mappings: &str) -> Option<Vec<Segment>> {
    let mut segments = Vec::new();
    let (mut source, mut written) = (0i64, 0i64);
    for (line, groups) in mappings.split(';').enumerate() {
        let line = u32::try_from(line).ok()?;
        let first = segments.len();
        let mut column = 0i64;
        for group in groups.split(',').filter(|group| !group.is_empty()) {
            let mut digits = group.bytes();
            column = column.checked_add(number(&mut digits)?)?;
            let mut origin = None;
            if digits.len() > 0 {
                source = source.checked_add(number(&mut digits)?)?;
                written = written.checked_add(number(&mut digits)?)?;
                origin = Some((u32::try_from(source).ok()?, u32::try_from(written).ok()?));
            }
            segments.push(Segment { line, column: u32::try_from(column).ok()?, origin });
            (segments.len() <= MAX_SEGMENTS).then_some(())?;
        }
        segments.get_mut(first..)?.sort_by_key(|segment: &Segment| segment.column);
    }
    Some(segments)
}

/// Reads a number whose digits have the lowest first, and whose lowest bit is the sign.
fn number(digits: &mut std::str::Bytes<'_>) -> Option<i64> {
    let mut value = 0i64;
    let mut shift = 0;
    loop {
        let digit = i64::from(digit(digits.next()?)?);
        (shift <= 30).then_some(())?;
        value |= (digit & ((1 << DIGIT_BITS) - 1)) << shift;
        shift += DIGIT_BITS;
        if digit >> DIGIT_BITS == 0 {
            return Some(if value & 1 == 1 { -(value >> 1) } else { value >> 1 });
        }
    }
}

/// Returns the value of a digit in base 64.
fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

/// Standard alphabet, with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Returns the bytes that a text in base64 stands for.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    BASE64.decode(text.trim_ascii()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = r#"{"version":3,"sources":["../src/a b.ts","b.ts"],"mappings":";AAAA,IACI;KAEA,MCGA,E"}"#;

    fn at(line: u32, column: u32) -> Place {
        Place { line, column }
    }

    #[test]
    fn places_are_those_of_the_source() {
        let map = SourceMap::of(MAP.as_bytes(), "/srv/out").unwrap();
        let told = |line, column| map.origin(at(line, column)).map(|o| (o.file.to_string(), o.line));
        let ts = |line| Some(("/srv/src/a b.ts".to_owned(), line));
        assert_eq!((told(1, 0), told(2, 0), told(2, 3)), (None, ts(1), ts(1)));
        assert_eq!((told(2, 4), told(2, 99)), (ts(2), ts(2)));
        // Line 3 begins and ends with code of no source; its second segment is of the other source.
        assert_eq!((told(3, 4), told(3, 5)), (None, ts(4)));
        assert_eq!(told(3, 12), Some(("/srv/out/b.ts".to_owned(), 7)));
        assert_eq!((told(3, 13), told(4, 0)), (None, None));
    }

    #[test]
    fn damaged_maps_tell_nothing() {
        for json in
            ["", "{}", r#"{"version":3,"sources":[],"mappings":"!"}"#, r#"{"version":2,"sources":[],"mappings":""}"#]
        {
            assert!(SourceMap::of(json.as_bytes(), "/").is_none(), "{json}");
        }
        // A number without an end, one of too many digits, a source before the first.
        for mappings in ["g", "gggggggggggA", "ADAA"] {
            assert_eq!(segments(mappings), None, "{mappings}");
        }
        let without_source = SourceMap::of(br#"{"version":3,"sources":[],"mappings":"AAAA"}"#, "/").unwrap();
        assert_eq!(without_source.origin(at(1, 0)), None);
        assert_eq!(without_source.origin(at(0, 0)), None);
    }

    #[test]
    fn a_map_is_named_by_the_last_comment() {
        let url = |text: &'static str| mapping_url(text.as_bytes()).map(|url| std::str::from_utf8(url).unwrap());
        assert_eq!(url("f();\n//# sourceMappingURL=a.js.map\n"), Some("a.js.map"));
        assert_eq!(url("//# sourceMappingURL=a.map\n//@ sourceMappingURL=b.map"), Some("b.map"));
        assert_eq!(url("//# sourceMappingURL=a.map\nf();\n"), None);
        assert_eq!((url("f();"), url("//# sourceMappingURL=")), (None, None));
    }

    #[test]
    fn paths_of_sources_are_those_of_files() {
        assert_eq!(&*source_path("/srv/out", "", "../src/./a.ts"), "/srv/src/a.ts");
        assert_eq!(&*source_path("/srv/out", "/src/", "a.ts"), "/src/a.ts");
        assert_eq!(&*source_path("/srv", "", "file:///src/a%20b.ts"), "/src/a b.ts");
        assert_eq!(&*source_path("/srv", "webpack://app", "./a.ts"), "webpack://app/./a.ts");
        assert_eq!(&*source_path("/srv", "", "../../../a.ts"), "/a.ts");
        assert_eq!(&*source_path("/srv", "", ""), "");
    }

    #[test]
    fn base64_is_decoded() {
        let decoded = |text: &str| base64(text.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(decoded("eyJ2IjozfQ=="), Some(r#"{"v":3}"#.to_owned()));
        assert_eq!((decoded("YWJj"), decoded("YWI=\n")), (Some("abc".to_owned()), Some("ab".to_owned())));
        assert_eq!((decoded("a-b"), decoded("")), (None, Some(String::new())));
    }
}
