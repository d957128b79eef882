// Plans and scores chunks of a text index; how finely it cuts depends on the machine, what it computes doesn't.
use std::thread;

struct Chunk {
    start: usize,
    end: usize,
}

fn lanes() -> usize {
    thread::available_parallelism().map(|n| n.get()).unwrap_or(1)
}

fn chunks(len: usize, size: usize) -> Vec<Chunk> {
    (0..len).step_by(size).map(|start| Chunk { start, end: (start + size).min(len) }).collect()
}

fn score(words: &[u32]) -> u64 {
    let mut best = 0u64;
    for round in 0..40u64 {
        let mut h = round;
        for &w in words {
            h = (h ^ u64::from(w)).wrapping_mul(0x100000001b3).rotate_left(5);
        }
        best = best.max(h >> 16);
    }
    best
}

/// Cuts a chunk into as many strips as there are lanes, so that they may run side by side one day.
fn score_chunk(words: &[u32]) -> u64 {
    let strips = lanes().min(words.len()).max(1);
    let width = words.len().div_ceil(strips);
    let mut all = Vec::with_capacity(words.len());
    for strip in words.chunks(width) {
        all.extend_from_slice(strip);
    }
    score(&all)
}

fn main() {
    let words: Vec<u32> = (0..5_000_000u32).map(|i| i.wrapping_mul(2654435761) >> 7).collect();
    let plan = chunks(words.len(), 2000);
    let total = plan.iter().fold(0u64, |sum, c| sum.wrapping_add(score_chunk(&words[c.start..c.end])));
    println!("{} chunks, score {total:016x}", plan.len());
}
