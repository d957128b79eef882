//! Parses the sign that a program is ready (`--until`).

use std::fmt;
use std::path::PathBuf;

/// The sign that a program is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// A socket listens on this TCP port.
    Port(u16),
    /// A line with this text is written.
    Line(String),
    /// This file appears.
    File(PathBuf),
    /// An HTTP request for this path is answered on this port.
    Answer(u16, String),
    /// `main` begins.
    Main,
}

/// The forms of signs, for messages.
const FORMS: &str = "port:8080, line:TEXT, file:PATH, answer:8080/PATH or main";

impl Sign {
    /// Parses a sign as it is typed.
    ///
    /// # Errors
    /// A message for a person.
    pub fn parse(text: &str) -> Result<Self, String> {
        let port = |text: &str| match text.parse() {
            Ok(0) | Err(_) => Err(format!("{text} is no TCP port: 1 to 65535")),
            Ok(port) => Ok(port),
        };
        let not_empty = |text: &str| if text.is_empty() { Err(format!("what? {FORMS}")) } else { Ok(text.to_owned()) };
        match text.split_once(':') {
            Some(("port", rest)) => port(rest).map(Self::Port),
            Some(("line", rest)) if rest.contains('\n') => Err("a line holds no line feed".into()),
            Some(("line", rest)) => not_empty(rest).map(Self::Line),
            Some(("file", rest)) => not_empty(rest).map(|path| Self::File(path.into())),
            Some(("answer", rest)) => {
                let (number, path) = rest.split_once('/').unwrap_or((rest, ""));
                if path.contains(|c: char| c.is_control() || c == ' ') {
                    return Err("a path of a URL has no blank: %20".into());
                }
                Ok(Self::Answer(port(number)?, format!("/{path}")))
            }
            None if text == "main" => Ok(Self::Main),
            _ => Err(format!("no sign: {FORMS}")),
        }
    }
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(port) => write!(f, "port:{port}"),
            Self::Line(text) => write!(f, "line:{text}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Answer(port, path) => write!(f, "answer:{port}{path}"),
            Self::Main => write!(f, "main"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_read_as_they_are_written() {
        for text in ["port:8080", "line:Listening on :80", "file:/run/x.pid", "answer:80/a/b?c", "answer:1/", "main"] {
            assert_eq!(Sign::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Sign::parse("answer:8080"), Ok(Sign::Answer(8080, "/".into())));
        let wrong = [
            "",
            "8080",
            "port:",
            "port:0",
            "port:70000",
            "line:",
            "line:a\nb",
            "file:",
            "answer:x/",
            "answer:1/a b",
            "mains",
            "url:1",
        ];
        for text in wrong {
            assert!(Sign::parse(text).is_err(), "{text}");
        }
    }
}
