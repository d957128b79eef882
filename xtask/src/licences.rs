//! Checks that dependencies only have licences that deny.toml allows.

use crate::repository;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::Path;

/// Returns packages with a forbidden licence, one line each.
///
/// # Errors
/// If deny.toml or cargo's metadata can't be read.
pub(crate) fn broken(root: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join("deny.toml")).context("can't read deny.toml")?;
    let deny: toml::Table = text.parse().context("can't parse deny.toml")?;
    let allowed = deny.get("licenses").and_then(|l| l.get("allow")).and_then(|a| a.as_array());
    let allowed = allowed.context("deny.toml has no licenses.allow")?;
    let allowed: BTreeSet<&str> = allowed.iter().filter_map(toml::Value::as_str).collect();
    let exceptions = exceptions(&deny);
    let metadata = repository::dependencies(root)?;
    let packages = metadata["packages"].as_array().context("no packages in cargo metadata")?;
    let name = |p: &serde_json::Value| p["name"].as_str().unwrap_or_default().to_owned();
    let licence = |p: &serde_json::Value| p["license"].as_str().unwrap_or_default().to_owned();
    let excepted = |p: &serde_json::Value| exceptions.contains(&(name(p), licence(p)));
    let bad = packages.iter().filter(|p| !is_allowed(&licence(p), &allowed) && !excepted(p));
    Ok(bad.map(|p| format!("{}: its licence is {:?}, which deny.toml does not allow", name(p), licence(p))).collect())
}

/// Returns the packages for which deny.toml makes an exception, each with its licence.
fn exceptions(deny: &toml::Table) -> BTreeSet<(String, String)> {
    let listed = deny.get("licenses").and_then(|l| l.get("exceptions")).and_then(|e| e.as_array());
    let pairs = listed.into_iter().flatten().flat_map(|exception| {
        let name = exception.get("name").and_then(|n| n.as_str()).unwrap_or_default();
        let allowed = exception.get("allow").and_then(|a| a.as_array()).into_iter().flatten();
        allowed.filter_map(move |licence| Some((name.to_owned(), licence.as_str()?.to_owned())))
    });
    pairs.collect()
}

/// Returns true if `allowed` satisfies an SPDX expression. `/` is an old form of `OR`.
fn is_allowed(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest, allowed) && rest.is_empty()
}

fn any_of(words: &mut &[&str], allowed: &BTreeSet<&str>) -> bool {
    let mut good = all_of(words, allowed);
    while let Some(("OR", rest)) = words.split_first().map(|(w, r)| (*w, r)) {
        *words = rest;
        good |= all_of(words, allowed);
    }
    good
}

fn all_of(words: &mut &[&str], allowed: &BTreeSet<&str>) -> bool {
    let mut good = one(words, allowed);
    while let Some(("AND", rest)) = words.split_first().map(|(w, r)| (*w, r)) {
        *words = rest;
        good &= one(words, allowed);
    }
    good
}

fn one(words: &mut &[&str], allowed: &BTreeSet<&str>) -> bool {
    let Some((word, rest)) = words.split_first() else { return false };
    *words = rest;
    if *word == "(" {
        let good = any_of(words, allowed);
        let closed = words.first() == Some(&")");
        *words = words.get(1..).unwrap_or_default();
        return good && closed;
    }
    // An exception only extends the permissions of a licence, so it is skipped.
    if words.first() == Some(&"WITH") {
        *words = words.get(2..).unwrap_or_default();
    }
    allowed.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_licences_are_allowed() {
        assert_eq!(broken(&repository::root()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn exceptions_are_for_one_package() {
        let deny = "[licenses]\nexceptions = [{ name = \"a\", allow = [\"X\", \"Y\"] }]".parse().unwrap();
        let pair = |name: &str, licence: &str| (name.to_owned(), licence.to_owned());
        assert_eq!(exceptions(&deny), BTreeSet::from([pair("a", "X"), pair("a", "Y")]));
    }

    #[test]
    fn expressions_are_read_as_spdx_means_them() {
        let allowed = BTreeSet::from(["MIT", "Apache-2.0", "Unicode-3.0"]);
        let good = ["MIT", "GPL-3.0 OR MIT", "MIT/Apache-2.0", "(MIT OR Apache-2.0) AND Unicode-3.0"];
        assert!(good.iter().all(|text| is_allowed(text, &allowed)));
        assert!(is_allowed("Apache-2.0 WITH LLVM-exception OR GPL-3.0", &allowed));
        let bad = ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Apache-2.0) AND GPL-3.0", "MIT MIT", "(MIT"];
        assert!(bad.iter().all(|text| !is_allowed(text, &allowed)));
    }
}
