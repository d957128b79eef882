//! Error numbers.

use foldhash::HashMap;
use std::fmt;
use std::sync::OnceLock;

/// A Linux error number (x86-64).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errno(pub u16);

impl Errno {
    /// An error whose number is not known, e.g. in a file that another tool rewrote.
    pub const UNKNOWN: Self = Self(0);

    /// Returns the errno in a raw result of a call; results in `-4095..=-1` are errors.
    pub fn from_result(result: i64) -> Option<Self> {
        (-4095..=-1).contains(&result).then(|| Self(result.unsigned_abs() as u16))
    }

    /// Returns the errno's symbol, e.g. `ENOENT`. The kernel-internal restart codes have symbols
    /// too.
    pub fn name(self) -> Option<&'static str> {
        NAMES.binary_search_by_key(&self.0, |(n, _)| *n).ok().map(|i| NAMES[i].1)
    }

    /// Returns the errno with this symbol.
    pub fn from_name(name: &str) -> Option<Self> {
        static BY_NAME: OnceLock<HashMap<&str, u16>> = OnceLock::new();
        let by_name = BY_NAME.get_or_init(|| NAMES.iter().map(|(number, name)| (*name, *number)).collect());
        by_name.get(name).map(|number| Self(*number))
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None if *self == Self::UNKNOWN => f.write_str("unknown error"),
            None => write!(f, "errno {}", self.0),
        }
    }
}

/// Declares each error's number as a constant, and the table that turns numbers back into names.
macro_rules! errors {
    ($($name:ident = $number:literal),* $(,)?) => {
        impl Errno {
            $(
                #[doc = concat!("`", stringify!($name), "`.")]
                pub const $name: Self = Self($number);
            )*
        }

        /// Numbers and symbols of all errors, by rising number.
        const NAMES: &[(u16, &str)] = &[$(($number, stringify!($name))),*];
    };
}

// The numbers are those of include/uapi/asm-generic/errno*.h and include/linux/errno.h.
errors! {
    EPERM = 1, ENOENT = 2, ESRCH = 3, EINTR = 4, EIO = 5, ENXIO = 6, E2BIG = 7, ENOEXEC = 8, EBADF = 9,
    ECHILD = 10, EAGAIN = 11, ENOMEM = 12, EACCES = 13, EFAULT = 14, ENOTBLK = 15, EBUSY = 16, EEXIST = 17,
    EXDEV = 18, ENODEV = 19, ENOTDIR = 20, EISDIR = 21, EINVAL = 22, ENFILE = 23, EMFILE = 24, ENOTTY = 25,
    ETXTBSY = 26, EFBIG = 27, ENOSPC = 28, ESPIPE = 29, EROFS = 30, EMLINK = 31, EPIPE = 32, EDOM = 33,
    ERANGE = 34, EDEADLK = 35, ENAMETOOLONG = 36, ENOLCK = 37, ENOSYS = 38, ENOTEMPTY = 39, ELOOP = 40,
    ENOMSG = 42, EIDRM = 43, ECHRNG = 44, EL2NSYNC = 45, EL3HLT = 46, EL3RST = 47, ELNRNG = 48,
    EUNATCH = 49, ENOCSI = 50, EL2HLT = 51, EBADE = 52, EBADR = 53, EXFULL = 54, ENOANO = 55, EBADRQC = 56,
    EBADSLT = 57, EBFONT = 59, ENOSTR = 60, ENODATA = 61, ETIME = 62, ENOSR = 63, ENONET = 64, ENOPKG = 65,
    EREMOTE = 66, ENOLINK = 67, EADV = 68, ESRMNT = 69, ECOMM = 70, EPROTO = 71, EMULTIHOP = 72,
    EDOTDOT = 73, EBADMSG = 74, EOVERFLOW = 75, ENOTUNIQ = 76, EBADFD = 77, EREMCHG = 78, ELIBACC = 79,
    ELIBBAD = 80, ELIBSCN = 81, ELIBMAX = 82, ELIBEXEC = 83, EILSEQ = 84, ERESTART = 85, ESTRPIPE = 86,
    EUSERS = 87, ENOTSOCK = 88, EDESTADDRREQ = 89, EMSGSIZE = 90, EPROTOTYPE = 91, ENOPROTOOPT = 92,
    EPROTONOSUPPORT = 93, ESOCKTNOSUPPORT = 94, EOPNOTSUPP = 95, EPFNOSUPPORT = 96, EAFNOSUPPORT = 97,
    EADDRINUSE = 98, EADDRNOTAVAIL = 99, ENETDOWN = 100, ENETUNREACH = 101, ENETRESET = 102,
    ECONNABORTED = 103, ECONNRESET = 104, ENOBUFS = 105, EISCONN = 106, ENOTCONN = 107, ESHUTDOWN = 108,
    ETOOMANYREFS = 109, ETIMEDOUT = 110, ECONNREFUSED = 111, EHOSTDOWN = 112, EHOSTUNREACH = 113,
    EALREADY = 114, EINPROGRESS = 115, ESTALE = 116, EUCLEAN = 117, ENOTNAM = 118, ENAVAIL = 119,
    EISNAM = 120, EREMOTEIO = 121, EDQUOT = 122, ENOMEDIUM = 123, EMEDIUMTYPE = 124, ECANCELED = 125,
    ENOKEY = 126, EKEYEXPIRED = 127, EKEYREVOKED = 128, EKEYREJECTED = 129, EOWNERDEAD = 130,
    ENOTRECOVERABLE = 131, ERFKILL = 132, EHWPOISON = 133, ERESTARTSYS = 512, ERESTARTNOINTR = 513,
    ERESTARTNOHAND = 514, ENOIOCTLCMD = 515, ERESTART_RESTARTBLOCK = 516,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_results() {
        assert_eq!(Errno::from_result(-2).unwrap().to_string(), "ENOENT");
        assert_eq!(Errno::from_result(-4096), None);
        assert_eq!(Errno::from_result(0), None);
        assert_eq!(Errno::from_name("EAGAIN"), Some(Errno::EAGAIN));
        assert_eq!((Errno::EAGAIN, Errno::ENOENT.name()), (Errno(11), Some("ENOENT")));
        assert!(NAMES.is_sorted_by_key(|(n, _)| *n));
    }
}
