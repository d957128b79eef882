use std::sync::{Arc, Condvar, Mutex};
use std::thread;

struct Game { turn: usize, moves: Vec<u32>, over: bool }

fn play(me: usize, g: &(Mutex<Game>, Condvar)) {
    loop {
        let mut s = g.1.wait_while(g.0.lock().unwrap(), |s| s.turn != me && !s.over).unwrap();
        if s.over { return; }
        // the answer to the other's last move
        let last = *s.moves.last().unwrap();
        let mut best = 0;
        for c in 1..1200u32 { best = best.max((last ^ c.wrapping_mul(2654435761)).rotate_left(c % 31) % 9973); }
        s.moves.push(best + me as u32);
        s.turn = 1 - me;
        s.over = s.moves.len() > 20000;
        g.1.notify_one();
    }
}

fn main() {
    let g = Arc::new((Mutex::new(Game { turn: 0, moves: vec![1], over: false }), Condvar::new()));
    let ts: Vec<_> = (0..2).map(|me| { let g = g.clone(); thread::spawn(move || play(me, &g)) }).collect();
    for t in ts { t.join().unwrap(); }
    let s = g.0.lock().unwrap();
    println!("{} moves, {}", s.moves.len(), s.moves.iter().fold(0u32, |h, m| h.wrapping_mul(31) ^ m));
}
