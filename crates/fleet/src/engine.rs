//! Runs a query in an engine: finds a Python that has the engine's package, and starts it.

use crate::answer::{Answer, Bad};
use serde::Serialize;
use std::ffi::OsString;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Source of the Python program that runs the query.
const DRIVER: &str = include_str!("driver.py");

/// The engine that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Engine {
    /// DuckDB on this box, in a process that ends with the answer.
    DuckDb,
    /// Spark, at its master's URL; `None` for Spark on this box.
    Spark {
        /// URL of the master in Spark's form, or `sc://…` for Spark Connect.
        master: Option<String>,
    },
}

impl Engine {
    /// Returns the Python package that the engine needs.
    pub fn package(&self) -> &'static str {
        match self {
            Self::DuckDb => "duckdb",
            Self::Spark { .. } => "pyspark",
        }
    }
}

/// Filters and parameters of a question, which become the table `asked`. `None` is SQL's null.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "named as the columns of docs/use/fleet.md, which are the flags")]
pub struct Asked {
    pub service: Option<String>,
    pub host: Option<String>,
    /// First day of the runs, `YYYY-MM-DD`.
    pub since: Option<String>,
    pub release: Option<String>,
    pub cause: Option<String>,
    pub api: Option<String>,
    pub function: Option<String>,
    pub syscall: Option<String>,
    /// Price of a core for an hour.
    pub core_hour: f64,
}

/// A query to an engine.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The engine that shall answer.
    pub engine: Engine,
    /// Folders that hold the Parquet files.
    pub folders: Vec<PathBuf>,
    /// Text of the query, in SQL.
    pub sql: String,
    /// True if the query is the user's own: it may then change settings that our questions may not.
    pub is_own: bool,
    /// Filters and parameters of the question.
    pub asked: Asked,
    /// Lines of the answer, at most.
    pub limit: Option<usize>,
    /// MiB of memory for DuckDB, at most; beyond that it uses a file.
    pub memory_mib: u32,
    /// Pythons to try, in this order; the first that has the package answers.
    pub pythons: Vec<OsString>,
}

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// No Python has this package.
    #[error("no Python here has the package {0}")]
    Package(&'static str),
    /// Spark found no Java.
    #[error("Spark needs Java, and there is none")]
    Java,
    /// The engine failed, with this message.
    #[error("{0}")]
    Engine(String),
    /// A folder's name is not valid text.
    #[error("{} is no name that engines take", .0.display())]
    Name(PathBuf),
    /// The engine can't be started.
    #[error("can't start {}: {source}", .program.display())]
    Start {
        /// The program that was started.
        program: OsString,
        /// The error that the system returned.
        source: io::Error,
    },
}

#[derive(Serialize)]
struct Request<'a> {
    engine: &'static str,
    master: Option<&'a str>,
    folders: Vec<&'a str>,
    sql: &'a str,
    own: bool,
    asked: &'a Asked,
    limit: Option<usize>,
    memory_mib: u32,
    scratch: Option<&'a str>,
}

/// Runs the query and waits for the answer.
///
/// # Errors
/// A [`FleetError`], which names the missing part or has the engine's message.
pub fn ask(ask: &Ask) -> Result<Answer, FleetError> {
    let scratch = tempfile::tempdir().ok();
    let folders = ask.folders.iter().map(|f| f.to_str().ok_or_else(|| FleetError::Name(f.clone())));
    let (engine, master) = match &ask.engine {
        Engine::DuckDb => ("duckdb", None),
        Engine::Spark { master } => ("spark", master.as_deref()),
    };
    let request = Request {
        engine,
        master,
        folders: folders.collect::<Result<_, _>>()?,
        sql: &ask.sql,
        own: ask.is_own,
        asked: &ask.asked,
        limit: ask.limit,
        memory_mib: ask.memory_mib,
        scratch: scratch.as_ref().and_then(|folder| folder.path().to_str()),
    };
    let request = serde_json::to_vec(&request).map_err(|e| FleetError::Engine(e.to_string()))?;
    for python in &ask.pythons {
        match ask_of(python, &request, ask.engine.package()) {
            Err(FleetError::Start { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            Err(FleetError::Package(_)) => {}
            answered => return answered,
        }
    }
    Err(FleetError::Package(ask.engine.package()))
}

fn ask_of(python: &OsString, request: &[u8], package: &'static str) -> Result<Answer, FleetError> {
    let start = |source| FleetError::Start { program: python.clone(), source };
    let mut said = tempfile::tempfile().map_err(start)?;
    let mut command = Command::new(python);
    command.args(["-c", DRIVER]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(said.try_clone().map_err(start)?).spawn().map_err(start)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A process that does not read the request has ended, which is reported below.
        let _ = stdin.write_all(request);
    }
    let answer = child.stdout.take().map_or(Err(Bad::CutShort), |out| Answer::read(BufReader::new(out)));
    let ended = child.wait();
    match answer {
        Ok(answer) => Ok(answer),
        Err(Bad::Failed { missing: Some(module), .. }) if module == package => Err(FleetError::Package(package)),
        Err(Bad::Failed { why, .. }) if why.contains("JAVA_GATEWAY_EXITED") => {
            let said = tail(&mut said);
            let no_java = said.contains("JAVA_HOME is not set")
                || said.contains("java: not found")
                || said.contains("java: No such file");
            Err(if no_java { FleetError::Java } else { FleetError::Engine(format!("{why}\n{said}")) })
        }
        Err(Bad::Failed { why, .. }) => Err(FleetError::Engine(why)),
        Err(Bad::CutShort) => {
            let how = ended.map_or_else(|e| e.to_string(), |status| status.to_string());
            Err(FleetError::Engine(format!("the engine ended without an answer ({how})\n{}", tail(&mut said))))
        }
    }
}

/// Bytes of an engine's last messages that are shown, at most.
const TAIL: u64 = 2_000;

fn tail(said: &mut std::fs::File) -> String {
    let end = said.seek(SeekFrom::End(0)).unwrap_or(0);
    let mut bytes = Vec::new();
    let read = said.seek(SeekFrom::Start(end.saturating_sub(TAIL))).and_then(|_| said.read_to_end(&mut bytes));
    if read.is_err() { String::new() } else { String::from_utf8_lossy(&bytes).trim_end().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked_of(pythons: &[&str]) -> FleetError {
        let ask = Ask {
            engine: Engine::DuckDb,
            folders: vec![],
            sql: String::new(),
            is_own: false,
            asked: Asked::default(),
            limit: None,
            memory_mib: 64,
            pythons: pythons.iter().map(OsString::from).collect(),
        };
        super::ask(&ask).unwrap_err()
    }

    #[test]
    fn missing_parts_are_named() {
        assert!(matches!(asked_of(&["/nowhere/python3"]), FleetError::Package("duckdb")));
        let FleetError::Engine(why) = asked_of(&["/nowhere/python3", "false"]) else { panic!("an answer") };
        assert!(why.contains("without an answer (exit status: 1)"), "{why}");
    }
}
