//! Cost of updates of the benchmark trees of the conformance corpus, of a few operations and of all.
//!
//! `cargo bench -p millpond-fairshare`. The trees have two or three levels of pools below the root, or one
//! wide pool (`flat`). Times are those of the update alone, on one thread, of an updater that has seen the
//! tree before: the best and the median of many, and the mean time on a processor. A full update computes everything again; the other one is
//! that of 1 % of the operations with another demand, anywhere in the tree. Behind that: how the time grows
//! with the number of operations in one pool, and with the number of levels.
//!
//! With names of trees as arguments only those are run, `growth` is the last part. `7 full 10000` and
//! `7 some 10000` make so many updates after the first one, for profilers.

// Steps and names are not needed here.
#[allow(dead_code)]
#[path = "../tests/main/case.rs"]
mod case;

use std::io::Read;
use std::time::{Duration, Instant};

use case::Case;
use fairshare::{Cycle, Element, Input, IntegralState, Kind, Updater};
use vocab::{Resources, Span};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance/fair_share");
const TREES: [&str; 6] = ["100", "1000", "10000", "100000", "flat_3000", "flat_10000"];
/// How long one kind of update is measured before it is the turn of the next.
const TURN: Duration = Duration::from_millis(150);
const TURNS: usize = 12;
const CYCLE: Cycle = Cycle::Periodic { since_previous: Some(Span::from_millis(200)) };

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    if let [times, what, tree] = &arguments[..]
        && let Ok(times) = times.parse()
    {
        let mut bench = Bench::load(tree, false);
        for _ in 0..times {
            match what.as_str() {
                "full" => bench.updater.forget(),
                _ => bench.change(100),
            }
            bench.update();
        }
        return;
    }
    let wanted = |name: &str| arguments.is_empty() || arguments.iter().any(|a| a == name);
    println!(
        "{:>10} {:>9} | {:>8} {:>8} {:>8} | {:>8} {:>8} {:>8} {:>6} | {:>8} {:>8}",
        "", "", "full ms", "", "", "1 % ms", "", "", "", "improved", ""
    );
    println!(
        "{:>10} {:>9} | {:>8} {:>8} {:>8} | {:>8} {:>8} {:>8} {:>6} | {:>8} {:>8}",
        "tree", "elements", "best", "median", "busy", "best", "median", "busy", "ratio", "best", "busy"
    );
    for tree in TREES.into_iter().filter(|tree| wanted(tree)) {
        let mut bench = Bench::load(tree, false);
        let [full, some] = bench.measure([|bench| bench.updater.forget(), |bench| bench.change(100)]);
        let mut bench = Bench::load(tree, true);
        let [improved] = bench.measure([|bench| bench.updater.forget()]);
        let elements = bench.updater.input().elements.len();
        println!(
            "{tree:>10} {elements:>9} | {:>8.3} {:>8.3} {:>8.3} | {:>8.3} {:>8.3} {:>8.3} {:>5.1}% | {:>8.3} {:>8.3}",
            ms(full.best),
            ms(full.median),
            ms(full.busy),
            ms(some.best),
            ms(some.median),
            ms(some.busy),
            100.0 * ms(some.best) / ms(full.best),
            ms(improved.best),
            ms(improved.busy),
        );
    }
    if wanted("growth") {
        growth();
    }
}

