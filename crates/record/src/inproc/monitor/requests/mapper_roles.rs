//! Purposes for which a program's files map other files: to run them, or to translate them.

use std::collections::HashMap;
use systoll_hooks::plan::Kind;
use systoll_symbols::ModuleKey;

/// Purpose for which a program's file maps others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MapperRole {
    /// The file maps others to run them.
    Loads,
    /// The file probably maps others to run them: it maps a program first, and these files, at these addresses. If the
    /// program makes code afterwards, the purpose was to translate them.
    Starts(Vec<(ModuleKey, u64)>),
    /// The file maps others to translate them.
    Translates,
}

/// Purposes for which files of a program map other files.
#[derive(Clone, Debug, Default)]
pub(crate) struct MapperRoles(pub(crate) HashMap<ModuleKey, MapperRole>);

/// Facts that decide the purpose when a program's file maps its first file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstMapped {
    /// Kind of the file that maps.
    pub(crate) by: Option<Kind>,
    /// Kind of the file that is mapped.
    pub(crate) what: Option<Kind>,
    /// True if the program has made code.
    pub(crate) makes_code: bool,
}

impl FirstMapped {
    pub(crate) fn role(self) -> MapperRole {
        let starts = matches!(self.what, Some(Kind::Program { .. } | Kind::Loader | Kind::Foreign));
        // A program without a loader of its own may be a loader for others.
        let is_static = matches!(self.by, Some(Kind::Program { interpreted: false }));
        match (self.by, starts) {
            (None | Some(Kind::Loader), _) | (_, false) => MapperRole::Loads,
            (_, true) if is_static && !self.makes_code && self.what != Some(Kind::Foreign) => {
                MapperRole::Starts(Vec::new())
            }
            _ => MapperRole::Translates,
        }
    }
}

/// Files mapped with a program whose jumps are removed if it turns out to be translated, at most.
pub(crate) const MOST_STARTED: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const STATIC: Kind = Kind::Program { interpreted: false };
    const DYNAMIC: Kind = Kind::Program { interpreted: true };

    fn role(by: Kind, what: Kind, makes_code: bool) -> MapperRole {
        FirstMapped { by: Some(by), what: Some(what), makes_code }.role()
    }

    #[test]
    fn loaders_load() {
        for what in [STATIC, DYNAMIC, Kind::Loader, Kind::Library] {
            for makes_code in [false, true] {
                assert_eq!(role(Kind::Loader, what, makes_code), MapperRole::Loads);
            }
        }
    }

    #[test]
    fn a_static_program_that_loads_libraries_is_a_loader() {
        assert_eq!(role(STATIC, Kind::Library, false), MapperRole::Loads);
        assert_eq!(role(STATIC, Kind::Library, true), MapperRole::Loads);
    }

    #[test]
    fn a_static_program_that_maps_a_program_runs_it_unless_it_makes_code() {
        for what in [STATIC, DYNAMIC, Kind::Loader] {
            assert_eq!(role(STATIC, what, false), MapperRole::Starts(Vec::new()));
            assert_eq!(role(STATIC, what, true), MapperRole::Translates);
        }
    }

    #[test]
    fn a_program_mapped_past_the_loader_is_translated() {
        for by in [DYNAMIC, Kind::Library] {
            assert_eq!(role(by, DYNAMIC, false), MapperRole::Translates);
            assert_eq!(role(by, Kind::Loader, false), MapperRole::Translates);
            assert_eq!(role(by, Kind::Library, true), MapperRole::Loads);
        }
    }

    #[test]
    fn another_processors_code_is_translated() {
        assert_eq!(role(STATIC, Kind::Foreign, false), MapperRole::Translates);
        assert_eq!(role(Kind::Library, Kind::Foreign, false), MapperRole::Translates);
    }

    #[test]
    fn what_can_not_be_read_is_taken_as_before() {
        let first = FirstMapped { by: None, what: Some(DYNAMIC), makes_code: true };
        assert_eq!(first.role(), MapperRole::Loads);
        assert_eq!(FirstMapped { by: Some(STATIC), what: None, makes_code: true }.role(), MapperRole::Loads);
    }
}
