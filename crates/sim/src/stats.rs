//! What a run did, and how it can be watched.

/// Counts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Instructions (IR) or bundles and host operators (bundles) executed.
    pub steps: usize,
    /// Stationary loads executed (bundles only).
    pub loads: usize,
    /// Matmul writebacks into PSUM.
    pub matmuls: usize,
    /// Operators without a bundle.
    pub host: usize,
    /// NaN elements that QuantizeMx turned into the zero code (D-33).
    pub nan_suppressed: u64,
}

impl Stats {
    /// Adds another run's counts.
    pub fn add(&mut self, other: &Stats) {
        self.steps += other.steps;
        self.loads += other.loads;
        self.matmuls += other.matmuls;
        self.host += other.host;
        self.nan_suppressed += other.nan_suppressed;
    }
}

/// Watches a run.
pub trait Observer {
    /// Called before each instruction or bundle with its index in the core's program or stream, and its name.
    fn step(&mut self, index: usize, name: &str);

    /// Called when a core begins, with the number of steps it has.
    fn core(&mut self, _core: usize, _steps: usize) {}
}

/// Watches nothing.
impl Observer for () {
    fn step(&mut self, _index: usize, _name: &str) {}
}
