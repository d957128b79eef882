//! A worker that is woken through a pipe for each item, and takes all there are.
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, mpsc};

static QUEUED: Mutex<u64> = Mutex::new(0);
static AWAKE: AtomicBool = AtomicBool::new(false);
const BURST: u64 = 40;

fn main() {
    let mut args = std::env::args().skip(1);
    let cured = args.next().as_deref() == Some("cured");
    let rounds: u64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(400);
    let (mut ear, mut bell) = std::io::pipe().unwrap();
    let (done, finished) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        let (mut taken, mut bytes) = (0, [0; 4096]);
        while taken < rounds * BURST {
            ear.read(&mut bytes).unwrap();
            AWAKE.store(false, SeqCst);
            let got = std::mem::take(&mut *QUEUED.lock().unwrap());
            taken += got;
            if got > 0 && taken % BURST == 0 {
                done.send(()).unwrap();
            }
        }
        taken
    });
    for _ in 0..rounds {
        let mut queued = QUEUED.lock().unwrap();
        for _ in 0..BURST {
            *queued += 1;
            if !cured || !AWAKE.swap(true, SeqCst) {
                bell.write_all(&[1]).unwrap();
            }
        }
        drop(queued);
        finished.recv().unwrap();
    }
    println!("{}", worker.join().unwrap());
}
