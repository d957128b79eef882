//! The kinds of requests of a run, bounded however many a stranger invents.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use systoll_model::{RequestKind, RequestProtocol};

/// Kinds kept, at most.
const MOST: usize = 256;
/// Number of a path's children above which they count as values (names of people, slugs) and become one kind.
const WIDE: usize = 12;
/// Name of requests beyond [`MOST`].
const OTHERS: &str = "(others)";

/// The kinds of requests seen so far, each with a number.
#[derive(Debug, Default)]
pub struct Kinds {
    all: Vec<RequestKind>,
    numbers: HashMap<RequestKind, u32>,
    /// Paths, with their method, whose children are one kind.
    wide: HashSet<String>,
}

impl Kinds {
    /// Returns the number of a kind. A kind that is new gets a number of its own if there is room, else that of the
    /// others.
    pub fn number(&mut self, protocol: RequestProtocol, name: &str) -> u32 {
        let name = if protocol == RequestProtocol::Http { self.folded(name) } else { name.to_owned() };
        let kind = RequestKind { protocol, name: name.into() };
        if let Some(number) = self.numbers.get(&kind) {
            return *number;
        }
        let kind = if self.all.len() < MOST {
            kind
        } else {
            // Each protocol may have one such kind beyond the bound.
            RequestKind { protocol, name: OTHERS.into() }
        };
        if let Some(number) = self.numbers.get(&kind) {
            return *number;
        }
        let number = self.all.len() as u32;
        self.all.push(kind.clone());
        self.numbers.insert(kind, number);
        self.widen();
        number
    }

    /// Returns a path with each child of a wide path replaced.
    fn folded(&self, name: &str) -> String {
        let mut folded = String::new();
        for (at, part) in name.split('/').enumerate() {
            if at > 0 {
                let is_wide = self.wide.contains(&folded);
                folded.push('/');
                folded.push_str(if is_wide && !part.is_empty() { "*" } else { part });
            } else {
                folded.push_str(part);
            }
        }
        folded
    }

    /// Finds paths that have become wide by the newest kind.
    fn widen(&mut self) {
        let Some(newest) = self.all.last().filter(|kind| kind.protocol == RequestProtocol::Http) else { return };
        let newest = newest.name.clone();
        for (end, _) in newest.match_indices('/') {
            let Some(parent) = newest.get(..end).filter(|parent| !self.wide.contains(*parent)) else { continue };
            // The first part of a path names a page or service: it takes more of them until they count as values.
            let is_root = !parent.contains('/');
            let children: BTreeSet<&str> = self.children(parent).collect();
            if children.len() > if is_root { 4 * WIDE } else { WIDE } {
                self.wide.insert(parent.to_owned());
                return;
            }
        }
    }

    /// Returns the parts that follow a path in the kinds so far.
    fn children<'a>(&'a self, parent: &'a str) -> impl Iterator<Item = &'a str> {
        let rest = move |kind: &'a RequestKind| kind.name.strip_prefix(parent)?.strip_prefix('/');
        let child = |rest: &'a str| rest.split('/').next().filter(|part| !part.is_empty() && *part != "*");
        let http = self.all.iter().filter(|kind| kind.protocol == RequestProtocol::Http);
        http.filter_map(rest).filter_map(child)
    }

    /// Returns the kinds to keep, and for each number that was given out, the kind's index among them. Kinds that have
    /// become one have the same index.
    #[must_use]
    pub fn kept(&self) -> (Vec<RequestKind>, Vec<u32>) {
        let mut kept: BTreeMap<RequestKind, u32> = BTreeMap::new();
        let mut kinds = Vec::new();
        let folded = |kind: &RequestKind| match kind.protocol {
            RequestProtocol::Http => RequestKind { name: Arc::from(self.folded(&kind.name)), ..kind.clone() },
            _ => kind.clone(),
        };
        let mut number = |kind: &RequestKind| {
            let kind = folded(kind);
            *kept.entry(kind.clone()).or_insert_with(|| {
                kinds.push(kind);
                kinds.len() as u32 - 1
            })
        };
        let numbers = self.all.iter().map(&mut number).collect();
        (kinds, numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_below_one_path_are_one_kind() {
        let mut kinds = Kinds::default();
        let numbers: Vec<u32> = (0..100u8)
            .map(|n| {
                let name = format!("{}{}", char::from(b'a' + n % 26), char::from(b'a' + n / 26));
                kinds.number(RequestProtocol::Http, &format!("GET /users/{name}/orders"))
            })
            .collect();
        let about = kinds.number(RequestProtocol::Http, "GET /about");
        let (kept, places) = kinds.kept();
        let names: Vec<&str> = kept.iter().map(|kind| &*kind.name).collect();
        assert_eq!(names, ["GET /users/*/orders", "GET /about"]);
        assert!(numbers.iter().all(|number| places[*number as usize] == 0) && places[about as usize] == 1);
    }

    #[test]
    fn a_stranger_can_t_fill_the_memory() {
        let mut kinds = Kinds::default();
        for n in 0..100_000u32 {
            let word = |n: u32| char::from_u32('a' as u32 + n % 26).unwrap_or('a');
            let text: String = (0..5).map(|at| word(n / 26u32.pow(at))).collect();
            let text = text.chars().map(|c| format!("/{c}")).collect::<String>();
            kinds.number(RequestProtocol::Http, &format!("GET {text}"));
            kinds.number(RequestProtocol::Postgres, &format!("SELECT {text}"));
        }
        let (kept, places) = kinds.kept();
        assert!(kept.len() <= MOST + 2 && places.len() <= MOST + 2, "{}", kept.len());
        assert!(kinds.wide.len() <= MOST);
    }
}
