// As calls.c: names in Rust's ways. Calls of libc's are declared here, so that nothing is needed.
use std::io::{Read, Write};

unsafe extern "C" {
    safe fn getppid() -> i32;
    safe fn getuid() -> u32;
    safe fn getgid() -> u32;
    safe fn geteuid() -> u32;
    safe fn getegid() -> u32;
    safe fn getsid(pid: i32) -> i32;
    safe fn getpgid(pid: i32) -> i32;
    safe fn getpriority(which: i32, who: u32) -> i32;
}

mod shop {
    pub trait Sell {
        fn sell(&self) -> i64;
    }

    pub struct Apple(pub i64);

    impl Sell for Apple {
        #[inline(never)]
        fn sell(&self) -> i64 {
            self.0 + i64::from(super::getppid()) //= getppid getppid <calls::shop::Apple as calls::shop::Sell>::sell
        }
    }

    #[inline(never)]
    pub fn generic<T: Into<i64>>(value: T) -> i64 {
        value.into() + i64::from(super::getuid()) //= getuid getuid calls::shop::generic | calls::shop::generic::<i32>
    }

    #[inline(never)]
    pub fn each(all: &[i64]) -> i64 {
        all.iter()
            .map(|n| n + i64::from(super::getgid())) //= getgid getgid calls::shop::each::{closure#0} | calls::shop::each::{{closure}}
            .sum()
    }
}

#[inline(always)]
fn inlined() -> i64 {
    i64::from(getsid(0)) //= getsid getsid calls::inlined
}

#[inline(never)]
fn around() -> i64 {
    inlined() + 1
}

#[inline(never)]
fn worker() -> i64 {
    i64::from(geteuid()) //= geteuid geteuid calls::worker
}

#[inline(never)]
fn emit(out: &mut std::fs::File) {
    out.write_all(b"x").unwrap(); //= write write calls::emit
}

#[inline(never)]
fn paused() -> i64 {
    std::thread::sleep(std::time::Duration::from_nanos(1)); //= clock_nanosleep|nanosleep clock_nanosleep|nanosleep calls::paused
    i64::from(std::hint::black_box(1))
}

struct Last;

impl Drop for Last {
    #[inline(never)]
    fn drop(&mut self) {
        std::hint::black_box(getegid()); //= getegid getegid <calls::Last as core::ops::drop::Drop>::drop
    }
}

#[inline(never)]
fn sorted(mut all: Vec<i64>) -> i64 {
    all.sort_by_key(|n| n * i64::from(getpgid(0))); //= getpgid getpgid calls::sorted::{closure#0} | calls::sorted::{{closure}}
    all[0]
}

fn main() {
    let last = Last;
    let apple: Box<dyn shop::Sell> = Box::new(shop::Apple(1));
    let mut sum = apple.sell() + shop::generic(7) + shop::each(&[1]) + around();
    sum += std::thread::spawn(worker).join().unwrap();
    let mut file = std::fs::File::options().write(true).open("/dev/null").unwrap(); //+ openat|open open64|open calls::main
    emit(&mut file);
    sum += paused() + sorted(vec![2, 1]);
    let mut text = String::new();
    std::fs::File::open("/etc/hostname").unwrap().read_to_string(&mut text).unwrap(); //+ read read calls::main
    sum += i64::from(getpriority(0, 0)); //= getpriority getpriority calls::main
    drop(last);
    std::process::exit(i32::from(sum == 1)); //= exit_group exit calls::main
}
