//! Tables from functions of languages' run-times, and of the C library, to the functions of the languages that call
//! them.

use crate::causes::target::Target;
use crate::code::language::CodeLanguage;
use systoll_model::Frame;

/// A function of a language, and the lower function that identifies it.
struct KnownFunction {
    language: CodeLanguage,
    /// The function of the run-time, or of the C library.
    serves: &'static str,
    /// The name of the language's function for its callers.
    shown: &'static str,
}

macro_rules! known {
    ($($language:ident { $($serves:literal => $shown:literal,)* })*) => {
        &[$($(KnownFunction { language: CodeLanguage::$language, serves: $serves, shown: $shown },)*)*]
    };
}

/// Functions of run-times. If one serves several functions that the stack does not tell apart, all of these are
/// named.
const RUNTIME: &[KnownFunction] = known! {
    Perl {
        "Perl_pp_sysread" => "sysread",
        "Perl_pp_syswrite" => "syswrite",
        "Perl_pp_getppid" => "getppid",
        "Perl_pp_umask" => "umask",
        "Perl_pp_tms" => "times",
        "Perl_pp_stat" => "stat",
        "Perl_pp_chdir" => "chdir",
        "Perl_pp_readlink" => "readlink",
        "Perl_pp_sysseek" => "sysseek",
        "Perl_pp_tell" => "tell",
        "Perl_pp_sselect" => "select",
        "Perl_pp_system" => "system",
        "Perl_pp_backtick" => "`…`",
        "Perl_my_pclose" => "`…` or a pipe",
        "Perl_my_popen" => "`…` or a pipe",
        "Perl_my_stat_flags" => "a file test (-e, -f, -s)",
        "Perl_my_lstat_flags" => "a file test (-l)",
        "Perl_localtime64_r" => "localtime",
        "Perl_getcwd_sv" => "Cwd::getcwd",
        "PerlIOUnix_write" => "print",
        "PerlIOUnix_open" => "open",
    }
    Ruby {
        "rb_io_puts" => "puts",
        "rb_io_print" => "print",
        "rb_io_printf" => "printf",
        "rb_io_getbyte" => "IO#getbyte",
        "rb_io_gets" => "gets",
        "rb_backtick" => "`…`",
    }
    Php {
        "php_random_bytes" => "random_bytes",
        "php_random_int" => "random_int",
        "php_stat" => "file_exists, filesize or their like",
        "php_exec" => "exec",
        "sapi_cli_single_write" => "echo",
    }
    JavaScript {
        "node::fs::Access" => "fs.accessSync",
        "node::fs::Close" => "fs.closeSync",
        "node::fs::ExistsSync" => "fs.existsSync",
        "node::fs::FStat" => "fs.fstatSync",
        "node::fs::LStat" => "fs.lstatSync",
        "node::fs::Open" => "fs.openSync",
        "node::fs::Read" => "fs.readSync",
        "node::fs::ReadDir" => "fs.readdirSync",
        "node::fs::ReadFileUtf8" => "fs.readFileSync",
        "node::fs::RealPath" => "fs.realpathSync.native",
        "node::fs::Stat" => "fs.statSync",
        "node::fs::WriteBuffer" => "console.log or fs.writeSync",
        "node::fs::WriteFileUtf8" => "fs.writeFileSync or appendFileSync",
        "node::fs::WriteString" => "console.log or fs.writeSync",
        "node::fs::Fsync" => "fs.fsyncSync",
        "node::Chdir" => "process.chdir",
        "node::os::GetCPUInfo" => "os.cpus",
        "uv_cpu_info" => "os.cpus",
        "uv__fs_read" => "fs.read or a file's stream",
        "uv__fs_write" => "fs.write or a file's stream",
        "uv__fs_realpath" => "fs.realpath.native or realpathSync.native",
        "node::Umask" => "process.umask",
        "node::SyncProcessRunner::Run" => "child_process.execSync or spawnSync",
    }
    Java {
        "Java_java_io_UnixFileSystem_getBooleanAttributes0" => "File.exists, isFile or isDirectory",
        "Java_java_io_UnixFileSystem_getLastModifiedTime" => "File.lastModified",
        "Java_java_io_UnixFileSystem_getLength" => "File.length",
        "Java_java_io_UnixFileSystem_checkAccess" => "File.canRead or canWrite",
        "Java_java_io_UnixFileSystem_canonicalize0" => "File.getCanonicalPath",
        "Java_java_io_FileInputStream_read0" => "FileInputStream.read",
        "Java_java_io_RandomAccessFile_read0" => "RandomAccessFile.read",
        "handleRead" => "FileInputStream.read or RandomAccessFile.read",
        "handleWrite" => "FileOutputStream.write",
        "handleOpen" => "FileInputStream or FileOutputStream",
    }
    Bash {
        "echo_builtin" => "echo",
        "printf_builtin" => "printf",
        "command_substitute" => "$(…)",
        "do_redirections" => "a redirection (>, < or <<)",
        "read_builtin" => "read",
        "mapfile_builtin" => "mapfile",
        "source_builtin" => "source",
        "cd_builtin" => "cd",
        "umask_builtin" => "umask",
        "test_builtin" => "[ … ] or test",
        "zread" => "$(…) or read",
        "zreadc" => "read",
    }
    Tcl {
        "TclpOpenFileChannel" => "open",
        "TclpCreateProcess" => "exec",
        "Tcl_WaitPid" => "exec",
    }
};

