use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Passes messages through a pair of sockets, with a time limit on each receive.
fn work(sick: bool, n: usize) -> usize {
    let (mut a, mut b) = UnixStream::pair().unwrap();
    let limit = || b.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    limit();
    let mut buffer = [0; 512];
    let mut total = 0;
    for _ in 0..n {
        a.write_all(&[7; 100]).unwrap();
        if sick {
            b.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        }
        total += b.read(&mut buffer).unwrap();
    }
    total
}

fn main() {
    let sick = std::env::args().nth(1).unwrap() == "sick";
    let n: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    println!("{}", work(sick, n));
}
