//! The public name under which the user's code entered the C library.
//!
//! The stack does not have this name: `localtime` jumps to `__tz_convert`, and its own frame is gone. The call
//! instruction before the return address has it.

use crate::code::Callee;
use crate::module::{Module, is_libc};
use crate::names::demangle;
use crate::{ModuleKey, RawFrame, Symbols};
use std::sync::Arc;
use systoll_model::FrameClass;

/// Jumps from function to function that are followed, at most.
const MAX_JUMPS: u32 = 4;

impl Symbols {
    /// Returns the public API behind a system call, and its module. `context` is leaf first and ends in the user's
    /// frame.
    ///
    /// The API is the name under which the first code outside the C library called into it. In programs that do without
    /// the C library (Go), it is the function of the language's run-time that the user's frame called. `None` if the
    /// user's code made the system call itself, or if the API is unknown.
    pub fn api(&mut self, context: &[RawFrame]) -> Option<(Arc<str>, Option<ModuleKey>)> {
        let entered = context.iter().position(|f| !is_libc(self.class(*f))).unwrap_or(context.len());
        // A signal handler left this call by a jump, so the callee is not the interrupted function.
        if let Some(handler) = context.get(..entered)?.iter().position(|f| self.returns_from_signal(*f)) {
            let inner = *context.get(handler.checked_sub(1)?)?;
            return self.public_function(inner).map(|name| (name.into(), inner.module));
        }
        let Some(inner) = entered.checked_sub(1).and_then(|i| context.get(i)) else {
            return self.runtime_api(context);
        };
        // Without a user's frame, the loader or the C library calls on its own behalf, and there is no API.
        let caller = *context.get(entered)?;
        let called = self.callee(caller).and_then(|(module, callee)| self.libc_name(module, &callee, 0));
        let name = called.or_else(|| self.public_function(*inner))?;
        let module = self.libc_symbol(&name).map(|(key, _)| key).or(inner.module);
        Some((name.into(), module))
    }

    /// Returns the C library's public name for `callee`. Follows tail calls through functions of other files, if each
    /// has only one.
    fn libc_name(&mut self, from: ModuleKey, callee: &Callee, jumps: u32) -> Option<String> {
        let (module, addr) = match callee {
            Callee::Symbol(name) => {
                if self.libc_symbol(name).is_some() {
                    return Some(self.public_name(name));
                }
                let exports = |(key, m): (ModuleKey, &Module)| Some((key, m.names().export(name)?.start));
                self.modules().find_map(exports)?
            }
            Callee::Local(addr) => (from, *addr),
        };
        if is_libc(self.class(RawFrame { module: Some(module), address: addr, is_return: false })) {
            let name = self.module(module)?.names().exactly(addr)?;
            return Some(self.public_name(&name));
        }
        if jumps == MAX_JUMPS {
            return None;
        }
        let file = self.module(module)?;
        let next = file.last_jumps(addr);
        let mut names: Vec<_> = next.iter().filter_map(|next| self.libc_name(module, next, jumps + 1)).collect();
        names.sort();
        names.dedup();
        names.pop().filter(|_| names.is_empty())
    }

    /// Returns the public name of the C library's function that `frame` runs, if it has one.
    fn public_function(&mut self, frame: RawFrame) -> Option<String> {
        let module = self.module(frame.module?)?;
        let start = module.range(frame.lookup())?.start;
        let name = match module.whole_class() {
            Some(_) => module.names().exported_at(start)?,
            // In a static program nothing is exported. Public names are those without leading underscores.
            None => module.names().exactly(start).filter(|n| !n.starts_with('_'))?,
        };
        Some(self.public_name(&name)).filter(|n| !n.starts_with("__"))
    }

