//! A program to run, and the changes of its environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use systoll_model::{Elision, EnvChange};

/// A program, its arguments and the differences from our own environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The program; looked up in `PATH` if it has no slash.
    pub program: PathBuf,
    /// The program's arguments, without its own name.
    pub args: Vec<OsString>,
    /// Changes to the inherited environment, applied in order.
    pub env: Vec<EnvChange>,
    /// The folder in which the program runs; our own working directory if `None`.
    pub cwd: Option<PathBuf>,
    /// Calls to answer in place of the kernel: an experiment that needs a watched run.
    pub elisions: Vec<Elision>,
}

impl Spec {
    /// Makes the spec of `program` without arguments or changes.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), args: Vec::new(), env: Vec::new(), cwd: None, elisions: Vec::new() }
    }

    /// Returns the spec with one more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Returns the spec with one more change of the environment.
    #[must_use]
    pub fn env(mut self, change: EnvChange) -> Self {
        self.env.push(change);
        self
    }

    /// Returns program and arguments, which a report calls the command.
    pub fn argv(&self) -> Vec<OsString> {
        std::iter::once(self.program.clone().into_os_string()).chain(self.args.iter().cloned()).collect()
    }

    /// Returns the bytes that the kernel copies onto the new program's stack: arguments and
    /// environment.
    pub fn stack_bytes(&self) -> usize {
        let mut env: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        for change in &self.env {
            match change {
                EnvChange::Set(name, value) => drop(env.insert(name.clone(), value.clone())),
                EnvChange::Remove(name) => drop(env.remove(name)),
            }
        }
        // Each variable takes an equals sign, a terminating zero and a pointer.
        let env = env.iter().map(|(name, value)| name.len() + value.len() + 2 + 8);
        let args = self.argv().iter().map(|arg| arg.len() + 1 + 8).collect::<Vec<_>>();
        env.chain(args).sum()
    }

    /// Converts the spec to the standard library's type, with inherited streams.
    pub fn to_command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args);
        for change in &self.env {
            match change {
                EnvChange::Set(name, value) => command.env(name, value),
                EnvChange::Remove(name) => command.env_remove(name),
            };
        }
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initial_stack_is_predicted_to_the_byte() {
        let plain = Spec::new("/bin/true").env(EnvChange::Remove("SYSTOLL_NO_SUCH".into()));
        let longer = plain.clone().arg("ab").env(EnvChange::Set("SYSTOLL_NO_SUCH".into(), "xyz".into()));
        assert_eq!(longer.stack_bytes() - plain.stack_bytes(), (2 + 1 + 8) + (15 + 3 + 2 + 8));
    }

    #[test]
    fn changes_reach_the_program_in_order() {
        let spec = Spec::new("/bin/sh")
            .arg("-c")
            .arg("echo ${A-none} ${HOME-none}")
            .env(EnvChange::Set("A".into(), "first".into()))
            .env(EnvChange::Set("A".into(), "last".into()))
            .env(EnvChange::Remove("HOME".into()));
        let out = spec.to_command().output().unwrap();
        assert_eq!(out.stdout, b"last none\n");
    }
}
