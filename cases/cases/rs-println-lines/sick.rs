// Exports smoothed readings of sensors as CSV.
struct Sensor {
    state: u64,
    window: [f64; 64],
    at: usize,
}

impl Sensor {
    fn new(seed: u64) -> Self {
        Sensor { state: seed * 2 + 1, window: [0.0; 64], at: 0 }
    }

    fn next(&mut self) -> f64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state % 10_000) as f64 / 100.0
    }

    /// takes 40 readings and returns the median of the window
    fn smoothed(&mut self) -> f64 {
        let mut median = 0.0;
        for _ in 0..20 {
            let v = self.next();
            self.window[self.at] = v;
            self.at = (self.at + 1) % self.window.len();
            let mut sorted = self.window;
            sorted.sort_by(f64::total_cmp);
            median = sorted[sorted.len() / 2];
        }
        median
    }
}

fn main() {
    let mut sensors: Vec<Sensor> = (0..8).map(Sensor::new).collect();
    let mut sum = 0.0;
    for id in 0..30_000u32 {
        let s = &mut sensors[id as usize % 8];
        let v = s.smoothed();
        sum += v;
        println!("{id};{};{:.3}", id % 8, v);
    }
    println!("sum;;{sum:.1}");
}
