use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

struct Conn { s: TcpStream }

impl Conn {
    fn new(s: TcpStream) -> Conn {
        s.set_nodelay(true).unwrap();
        Conn { s }
    }
    fn frame(&mut self, buf: &mut [u8]) -> std::io::Result<()> {
        self.s.set_read_timeout(Some(Duration::from_secs(5)))?;
        let r = self.s.read_exact(buf);
        self.s.set_read_timeout(None)?;
        r
    }
}

fn digest(buf: &[u8], rounds: usize) -> u64 {
    let mut h = 0xcbf29ce484222325u64;
    for _ in 0..rounds { for &b in buf { h = (h ^ b as u64).wrapping_mul(0x100000001b3); } }
    h
}

fn main() {
    let l = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = l.local_addr().unwrap();
    let server = thread::spawn(move || {
        let mut c = Conn::new(l.accept().unwrap().0);
        let mut buf = [0u8; 512];
        let mut n = 0u64;
        while c.frame(&mut buf).is_ok() {
            n += 1;
            let h = digest(&buf, 14);
            c.s.write_all(&h.to_le_bytes()).unwrap();
        }
        n
    });
    let mut c = Conn::new(TcpStream::connect(addr).unwrap());
    let (mut q, mut a) = ([0u8; 512], [0u8; 8]);
    let mut all = 0u64;
    for i in 0..12000u64 {
        q[..8].copy_from_slice(&i.to_le_bytes());
        c.s.write_all(&q).unwrap();
        c.frame(&mut a).unwrap();
        all = all.rotate_left(3) ^ u64::from_le_bytes(a);
    }
    drop(c);
    println!("{} frames, {all:016x}", server.join().unwrap());
}
