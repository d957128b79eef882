//! Patterns of the calls that a cause explains.

use crate::causes::fact::{AskedFacts, Facts};
use crate::causes::pattern_file::PatternFile;
use crate::causes::target::Target;
use crate::code::language::CodeLanguage;
use crate::results::finding::Kind;
use serde::Deserialize;
use std::borrow::Cow;
use systoll_model::{Sysno, WindowCall};

/// Properties of a claimed call that patterns are compared with.
pub(crate) struct Symptoms<'a> {
    pub kind: Kind,
    pub syscall: Sysno,
    pub api: Option<&'a str>,
    pub object: Option<&'a str>,
    /// The call's arguments; `None` if no window shows the call.
    pub args: Option<[u64; 6]>,
    /// The call's result; `None` if no window shows it.
    pub result: Option<i64>,
    /// The type of the object behind the call's descriptor, if it has one and a window shows it.
    pub target: Option<Target>,
    /// The language of the code that makes the call; `None` if no pattern asks for it, or it is unknown.
    pub language: Option<CodeLanguage>,
    pub facts: Facts,
}

/// A list in the code, as those of built-in causes are, or one read from a file.
pub type List<T> = Cow<'static, [T]>;

/// An argument's position, from 0, and a list of its values.
pub type ArgValues = (u8, List<i32>);

/// A pattern: every condition given must hold. An empty list allows anything.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "PatternFile")]
pub struct Pattern {
    /// Kinds of waste, one of which the claim must have.
    pub kinds: List<Kind>,
    /// System calls, one of which must be the call.
    pub syscalls: List<Sysno>,
    /// Public functions, one of which must make the call.
    pub apis: List<Cow<'static, str>>,
    /// Paths, one of which must be the call's object; `*` matches any text.
    pub objects: List<Cow<'static, str>>,
    /// Types of the object behind the call's descriptor.
    pub on: List<Target>,
    /// Languages of the code that makes the call.
    pub languages: List<CodeLanguage>,
    /// Values that an argument may have, by position, compared as signed 32-bit numbers.
    pub args: List<ArgValues>,
    /// Values that an argument may not have; the pattern does not match if no window shows the argument.
    pub not_args: List<ArgValues>,
    /// Values that the call may return; an errno is negative.
    pub results: List<i64>,
    /// Facts that must hold for the call, and facts that must not.
    pub facts: AskedFacts,
    /// True if calls that the pattern matches make a remark at most.
    pub remark: bool,
    /// The mechanism of these calls, if it differs from the cause's own.
    pub why: Option<Cow<'static, str>>,
}

impl Pattern {
    pub(crate) fn matches(&self, call: &Symptoms<'_>) -> bool {
        let allows = |list: &[Cow<'static, str>], value: Option<&str>, test: fn(&str, &str) -> bool| {
            list.is_empty() || value.is_some_and(|v| list.iter().any(|l| test(l, v)))
        };
        let value = |n: u8| call.args.and_then(|a| a.get(usize::from(n)).copied()).map(|a| a as i32);
        // Paths come last: their comparison takes longest.
        (self.kinds.is_empty() || self.kinds.contains(&call.kind))
            && self.facts.allow(call.facts)
            && (self.syscalls.is_empty() || self.syscalls.contains(&call.syscall))
            && allows(&self.apis, call.api, |a, b| a == b)
            && self.args.iter().all(|(n, values)| value(*n).is_some_and(|v| values.contains(&v)))
            && self.not_args.iter().all(|(n, values)| value(*n).is_some_and(|v| !values.contains(&v)))
            && (self.results.is_empty() || call.result.is_some_and(|r| self.results.contains(&r)))
            && (self.on.is_empty() || call.target.is_some_and(|target| self.on.contains(&target)))
            && self.speaks(call)
            && allows(&self.objects, call.object, glob)
    }

    /// Returns true if the pattern is for any language, or for that of the code that makes the call.
    fn speaks(&self, call: &Symptoms<'_>) -> bool {
        let asked = |own: CodeLanguage| self.languages.iter().any(|language| own.is_a(*language));
        self.languages.is_empty() || call.language.is_some_and(asked)
    }

    /// Returns true if the pattern can hold for a claim of one of these kinds.
    pub(crate) fn is_of_kind(&self, kinds: &[Kind]) -> bool {
        self.kinds.is_empty() || kinds.iter().any(|kind| self.kinds.contains(kind))
    }

    /// Returns true if the pattern can hold for a call that is claimed with this kind and these facts.
    pub(crate) fn is_of_claim(&self, kind: Kind, facts: Facts) -> bool {
        self.is_of_kind(&[kind]) && self.facts.allow(facts)
    }

