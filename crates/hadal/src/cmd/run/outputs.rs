//! The results of a run: which locations, their range, and the files they go to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use hadal::files::{self, FileError};
use hadal::ir::program::{Access, LocKind, Module, Role, Space};
use hadal::npy;
use hadal::num::Dtype;
use hadal::sim::bind::{self, Array, BindError};

use super::{Done, RunArgs, views};
use crate::cmd::{arrays, load};
use crate::failure::Failure;
use crate::term::Term;

/// A result location after the run.
pub(super) struct Output {
    pub(super) name: String,
    pub(super) core: usize,
    pub(super) space: Space,
    pub(super) dtype: Dtype,
    /// Bit patterns.
    pub(super) bits: Array,
    pub(super) unwritten: usize,
    pub(super) range: Range,
    /// Where it was written, if it was.
    pub(super) file: Option<PathBuf>,
}

/// Values of an array at a glance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range {
    /// Least and greatest value that is not NaN.
    pub(super) span: Option<(f32, f32)>,
    /// NaN elements.
    pub(super) nans: usize,
}

/// The results: the declared outputs, or, when there are none, every location that the program writes.
pub(super) struct Results {
    pub(super) declared: bool,
    pub(super) outputs: Vec<Output>,
}

/// The first core that has a location of that name.
pub(super) fn core_of(module: &Module, name: &str) -> Result<usize, Failure> {
    module.cores.iter().position(|p| p.find_loc(name).is_some()).ok_or_else(|| {
        let known: Vec<&str> =
            module.cores.iter().flat_map(|p| p.locs.iter().map(|l| l.name.as_str())).collect();
        Failure::from(BindError::UnknownName { name: name.to_owned(), known: known.join(", ") })
    })
}

/// Reads the results out of memory.
pub(super) fn collect(done: &Done<'_>) -> Result<Results, Failure> {
    let module = done.verified.module();
    let mut places = declared(module);
    let declared = !places.is_empty();
    if !declared {
        places = written(module);
    }
    let mut outputs = Vec::with_capacity(places.len());
    for (core, name) in places {
        outputs.push(output(done, core, &name)?);
    }
    if let Some(dir) = &done.args.out_dir {
        let names = file_names(outputs.iter().map(|o| (o.core, o.name.as_str())));
        outputs.iter_mut().zip(names).for_each(|(o, name)| o.file = Some(dir.join(name)));
    }
    Ok(Results { declared, outputs })
}

/// File names of results, all different; a name that several cores use gets the core's number.
fn file_names<'a>(places: impl Iterator<Item = (usize, &'a str)> + Clone) -> Vec<String> {
    let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
    places.clone().for_each(|(_, name)| *uses.entry(name).or_default() += 1);
    let mut taken = BTreeSet::new();
    places
        .map(|(core, name)| {
            let several = uses.get(name).is_some_and(|n| *n > 1);
            let core = if several { format!(".core{core}") } else { String::new() };
            let stem = format!("{}{core}", file_name(name));
            // No name contains a % that is not followed by two digits of its own.
            let again = (2..).map(|n| format!("{stem}%{n}.npy"));
            let mut names = std::iter::once(format!("{stem}.npy")).chain(again);
            names.find(|name| taken.insert(name.clone())).unwrap_or(stem)
        })
        .collect()
}

/// Refuses, before the run, result files that could not be, or that another result or an input has.
pub(super) fn check_names(module: &Module, args: &RunArgs, dir: &Path, term: Term) -> Result<(), Failure> {
    let mut places = declared(module);
    if places.is_empty() {
        places = written(module);
    }
    let names = file_names(places.iter().map(|(core, name)| (*core, name.as_str())));
    let paths: Vec<PathBuf> = names.iter().map(|name| dir.join(name)).collect();
    let mut all = views::named(args);
    all.extend(
        places.iter().zip(&paths).map(|((_, name), path)| (format!("--out-dir {name}"), path.as_path())),
    );
    load::distinct(&all, &views::read(args), term)?;
    if dir.exists() {
        if !dir.is_dir() {
            let error = std::io::Error::new(std::io::ErrorKind::NotADirectory, "it is a file, not a folder");
            return Err(FileError::Unwritable { name: dir.display().to_string(), error }.into());
        }
        return paths.iter().try_for_each(|path| Ok(files::check_writable(path)?));
    }
    // The folder is made after the run.
    paths.iter().try_for_each(|path| Ok(files::check_name(path)?))
}

