//! The five stories that systoll exists for, each as a program, sick and cured.
//!
//! The stories and their published figures are other people's. The programs show the same mechanism
//! in a loop of the same shape.

use crate::cc::Job;
use crate::{CureError, Spec};
use std::path::Path;
use systoll_model::EnvChange;

/// A story of a program with needless calls.
#[derive(Debug)]
pub struct Story {
    /// The id for `systoll demo ID`.
    pub id: &'static str,
    /// A title of one line.
    pub title: &'static str,
    /// The story with its published figures, in lines of at most 96 columns.
    pub happened: &'static str,
    /// The difference of the cured run, as a column's heading.
    pub cure: &'static str,
    /// The price of the cure in words; empty if it has none.
    pub gives_up: &'static str,
    /// Id of the cause that must be found; `None` if a detector finds it without one.
    pub cause: Option<&'static str>,
    recipe: Recipe,
}

/// The way a story's program is built and run.
#[derive(Debug)]
struct Recipe {
    source_name: &'static str,
    source: &'static str,
    library: Option<(&'static str, &'static str)>,
    cured_by: CuredBy,
    watched_count: u64,
    timed_count: u64,
}

#[derive(Debug)]
enum CuredBy {
    /// One program: the variable is absent in the sick run and has this value in the cured one.
    Env(&'static str, &'static str),
    /// Two programs: the cured one is built with `-DCURED`.
    Rebuild,
}

/// The same work, sick and cured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The sick form.
    pub sick: Spec,
    /// The cured form.
    pub cured: Spec,
}

/// A story's programs, ready to run. They exist as long as the folder they were built in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// The pair to be watched, with some 20,000 calls: even a slow backend watches them within half
    /// a second.
    pub watched: Pair,
    /// The pair to be timed unwatched, with 0.05 to 0.4 s of work in the sick run.
    pub timed: Pair,
}

/// Returns all stories, in the order they are told.
pub fn stories() -> &'static [Story] {
    &STORIES
}

/// Returns the story with this id.
pub fn story(id: &str) -> Option<&'static Story> {
    STORIES.iter().find(|s| s.id == id)
}

impl Story {
    /// Builds the story's programs in `dir`, which must exist and allow programs to run from it.
    ///
    /// # Errors
    /// There is no C compiler, it fails, or `dir` can't be written.
    pub fn build(&self, dir: &Path) -> Result<Built, CureError> {
        let sick = self.build_form(dir, self.id, &[])?;
        let (sick, cured) = match self.recipe.cured_by {
            CuredBy::Env(name, value) => {
                (sick.clone().env(EnvChange::Remove(name.into())), sick.env(EnvChange::Set(name.into(), value.into())))
            }
            CuredBy::Rebuild => (sick, self.build_form(dir, &format!("{}-cured", self.id), &["-DCURED"])?),
        };
        let pair = |count: u64| {
            let count = count.to_string();
            Pair { sick: sick.clone().arg(&count), cured: cured.clone().arg(&count) }
        };
        Ok(Built { watched: pair(self.recipe.watched_count), timed: pair(self.recipe.timed_count) })
    }

    fn build_form(&self, dir: &Path, output: &str, flags: &[&str]) -> Result<Spec, CureError> {
        let library = self.recipe.library.map(|(source_name, source)| {
            let output = format!("lib{output}.so");
            let flags = [flags, &["-shared", "-fPIC"]].concat();
            Job { source_name, source, output: &output, flags: &flags }.build(dir)?;
            Ok::<_, CureError>(output)
        });
        let library = library.transpose()?;
        // The library is found beside the program, whatever the working directory.
        let mut flags = flags.to_vec();
        if let Some(library) = &library {
            flags.extend([library, "-Wl,-rpath,$ORIGIN"]);
        }
        let job = Job { source_name: self.recipe.source_name, source: self.recipe.source, output, flags: &flags };
        Ok(Spec::new(job.build(dir)?))
    }
}