/// Time that this thread has spent on a processor; zero where nobody counts it.
#[allow(clippy::disallowed_methods)]
fn busy() -> Duration {
    let counters = std::fs::read("/proc/thread-self/schedstat").unwrap_or_default();
    let first = counters.split(|b| *b == b' ').next().and_then(|n| std::str::from_utf8(n).ok());
    Duration::from_nanos(first.and_then(|n| n.parse().ok()).unwrap_or(0))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn growth() {
    println!("\n{:>10} {:>9} | {:>10} {:>16}", "operations", "levels", "best ms", "ns / (n log2 n)");
    let pattern = load("flat_10000").input;
    let sizes = [2_500, 5_000, 10_000, 20_000, 40_000].map(|n| (n, 1));
    let levels = [2, 4, 8, 16, 32].map(|levels| (4_096, levels));
    for (n, levels) in sizes.into_iter().chain(levels) {
        let mut bench = Bench::new(chain(&pattern, n, levels), Vec::new());
        let [full] = bench.measure([|bench| bench.updater.forget()]);
        let unit = n as f64 * (n as f64).log2();
        println!("{n:>10} {levels:>9} | {:>10.3} {:>16.1}", ms(full.best), ms(full.best) * 1e6 / unit);
    }
}

/// Pools one inside of the other, each with as many operations.
fn chain(pattern: &Input, n: usize, levels: usize) -> Input {
    let (root, pool, operations) = (&pattern.elements[0], &pattern.elements[1], &pattern.elements[2..]);
    let mut elements = vec![root.clone()];
    let mut parent = 0;
    for level in 0..levels {
        elements.push(Element { parent, ..pool.clone() });
        parent = elements.len() - 1;
        for i in 0..n / levels {
            let operation = &operations[(level * n / levels + i) % operations.len()];
            elements.push(Element { parent, ..operation.clone() });
        }
    }
    let total = pattern.total * (n as f64 / operations.len() as f64);
    Input { total, options: pattern.options.clone(), elements }
}

struct Times {
    best: Duration,
    median: Duration,
    /// Mean time on a processor, with the preparations: what remains of a measurement on a busy machine.
    busy: Duration,
}

struct Bench {
    updater: Updater,
    state: Vec<IntegralState>,
    operations: Vec<usize>,
    /// Of a generator of numbers.
    random: u64,
}

impl Bench {
    fn load(tree: &str, improved: bool) -> Bench {
        let mut case = load(tree);
        case.input.options.enable_improved_fair_share_by_fit_factor_computation = improved;
        Bench::new(case.input, case.state)
    }

    fn new(input: Input, mut state: Vec<IntegralState>) -> Bench {
        state.resize(input.elements.len(), IntegralState::default());
        let elements = input.elements.iter().enumerate();
        let operations = elements.filter(|(_, e)| matches!(e.kind, Kind::Operation(_))).map(|(e, _)| e);
        let operations = operations.collect();
        let updater = Updater::new(input).expect("valid input");
        let mut bench = Bench { updater, state, operations, random: 1 };
        bench.update();
        bench
    }

    fn update(&mut self) {
        self.updater.update(&mut self.state, CYCLE).expect("valid input");
    }

    /// Demand of one operation out of so many, wherever it is.
    fn change(&mut self, one_of: usize) {
        for _ in 0..self.operations.len() / one_of {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let e = self.operations[(self.random >> 33) as usize % self.operations.len()];
            let operation = self.updater.operation_mut(e).expect("an operation");
            // One job more or less, as far as there are any.
            let jobs = operation.demand.user_slots.max(1);
            let job = Resources::from_raw(|r| operation.demand.raw(r) / jobs);
            let less = self.random & 1 << 40 == 0 && operation.demand.dominates(&(operation.usage + job));
            operation.demand = if less { operation.demand - job } else { operation.demand + job };
        }
    }

    /// Updates after these preparations, in turns: what else the machine does meets all alike, so that ratios
    /// stay what they are.
    #[allow(clippy::disallowed_methods)] // The crate has no clock, its bench needs one.
    fn measure<const N: usize>(&mut self, prepare: [fn(&mut Bench); N]) -> [Times; N] {
        let mut times = [(); N].map(|()| Vec::new());
        let mut busy = [Duration::ZERO; N];
        for _ in 0..TURNS {
            for (prepare, (times, busy)) in prepare.iter().zip(times.iter_mut().zip(&mut busy)) {
                let before = crate::busy();
                let end = Instant::now() + TURN;
                for turn in 0..200 {
                    if turn > 0 && Instant::now() >= end {
                        break;
                    }
                    prepare(self);
                    let start = Instant::now();
                    self.update();
                    times.push(start.elapsed());
                }
                *busy += crate::busy() - before;
            }
        }
        std::array::from_fn(|i| {
            let times = &mut times[i];
            times.sort();
            Times { best: times[0], median: times[times.len() / 2], busy: busy[i] / times.len() as u32 }
        })
    }
}

#[allow(clippy::disallowed_methods)] // The crate does no IO, its bench has to.
fn load(tree: &str) -> Case {
    let path = format!("{FOLDER}/bench_{tree}.jsonl.gz");
    let file = std::fs::File::open(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut line = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut line).expect("gzip");
    Case::parse(line.trim())
}
