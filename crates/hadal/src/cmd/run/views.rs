//! The files that show a run: where they may go, and what goes into them.

use std::path::Path;

use hadal::ir::encode::Lowered;
use hadal::sim::{Options, Stats};

use super::outputs::Results;
use super::timeline::{self, View};
use super::{Done, RunArgs, report, summary};
use crate::cmd::load;
use crate::failure::Failure;
use crate::term::Term;

/// Refuses results that would run into one another.
pub(super) fn check(args: &RunArgs, term: Term) -> Result<(), Failure> {
    let named = [("--trace", &args.trace), ("--timeline", &args.timeline), ("--report", &args.report)];
    let named = named.iter().filter_map(|(option, path)| Some(((*option).to_owned(), path.as_deref()?)));
    let dumps = args.dump.iter().map(|(name, path)| (format!("--dump {name}"), path.as_path()));
    load::destinations(&named.chain(dumps).collect::<Vec<_>>(), term)?;
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
    let views = [&args.timeline, &args.report].into_iter().flatten();
    views.chain(args.dump.iter().map(|(_, path)| path)).any(|path| path == Path::new("-"))
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
