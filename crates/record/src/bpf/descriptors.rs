//! The names of the files behind descriptors, read after the calls that use them.
//!
//! A program goes on while we read /proc/PID/fd. A name counts only if the descriptor has the same file as at the call:
//! the kernel has a number that changes whenever that may have become another one.

use super::counter::Counter;
use super::sample::Sample;
use crate::procfs;
use foldhash::HashMap;
use std::sync::Arc;
use systoll_model::{Signature, object_name};

/// Names that are remembered, at most.
const MOST: usize = 16_384;

/// The names of descriptors, by image and number, each with the number that changes.
#[derive(Default)]
pub(super) struct Descriptors(HashMap<(u64, i32), (u64, Arc<str>)>);

impl Descriptors {
    /// Returns the name of the descriptor that a call uses, if it is certain.
    pub(super) fn name(
        &mut self,
        counter: &Counter,
        sample: &Sample<'_>,
        signature: &Signature,
        args: &[u64; 6],
    ) -> Option<Arc<str>> {
        let fd = *args.get(signature.fd_arg()?)? as i32;
        self.certain(counter, sample, fd)
    }

    fn certain(&mut self, counter: &Counter, sample: &Sample<'_>, fd: i32) -> Option<Arc<str>> {
        if let Some((changes, name)) = self.0.get(&(sample.image, fd))
            && *changes == sample.changes
        {
            return Some(name.clone());
        }
        let name = procfs::fd_target(sample.process, fd)?;
        counter.changes(sample.image, fd as u32).filter(|now| *now == sample.changes)?;
        self.keep((sample.image, fd), (sample.changes, name.clone()));
        Some(name)
    }

    /// Notes the file that a call has opened by a path. `folder` is the name of the descriptor that the path starts from.
    pub(super) fn opened(&mut self, counter: &Counter, sample: &Sample<'_>, path: &str, folder: Option<&str>) {
        let Ok(fd) = i32::try_from(sample.result) else { return };
        if fd < 0 || self.certain(counter, sample, fd).is_some() {
            return;
        }
        let whole = object_name(Some(path), folder).filter(|name| name.starts_with('/'));
        if let Some(whole) = whole {
            self.keep((sample.image, fd), (sample.changes, whole.into()));
        }
    }

    fn keep(&mut self, key: (u64, i32), name: (u64, Arc<str>)) {
        if self.0.len() >= MOST && !self.0.contains_key(&key) {
            self.0.clear();
        }
        self.0.insert(key, name);
    }
}
