//! Tests as files: `tests/cases/*.case` of the workspace.
//!
//! A case is sections, each a line `=== KIND [ARGUMENT]` and what follows it. What stands before the first
//! section says what the case shows. `file NAME` puts a file into a folder of the case's own; `command` is a
//! command line, run in the folder of test data, in which `{dir}` is that folder; `exit`, `stdout` and `stderr`
//! hold what it gives. `has NAME` and `hasnot NAME` say whether a file of the folder is there afterwards.
//!
//! With `BLESS=1` in the environment the expected sections are rewritten from what the command does; read the
//! difference before keeping it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::fmt::Write;
use std::path::Path;

use common::{code, data, hadal};

struct Section {
    kind: String,
    argument: String,
    body: String,
}

fn sections(text: &str) -> (String, Vec<Section>) {
    let mut preamble = String::new();
    let mut all: Vec<Section> = Vec::new();
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("=== ") {
            let (kind, argument) = head.split_once(' ').unwrap_or((head, ""));
            all.push(Section { kind: kind.to_owned(), argument: argument.to_owned(), body: String::new() });
        } else {
            let body = all.last_mut().map_or(&mut preamble, |s| &mut s.body);
            body.push_str(line);
            body.push('\n');
        }
    }
    (preamble, all)
}

/// Runs a case; gives its text with the expected sections as they came out.
fn run(text: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().display().to_string();
    let (mut out, sections) = sections(text);
    for s in sections {
        match s.kind.as_str() {
            "file" => {
                std::fs::write(dir.path().join(&s.argument), &s.body).unwrap();
                write!(out, "=== file {}\n{}", s.argument, s.body).unwrap();
            }
            "command" => {
                let line = s.body.trim().replace("{dir}", &folder);
                let args = line.split_whitespace();
                let result = hadal(args.clone().skip(1));
                assert_eq!(args.clone().next(), Some("hadal"), "a command line begins with hadal");
                let text = |bytes: &[u8]| {
                    let text = String::from_utf8_lossy(bytes).replace(&folder, "{dir}");
                    if text.is_empty() || text.ends_with('\n') { text } else { text + "\n" }
                };
                write!(
                    out,
                    "=== command\n{}\n=== exit\n{}\n=== stdout\n{}=== stderr\n{}",
                    s.body.trim(),
                    code(&result),
                    text(&result.stdout),
                    text(&result.stderr)
                )
                .unwrap();
            }
            "has" | "hasnot" => {
                let there = dir.path().join(&s.argument).exists();
                writeln!(out, "=== {} {}", if there { "has" } else { "hasnot" }, s.argument).unwrap();
            }
            "exit" | "stdout" | "stderr" => {}
            other => panic!("unknown section {other:?}"),
        }
    }
    out
}

#[test]
fn cases() {
    let folder = data().join("../cases");
    let bless = std::env::var_os("BLESS").is_some_and(|v| v == "1");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "case"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    let mut wrong = Vec::new();
    for file in files {
        let want = std::fs::read_to_string(&file).unwrap();
        let got = run(&want);
        if got != want {
            if bless {
                std::fs::write(&file, got).unwrap();
            } else {
                wrong.push(difference(&file, &want, &got));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn difference(file: &Path, want: &str, got: &str) -> String {
    let at = want.lines().zip(got.lines()).take_while(|(a, b)| a == b).count();
    let line = |text: &str| text.lines().nth(at).unwrap_or("(end)").to_owned();
    format!("{}:{}:\n  expected: {}\n  got:      {}", file.display(), at + 1, line(want), line(got))
}
