//! `hadal verify`: every broken rule of a program.

use std::path::PathBuf;

use clap::Args;
use hadal::ir::diag::Violation;
use hadal::ir::verify::LowerOptions;
use serde_json::{Value, json};

use super::load::{self, LowerArgs};
use crate::failure::Failure;
use crate::term::{Term, counted};

/// Check a program against every rule of a target; all violations, each with code, place and remedy.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hadal verify program.bir.json --target trn2
  hadal verify kernel.klr --target trn3 --json
  hadal verify program.bir.json --target trn1 --profile neuronx-cc-2.24

Exit code 4 when a rule is broken.")]
pub(crate) struct VerifyArgs {
    /// A .klr kernel or a .bir.json program; - for standard input.
    program: PathBuf,
    #[command(flatten)]
    lower: LowerArgs,
}

/// Runs the command.
pub(crate) fn run(args: &VerifyArgs, term: Term) -> Result<(), Failure> {
    let (source, form) = load::open(&args.program)?;
    let target = args.lower.target;
    let options = LowerOptions { unwritten_reads: true, ..args.lower.options() };
    let checked = load::module(&source, form, &args.lower)
        .and_then(|module| load::verified_under(module, options, term));
    match checked {
        Ok(verified) => {
            let cores = verified.module().cores.len();
            let instructions: usize = verified.module().cores.iter().map(|c| c.instrs.len()).sum();
            if term.json {
                return term.out_json(&json!({
                    "target": target.to_string(), "profile": args.lower.profile_name(), "ok": true,
                    "cores": cores, "instructions": instructions, "violations": [],
                }));
            }
            if term.quiet {
                return Ok(());
            }
            term.out(&format!(
                "{}: every rule holds on {target} ({}; {}; profile {})\n",
                source.name,
                counted(instructions, "instruction"),
                counted(cores, "core"),
                args.lower.profile_name(),
            ))
        }
        Err(Failure::Rules(violations)) => {
            if term.json {
                let list: Vec<Value> = violations.iter().map(as_json).collect();
                term.out_json(&json!({
                    "target": target.to_string(), "profile": args.lower.profile_name(), "ok": false,
                    "violations": list,
                }))?;
            }
            let n = violations.len();
            term.complain(&Failure::Rules(violations).to_string());
            term.say(&format!("\n{}: {} on {target}", source.name, counted(n, "violation")));
            Err(Failure::Reported { exit: 4 })
        }
        Err(other) => Err(other),
    }
}

fn as_json(v: &Violation) -> Value {
    json!({
        "code": v.code,
        "core": v.core,
        // The name; null for a rule about a location.
        "instruction": v.instr.map(|_| &v.subject),
        "index": v.instr,
        "subject": v.subject,
        "operand": v.operand,
        "place": v.place(),
        "text": v.text,
        "remedy": v.remedy,
        "confidence": v.confidence.name(),
        "position": v.pos.as_ref().map(|p| json!({"file": &*p.file, "line": p.line, "column": p.column})),
    })
}