/// Functions of the C library that a language calls for one of its own functions, whatever is between the two.
const LIBC: &[KnownFunction] = known! {
    Python {
        "access" => "os.access",
        "chdir" => "os.chdir",
        "fsync" => "os.fsync",
        "fdatasync" => "os.fdatasync",
        "getcwd" => "os.getcwd",
        "getpid" => "os.getpid",
        "getppid" => "os.getppid",
        "getrusage" => "resource.getrusage",
        "lstat" => "os.lstat",
        "mktime" => "time.mktime",
        "open" => "open or os.open",
        "open64" => "open or os.open",
        "read" => "file.read or os.read",
        "write" => "print, file.write or os.write",
        "readlink" => "os.readlink",
        "stat" => "os.stat",
        "times" => "os.times",
        "umask" => "os.umask",
    }
    Ruby {
        "getcwd" => "Dir.pwd",
        "getpid" => "Process.pid",
        "getppid" => "Process.ppid",
        "getpwuid" => "Etc.getpwuid",
        "fork" => "fork, `…` or system",
        "open" => "File.open",
        "open64" => "File.open",
        "read" => "IO#read, gets or sysread",
        "vfork" => "`…`, system or spawn",
        "waitpid" => "Process.wait, `…` or system",
        "write" => "puts, print or IO#write",
        "writev" => "puts, print or IO#write",
        "realpath" => "File.realpath",
        "stat" => "File.exist?, size or their like",
        "umask" => "File.umask",
    }
    Perl {
        "getpid" => "$$",
        "tzset" => "localtime",
    }
    Php {
        "getcwd" => "getcwd",
        "getpid" => "getmypid",
        "popen" => "exec, system or popen",
        "pclose" => "exec, system or popen",
        "usleep" => "usleep",
    }
    Tcl {
        "access" => "file exists",
        "getpid" => "pid",
    }
    Lua {
        "fopen" => "io.open",
        "fclose" => "file:close",
        "fflush" => "file:flush",
        "fread" => "file:read",
        "fputc" => "print or io.write",
        "fputs" => "print or io.write",
        "putc" => "print or io.write",
        "fwrite" => "print or io.write",
        "pclose" => "io.popen",
        "popen" => "io.popen",
        "remove" => "os.remove",
        "rename" => "os.rename",
        "strftime" => "os.date",
        "system" => "os.execute",
    }
    Awk {
        "fflush" => "fflush",
        "pclose" => "| getline",
        "popen" => "| getline",
        "system" => "system",
    }
    JavaScript {
        "fork" => "child_process.execSync or its like",
        "waitpid" => "child_process.execSync or its like",
        "write" => "console.log or a stream's write",
        "writev" => "console.log or a stream's write",
    }
    Shell {
        "open" => "a redirection (> or <)",
        "open64" => "a redirection (> or <)",
        "read" => "$(…) or read",
    }
    Rust {
        "getpid" => "process::id",
    }
};