fn declared(module: &Module) -> Vec<(usize, String)> {
    let mut known = BTreeSet::new();
    let cores = module.cores.iter().enumerate();
    let locs = cores.flat_map(|(core, program)| program.locs.iter().map(move |loc| (core, loc)));
    locs.filter(|(_, loc)| matches!(loc.kind, LocKind::Dram { role: Role::Output, .. }))
        .filter(|(_, loc)| known.insert(loc.name.as_str()))
        .map(|(core, loc)| (core, loc.name.clone()))
        .collect()
}

fn written(module: &Module) -> Vec<(usize, String)> {
    let mut known = BTreeSet::new();
    let mut found = Vec::new();
    for (core, program) in module.cores.iter().enumerate() {
        let operands = program.instrs.iter().flat_map(|i| i.op.operands());
        for (_, _, ap) in operands.filter(|(_, access, _)| *access == Access::Write) {
            let Some(loc) = program.loc(ap.loc) else { continue };
            // A DRAM tensor is one for all cores.
            let core_of_its_own = (loc.space() != Space::Dram).then_some(core);
            if known.insert((core_of_its_own, loc.name.as_str())) {
                found.push((core, loc.name.clone()));
            }
        }
    }
    found
}

fn output(done: &Done<'_>, core: usize, name: &str) -> Result<Output, Failure> {
    let module = done.verified.module();
    let unknown = || BindError::UnknownName { name: name.to_owned(), known: String::new() };
    let program = module.cores.get(core).ok_or_else(unknown)?;
    let id = program.find_loc(name).ok_or_else(unknown)?;
    let dtype = bind::element_type(program, id);
    let bits = done.run.dump(module, core, name)?;
    let range = range(&bits, dtype);
    Ok(Output {
        name: name.to_owned(),
        core,
        space: program.loc(id).map_or(Space::Dram, |l| l.space()),
        dtype,
        unwritten: done.run.unwritten(module, core, name)?,
        bits,
        range,
        file: None,
    })
}

/// Least and greatest value, and how many are NaN.
fn range(bits: &Array, dtype: Dtype) -> Range {
    let Ok(wide) = bind::widen(bits, dtype) else { return Range { span: None, nans: 0 } };
    let (words, _) = wide.data.as_chunks::<4>();
    let mut range = Range { span: None, nans: 0 };
    for v in words.iter().map(|w| f32::from_le_bytes(*w)) {
        if v.is_nan() {
            range.nans += 1;
        } else {
            let (lo, hi) = range.span.unwrap_or((v, v));
            range.span = Some((lo.min(v), hi.max(v)));
        }
    }
    range
}

/// A location's name as a file name: what would leave the folder or hide the file is written `%XX`.
fn file_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for (i, c) in name.chars().enumerate() {
        match c {
            '/' | '\\' | '%' | ':' => out.push_str(&format!("%{:02X}", u32::from(c))),
            '.' if i == 0 => out.push_str("%2E"),
            c => out.push(c),
        }
    }
    out
}

/// Writes the outputs and the dumps.
pub(super) fn write(done: &Done<'_>, results: &Results, term: Term) -> Result<(), Failure> {
    if let Some(dir) = &done.args.out_dir {
        make_folder(dir)?;
    }
    for output in &results.outputs {
        let Some(path) = &output.file else { continue };
        let array = if done.args.widen {
            arrays::to_npy(&bind::widen(&output.bits, output.dtype)?)
        } else {
            arrays::native(&output.bits, output.dtype)
        };
        files::write(path, &npy::write(&array))?;
    }
    let module = done.verified.module();
    for (name, path) in &done.args.dump {
        let o = output(done, core_of(module, name)?, name)?;
        let array = if done.args.widen { bind::widen(&o.bits, o.dtype)? } else { o.bits };
        load::put(path, &npy::write(&arrays::to_npy(&array)), term)?;
    }
    Ok(())
}

fn make_folder(dir: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(dir)
        .map_err(|error| FileError::Unwritable { name: dir.display().to_string(), error }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside_the_folder() {
        assert_eq!(file_name("out.0"), "out.0");
        assert_eq!(file_name("../../x"), "%2E.%2F..%2Fx");
        assert_eq!(file_name(".hidden"), "%2Ehidden");
        assert_ne!(file_name("a/b"), file_name("a%2Fb"));
    }

    #[test]
    fn range_skips_and_counts_nan() {
        let bits = Array {
            dtype: hadal::sim::bind::ArrayDtype::U16,
            shape: vec![4],
            data: [0x3f80u16, 0x7fc0, 0xbf80, 0x0000].iter().flat_map(|v| v.to_le_bytes()).collect(),
        };
        assert_eq!(range(&bits, Dtype::Bfloat16), Range { span: Some((-1.0, 1.0)), nans: 1 });
    }
}