    /// Returns the run-time's function that the user's frame called or that is inlined into it, for stacks without
    /// the C library.
    fn runtime_api(&mut self, context: &[RawFrame]) -> Option<(Arc<str>, Option<ModuleKey>)> {
        let (user, inner) = (*context.last()?, context.len().checked_sub(2).and_then(|i| context.get(i)));
        if let Some(name) = self.inlined_runtime(user) {
            return Some((name, user.module));
        }
        let inner = *inner?;
        if self.class(inner) != FrameClass::Runtime {
            return None;
        }
        let called = self.callee(user).and_then(|(key, callee)| match callee {
            Callee::Local(addr) => {
                let frame = RawFrame { module: Some(key), address: addr, is_return: false };
                let name = self.module(key)?.names().exactly(addr)?;
                (self.class(frame) == FrameClass::Runtime).then_some(name)
            }
            Callee::Symbol(name) => Some(name),
        });
        let running = || Some(self.module(inner.module?)?.symbol(inner.lookup())?.name);
        let name = called.or_else(running)?;
        Some((demangle(&name).into(), inner.module))
    }

    /// Returns the outermost function of a language's own library that is inlined at a call of the user's code.
    fn inlined_runtime(&self, user: RawFrame) -> Option<Arc<str>> {
        let key = user.module.filter(|_| user.is_return)?;
        let module = self.module(key)?;
        let inlined = self.locations.get(&(key, user.lookup()))?;
        let (_, inlined) = inlined.split_last()?;
        let outermost = inlined.iter().take_while(|l| module.is_runtimes(l)).last()?;
        Some(Arc::clone(&outermost.function)).filter(|name| !name.is_empty())
    }

    /// Returns the module and the address of the C library's function of this name.
    fn libc_symbol(&self, name: &str) -> Option<(ModuleKey, u64)> {
        self.modules().find_map(|(key, m)| match m.whole_class() {
            Some(class) if is_libc(class) => Some((key, m.names().export(name)?.start)),
            // Only a static program contains the C library's functions. The names of other programs need not be read.
            None if m.brings_libc() => {
                let addr = m.names().find(name)?.start;
                is_libc(m.class(addr)).then_some((key, addr))
            }
            Some(_) | None => None,
        })
    }

    /// Returns the name in the source for the function `name`: headers rename functions for large files, for checked
    /// variants, and for versions of a standard.
    pub(crate) fn public_name(&self, name: &str) -> String {
        let exists = |n: &&str| self.libc_symbol(n).is_some();
        if let Some((_, header)) = RENAMED.iter().find(|(linked, _)| *linked == name) {
            return (*header).into();
        }
        let versioned = name.strip_prefix("__isoc99_").or_else(|| name.strip_prefix("__isoc23_"));
        let checked = name.strip_prefix("__").and_then(|n| n.strip_suffix("_chk").or_else(|| n.strip_suffix("_2")));
        let stdio = name.strip_prefix("_IO_");
        let plain = [versioned, checked, stdio].into_iter().flatten().find(exists).unwrap_or(name);
        let Some((key, addr)) = self.libc_symbol(plain) else { return plain.into() };
        let Some(names) = self.module(key).map(Module::names) else { return plain.into() };
        if plain.starts_with('_')
            && let Some(alias) = names.exactly(addr).filter(|a| !a.starts_with('_'))
        {
            return alias.to_string();
        }
        match plain.strip_suffix("64") {
            Some(short) if names.is_called(addr, short) => short.into(),
            _ => plain.into(),
        }
    }
}

/// Functions that glibc's headers rename and that have no alias (setjmp.h; sys/stat.h before 2.33).
const RENAMED: &[(&str, &str)] = &[
    ("__sigsetjmp", "sigsetjmp"),
    ("__xstat", "stat"),
    ("__xstat64", "stat"),
    ("__fxstat", "fstat"),
    ("__fxstat64", "fstat"),
    ("__lxstat", "lstat"),
    ("__lxstat64", "lstat"),
    ("__fxstatat", "fstatat"),
    ("__fxstatat64", "fstatat"),
    ("__xmknod", "mknod"),
];
