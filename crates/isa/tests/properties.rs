//! The library's properties, about a second each, on arbitrary words and texts.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::golden;
use hadal_isa::table::BUNDLES;
use hadal_isa::text::print;
use hadal_isa::{Target, Word, properties};

#[test]
fn any_word() {
    arbtest::arbtest(|u| {
        let mut word = Word(u.arbitrary()?);
        if u.ratio(7, 8)? {
            word.0[0] = u.choose(BUNDLES)?.opcode;
        }
        for target in properties::targets() {
            properties::word(&word, target).unwrap();
        }
        Ok(())
    })
    .budget_ms(1000);
}

#[test]
fn any_text() {
    let good = print(&golden("dense_bf16.trn2")[1], Target::TRN2);
    arbtest::arbtest(|u| {
        let mut text: String = u.arbitrary()?;
        if u.arbitrary()? {
            // Damage good lines instead.
            let lines = print(&Word(u.arbitrary()?), Target::TRN2) + "\n" + &good;
            let from = u.int_in_range(0..=lines.len())?;
            let to = u.int_in_range(from..=lines.len())?;
            text = format!("{}{text}{}", &lines[..from], &lines[to..]);
        }
        for target in properties::targets() {
            properties::text(&text, target).unwrap();
        }
        Ok(())
    })
    .budget_ms(1000);
}