    /// Returns true if the pattern can hold for a call of a row, by the properties that all calls of a row share.
    pub(crate) fn could_match(&self, row: &Symptoms<'_>) -> bool {
        (self.syscalls.is_empty() || self.syscalls.contains(&row.syscall))
            && (self.apis.is_empty() || row.api.is_some_and(|api| self.apis.iter().any(|a| a == api)))
            && self.facts.may_allow(row.facts)
            && self.speaks(row)
    }

    /// Returns the parts of a call that decide whether the pattern holds, among calls of a row with the same claim.
    pub(crate) fn looks_at(&self) -> LooksAt {
        let at = |all: u8, (n, _): &ArgValues| all | 1 << n.min(&RESULT);
        let args = self.args.iter().chain(self.not_args.iter()).fold(0, at);
        let (result, target) = (!self.results.is_empty(), !self.on.is_empty());
        LooksAt(args | u8::from(result) << RESULT | u8::from(target) << TARGET)
    }

    /// Returns true if the pattern holds for every call.
    fn asks_nothing(&self) -> bool {
        let anything = Self { why: self.why.clone(), remark: self.remark, ..Self::default() };
        *self == anything
    }

    /// Returns the weight of all conditions. Of two patterns that hold, the one with the larger weight is the more
    /// specific.
    pub(crate) fn weight(&self) -> usize {
        let lists = [
            (!self.kinds.is_empty(), 1),
            (!self.syscalls.is_empty(), 1),
            (!self.apis.is_empty(), 3),
            (!self.objects.is_empty(), 2),
            (!self.on.is_empty(), 1),
            (!self.languages.is_empty(), 3),
            (!self.results.is_empty(), 1),
        ];
        lists.iter().filter(|(given, _)| *given).map(|(_, weight)| weight).sum::<usize>()
            + self.args.len()
            + self.not_args.len()
            + self.facts.weight()
    }
}

/// A bit set of parts of a call: its arguments by position, its result, its descriptor's target.
#[derive(Clone, Copy, Default)]
pub(crate) struct LooksAt(u8);

/// The result's bit, after those of six arguments.
const RESULT: u8 = 6;
/// The target's bit.
const TARGET: u8 = 7;

impl LooksAt {
    /// Returns the union of two sets.
    pub(crate) fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Returns true if two calls are equal in all parts of the set.
    pub(crate) fn alike(self, one: &WindowCall, other: &WindowCall) -> bool {
        let looks = |at: usize| self.0 >> at & 1 == 1;
        let mut args = one.args.iter().zip(&other.args).enumerate();
        args.all(|(at, (one, other))| !looks(at) || one == other)
            && (!looks(RESULT.into()) || one.result == other.result)
            && (!looks(TARGET.into()) || one.args[0] == other.args[0] && one.fd == other.fd)
    }
}

/// Returns true if `text` matches a pattern in which `*` matches any text, `/` included.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    // Most texts differ from the pattern at their beginning.
    let begins = pattern.bytes().take_while(|byte| *byte != b'*');
    if begins.zip(text.bytes()).any(|(asked, has)| asked != has) {
        return false;
    }
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

impl TryFrom<PatternFile> for Pattern {
    type Error = String;

    fn try_from(file: PatternFile) -> Result<Self, String> {
        let facts = file.facts();
        let named = |n: String| Kind::named(&n).ok_or_else(|| format!("there is no kind {n:?}"));
        let kinds = file.kinds.into_iter().map(named).collect::<Result<_, _>>()?;
        let numbered = |n: String| Sysno::from_name(&n).ok_or_else(|| format!("there is no system call {n:?}"));
        let syscalls = file.syscalls.into_iter().map(numbered).collect::<Result<_, _>>()?;
        let position = |(n, values): (String, Vec<i32>)| match n.parse() {
            Ok(n @ 0..=5) => Ok((n, List::Owned(values))),
            _ => Err(format!("args: {n:?} is no position from 0 to 5")),
        };
        let args = file.args.into_iter().map(position).collect::<Result<_, _>>()?;
        let not_args = file.not_args.into_iter().map(position).collect::<Result<_, _>>()?;
        let texts = |list: Vec<String>| list.into_iter().map(Cow::Owned).collect();
        let (apis, objects) = (texts(file.apis), texts(file.objects));
        let targeted = |n: String| Target::named(&n).ok_or_else(|| format!("there is no target {n:?}"));
        let on = file.on.into_iter().map(targeted).collect::<Result<_, _>>()?;
        let languages = file.languages.into_iter().map(CodeLanguage::try_from).collect::<Result<_, _>>()?;
        let (results, remark, why) = (file.results.into(), file.remark, file.why.map(Cow::Owned));
        let pattern =
            Self { kinds, syscalls, apis, objects, on, languages, args, not_args, results, facts, remark, why };
        if pattern.asks_nothing() {
            return Err("an empty pattern would match everything".into());
        }
        Ok(pattern)
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
