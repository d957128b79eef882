//! Parses sets of system calls, as users type them after `-e`.

use crate::nearest::others;
use std::collections::BTreeSet;
use std::str::FromStr;
use systoll_model::{Class, Recording, Sysno, signatures};
use systoll_present::Narrowing;

/// The system calls that an `-e` set names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallSet {
    /// The set, as reports show it.
    text: String,
    calls: BTreeSet<Sysno>,
    /// Calls that libraries make today for the typed names, without the calls of these names
    /// themselves.
    made_as: BTreeSet<Sysno>,
}

impl CallSet {
    /// Returns the calls of the set.
    #[must_use]
    pub fn calls(&self) -> &BTreeSet<Sysno> {
        &self.calls
    }

    /// Returns the way in which a report of `recording` is narrowed down to the set.
    #[must_use]
    pub(crate) fn told_of(&self, recording: &Recording) -> Narrowing {
        let seen = recording.by_syscall().into_iter().filter(|total| total.counts.calls > 0);
        let mut only = Narrowing { asked: self.text.clone(), ..Narrowing::default() };
        for total in seen {
            if self.made_as.contains(&total.syscall) {
                only.made_as.push(total.syscall);
            }
            if !self.calls.contains(&total.syscall) {
                only.others = only.others.saturating_add(total.counts.calls);
            }
        }
        only
    }

    /// Adds the calls of one name. Returns the name as reports show it.
    fn add(&mut self, name: &str) -> Result<String, String> {
        let all = signatures().iter();
        if let ("all" | "none", set) = (name, &mut self.calls) {
            set.extend(all.map(|s| s.sysno).filter(|_| name == "all"));
            return Ok(name.to_owned());
        }
        if name.starts_with('/') {
            return Err(format!(
                "{name}: regular expressions are strace's; here a set is names and classes: openat,%file"
            ));
        }
        let plain = name.trim_start_matches('%');
        // strace's older names of some classes have no percent sign.
        let class = Class::from_name(name).or_else(|| Class::from_name(plain).filter(|_| plain.len() < name.len()));
        if let Some(class) = class {
            self.calls.extend(all.filter(|s| s.classes.contains(class)).map(|s| s.sysno));
            return Ok(class.name().to_owned());
        }
        if plain.len() < name.len() {
            let known = Class::all().map(|class| class.name().to_owned()).collect::<Vec<_>>();
            return Err(format!("there is no class {name}; there are: {}", known.join(", ")));
        }
        let plain = name.strip_prefix('?').unwrap_or(name);
        let made_as: BTreeSet<Sysno> = Sysno::made_as(plain).collect();
        let own = Sysno::from_name(plain);
        if own.is_none() && made_as.is_empty() && plain.len() == name.len() {
            let known: Vec<String> = signatures().iter().map(|s| s.sysno.to_string()).collect();
            return Err(format!("there is no system call {name}{}", others(plain, &known)));
        }
        self.calls.extend(own.iter().chain(&made_as));
        self.made_as.extend(made_as);
        Ok(name.to_owned())
    }
}

/// The other words that strace's `-e` takes, each with its substitute.
const OTHER_WORDS: &[(&[&str], &str)] = &[
    (&["signal", "signals", "s"], "systoll lists no signals, so that there are none to choose from: leave it out"),
    (&["status"], "-c has a column of errors, --json has each row's by errno"),
    (&["inject", "fault"], "systoll changes no call: strace -e inject=…"),
    (
        &[
            "abbrev",
            "a",
            "verbose",
            "v",
            "raw",
            "x",
            "read",
            "reads",
            "r",
            "write",
            "writes",
            "w",
            "kvm",
            "decode-pids",
        ],
        "systoll keeps no stream of calls with their arguments: strace",
    ),
    (&["quiet", "silent", "silence", "q"], "-q for no report"),
    (&["decode-fd", "decode-fds"], "-y shows what descriptors refer to"),
    (&["namespace", "fdpath"], "systoll has no such option"),
];

