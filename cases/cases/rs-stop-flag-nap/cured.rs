use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

// A session flushes its statistics every 200 ms in the background; most sessions are short.
struct Session {
    stop: Arc<AtomicBool>,
    wake: Sender<()>,
    hits: Arc<AtomicU64>,
    flusher: Option<JoinHandle<u64>>,
}

const PERIOD: Duration = Duration::from_millis(200);

impl Session {
    fn open() -> Session {
        let stop = Arc::new(AtomicBool::new(false));
        let hits = Arc::new(AtomicU64::new(0));
        let (wake, woken) = channel::<()>();
        let (s, h) = (stop.clone(), hits.clone());
        let flusher = thread::spawn(move || {
            let mut flushed = 0;
            while !s.load(Ordering::Acquire) {
                if let Err(RecvTimeoutError::Disconnected) = woken.recv_timeout(PERIOD) {
                    break;
                }
                flushed += h.swap(0, Ordering::AcqRel);
            }
            flushed + h.swap(0, Ordering::AcqRel)
        });
        Session { stop, wake, hits, flusher: Some(flusher) }
    }

    fn hit(&self, n: u64) { self.hits.fetch_add(n, Ordering::AcqRel); }

    fn close(mut self) -> u64 {
        self.stop.store(true, Ordering::Release);
        let _ = self.wake.send(());
        self.flusher.take().unwrap().join().unwrap()
    }
}

fn main() {
    let mut total = 0;
    for i in 0..7u64 {
        let s = Session::open();
        for n in 0..i + 2 {
            thread::sleep(Duration::from_millis(2)); // a user's request
            s.hit(n);
        }
        let got = s.close();
        println!("session {i}: {got}");
        total += got;
    }
    println!("total {total}");
}
