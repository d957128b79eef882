use std::sync::mpsc::{channel, Receiver, Sender};
use std::thread;
use std::time::Duration;

struct Record { key: u64, done: Sender<u64> }

fn commit(batch: &[Record], serial: &mut u64) {
    thread::sleep(Duration::from_millis(4)); // the disk
    for r in batch {
        *serial += 1;
        let _ = r.done.send(r.key * 31 % 1009);
    }
}

fn committer(rx: Receiver<Record>) -> u64 {
    let mut serial = 0;
    while let Ok(first) = rx.recv() {
        let mut batch = vec![first];
        while batch.len() < 64 {
            match rx.try_recv() {
                Ok(r) => batch.push(r),
                Err(_) => break,
            }
        }
        commit(&batch, &mut serial);
    }
    serial
}

fn main() {
    let (tx, rx) = channel::<Record>();
    let c = thread::spawn(move || committer(rx));
    let writers: Vec<_> = (0..3u64)
        .map(|w| {
            let tx = tx.clone();
            thread::spawn(move || {
                let (done, ack) = channel();
                let mut sum = 0;
                for i in 0..18 {
                    tx.send(Record { key: w * 100 + i, done: done.clone() }).unwrap();
                    sum += ack.recv().unwrap();
                }
                sum
            })
        })
        .collect();
    drop(tx);
    for (w, t) in writers.into_iter().enumerate() {
        println!("writer {w}: {}", t.join().unwrap());
    }
    println!("{} records", c.join().unwrap());
}