static STORIES: [Story; 5] = [
    Story {
        id: "localtime",
        title: "localtime asks for the time zone file each time",
        happened: "A Rails application made 14,925 stats of /etc/localtime in 30 seconds: glibc's localtime()\n\
                   looks whether the zone has changed on every call while TZ is unset. time() beside it cost\n\
                   nothing, through the vDSO. With TZ=:/etc/localtime: 8 stats.",
        cure: "TZ=:/etc/localtime",
        gives_up: "a changed /etc/localtime is seen only after a restart",
        cause: Some("tz-unset"),
        recipe: Recipe {
            source_name: "localtime.c",
            source: include_str!("../demo/localtime.c"),
            library: None,
            cured_by: CuredBy::Env("TZ", ":/etc/localtime"),
            watched_count: 20_000,
            timed_count: 200_000,
        },
    },
    Story {
        id: "ucontext",
        title: "getcontext saves a signal mask that never changes",
        happened: "Ruby 1.8.7 built with --enable-pthread saved a frame by getcontext at every block it ran:\n\
                   20,033,025 rt_sigprocmask in one benchmark. With _setjmp and _longjmp: 3, and 6.1 s became\n\
                   3.7 s. Puppet users had waited on it for years.",
        cure: "_setjmp/_longjmp",
        gives_up: "",
        cause: Some("sigmask-context"),
        recipe: Recipe {
            source_name: "ucontext.c",
            source: include_str!("../demo/ucontext.c"),
            library: None,
            cured_by: CuredBy::Rebuild,
            watched_count: 20_000,
            timed_count: 1_000_000,
        },
    },
    Story {
        id: "setjmp",
        title: "the flavour of setjmp that saves the signal mask",
        happened: "The upb decoder was moved to setjmp/longjmp error handling and became 75 % slower: 223,546\n\
                   sigprocmask where there had been none. A profiler said \"system calls\" but not which.\n\
                   On Linux sigsetjmp(env, 1) does it; sigsetjmp(env, 0) and plain setjmp do not.",
        cure: "sigsetjmp(env, 0)",
        gives_up: "a handler that leaves by siglongjmp must restore the mask itself",
        cause: Some("sigmask-setjmp"),
        recipe: Recipe {
            source_name: "setjmp.c",
            source: include_str!("../demo/setjmp.c"),
            library: None,
            cured_by: CuredBy::Rebuild,
            watched_count: 20_000,
            timed_count: 1_000_000,
        },
    },
    Story {
        id: "getpid",
        title: "the price of the cheapest call",
        happened: "A getpid took about 100 ns before 2018 and 300 ns after the mitigations of that year. What\n\
                   does it cost here, today? A log that asks for its own id at every record pays it every time.",
        cure: "asked once",
        gives_up: "after fork the child must ask again",
        cause: None,
        recipe: Recipe {
            source_name: "getpid.c",
            source: include_str!("../demo/getpid.c"),
            library: None,
            cured_by: CuredBy::Rebuild,
            watched_count: 20_000,
            timed_count: 1_000_000,
        },
    },
    Story {
        id: "membarrier",
        title: "waiting for every processor before main",
        happened: "int main(){return 0;} started 640 times slower once linked to liblttng-ust: its constructors\n\
                   called membarrier(MEMBARRIER_CMD_SHARED), which waits until every CPU has been through the\n\
                   scheduler, up to 79 ms a call. PRIVATE_EXPEDITED (Linux 4.14) takes under a microsecond.",
        cure: "PRIVATE_EXPEDITED",
        gives_up: "needs Linux 4.14 and one call to register",
        cause: Some("membarrier-global"),
        recipe: Recipe {
            source_name: "membarrier.c",
            source: include_str!("../demo/membarrier.c"),
            library: Some(("membarrier_lib.c", include_str!("../demo/membarrier_lib.c"))),
            cured_by: CuredBy::Rebuild,
            watched_count: 1,
            timed_count: 1,
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PrivateFolder;
    use std::collections::BTreeSet;

    #[test]
    fn sick_and_cured_give_the_same_answer() {
        let shop = PrivateFolder::new().unwrap();
        for story in stories() {
            let built = story.build(shop.path()).unwrap();
            let run = |spec: &Spec| spec.to_command().output().unwrap();
            let (sick, cured) = (run(&built.watched.sick), run(&built.watched.cured));
            assert!(sick.status.success(), "{}: {:?}", story.id, sick);
            assert_eq!(sick, cured, "{}", story.id);
            assert_eq!(story.id == "membarrier", sick.stdout.is_empty(), "{}", story.id);
        }
    }

    #[test]
    fn the_environment_cure_changes_nothing_but_the_environment() {
        let shop = PrivateFolder::new().unwrap();
        let built = story("localtime").unwrap().build(shop.path()).unwrap();
        let (sick, cured) = (&built.timed.sick, &built.timed.cured);
        assert_eq!((&sick.program, &sick.args), (&cured.program, &cured.args));
        assert_eq!(sick.env, [EnvChange::Remove("TZ".into())]);
        assert_eq!(cured.env, [EnvChange::Set("TZ".into(), ":/etc/localtime".into())]);
    }

    #[test]
    fn stories_fit_the_screen_and_differ() {
        let ids: BTreeSet<_> = stories().iter().map(|s| s.id).collect();
        assert_eq!(ids.len(), 5);
        assert!(story("nonsense").is_none());
        for s in stories() {
            assert!(s.happened.lines().all(|l| l.chars().count() <= 96), "{}", s.id);
        }
    }
}
