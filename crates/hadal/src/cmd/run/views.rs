//! The files that show a run: where they may go, and what goes into them.

use std::path::Path;

use hadal::files;
use hadal::ir::encode::Lowered;
use hadal::sim::{Options, Stats};

use super::outputs::Results;
use super::timeline::{self, View};
use super::{Done, RunArgs, report, summary};
use crate::cmd::load;
use crate::failure::Failure;
use crate::term::Term;

/// Results named on the command line: the option of each, and where it goes.
pub(super) fn named(args: &RunArgs) -> Vec<(String, &Path)> {
    let named = [("--trace", &args.trace), ("--timeline", &args.timeline), ("--report", &args.report)];
    let named = named.into_iter().filter_map(|(option, path)| Some((option.to_owned(), path.as_deref()?)));
    named.chain(args.dump.iter().map(|(name, path)| (format!("--dump {name}"), path.as_path()))).collect()
}

/// Files that a run reads.
pub(super) fn read(args: &RunArgs) -> Vec<&Path> {
    let inputs = args.inputs.iter().map(|(_, path)| path.as_path());
    std::iter::once(args.program.as_path()).chain(inputs).collect()
}

/// Refuses results that would run into one another.
pub(super) fn check(args: &RunArgs, term: Term) -> Result<(), Failure> {
    load::distinct(&named(args), &read(args), term)?;
    for (_, path) in named(args) {
        // The folder of the outputs is made when there is something to put into it.
        if !args.out_dir.as_ref().is_some_and(|dir| !dir.exists() && path.starts_with(dir)) {
            files::check_writable(path)?;
        }
    }
    let printed = [("--map", args.map), ("--rules", args.rules)];
    match printed.iter().find(|(_, on)| *on) {
        Some((option, _)) if to_stdout(args) => Err(Failure::usage(
            format!("{option} and a result named - both write to standard output"),
            "give the result a file name instead of -",
        )),
        _ => Ok(()),
    }
}

/// Whether standard output holds a result asked for by name; the summary then is not printed.
pub(super) fn to_stdout(args: &RunArgs) -> bool {
    named(args).iter().any(|(_, path)| files::is_stdout(path))
}

/// Writes the views of a program's run.
pub(super) fn write(done: &Done<'_>, results: &Results, term: Term) -> Result<(), Failure> {
    let module = done.verified.module();
    let costs = costs(done.args, done.lowered, Some(module));
    let view = View {
        name: &module.name,
        file: done.file,
        lowered: done.lowered,
        module: Some(module),
        costs: &costs,
    };
    put(done.args, &view, term, || report::of_program(done, results))
}

/// Writes the views of a run of bare bundles.
pub(super) fn write_bundles(
    args: &RunArgs,
    file: &str,
    lowered: &Lowered,
    stats: &Stats,
    options: &Options,
    term: Term,
) -> Result<(), Failure> {
    let costs = costs(args, lowered, None);
    let name = Path::new(file).file_name().and_then(|n| n.to_str()).unwrap_or(file);
    let view = View { name, file, lowered, module: None, costs: &costs };
    put(args, &view, term, || report::of_bundles(lowered, stats, options))
}

/// The estimate, when a view needs it.
fn costs(
    args: &RunArgs,
    lowered: &Lowered,
    module: Option<&hadal::ir::program::Module>,
) -> Vec<hadal::sim::cost::Cost> {
    if args.timeline.is_none() && args.report.is_none() {
        return Vec::new();
    }
    summary::costs(lowered, module)
}

fn put(
    args: &RunArgs,
    view: &View<'_>,
    term: Term,
    facts: impl FnOnce() -> report::Facts,
) -> Result<(), Failure> {
    if let Some(path) = &args.timeline {
        load::put(path, timeline::text(view).as_bytes(), term)?;
    }
    if let Some(path) = &args.report {
        load::put(path, report::page(view, &facts()).as_bytes(), term)?;
    }
    Ok(())
}
