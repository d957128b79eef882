#[test]
fn smoke() {
    let block = systoll_test::calls(|| std::fs::read("/etc/hostname").unwrap().len());
    let counts = block.counts.unwrap();
    println!("{:?} total {}\n{counts}", counts.by_name(), counts.total());
    let t = std::time::Instant::now();
    for _ in 0..1000 { drop(systoll_test::calls(|| ())); }
    println!("block {:?}", t.elapsed() / 1000);
    let t = std::time::Instant::now();
    let c = systoll_test::calls(|| for _ in 0..10000 { unsafe { libc::getppid(); } });
    println!("call {:?} {}", t.elapsed() / 10000, c.counts.unwrap());
    let c = systoll_test::calls(|| std::process::Command::new("/bin/true").status().unwrap());
    println!("{} {}", c.value, c.counts.unwrap());
    let c = systoll_test::calls(|| std::thread::spawn(|| unsafe { libc::getppid() }).join().unwrap());
    println!("{} {}", c.value, c.counts.unwrap());
}