/// Perl's operations that make system calls, with their names in a script.
const PERL: &[(&str, &str)] = &[
    ("backtick", "`…`"),
    ("readline", "<…>"),
    ("rcatline", "<…>"),
    ("glob", "glob"),
    ("ftfile", "-f"),
    ("ftdir", "-d"),
    ("ftis", "-e"),
    ("ftsize", "-s"),
    ("ftzero", "-z"),
    ("ftlink", "-l"),
    ("ftmtime", "-M"),
    ("fteread", "-r"),
    ("ftewrite", "-w"),
    ("fteexec", "-x"),
    ("sselect", "select"),
    ("tms", "times"),
    ("open_dir", "opendir"),
    ("bind", "bind"),
    ("print", "print"),
    ("say", "say"),
    ("prtf", "printf"),
    ("open", "open"),
    ("close", "close"),
    ("read", "read"),
    ("sysread", "sysread"),
    ("syswrite", "syswrite"),
    ("sysopen", "sysopen"),
    ("sysseek", "sysseek"),
    ("seek", "seek"),
    ("tell", "tell"),
    ("eof", "eof"),
    ("stat", "stat"),
    ("lstat", "lstat"),
    ("unlink", "unlink"),
    ("rename", "rename"),
    ("mkdir", "mkdir"),
    ("rmdir", "rmdir"),
    ("chdir", "chdir"),
    ("chmod", "chmod"),
    ("readlink", "readlink"),
    ("readdir", "readdir"),
    ("closedir", "closedir"),
    ("umask", "umask"),
    ("flock", "flock"),
    ("system", "system"),
    ("exec", "exec"),
    ("fork", "fork"),
    ("wait", "wait"),
    ("waitpid", "waitpid"),
    ("kill", "kill"),
    ("sleep", "sleep"),
    ("time", "time"),
    ("localtime", "localtime"),
    ("gmtime", "gmtime"),
    ("getppid", "getppid"),
    ("require", "require"),
    ("gpwnam", "getpwnam"),
    ("gpwuid", "getpwuid"),
];

/// Narrower names for functions that share a name, by the target of the descriptor.
const BY_TARGET: &[(CodeLanguage, &str, Target, &str)] = &[
    (CodeLanguage::JavaScript, "console.log or a stream's write", Target::Socket, "socket.write"),
    (CodeLanguage::JavaScript, "console.log or a stream's write", Target::File, "a stream's write"),
    (CodeLanguage::JavaScript, "console.log or a stream's write", Target::Pipe, "a stream's write"),
    (CodeLanguage::JavaScript, "console.log or fs.writeSync", Target::File, "fs.writeSync"),
    (CodeLanguage::Python, "print, file.write or os.write", Target::File, "file.write or os.write"),
    (CodeLanguage::Python, "print, file.write or os.write", Target::Pipe, "file.write or os.write"),
    (CodeLanguage::Python, "print, file.write or os.write", Target::Socket, "os.write"),
    (CodeLanguage::Python, "file.read or os.read", Target::Socket, "os.read"),
    (CodeLanguage::Ruby, "puts, print or IO#write", Target::Socket, "a socket's write, print or puts"),
    (CodeLanguage::Ruby, "File.open", Target::Socket, "TCPSocket.open or its like"),
    (CodeLanguage::Lua, "print or io.write", Target::File, "file:write"),
    (CodeLanguage::Shell, "$(…) or read", Target::File, "read"),
    (CodeLanguage::Bash, "$(…) or read", Target::File, "read"),
];

/// Functions of libuv that make calls for its loop, for which no function of a script asks.
const OF_LOOP: &[&str] = &["uv__async_send", "uv__async_io", "uv__signal_handler", "uv__signal_event"];

/// Returns true if Node's loop makes the calls for itself.
pub(super) fn is_of_loop(frames: &[&Frame]) -> bool {
    frames.iter().flat_map(|frame| &frame.locations).any(|place| OF_LOOP.contains(&&*place.function))
}

/// Ruby's methods in C that make system calls in one class only, with that class, since a frame does not tell it.
const RUBY: &[(&str, &str)] = &[
    ("exist?", "File.exist?"),
    ("file?", "File.file?"),
    ("directory?", "File.directory?"),
    ("size", "File.size"),
    ("mtime", "File.mtime"),
    ("realpath", "File.realpath"),
    ("readlink", "File.readlink"),
    ("sysread", "IO#sysread"),
    ("syswrite", "IO#syswrite"),
    ("fsync", "IO#fsync"),
    ("getwd", "Dir.pwd"),
    ("pwd", "Dir.pwd"),
    ("chdir", "Dir.chdir"),
    ("pid", "Process.pid"),
    ("read", "File.read or IO#read"),
    ("write", "File.write or IO#write"),
    ("print", "print"),
    ("stat", "File.stat"),
    ("open", "File.open"),
    ("ppid", "Process.ppid"),
    ("getcwd", "Dir.pwd"),
    ("clock_gettime", "Process.clock_gettime"),
    ("`", "`…`"),
];

