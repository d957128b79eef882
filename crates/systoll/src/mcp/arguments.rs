//! Checks a call's arguments before anything is run. Errors are texts that help a model.

use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::Duration;

/// Time that a command may take by default, seconds.
pub(super) const TIMEOUT: u64 = 120;
/// Longest time that a command may be allowed, seconds.
pub(super) const LONGEST: u64 = 3600;

/// The arguments of one call.
pub(super) struct Arguments<'a>(&'a Map<String, Value>);

impl<'a> Arguments<'a> {
    /// Wraps the arguments of a tool with this schema. Refuses arguments that the schema lacks.
    pub(super) fn of(given: &'a Map<String, Value>, schema: &Value) -> Result<Self, String> {
        let known = schema["properties"].as_object();
        let is_known = |name: &String| known.is_some_and(|known| known.contains_key(name));
        if let Some(name) = given.keys().find(|name| !is_known(name)) {
            let known: Vec<&str> = known.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
            let name: String = name.chars().take(80).collect();
            return Err(format!("there is no argument {name}; there are {}", known.join(", ")));
        }
        Ok(Self(given))
    }

    /// Returns an argument; null counts as absent.
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, String> {
        let text = self.get(name).map(|value| value.as_str().ok_or_else(|| format!("{name} is a text")));
        let text = text.transpose()?;
        if text.is_some_and(|text| text.contains('\0')) {
            return Err(format!("{name} holds a byte that is zero"));
        }
        Ok(text)
    }

    /// Returns a list of texts. A single text counts as a list of one, an absent argument as an
    /// empty list.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<&'a str>, String> {
        let wrong = || format!("{name} is a text or a list of texts");
        let texts = match self.get(name) {
            None => return Ok(Vec::new()),
            Some(Value::String(text)) => vec![text.as_str()],
            Some(value) => {
                let texts: Option<Vec<&str>> = value.as_array().ok_or_else(wrong)?.iter().map(Value::as_str).collect();
                texts.ok_or_else(wrong)?
            }
        };
        if texts.iter().any(|text| text.contains('\0')) {
            return Err(format!("{name} holds a byte that is zero"));
        }
        Ok(texts)
    }

    /// Returns a command's words. A single text is a program without arguments; one with spaces is
    /// refused, since no shell splits it.
    pub(super) fn words(&self, name: &str) -> Result<Vec<&'a str>, String> {
        let several = self.get(name).and_then(Value::as_str).is_some_and(|text| text.contains(char::is_whitespace));
        if several {
            return Err(format!("{name} is a list of texts, e.g. [\"make\", \"-j2\"]: no shell splits it"));
        }
        self.texts(name)
    }

    /// Returns the command, which is required.
    pub(super) fn command(&self) -> Result<Vec<&'a str>, String> {
        match self.words("command")? {
            command if command.is_empty() => Err("command is missing: a list of texts, the program first".into()),
            command => Ok(command),
        }
    }

    /// Returns changes of the environment: `VAR=VALUE`, or `VAR` to remove it.
    pub(super) fn env(&self) -> Result<Vec<String>, String> {
        let wrong = || "env is an object of texts, null to remove: {\"TZ\": \":/etc/localtime\"}".to_owned();
        let Some(value) = self.get("env") else { return Ok(Vec::new()) };
        let change = |(name, value): (&String, &Value)| {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(format!("{name:?} names no variable"));
            }
            match value {
                Value::Null => Ok(name.clone()),
                Value::String(value) if !value.contains('\0') => Ok(format!("{name}={value}")),
                _ => Err(wrong()),
            }
        };
        value.as_object().ok_or_else(wrong)?.iter().map(change).collect()
    }

    /// Returns a whole number within these bounds, if it is given.
    pub(super) fn number(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, String> {
        let wrong = || format!("{name} is a whole number from {least} to {most}");
        let number = self.get(name).map(|value| value.as_u64().ok_or_else(wrong)).transpose()?;
        if number.is_some_and(|n| n < least || n > most) { Err(wrong()) } else { Ok(number) }
    }

    pub(super) fn timeout(&self) -> Result<Duration, String> {
        Ok(Duration::from_secs(self.number("timeout_seconds", 1, LONGEST)?.unwrap_or(TIMEOUT)))
    }

    /// Returns the folder to run in, if it is given.
    pub(super) fn folder(&self) -> Result<Option<PathBuf>, String> {
        let Some(folder) = self.text("cwd")?.map(PathBuf::from) else { return Ok(None) };
        if folder.is_dir() { Ok(Some(folder)) } else { Err(format!("{} is no folder", folder.display())) }
    }
}

/// Returns a file's name in a form that can't be taken for a flag, nor for the `:` between two
/// sides.
pub(super) fn file(name: &str) -> String {
    if name.starts_with('-') || name == ":" { format!("./{name}") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read<T>(given: Value, get: impl Fn(&Arguments<'_>) -> Result<T, String>) -> Result<T, String> {
        let schema = json!({"properties": {"command": {}, "env": {}, "n": {}, "cwd": {}, "timeout_seconds": {}}});
        Arguments::of(given.as_object().unwrap(), &schema).and_then(|arguments| get(&arguments))
    }

    #[test]
    fn good_arguments_are_read() {
        assert_eq!(read(json!({"command": ["a", "b c"]}), |a| a.command().map(|c| c.len())), Ok(2));
        assert_eq!(read(json!({"command": "make"}), |a| a.command().map(|c| c.len())), Ok(1));
        assert_eq!(read(json!({"n": "tz-unset"}), |a| a.texts("n").map(|c| c.concat())), Ok("tz-unset".to_owned()));
        let env = read(json!({"env": {"A": "1=2", "B": null}}), |a| a.env());
        assert_eq!(env, Ok(vec!["A=1=2".to_owned(), "B".to_owned()]));
        assert_eq!(read(json!({"n": null}), |a| a.number("n", 0, 9)), Ok(None));
        assert_eq!(read(json!({}), |a| a.timeout()), Ok(Duration::from_secs(TIMEOUT)));
        assert_eq!([file("-o"), file(":"), file("a")], ["./-o", "./:", "a"]);
    }

    #[test]
    fn wrong_arguments_are_named() {
        for wrong in [json!({}), json!({"command": []}), json!({"command": "ls -l"}), json!({"command": ["a\0"]})] {
            assert!(read(wrong.clone(), |a| a.command().map(|c| c.len())).is_err(), "{wrong}");
        }
        let split = read(json!({"command": "make -j2"}), |a| a.command().map(|c| c.len()));
        assert!(split.as_ref().is_err_and(|why| why.contains("no shell splits it")), "{split:?}");
        for wrong in [json!({"env": ["A=1"]}), json!({"env": {"": "1"}}), json!({"env": {"A=B": "1"}})] {
            assert!(read(wrong.clone(), |a| a.env()).is_err(), "{wrong}");
        }
        assert!(read(json!({"n": 10}), |a| a.number("n", 0, 9)).is_err());
        assert!(read(json!({"timeout_seconds": 1e9}), |a| a.timeout()).is_err());
        assert!(read(json!({"cwd": "/no/such"}), |a| a.folder()).is_err());
        assert!(read(json!({"comand": []}), |_| Ok(())).unwrap_err().contains("there are command, env"));
    }
}