/// Returns the part after `-e` that selects calls, or an error if it is about something else.
fn about_calls(typed: &str) -> Result<&str, String> {
    let Some((word, rest)) = typed.split_once('=') else { return Ok(typed) };
    if matches!(word, "trace" | "t") {
        return Ok(rest);
    }
    let instead = OTHER_WORDS.iter().find(|(words, _)| words.contains(&word)).map(|(_, instead)| instead);
    Err(match instead {
        Some(instead) => format!("-e {word}= is strace's: {instead}"),
        None => format!("there is no {word}=: a set is names and classes, e.g. openat,%file"),
    })
}

impl FromStr for CallSet {
    type Err = String;

    /// Parses names and `%classes` separated by commas, `all`, `none`. A leading `!` inverts the
    /// set. Strace's leading `trace=` is ignored, and so is a `?` before a name, which need not
    /// exist then. A name also selects the calls that libraries make for it today: `open` selects
    /// `openat`.
    fn from_str(typed: &str) -> Result<Self, String> {
        let text = about_calls(typed)?;
        let (negated, names) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let mut set = Self::default();
        let names = names.split(',').filter(|n| !n.is_empty());
        let told: Vec<String> = names.clone().map(|name| set.add(name)).collect::<Result<_, _>>()?;
        let typed: BTreeSet<Sysno> = names.filter_map(Sysno::from_name).collect();
        set.made_as.retain(|call| !typed.contains(call));
        if negated {
            let all: BTreeSet<_> = signatures().iter().map(|s| s.sysno).collect();
            set.calls = all.difference(&set.calls).copied().collect();
        }
        set.text = format!("{}{}", if negated { "!" } else { "" }, told.join(","));
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> CallSet {
        text.parse::<CallSet>().unwrap()
    }

    fn names(calls: &BTreeSet<Sysno>) -> Vec<String> {
        calls.iter().map(|s| s.to_string()).collect()
    }

    #[test]
    fn sets_of_calls_are_written_as_for_strace() {
        assert_eq!(names(&set("trace=openat,?no_such_call,read").calls), ["read", "openat"]);
        let network = set("%network").calls;
        assert!(network.contains(&Sysno::from_name("sendto").unwrap()));
        let rest = set("!%network").calls;
        assert!(rest.is_disjoint(&network) && rest.len() + network.len() == signatures().len());
        assert!(set("%stat").calls.contains(&Sysno::from_name("stat").unwrap()) && set("%creds").calls.len() > 5);
        // This is the spelling of older books.
        assert_eq!((set("trace=file").text, set("t=file").calls), ("%file".into(), set("%file").calls));
        assert_eq!(set("signal,read").text, "%signal,read");
    }

    #[test]
    fn a_name_selects_the_calls_that_libraries_make() {
        assert_eq!(names(&set("open").calls), ["open", "openat", "openat2"]);
        assert_eq!(names(&set("open").made_as), ["openat", "openat2"]);
        assert_eq!(names(&set("open,openat").made_as), ["openat2"]);
        assert_eq!(names(&set("waitpid").calls), ["wait4"]);
        assert!(!set("!stat").calls.contains(&Sysno::from_name("newfstatat").unwrap()));
        assert_eq!(names(&set("openat").calls), ["openat"]);
    }

    #[test]
    fn wrong_sets_come_with_suggestions() {
        let check = |text: &str, told: &str| {
            let error = text.parse::<CallSet>().unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        };
        check("opennat", "there is no system call opennat; the nearest: openat");
        check("%fil", "%desc, %file, %process");
        check("trace=/^open", "regular expressions are strace's");
        check("signal=none", "leave it out");
        check("status=failed", "-c has a column of errors");
        check("inject=openat:error=ENOENT", "strace -e inject=");
        check("verbose=none", "no stream of calls");
        check("bogus=1", "there is no bogus=");
        assert_eq!("bogus".parse::<CallSet>().unwrap_err(), "there is no system call bogus");
    }
}
