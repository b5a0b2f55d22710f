//! `hadal run --timeline` and `--report`: the files, through the command.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::{code, hadal, hadal_with_input, stderr, stdout};
use serde_json::Value;

/// Runs a program with both views; the summary as JSON, the timeline, the page.
fn views(program: &str, target: &str, more: &[&str]) -> (Value, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let (timeline, report) = (dir.path().join("t.json"), dir.path().join("r.html"));
    let mut args = vec!["run", program, "-t", target, "--json"];
    args.extend(["--timeline", timeline.to_str().unwrap(), "--report", report.to_str().unwrap()]);
    args.extend(more);
    let summary: Value = serde_json::from_str(&stdout(&hadal(args))).unwrap();
    assert_eq!(summary["timeline"], timeline.to_str().unwrap());
    assert_eq!(summary["report"], report.to_str().unwrap());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    let read = |p: &Path| std::fs::read_to_string(p).unwrap();
    (summary, read(&timeline), read(&report))
}

/// A decimal number of microseconds in picoseconds, without a float between.
fn picoseconds(text: &str) -> u64 {
    let (whole, part) = text.split_once('.').unwrap();
    assert_eq!(part.len(), 6, "{text}");
    whole.parse::<u64>().unwrap() * 1_000_000 + part.parse::<u64>().unwrap()
}

/// The text after `"key":` up to the next comma.
fn raw<'a>(line: &'a str, key: &str) -> &'a str {
    let at = line.find(&format!("\"{key}\":")).unwrap() + key.len() + 3;
    line[at..].split([',', '}']).next().unwrap()
}

/// What Perfetto needs of every event, lanes in which nothing overlaps, and the summary's cycles.
fn check_timeline(summary: &Value, text: &str) -> usize {
    let trace: Value = serde_json::from_str(text).unwrap();
    let estimates = summary["estimate"].as_array().unwrap();
    let mut ends: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let mut lanes = BTreeMap::new();
    let mut cycles = vec![0; estimates.len()];
    let mut counters: BTreeMap<(u64, String), u64> = BTreeMap::new();
    let mut spans = 0;
    // One event a line: the exact digits of its times are read from it.
    let lines = text.lines().filter(|l| l.starts_with("{\"ph\"") || l.contains("\"ph\":\"M\""));
    let events = trace["traceEvents"].as_array().unwrap();
    assert_eq!(lines.clone().count(), events.len());
    for (event, line) in events.iter().zip(lines) {
        let pid = event["pid"].as_u64().unwrap();
        match event["ph"].as_str().unwrap() {
            "M" => {
                if event["name"] == "thread_name" {
                    let name = event["args"]["name"].as_str().unwrap();
                    lanes.insert((pid, event["tid"].as_u64().unwrap()), name.to_owned());
                }
            }
            "X" => {
                let lane = (pid, event["tid"].as_u64().unwrap());
                let name = &lanes[&lane];
                let (start, length) = (picoseconds(raw(line, "ts")), picoseconds(raw(line, "dur")));
                let end = ends.entry(lane).or_default();
                assert!(start >= *end && length > 0, "{name}: {line}");
                *end = start + length;
                assert!(name.starts_with(event["cat"].as_str().unwrap()), "{name}: {line}");
                let args = &event["args"];
                let used = args["utilization"].as_f64().unwrap();
                assert!((0.0..=1.0).contains(&used) && args["macs"].is_u64(), "{line}");
                assert!(args["bundle"].is_u64() && args["mnemonic"].is_string(), "{line}");
                cycles[pid as usize] += args["cycles"].as_u64().unwrap();
                spans += 1;
            }
            "C" => {
                let at = picoseconds(raw(line, "ts"));
                let last = counters.entry((pid, event["name"].as_str().unwrap().to_owned())).or_default();
                assert!(at >= *last, "{line}");
                *last = at;
                assert_eq!(event["args"].as_object().unwrap().len(), 1);
            }
            other => panic!("event {other}"),
        }
    }
    for (core, (sum, estimate)) in cycles.iter().zip(estimates).enumerate() {
        assert_eq!(estimate["cycles"], *sum);
        assert_eq!(trace["otherData"]["cycles"][core], *sum);
        let end = ends.iter().filter(|((pid, _), _)| *pid == core as u64).map(|(_, e)| *e).max().unwrap_or(0);
        let whole = estimate["microseconds"].as_f64().unwrap() * 1e6;
        assert!((end as f64 - whole).abs() <= 0.5 + 1e-6, "{end} {whole}");
    }
    assert!(trace["otherData"]["estimate"].as_str().unwrap().contains("not measurements"));
    spans
}

