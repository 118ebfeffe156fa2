//! Random numbers that belong to entities and not to the order of events: two variants of a run see the
//! same durations (simulator.md 7).
//!
//! `bits(seed, kind, id, index)` chains the four through the finaliser of SplitMix64. The tests pin
//! values: changing them is a change of the format.

/// What a number is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // names are those of simulator.md 7
pub enum Kind {
    NodePhase = 1,
    NodeFailure = 2,
    Duration = 3,
    Memory = 4,
    MemoryStep = 5,
    Cpu = 6,
    Interruption = 7,
    Failure = 8,
    StartDelay = 9,
    ProxyMemory = 10,
    Fault = 11,
}

fn finalise(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// 64 bits of an entity.
pub fn bits(seed: u64, kind: Kind, id: u64, index: u64) -> u64 {
    [seed, kind as u64, id, index].into_iter().fold(0, |state: u64, word| {
        finalise(state.wrapping_add(GOLDEN) ^ finalise(word.wrapping_add(GOLDEN)))
    })
}

/// The hash of a name, for `id`: FNV-1a.
pub fn name_hash(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// As many numbers of one entity as are needed, in (0, 1).
#[derive(Clone, Debug)]
pub struct Draw {
    state: u64,
}

impl Draw {
    /// Numbers of one entity.
    pub fn new(seed: u64, kind: Kind, id: u64, index: u64) -> Draw {
        Draw { state: bits(seed, kind, id, index) }
    }

    /// The next number, never 0 or 1.
    pub fn unit(&mut self) -> f64 {
        self.state = self.state.wrapping_add(GOLDEN);
        ((finalise(self.state) >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// A whole number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        ((self.unit() * n as f64) as u64).min(n.saturating_sub(1))
    }

    /// Normal, mean 0 and deviation 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let (u, v) = (self.unit(), self.unit());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Gamma with this shape and scale 1 (Marsaglia and Tsang).
    fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let u = self.unit();
            return self.gamma(shape + 1.0) * u.powf(1.0 / shape);
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && self.unit().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }

    /// Beta on (0, 1).
    pub fn beta(&mut self, a: f64, b: f64) -> f64 {
        let (x, y) = (self.gamma(a), self.gamma(b));
        x / (x + y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_pinned() {
        let found = [
            bits(1, Kind::Duration, 2, 3),
            bits(1, Kind::Duration, 2, 4),
            bits(1, Kind::Memory, 2, 3),
            bits(0, Kind::NodePhase, 0, 0),
            name_hash("op-000"),
        ];
        expect_test::expect![[r#"
            [
                16352595304446881841,
                3402680347353242441,
                6168778294360640332,
                13202541901669973565,
                4926805986836398951,
            ]
        "#]]
        .assert_debug_eq(&found);
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mean = |mut f: Box<dyn FnMut(&mut Draw) -> f64>| {
            let n = 20_000;
            (0..n).map(|i| f(&mut Draw::new(7, Kind::Cpu, 1, i))).sum::<f64>() / n as f64
        };
        assert!((mean(Box::new(|d| d.unit())) - 0.5).abs() < 0.01);
        assert!(mean(Box::new(|d| d.normal())).abs() < 0.02);
        assert!((mean(Box::new(|d| d.beta(6.0, 2.0))) - 0.75).abs() < 0.01);
        assert!((mean(Box::new(|d| d.beta(0.5, 0.5))) - 0.5).abs() < 0.02);
    }
}
