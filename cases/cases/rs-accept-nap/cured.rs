use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

fn serve(mut s: TcpStream) {
    s.set_nonblocking(false).unwrap();
    let mut b = [0u8; 8];
    s.read_exact(&mut b).unwrap();
    let n = u64::from_le_bytes(b);
    s.write_all(&(n * n + 1).to_le_bytes()).unwrap();
}

fn acceptor(l: TcpListener, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        match l.accept() {
            Ok((s, _)) => serve(s),
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(50));
            }
            Err(e) => panic!("{e}"),
        }
    }
}

fn main() {
    let l = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = l.local_addr().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let t = { let stop = stop.clone(); thread::spawn(move || acceptor(l, stop)) };
    for i in 0..22u64 {
        let mut c = TcpStream::connect(addr).unwrap();
        c.write_all(&i.to_le_bytes()).unwrap();
        let mut b = [0u8; 8];
        c.read_exact(&mut b).unwrap();
        println!("{i} -> {}", u64::from_le_bytes(b));
    }
    stop.store(true, Ordering::Relaxed);
    wake(addr);
    t.join().unwrap();
}

fn wake(addr: std::net::SocketAddr) {
    if let Ok(mut c) = TcpStream::connect(addr) {
        let _ = c.write_all(&0u64.to_le_bytes());
    }
}