/// The data inside a page.
fn data_of(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// The page asks for nothing, and holds what the summary says.
fn check_page(summary: &Value, page: &str) {
    let data = data_of(page);
    // What is not data is ours alone; in the data no markup can begin.
    let (before, rest) = page.split_once("id=\"data\">").unwrap();
    let (inside, after) = rest.split_once("</script>").unwrap();
    assert!(!inside.contains(['<', '>', '&']));
    let ours = [before, after].concat();
    for asking in ["http:", "https:", "src=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("] {
        let allowed = if asking == "http:" { ours.matches("http://www.w3.org/2000/svg").count() } else { 0 };
        assert_eq!(ours.matches(asking).count(), allowed, "the page has {asking}");
    }
    // `<link>` and `<meta>` are those of the template: an empty icon, and a policy that forbids loading.
    assert_eq!((page.matches("<link").count(), page.matches("href=\"data:,\"").count()), (1, 1));
    assert!(page.contains("default-src 'none'"));
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script").count(), 2);
    assert_eq!(data["target"], summary["target"]);
    let cores = data["cores"].as_array().unwrap();
    for (core, estimate) in cores.iter().zip(summary["estimate"].as_array().unwrap()) {
        assert_eq!(core["cycles"], estimate["cycles"]);
        assert_eq!(core["utilization"], estimate["pe_utilization"]);
        let spans = core["spans"].as_array().unwrap();
        let sum: u64 = spans.iter().map(|s| s[3].as_u64().unwrap()).sum();
        assert_eq!(core["cycles"], sum);
        for bundle in core["bundles"].as_array().unwrap() {
            assert_eq!(bundle["hex"].as_str().unwrap().len(), 128);
            // The fields of a bundle cover its bytes, as `dis --fields` shows them.
            let mut seen = [false; 64];
            for f in bundle["fields"].as_array().unwrap() {
                let (offset, width) = (f[0].as_u64().unwrap() as usize, f[1].as_u64().unwrap() as usize);
                seen[offset..offset + width].fill(true);
            }
            assert_eq!(seen, [true; 64]);
        }
    }
}

#[test]
fn both_views_of_every_kind_of_program() {
    // Bundles of each, by the encoder's golden streams; a float32 matmul is two passes.
    for (program, target, spans) in [
        ("programs/dense_bf16.bir.json", "trn1", 2),
        ("programs/fp32_two_pass.bir.json", "trn2", 4),
        ("programs/tiles_64.bir.json", "trn2", 8),
        ("programs/weight_reuse.bir.json", "trn2", 9),
        ("programs/sparse_4.bir.json", "trn2", 3),
        ("programs/transpose.bir.json", "trn2", 2),
        ("klr/accept/h_lnc2_two_cores.klr", "trn2", 4),
        // Two quantizations take the array no time.
        ("programs/quantize_matmul_mx.bir.json", "trn3", 2),
    ] {
        let (summary, timeline, page) = views(program, target, &[]);
        assert_eq!(check_timeline(&summary, &timeline), spans, "{program}");
        check_page(&summary, &page);
    }
}

#[test]
fn the_files_do_not_depend_on_threads_or_executor() {
    let program = "programs/accumulate_k.bir.json";
    let (_, timeline, page) = views(program, "trn2", &["--threads", "1"]);
    for more in [&["--threads", "2"][..], &["--executor", "ir"], &["--executor", "both"]] {
        let (summary, again, other) = views(program, "trn2", more);
        assert_eq!(timeline, again);
        check_page(&summary, &other);
        // What executed is named in the page; all else is the same.
        let without = |page: &str| {
            let mut data = data_of(page);
            data["facts"].as_array_mut().unwrap().retain(|row| row[0] != "Executed");
            data
        };
        assert_eq!(without(&page), without(&other));
        assert_eq!(page == other, more[0] == "--threads");
    }
}

#[test]
fn a_tile_group_has_its_own_lanes() {
    let (_, timeline, _) = views("programs/tiles_64.bir.json", "trn2", &[]);
    for tile in ["rows 0..64, columns 0..64", "rows 64..128, columns 0..64", "rows 64..128, columns 64..128"]
    {
        for what in ["load", "matmul"] {
            assert!(timeline.contains(&format!("\"name\":\"{what} {tile}\"")), "{what} {tile}");
        }
    }
}

#[test]
fn bare_bundles_have_both_views() {
    let dir = tempfile::tempdir().unwrap();
    let words = dir.path().join("k.bin");
    let bin = words.to_str().unwrap();
    let program = "programs/weight_reuse.bir.json";
    stdout(&hadal(["compile", program, "-t", "trn2", "--emit", "bin", "-o", bin]));
    let (summary, timeline, page) = views(bin, "trn2", &["--uninit", "zero"]);
    assert_eq!(check_timeline(&summary, &timeline), 9);
    assert!(timeline.contains("\"name\":\"LoadStationary 0\""));
    check_page(&summary, &page);
    assert!(data_of(&page)["cores"][0]["memory"].is_null());
}

/// Names cannot leave the place they stand in.
#[test]
fn hostile_names_stay_text() {
    let hostile = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>&\u{2028}'\"\\";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.bir.json");
    let text = std::fs::read_to_string(common::data().join("programs/dense_bf16.bir.json")).unwrap();
    let mut program: Value = serde_json::from_str(&text).unwrap();
    program["name"] = hostile.into();
    program["instructions"][0]["name"] = hostile.into();
    let old = program["memlocs"][0]["name"].clone();
    program["memlocs"][0]["name"] = hostile.into();
    let operands = program["instructions"][0].as_object_mut().unwrap();
    operands.values_mut().filter(|o| o["loc"] == old).for_each(|o| o["loc"] = hostile.into());
    std::fs::write(&path, program.to_string()).unwrap();
    let (summary, timeline, page) = views(path.to_str().unwrap(), "trn2", &[]);
    assert_eq!(check_timeline(&summary, &timeline), 2);
    // `check_page` counts the scripts; the names come back whole.
    let lower = page.to_lowercase();
    assert!(!lower.contains("<img") && !lower.contains("<!--"));
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (2, 2));
    let data = data_of(&page);
    assert_eq!(data["cores"][0]["bundles"][0]["instruction"], hostile);
    let spaces = &data["cores"][0]["memory"];
    let all: Vec<&Value> =
        ["sbuf", "psum"].iter().flat_map(|s| spaces[s]["locations"].as_array().unwrap()).collect();
    assert!(all.iter().any(|l| l["name"] == hostile), "{all:?}");
    assert!(data["facts"].to_string().contains("alert(1)"));
}

