//! Signals that end the process: what is half written goes with it.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;

/// Sees to it that a signal leaves no unfinished file behind. Where that cannot be had, such a file stays: no reason
/// not to work.
pub(crate) fn tidy() {
    // A limit on the size of files then is an error of the write, like a full disk.
    let _ = flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    let ignored = ignored();
    let wanted = [SIGHUP, SIGINT, SIGQUIT, SIGTERM].into_iter().filter(|s| ignored >> (s - 1) & 1 == 0);
    let Ok(mut signals) = Signals::new(wanted) else { return };
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            hadal::files::discard_unfinished();
            std::process::exit(code(signal));
        }
    };
    let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(wait);
}

/// The exit code of a process that a signal ended, as shells have it.
fn code(signal: c_int) -> i32 {
    128 + signal
}

/// The signals that the process was started to ignore (`nohup`), as bits; none where the system does not say.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
