#[inline(never)] fn ask(p: &str) -> bool { std::fs::metadata(p).is_ok() }
#[inline(never)] fn outer(n: u32) -> u32 { let mut c = 0; for _ in 0..n { if ask("/etc") { c += 1 } } c }
fn main() { let a = outer(300); let t = std::thread::spawn(|| outer(200)); println!("{}", a + t.join().unwrap()); }
