//! What calls look like that a cause explains.

use crate::Kind;
use crate::catalogue::kind_named;
use serde::Deserialize;
use std::collections::BTreeMap;
use systoll_model::Sysno;

/// What is known of a claimed call.
pub(crate) struct Fact<'a> {
    pub kind: Kind,
    pub syscall: Sysno,
    pub api: Option<&'a str>,
    pub object: Option<&'a str>,
    /// `None` where no window shows the call.
    pub args: Option<[u64; 6]>,
    /// What a claimed call returned; `None` where no window shows it.
    pub result: Option<i64>,
    /// Whether the call was one of many places looked into for one thing.
    pub search: bool,
    /// Whether its thread was woken together with others.
    pub herd: bool,
    /// Whether the call was made from inside the vDSO.
    pub vdso: bool,
    /// Whether the C library made the call for itself: not its wrapper of it was called.
    pub inside_libc: bool,
}

/// A pattern: all that is given must hold. Empty lists allow anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pattern {
    /// Kinds of waste.
    pub kinds: Vec<Kind>,
    /// System calls.
    pub syscalls: Vec<Sysno>,
    /// Public APIs.
    pub apis: Vec<String>,
    /// Paths the call is about; `*` stands for anything.
    pub objects: Vec<String>,
    /// Values an argument may have, by its position from 0. Compared as signed 32-bit numbers.
    pub args: BTreeMap<u8, Vec<i32>>,
    /// Values an argument may not have; where no window shows it, the pattern does not match.
    pub not_args: BTreeMap<u8, Vec<i32>>,
    /// Values the call may return; an errno is negative.
    pub results: Vec<i64>,
    /// Whether the call must, or must not, be one of many places looked into for one thing.
    pub search: Option<bool>,
    /// Whether its thread must, or must not, have been woken together with others.
    pub herd: Option<bool>,
    /// Whether the call must, or must not, come from inside the vDSO.
    pub vdso: Option<bool>,
    /// Whether the C library must, or must not, have made the call for itself.
    pub inside_libc: Option<bool>,
    /// The mechanism, where it differs from the cause's own.
    pub why: Option<String>,
}

impl Pattern {
    pub(crate) fn matches(&self, fact: &Fact<'_>) -> bool {
        let allows = |list: &[String], value: Option<&str>, test: fn(&str, &str) -> bool| {
            list.is_empty() || value.is_some_and(|v| list.iter().any(|l| test(l, v)))
        };
        let value = |n: &u8| fact.args.and_then(|a| a.get(usize::from(*n)).copied()).map(|a| a as i32);
        (self.kinds.is_empty() || self.kinds.contains(&fact.kind))
            && (self.syscalls.is_empty() || self.syscalls.contains(&fact.syscall))
            && allows(&self.apis, fact.api, |a, b| a == b)
            && allows(&self.objects, fact.object, glob)
            && self.args.iter().all(|(n, values)| value(n).is_some_and(|v| values.contains(&v)))
            && self.not_args.iter().all(|(n, values)| value(n).is_some_and(|v| !values.contains(&v)))
            && (self.results.is_empty() || fact.result.is_some_and(|r| self.results.contains(&r)))
            && self.search.is_none_or(|s| s == fact.search)
            && self.herd.is_none_or(|h| h == fact.herd)
            && self.vdso.is_none_or(|v| v == fact.vdso)
            && self.inside_libc.is_none_or(|i| i == fact.inside_libc)
    }

    /// Whether it could hold for any call of a row: what is the same for all of them does.
    pub(crate) fn could_match(&self, row: &Fact<'_>) -> bool {
        (self.syscalls.is_empty() || self.syscalls.contains(&row.syscall))
            && (self.apis.is_empty() || row.api.is_some_and(|api| self.apis.iter().any(|a| a == api)))
            && self.vdso.is_none_or(|v| v == row.vdso)
            && self.inside_libc.is_none_or(|i| i == row.inside_libc)
    }

