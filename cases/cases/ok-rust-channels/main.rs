use std::sync::mpsc::sync_channel;
use std::thread::{scope, spawn};

/// Hands numbers through a chain of threads.
fn main() {
    let n: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let (first, from) = sync_channel(64);
    let (to, last) = sync_channel(64);
    spawn(move || (0..n).for_each(|i| first.send(i).unwrap()));
    spawn(move || from.iter().for_each(|i| to.send(i * 2).unwrap()));
    scope(|s| {
        let sum = s.spawn(move || last.iter().sum::<u64>());
        println!("{}", sum.join().unwrap());
    });
}
