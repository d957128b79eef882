// A little async client: requests go to a backend thread, a tiny runtime waits for the answers.
use std::future::Future;
use std::pin::{pin, Pin};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

#[derive(Default)]
struct Slot {
    value: Option<u64>,
    waker: Option<Waker>,
}

struct Answer(Arc<Mutex<Slot>>);

impl Future for Answer {
    type Output = u64;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<u64> {
        let mut s = self.0.lock().unwrap();
        match s.value.take() {
            Some(v) => Poll::Ready(v),
            None => {
                s.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

struct Nothing;
impl Wake for Nothing {
    fn wake(self: Arc<Self>) {}
}

fn block_on<F: Future>(f: F) -> F::Output {
    let mut f = pin!(f);
    let waker = Waker::from(Arc::new(Nothing));
    loop {
        match f.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(v) => return v,
            Poll::Pending => thread::yield_now(),
        }
    }
}

fn ask(to: &Sender<(u64, Arc<Mutex<Slot>>)>, q: u64) -> Answer {
    let slot = Arc::new(Mutex::new(Slot::default()));
    to.send((q, slot.clone())).unwrap();
    Answer(slot)
}

fn main() {
    let (to, from) = channel::<(u64, Arc<Mutex<Slot>>)>();
    let backend = thread::spawn(move || {
        for (q, slot) in from {
            thread::sleep(Duration::from_millis(4)); // a database that needs its time
            let mut s = slot.lock().unwrap();
            s.value = Some(q * q + 1);
            if let Some(w) = s.waker.take() {
                w.wake();
            }
        }
    });
    let sum = block_on(async {
        let mut sum = 0;
        for q in 0..80 {
            sum += ask(&to, q).await;
        }
        sum
    });
    drop(to);
    backend.join().unwrap();
    println!("80 answers, sum {sum}");
}
