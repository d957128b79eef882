//! Draws screens on standard error, which is a terminal that another process shows.

use std::ffi::{c_char, c_int, CStr};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

unsafe extern "C" {
    fn grantpt(fd: c_int) -> c_int;
    fn unlockpt(fd: c_int) -> c_int;
    fn ptsname(fd: c_int) -> *const c_char;
}

/// A terminal: the side that shows, and the side that programs write to.
fn terminal() -> (File, File) {
    let shows = OpenOptions::new().read(true).write(true).open("/dev/ptmx").unwrap();
    let fd = shows.as_raw_fd();
    let name = unsafe {
        assert!(grantpt(fd) == 0 && unlockpt(fd) == 0);
        CStr::from_ptr(ptsname(fd)).to_str().unwrap().to_owned()
    };
    (shows, OpenOptions::new().read(true).write(true).open(name).unwrap())
}

fn draw(out: &mut impl Write, n: usize) {
    for row in 1..=24 {
        for column in 1..=80 {
            let letter = char::from(b'a' + ((row + column + n) % 26) as u8);
            write!(out, "\x1b[{row};{column}H{letter}").unwrap();
        }
    }
    out.flush().unwrap();
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let screens: usize = words[1].parse().unwrap();
    if words.len() > 3 {
        for n in 0..screens {
            match &*words[2] {
                "cured" => draw(&mut std::io::BufWriter::with_capacity(65536, std::io::stderr()), n),
                _ => draw(&mut std::io::stderr(), n),
            }
        }
        return;
    }
    let (mut shows, shown) = terminal();
    let mut child = Command::new(&words[0]).args(&words[1..]).arg("draws").stderr(Stdio::from(shown)).spawn().unwrap();
    let (mut seen, mut all) = (vec![0; 65536], 0);
    while let Ok(n @ 1..) = shows.read(&mut seen) {
        all += n;
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(child.wait().unwrap().success());
    println!("{all} bytes shown");
}