#[test]
fn one_result_on_standard_output() {
    let program = "programs/dense_bf16.bir.json";
    let run = |more: &[&str]| {
        let mut args = vec!["run", program, "-t", "trn2"];
        args.extend(more);
        hadal(args)
    };
    // The view alone, without the summary.
    let trace: Value = serde_json::from_str(&stdout(&run(&["--timeline", "-"]))).unwrap();
    assert_eq!(trace["otherData"]["cycles"][0], 544);
    let page = stdout(&run(&["--report", "-"]));
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    for more in [
        &["--timeline", "-", "--json"][..],
        &["--report", "-", "--json"],
        &["--report", "-", "--map"],
        &["--report", "-", "--rules"],
        &["--timeline", "-", "--report", "-"],
        &["--timeline", "-", "--trace", "-"],
    ] {
        let out = run(more);
        assert_eq!((code(&out), out.stdout.len()), (2, 0), "{more:?}");
        assert!(stderr(&out).contains("standard output"), "{}", stderr(&out));
    }
    let text = std::fs::read(common::data().join(program)).unwrap();
    let piped = hadal_with_input(["run", "-", "-t", "trn2", "--timeline", "-"], &text);
    assert!(stdout(&piped).starts_with("{\"displayTimeUnit\""));
}

#[test]
fn no_result_is_lost_to_another_or_to_an_input() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let (program, plain) = (at("p.bir.json"), at("a"));
    std::fs::copy(common::data().join("programs/dense_bf16.bir.json"), &program).unwrap();
    std::fs::create_dir(at("q")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("a", at("link")).unwrap();
    #[cfg(not(unix))]
    std::fs::write(at("link"), "").unwrap();
    let summary: Value =
        serde_json::from_str(&stdout(&hadal(["run", &program, "-t", "trn2", "--json"]))).unwrap();
    let output = summary["outputs"][0]["name"].as_str().unwrap().to_owned();
    let (other, link, dump) = (at("q/../a"), at("link"), format!("{output}={}", at("out/x.npy")));
    let (out, result) = (at("out"), at(&format!("out/{output}.npy")));
    let dumped = format!("{output}={result}");
    let before = std::fs::read_dir(dir.path()).unwrap().count();
    for more in [
        &["--timeline", &plain, "--report", &other][..],
        &["--timeline", &plain, "--report", if cfg!(unix) { &link } else { &plain }],
        &["--timeline", &program],
        &["--trace", "/dev/stdout", "--report", "-"],
        &["--out-dir", &out, "--report", &result],
        &["--out-dir", &out, "--dump", &dumped],
        &["--dump", &dump, "--dump", &dump],
    ] {
        let mut args = vec!["run", &program, "-t", "trn2"];
        args.extend(more);
        let got = hadal(args);
        // A folder that is not there is found out after names that are equal.
        assert_eq!((code(&got), got.stdout.len()), (2, 0), "{more:?} {}", stderr(&got));
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), before);
    // A view may go where the outputs go, though the folder is not there yet.
    let page = at("out/run.html");
    let got = hadal(["run", &program, "-t", "trn2", "--out-dir", &out, "--report", &page]);
    assert_eq!(code(&got), 0, "{}", stderr(&got));
    assert_eq!(std::fs::read_dir(dir.path().join("out")).unwrap().count(), 2);
}

#[test]
fn what_cannot_be_written_is_an_input_failure() {
    let dir = tempfile::tempdir().unwrap();
    let absent = dir.path().join("absent/x").display().to_string();
    let folder = dir.path().display().to_string();
    for (option, path) in [("--timeline", &absent), ("--report", &absent), ("--report", &folder)] {
        let out = hadal(["run", "programs/dense_bf16.bir.json", "-t", "trn2", option, path]);
        assert_eq!(code(&out), 3, "{option} {path}");
        assert!(stderr(&out).contains("error[FILE-005]"), "{}", stderr(&out));
    }
    // A program that is refused leaves no view.
    let file = dir.path().join("r.html").display().to_string();
    let out = hadal(["run", "programs/quantize_matmul_mx.bir.json", "-t", "trn1", "--report", &file]);
    assert_eq!(code(&out), 4);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
