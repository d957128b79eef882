use std::fs::File;
use std::io::{BufReader, Read};

/// Counts the lines of this source, a byte at a time.
fn work(sick: bool, n: usize) -> usize {
    let lines = |bytes: &mut dyn Iterator<Item = std::io::Result<u8>>| bytes.filter(|b| matches!(b, Ok(b'\n'))).count();
    let open = || File::open("main.rs").unwrap();
    (0..n).map(|_| if sick { lines(&mut open().bytes()) } else { lines(&mut BufReader::new(open()).bytes()) }).sum()
}

fn main() {
    let sick = std::env::args().nth(1).unwrap() == "sick";
    let n: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    println!("{}", work(sick, n));
}
