//! Sets of system calls as they are typed after `-e`.

use crate::nearest::others;
use std::collections::BTreeSet;
use std::str::FromStr;
use systoll_model::{Class, Sysno, signatures};

/// The system calls that an `-e` set names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSet {
    text: String,
    calls: BTreeSet<Sysno>,
}

impl CallSet {
    /// As it was typed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The calls.
    #[must_use]
    pub fn calls(&self) -> &BTreeSet<Sysno> {
        &self.calls
    }
}

impl FromStr for CallSet {
    type Err = String;

    /// Reads names and `%classes` between commas, `all`, `none`; a leading `!` means all but these, a
    /// leading `trace=` is strace's and passed over, and so is a `?` before a name, which need not be known.
    fn from_str(typed: &str) -> Result<Self, String> {
        let text = typed.strip_prefix("trace=").unwrap_or(typed);
        let (negated, names) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let mut set = BTreeSet::new();
        for name in names.split(',').filter(|n| !n.is_empty()) {
            let all = signatures().iter();
            match (name, name.strip_prefix('%')) {
                ("all", _) => set.extend(all.map(|s| s.sysno)),
                ("none", _) => {}
                (_, Some(plain)) => {
                    let known = || Class::all().map(|class| class.name().to_owned()).collect::<Vec<_>>();
                    let class = Class::from_name(name)
                        .or_else(|| Class::from_name(plain))
                        .ok_or_else(|| format!("there is no class {name}; there are: {}", known().join(", ")))?;
                    set.extend(all.filter(|s| s.classes.contains(class)).map(|s| s.sysno));
                }
                _ => {
                    let plain = name.strip_prefix('?').unwrap_or(name);
                    match Sysno::from_name(plain) {
                        Some(sysno) => drop(set.insert(sysno)),
                        None if plain.len() < name.len() => {}
                        None => {
                            let known: Vec<String> = signatures().iter().map(|s| s.sysno.to_string()).collect();
                            return Err(format!("there is no system call {name}{}", others(plain, &known)));
                        }
                    }
                }
            }
        }
        if negated {
            let all: BTreeSet<_> = signatures().iter().map(|s| s.sysno).collect();
            set = all.difference(&set).copied().collect();
        }
        Ok(Self { text: typed.to_owned(), calls: set })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(text: &str) -> BTreeSet<Sysno> {
        text.parse::<CallSet>().unwrap().calls
    }

    #[test]
    fn sets_of_calls_are_written_as_for_strace() {
        let only = calls("trace=openat,?no_such_call,read");
        assert_eq!(only.iter().map(|s| s.to_string()).collect::<Vec<_>>(), ["read", "openat"]);
        let network = calls("%network");
        assert!(network.contains(&Sysno::from_name("sendto").unwrap()));
        let rest = calls("!%network");
        assert!(rest.is_disjoint(&network) && rest.len() + network.len() == signatures().len());
        assert!(calls("%stat").contains(&Sysno::from_name("stat").unwrap()) && calls("%creds").len() > 5);
        let wrong = |text: &str| text.parse::<CallSet>().unwrap_err();
        assert!(
            wrong("opennat").starts_with("there is no system call opennat; the nearest: openat"),
            "{}",
            wrong("opennat")
        );
        assert!(wrong("%fil").contains("%desc, %file, %process"), "{}", wrong("%fil"));
    }
}
