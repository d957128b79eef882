// A metrics registry: workers count, a flusher writes snapshots for the collector.
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

struct Registry {
    map: Mutex<BTreeMap<String, u64>>,
}

impl Registry {
    fn count(&self, name: &str) {
        let mut m = self.map.lock().unwrap();
        *m.entry(name.to_string()).or_insert(0) += 1;
    }

    fn flush(&self, path: &str) -> std::io::Result<()> {
        let map = self.map.lock().unwrap();
        let mut text = String::new();
        for (k, v) in map.iter() {
            text.push_str(&format!("{k} {v}\n"));
        }
        // the collector may come at any time, also after a power cut
        let tmp = format!("{path}.tmp");
        let mut f = File::create(&tmp)?;
        f.write_all(text.as_bytes())?;
        f.sync_all()?;
        fs::rename(&tmp, path)
    }
}

fn handle(n: u64) -> u64 {
    (0..60_000u64).fold(n, |a, i| (a ^ i).rotate_left(9).wrapping_mul(6364136223846793005))
}

fn main() -> std::io::Result<()> {
    let reg = Arc::new(Registry { map: Mutex::new(BTreeMap::new()) });
    let done = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..3u64)
        .map(|w| {
            let reg = reg.clone();
            thread::spawn(move || {
                (0..1500u64).fold(0, |sum, i| {
                    reg.count(&format!("requests_total{{path=\"/{}\"}}", i % 40));
                    sum ^ handle(w * 1000 + i)
                })
            })
        })
        .collect();
    let flusher = {
        let (reg, done) = (reg.clone(), done.clone());
        thread::spawn(move || -> std::io::Result<()> {
            while !done.load(Ordering::Relaxed) {
                reg.flush("metrics.prom")?;
                thread::sleep(Duration::from_millis(3));
            }
            reg.flush("metrics.prom")
        })
    };
    let sum = workers.into_iter().fold(0, |s, w| s ^ w.join().unwrap());
    done.store(true, Ordering::Relaxed);
    flusher.join().unwrap()?;
    let total: u64 = fs::read_to_string("metrics.prom")?.lines().map(|l| l.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    fs::remove_file("metrics.prom")?;
    println!("requests {total}, checksum {sum:016x}");
    Ok(())
}
