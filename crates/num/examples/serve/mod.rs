//! The protocol of the examples that are timed by scripts.
//!
//! A line of standard input is `OPERATION REPEAT`; the answer is a line of JSON with the nanoseconds of each repetition,
//! by the clock and by the processor time of all threads, and the amount of work. `list` names the operations.

use std::io::{BufRead, Write};
use std::time::Instant;

use cpu_time::ProcessTime;

/// One thing to time.
pub(crate) struct Operation {
    pub(crate) name: String,
    /// Bytes, or operations.
    pub(crate) amount: usize,
    pub(crate) work: Box<dyn FnMut() + Send>,
}

/// Answers lines until there are no more, on a pool of so many threads.
pub(crate) fn on_pool(
    threads: usize,
    operations: impl FnOnce() -> Vec<Operation> + Send,
) -> std::io::Result<()> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(std::io::Error::other)?;
    pool.install(|| serve(operations()))
}

fn serve(mut operations: Vec<Operation>) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let mut words = line.split_whitespace();
        let (name, repeat) =
            (words.next().unwrap_or_default(), words.next().and_then(|n| n.parse().ok()).unwrap_or(1));
        if name == "list" {
            let names: Vec<String> = operations.iter().map(|o| format!("\"{}\"", o.name)).collect();
            writeln!(out, "[{}]", names.join(", "))?;
        } else if let Some(operation) = operations.iter_mut().find(|o| o.name == name) {
            let (mut wall, mut busy) = (Vec::new(), Vec::new());
            for _ in 0..repeat {
                let (start, busy_from) = (Instant::now(), ProcessTime::now());
                (operation.work)();
                wall.push(start.elapsed().as_nanos());
                busy.push(busy_from.elapsed().as_nanos());
            }
            let amount = operation.amount;
            writeln!(
                out,
                "{{\"name\": \"{name}\", \"amount\": {amount}, \"wall\": {wall:?}, \"processor\": {busy:?}}}"
            )?;
        } else {
            writeln!(out, "{{\"error\": \"no operation of that name; `list` names them\"}}")?;
        }
        out.flush()?;
    }
    Ok(())
}
