//! What the caller's language calls the function that was called: `os.path.realpath`, not `readlink`.

use crate::language::CodeLanguage;
use systoll_model::{Frame, FrameClass, Recording, Row};

/// Functions of languages that call the C library's function of the same job and leave no frame of their own:
/// language, the C library's function, what the language calls it.
const BUILTIN: &[(CodeLanguage, &str, &str)] = &[
    (CodeLanguage::Python, "access", "os.access"),
    (CodeLanguage::Python, "chdir", "os.chdir"),
    (CodeLanguage::Python, "getcwd", "os.getcwd"),
    (CodeLanguage::Python, "getpid", "os.getpid"),
    (CodeLanguage::Python, "getppid", "os.getppid"),
    (CodeLanguage::Python, "getrusage", "resource.getrusage"),
    (CodeLanguage::Python, "lstat", "os.lstat"),
    (CodeLanguage::Python, "mktime", "time.mktime"),
    (CodeLanguage::Python, "readlink", "os.readlink"),
    (CodeLanguage::Python, "umask", "os.umask"),
    (CodeLanguage::Ruby, "getpid", "Process.pid"),
    (CodeLanguage::Ruby, "getppid", "Process.ppid"),
    (CodeLanguage::Ruby, "getpwuid", "Etc.getpwuid"),
    (CodeLanguage::Ruby, "realpath", "File.realpath"),
    (CodeLanguage::Ruby, "umask", "File.umask"),
    (CodeLanguage::Perl, "getpid", "$$"),
    (CodeLanguage::Perl, "getppid", "getppid"),
    (CodeLanguage::Perl, "times", "times"),
    (CodeLanguage::Perl, "tzset", "localtime"),
    (CodeLanguage::Perl, "umask", "umask"),
    (CodeLanguage::Php, "getpid", "getmypid"),
];

/// The function of the language's own library that the user's code called: by the script's lines, where its library
/// is written in the language, else by what calls the C library's function in that language. `None` where nothing
/// tells, or where it is called as in C.
pub(crate) fn language_api(recording: &Recording, row: &Row, language: Option<CodeLanguage>) -> Option<String> {
    let language = language?;
    let frames: Vec<&Frame> = recording.row_frames(row).filter(|frame| frame.language.is_some()).collect();
    let user = frames.iter().position(|frame| frame.class == FrameClass::User);
    let library = user.and_then(|at| frames.get(at.checked_sub(1)?));
    if let (CodeLanguage::Python, Some(frame)) = (language, library) {
        return python_name(frame);
    }
    let api = row.api.as_deref()?;
    BUILTIN.iter().find(|(of, name, _)| *of == language && *name == api).map(|(.., shown)| (*shown).to_owned())
}

/// `realpath` in `<frozen posixpath>` is `os.path.realpath`, `info` in `…/logging/__init__.py` is `logging.info`.
fn python_name(frame: &Frame) -> Option<String> {
    let place = frame.location()?;
    let file = place.file.as_deref()?;
    let module = match file.strip_prefix("<frozen ") {
        Some(frozen) => frozen.strip_suffix('>')?.to_owned(),
        None => {
            let (_, rest) = file.rsplit_once("/lib/python3")?;
            let (_, path) = rest.split_once('/')?;
            path.strip_suffix("/__init__.py").or_else(|| path.strip_suffix(".py"))?.replace('/', ".")
        }
    };
    let module = match module.as_str() {
        "posixpath" | "genericpath" => "os.path",
        other => other,
    };
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let named = !place.function.is_empty() && place.function.chars().all(word) && !module.starts_with("importlib");
    named.then(|| format!("{module}.{}", place.function))
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::Location;

    #[test]
    fn pythons_library_is_named_as_it_is_imported() {
        let named = |file: &str, function: &str| {
            let location = Location { function: function.into(), file: Some(file.into()), line: Some(1) };
            python_name(&Frame { locations: vec![location], ..Frame::default() })
        };
        for (file, function, name) in [
            ("<frozen posixpath>", "realpath", Some("os.path.realpath")),
            ("<frozen genericpath>", "exists", Some("os.path.exists")),
            ("/usr/lib/python3.11/shutil.py", "which", Some("shutil.which")),
            ("/usr/lib/python3.11/logging/__init__.py", "Logger.info", Some("logging.Logger.info")),
            ("/usr/lib/python3.11/json/decoder.py", "decode", Some("json.decoder.decode")),
            ("<frozen importlib._bootstrap>", "_find_spec", None),
            ("/usr/lib/python3.11/x.py", "<lambda>", None),
            ("/home/me/app.py", "run", None),
        ] {
            assert_eq!(named(file, function).as_deref(), name, "{file} {function}");
        }
    }
}
