use std::env::current_dir;
use std::path::Path;

/// Makes a list of relative paths absolute.
fn work(sick: bool, n: usize) -> usize {
    let base = current_dir().unwrap();
    let absolute = |base: &Path| base.join("src/file.rs").as_os_str().len().min(1);
    (0..n).map(|_| if sick { absolute(&current_dir().unwrap()) } else { absolute(&base) }).sum()
}

fn main() {
    let sick = std::env::args().nth(1).unwrap() == "sick";
    let n: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    println!("{}", work(sick, n));
}