    /// Whether it may hold for one call of a row and not for another with the same claim.
    pub(crate) fn looks_at_calls(&self) -> bool {
        !(self.args.is_empty() && self.not_args.is_empty() && self.results.is_empty())
    }

    /// How much it asks for: of two patterns that hold, the one that asks for more knows better.
    pub(crate) fn weight(&self) -> usize {
        let lists = [
            (!self.kinds.is_empty(), 1),
            (!self.syscalls.is_empty(), 1),
            (!self.apis.is_empty(), 3),
            (!self.objects.is_empty(), 2),
            (!self.results.is_empty(), 1),
            (self.search.is_some(), 2),
            (self.herd.is_some(), 2),
            (self.vdso.is_some(), 1),
            (self.inside_libc.is_some(), 1),
        ];
        lists.iter().filter(|(given, _)| *given).map(|(_, weight)| weight).sum::<usize>()
            + self.args.len()
            + self.not_args.len()
    }
}

/// Whether `text` fits a pattern in which `*` stands for anything, `/` included.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part).and_then(|at| rest.get(at + part.len()..)) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    true
}

/// A pattern as it stands in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatternFile {
    #[serde(default)]
    kinds: Vec<String>,
    #[serde(default)]
    syscalls: Vec<String>,
    #[serde(default)]
    apis: Vec<String>,
    #[serde(default)]
    objects: Vec<String>,
    #[serde(default)]
    args: BTreeMap<String, Vec<i32>>,
    #[serde(default)]
    not_args: BTreeMap<String, Vec<i32>>,
    #[serde(default)]
    results: Vec<i64>,
    search: Option<bool>,
    herd: Option<bool>,
    vdso: Option<bool>,
    inside_libc: Option<bool>,
    pub why: Option<String>,
}

impl PatternFile {
    pub(crate) fn into_pattern(self) -> Result<Pattern, String> {
        let named = |n: String| kind_named(&n).ok_or_else(|| format!("there is no kind {n:?}"));
        let kinds = self.kinds.into_iter().map(named).collect::<Result<Vec<_>, _>>()?;
        let numbered = |n: String| Sysno::from_name(&n).ok_or_else(|| format!("there is no system call {n:?}"));
        let syscalls = self.syscalls.into_iter().map(numbered).collect::<Result<Vec<_>, _>>()?;
        let position = |(n, values): (String, Vec<i32>)| match n.parse() {
            Ok(n @ 0..=5) => Ok((n, values)),
            _ => Err(format!("args: {n:?} is no position from 0 to 5")),
        };
        let args: BTreeMap<u8, Vec<i32>> = self.args.into_iter().map(position).collect::<Result<_, _>>()?;
        let not_args: BTreeMap<u8, Vec<i32>> = self.not_args.into_iter().map(position).collect::<Result<_, _>>()?;
        let Self { apis, objects, results, search, herd, vdso, inside_libc, why, .. } = self;
        if syscalls.is_empty()
            && apis.is_empty()
            && objects.is_empty()
            && args.is_empty()
            && not_args.is_empty()
            && kinds.is_empty()
            && results.is_empty()
            && search.is_none()
            && herd.is_none()
            && vdso.is_none()
            && inside_libc.is_none()
        {
            return Err("an empty pattern would match everything".into());
        }
        Ok(Pattern { kinds, syscalls, apis, objects, args, not_args, results, search, herd, vdso, inside_libc, why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        assert!(glob("/etc/localtime", "/etc/localtime"));
        assert!(!glob("/etc/localtime", "/etc/localtime2"));
        assert!(glob("*/zoneinfo/*", "/usr/share/zoneinfo/Europe/Berlin"));
        assert!(!glob("*/zoneinfo/*", "/usr/share/zones/Berlin"));
        assert!(glob("a*b*c", "a-b-b-c") && !glob("a*b*c", "a-c-b"));
        assert!(glob("*", "") && !glob("ab*ba", "aba"));
    }
}
