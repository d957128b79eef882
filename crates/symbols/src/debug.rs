//! Separate debug files: where distributions and `objcopy --add-gnu-debuglink` put them.

use crate::elf::{Image, c_str, half};
use crate::source::Source;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Where distributions install them (gdb's default `debug-file-directory`).
const ROOT: &str = "/usr/lib/debug";

/// A debug file.
#[derive(Debug)]
pub(crate) struct DebugFile {
    pub(crate) image: Image,
}

/// The debug file of `image`, which the target knows as `path`.
pub(crate) fn find(image: &Image, path: &str) -> Option<DebugFile> {
    by_build_id(image).or_else(|| by_link(image, Path::new(path)))
}

fn open(path: PathBuf) -> Option<DebugFile> {
    let file = File::open(path).ok().filter(|f| f.metadata().is_ok_and(|m| m.is_file()))?;
    let image = Image::parse(Source::from_file(file).ok()?)?;
    Some(DebugFile { image })
}

fn by_build_id(image: &Image) -> Option<DebugFile> {
    let id = image.build_id.as_deref()?;
    let (first, rest) = id.split_at_checked(2)?;
    let found = open(PathBuf::from(format!("{ROOT}/.build-id/{first}/{rest}.debug")))?;
    // The link there may point to the stripped file itself.
    (found.image.build_id == image.build_id && found.image.section(".symtab").is_some()).then_some(found)
}

/// By `.gnu_debuglink`: a file name, padded to 4, and the CRC of the file.
fn by_link(image: &Image, path: &Path) -> Option<DebugFile> {
    let link = image.section_data(image.section(".gnu_debuglink")?)?;
    let name = c_str(&link, 0)?;
    let crc = half(&link, name.len().checked_add(1)?.checked_next_multiple_of(4)?)?;
    let name = std::str::from_utf8(name).ok().filter(|n| !n.contains('/') && !n.is_empty())?;
    let folder = path.parent()?;
    let below_root = Path::new(ROOT).join(folder.strip_prefix("/").ok()?);
    [folder.join(name), folder.join(".debug").join(name), below_root.join(name)]
        .into_iter()
        .filter_map(open)
        .find(|found| belongs(image, &found.image, crc))
}

fn belongs(image: &Image, debug: &Image, crc: u32) -> bool {
    if image.build_id.is_some() && debug.build_id.is_some() {
        return image.build_id == debug.build_id;
    }
    let Some(bytes) = debug.source.read_all() else { return false };
    let mut sum = flate2::Crc::new();
    sum.update(&bytes);
    sum.sum() == crc
}

/// The file that holds what `debug` shares with others: `.gnu_debugaltlink` has its path and build-id.
pub(crate) fn common_part(debug: &Image) -> Option<Image> {
    let link = debug.section_data(debug.section(".gnu_debugaltlink")?)?;
    let name = std::str::from_utf8(c_str(&link, 0)?).ok()?;
    let id: String = link.get(name.len() + 1..)?.iter().map(|b| format!("{b:02x}")).collect();
    // Relative to the debug file's folder below `.build-id`, in practice always `.dwz/…` below the root.
    let below = name.split("/.dwz/").nth(1).or_else(|| name.strip_prefix(".dwz/"));
    let by_name = below.filter(|n| !n.contains("..")).map(|n| PathBuf::from(format!("{ROOT}/.dwz/{n}")));
    let by_id = id.split_at_checked(2).map(|(a, b)| PathBuf::from(format!("{ROOT}/.build-id/{a}/{b}.debug")));
    let absolute = Some(PathBuf::from(name)).filter(|p| p.is_absolute());
    [by_name, by_id, absolute]
        .into_iter()
        .flatten()
        .filter_map(open)
        .map(|found| found.image)
        .find(|image| image.build_id.as_ref() == Some(&id))
}