/// Modules of Ruby's library, by file name.
const RUBY_MODULES: &[(&str, &str)] = &[
    ("fileutils", "FileUtils"),
    ("find", "Find"),
    ("logger", "Logger"),
    ("open3", "Open3"),
    ("pathname", "Pathname"),
    ("securerandom", "SecureRandom"),
    ("tempfile", "Tempfile"),
];

/// Returns the language's function that the run-time's functions on the stack stand for. The
/// outermost of them inside the script's own frames decides.
pub(super) fn by_runtime(language: CodeLanguage, frames: &[&Frame]) -> Option<&'static str> {
    let of_script = |frame: &&&Frame| {
        let runs = ["execute_ex", "Perl_runops", "Builtins_", "v8::internal::", "Tcl_FSEvalFile"];
        frame.language.is_none() && !runs.iter().any(|name| frame.function().starts_with(name))
    };
    let known = frames.iter().take_while(of_script).filter_map(|frame| {
        let has = |name: &str| frame.locations.iter().any(|place| &*place.function == name);
        RUNTIME.iter().find(|known| known.language == language && has(known.serves))
    });
    known.last().map(|known| known.shown)
}

/// Returns the language's function that calls the C library's function `api`.
pub(super) fn by_libc(language: CodeLanguage, api: &str) -> Option<&'static str> {
    LIBC.iter().find(|known| known.language == language && known.serves == api).map(|known| known.shown)
}

/// Returns Perl's function for the name of an operation.
pub(super) fn perl(operation: &str) -> Option<&'static str> {
    PERL.iter().find(|(name, _)| *name == operation).map(|(_, shown)| *shown)
}

/// Returns the narrower name of `shown` that the target allows, if there is one.
pub(super) fn of_target(language: CodeLanguage, shown: &str, target: Option<Target>) -> Option<&'static str> {
    let is = |(of, all, leads, _): &&(CodeLanguage, &str, Target, &str)| {
        (*of, *all, Some(*leads)) == (language, shown, target)
    };
    BY_TARGET.iter().find(is).map(|(.., one)| *one)
}

/// Returns Ruby's method with its class, if it makes system calls in one class only.
pub(super) fn ruby(method: &str) -> Option<&'static str> {
    RUBY.iter().find(|(name, _)| *name == method).map(|(_, shown)| *shown)
}

/// Returns the module of Ruby's library in this file.
pub(super) fn ruby_module(file: &str) -> Option<&'static str> {
    RUBY_MODULES.iter().find(|(name, _)| *name == file).map(|(_, module)| *module)
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::Location;

    fn frames(functions: &[&str]) -> Vec<Frame> {
        let named = |function: &&str| Location { function: (*function).into(), ..Location::default() };
        functions.iter().map(|f| Frame { locations: vec![named(f)], ..Frame::default() }).collect()
    }

    #[test]
    fn the_script_is_where_its_run_time_ends() {
        let of = |language, functions: &[&str]| {
            let frames = frames(functions);
            by_runtime(language, &frames.iter().collect::<Vec<_>>())
        };
        let stat = ["syscall", "uv__statx", "uv_fs_stat", "node::fs::Stat", "v8::internal::Builtin_HandleApiCall"];
        assert_eq!(of(CodeLanguage::JavaScript, &stat), Some("fs.statSync"));
        assert_eq!(of(CodeLanguage::Python, &stat), None);
        let outside = ["write", "execute_ex", "php_random_bytes"];
        assert_eq!(of(CodeLanguage::Php, &outside), None);
    }

    #[test]
    fn no_function_stands_twice() {
        for table in [RUNTIME, LIBC] {
            for (at, known) in table.iter().enumerate() {
                let same = |other: &&KnownFunction| other.language == known.language && other.serves == known.serves;
                assert_eq!(table.iter().skip(at).filter(same).count(), 1, "{}", known.serves);
            }
        }
    }
}
