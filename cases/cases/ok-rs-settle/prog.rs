use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

// Sweeps a (simulated) filter: after each setting its output needs 35 ms to settle, before that a reading is wrong.

fn instrument() {
    let mut set = (Instant::now(), 0u64);
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        match line.strip_prefix("SET ") {
            Some(v) => {
                set = (Instant::now(), v.parse().unwrap());
                println!("OK");
            }
            None if set.0.elapsed() < Duration::from_millis(35) => println!("{}", set.1 / 2),
            None => println!("{}", set.1 * 3 + 1),
        }
    }
}

fn main() {
    if std::env::args().nth(1).is_some() {
        return instrument();
    }
    let mut dev = Command::new(std::env::current_exe().unwrap())
        .arg("instrument")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut tx = dev.stdin.take().unwrap();
    let mut rx = BufReader::new(dev.stdout.take().unwrap());
    let mut ask = |q: String| {
        tx.write_all(q.as_bytes()).unwrap();
        let mut a = String::new();
        rx.read_line(&mut a).unwrap();
        a.trim().to_string()
    };
    for v in (10..210).step_by(7) {
        assert_eq!(ask(format!("SET {v}\n")), "OK");
        thread::sleep(Duration::from_millis(36)); // settling time of the data sheet
        println!("{v}: {}", ask("READ?\n".to_string()));
    }
    drop(tx);
    dev.wait().unwrap();
}
