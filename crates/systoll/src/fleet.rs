//! Implements `systoll fleet`: queries over many recordings.

use crate::cli::{EngineName, FleetArgs};
use crate::failure::Failure;
use crate::output::{Output, progress_line, to_stderr};
use crate::python::pythons;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use systoll_export::answer_csv;
use systoll_fleet::{Answer, Ask, Asked, Engine, QUESTIONS, question};
use systoll_model::InertJson;
use systoll_present::{answer_json, clean, write_answer};

/// Number of lines of a table by default.
const LINES: usize = 20;

/// Parses the question, runs it, and writes the answer.
pub(crate) fn fleet(args: &FleetArgs) -> Result<ExitCode, Failure> {
    let question = Wanted::of(args)?;
    let mut output = Output::open(args.output.as_deref(), Output::Stdout)?;
    if args.show_sql {
        output.write_as_is("SQL", |w| w.write_all(question.sql.as_bytes()))?;
        return Ok(ExitCode::SUCCESS);
    }
    for folder in &question.folders {
        look_into(folder)?;
    }
    let is_table = !args.json && !args.csv;
    let ask = Ask {
        engine: match args.engine {
            EngineName::Duckdb => Engine::DuckDb,
            EngineName::Spark => Engine::Spark { master: args.master.clone() },
        },
        folders: question.folders.iter().map(|f| std::path::absolute(f).unwrap_or_else(|_| f.clone())).collect(),
        sql: question.sql.clone(),
        is_own: args.sql.is_some(),
        asked: asked(args),
        limit: args.limit.or(is_table.then_some(LINES)),
        memory_mib: args.memory,
        pythons: pythons(),
    };
    let progress = progress_line(!is_table);
    progress.set_message(format!("{} answers", ask.engine.package()));
    progress.enable_steady_tick(Duration::from_millis(200));
    let answer = systoll_fleet::ask(&ask);
    progress.finish_and_clear();
    let answer = answer.map_err(Failure::Fleet)?;
    tell_left_out(&answer);
    if args.csv {
        let mut bytes = Vec::new();
        answer_csv(&answer, &mut bytes).map_err(Failure::Export)?;
        output.write_as_is("answer", |w| w.write_all(&bytes))?;
        return Ok(ExitCode::SUCCESS);
    }
    let style = output.style(args.color.when);
    output.write("answer", |w| {
        if args.json {
            serde_json::to_writer_pretty(InertJson(&mut *w), &answer_json(&answer, question.name))?;
            return writeln!(w);
        }
        write_answer(w, &answer, question.title, &question.note, &style)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Lists on standard error the files that the answer leaves out.
fn tell_left_out(answer: &Answer) {
    for path in &answer.left_out {
        to_stderr(&format!(
            "systoll: {} is no Parquet file, a damaged one, or not in folders as the others are (day=…/service=…/host=…): it is left out\n",
            clean(path)
        ));
    }
    let more = answer.left_out_count.saturating_sub(answer.left_out.len() as u64);
    if more > 0 {
        to_stderr(&format!("systoll: and {more} more such files\n"));
    }
}

/// A question as typed, parsed.
struct Wanted {
    folders: Vec<PathBuf>,
    name: &'static str,
    title: &'static str,
    note: String,
    sql: String,
}

impl Wanted {
    fn of(args: &FleetArgs) -> Result<Self, Failure> {
        let mut folders = args.words.clone();
        if let Some(sql) = &args.sql {
            return Ok(Self { folders, name: "sql", title: "", note: String::new(), sql: own(sql)? });
        }
        let named = folders.last().and_then(|word| word.to_str()).and_then(question);
        if named.is_some() {
            folders.pop();
            if folders.is_empty() && !args.show_sql {
                return Err(Failure::Usage("a question is asked about folders: systoll fleet FOLDER... QUESTION"));
            }
        } else if let [_, .., last] = folders.as_slice()
            && !last.exists()
        {
            return Err(Failure::Unknown {
                what: "question or folder",
                name: last.display().to_string(),
                known: QUESTIONS.iter().map(|q| q.name.to_owned()).collect(),
                help: "questions, with their SQL: docs/use/fleet.md; your own: --sql".into(),
            });
        }
        let [first, ..] = QUESTIONS;
        let question = named.unwrap_or(first);
        Ok(Self {
            folders,
            name: question.name,
            title: question.about(),
            note: question.note(),
            sql: question.sql.into(),
        })
    }
}

/// Returns the user's own SQL: the content of a file, or the text.
fn own(sql: &str) -> Result<String, Failure> {
    let path = Path::new(sql);
    // A question has several words; a file name rarely does.
    if sql.contains(char::is_whitespace) && !path.is_file() {
        return Ok(sql.to_owned());
    }
    std::fs::read_to_string(path).map_err(|e| Failure::file("read", path, e))
}

fn asked(args: &FleetArgs) -> Asked {
    Asked {
        service: args.service.clone(),
        host: args.host.clone(),
        since: args.since.clone(),
        release: args.release.clone(),
        cause: args.cause.clone(),
        api: args.api.clone(),
        function: args.function.clone(),
        syscall: args.syscall.clone(),
        core_hour: args.core_hour,
    }
}

/// Largest depth of folders that are searched for tables: `day=…/service=…/host=…` and some above.
const DEPTH: usize = 6;

/// Fails if there is no table below the folder.
fn look_into(folder: &Path) -> Result<(), Failure> {
    let entries = std::fs::read_dir(folder).map_err(|e| Failure::file("read", folder, e))?;
    let found = any_table(entries, DEPTH).map_err(|e| Failure::file("read", folder, e))?;
    if found { Ok(()) } else { Err(Failure::NoTables(folder.to_owned())) }
}

fn any_table(entries: std::fs::ReadDir, depth: usize) -> std::io::Result<bool> {
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "parquet") {
            return Ok(true);
        }
        if depth > 0 && path.is_dir() && any_table(std::fs::read_dir(path)?, depth - 1)? {
            return Ok(true);
        }
    }
    Ok(false)
}
