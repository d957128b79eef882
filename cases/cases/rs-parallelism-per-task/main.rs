use std::thread::available_parallelism;

/// Sizes each batch by the number of processors.
fn work(sick: bool, n: usize) -> usize {
    let ask = || available_parallelism().unwrap().get();
    let once = ask();
    (0..n).map(|_| if sick { ask() } else { once }).filter(|c| *c > 0).count()
}

fn main() {
    let sick = std::env::args().nth(1).unwrap() == "sick";
    let n: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    println!("{}", work(sick, n));
}
