//! The lines of the section `--- claim`: what is claimed about memory.

use super::lexer::Token;
use super::parse::{Parse, Parser};
use super::words::{self, quote, word_or_quoted};
use crate::case::{Claim, ClaimLine, ClaimedLife, Increment, Offset, Place};

/// The words that begin a line of a claim.
const KEYWORDS: [&str; 13] = [
    "order",
    "peak",
    "before",
    "steps",
    "lives",
    "life",
    "estimate",
    "increments",
    "increment",
    "offsets",
    "offset",
    "runs",
    "run",
];

impl Parser<'_> {
    /// One line of a claim.
    pub(super) fn claim_line(&mut self) -> Parse<()> {
        let spanned = self.bump();
        let span = (spanned.start, spanned.end);
        let Token::Word(word) = spanned.token else {
            return Err(self.fail(span, "expected a line of a claim, such as `peak 140`"));
        };
        let mut claim = self.case.claim.take().unwrap_or_default();
        let line = self.claimed(word, span, &mut claim);
        self.case.claim = Some(claim);
        let line = line?;
        self.finish(|| Place::Claim(line))
    }

    fn claimed(&mut self, word: &str, span: (usize, usize), claim: &mut Claim) -> Parse<ClaimLine> {
        let line = match word {
            "order" => (put(&mut claim.order, self.names()?), ClaimLine::Order),
            "peak" => (put(&mut claim.peak, self.int("bytes")?), ClaimLine::Peak),
            "before" => (put(&mut claim.before, self.int("bytes")?), ClaimLine::Before),
            "steps" => (put(&mut claim.steps, self.pairs()?), ClaimLine::Steps),
            "lives" => (self.none(&mut claim.lives)?, ClaimLine::NoLives),
            "increments" => (self.none(&mut claim.increments)?, ClaimLine::NoIncrements),
            "offsets" => (self.none(&mut claim.offsets)?, ClaimLine::NoOffsets),
            "runs" => (self.none(&mut claim.verifier_runs)?, ClaimLine::NoRuns),
            "life" => {
                let life = self.life()?;
                return self.one_more(span, &mut claim.lives, life).map(ClaimLine::Life);
            }
            "increment" => {
                let increment = self.increment()?;
                return self.one_more(span, &mut claim.increments, increment).map(ClaimLine::Increment);
            }
            "offset" => {
                let offset = self.offset()?;
                return self.one_more(span, &mut claim.offsets, offset).map(ClaimLine::Offset);
            }
            "run" => {
                let mut said = Vec::new();
                self.require('[')?;
                self.list(']', |parser| {
                    said.push(parser.text("what the verifier says, in quotes")?);
                    Ok(())
                })?;
                return self.one_more(span, &mut claim.verifier_runs, said).map(ClaimLine::Run);
            }
            "estimate" => {
                let name = self.word_or_text("the name of an estimator")?;
                claim.estimates.push((name, self.int("bytes")?));
                return Ok(ClaimLine::Estimate(claim.estimates.len() - 1));
            }
            _ => {
                let fail = self.fail(span, format!("a claim has no line {}", quote(word)));
                return Err(match words::nearest(word, KEYWORDS.iter().copied()) {
                    Some(near) => fail.help(format!("did you mean `{near}`?")),
                    None => fail.help(format!("there are: {}", KEYWORDS.join(", "))),
                });
            }
        };
        match line {
            (true, line) => Ok(line),
            (false, _) => Err(self.fail(span, format!("`{word}` stands here for the second time"))),
        }
    }

    /// `[]`: it is claimed that there are none. Whether nothing was said before.
    fn none<T>(&mut self, slot: &mut Option<Vec<T>>) -> Parse<bool> {
        self.require('[')?;
        self.require(']')?;
        Ok(put(slot, Vec::new()))
    }

    /// One more of what may stand several times; its index.
    fn one_more<T>(&self, span: (usize, usize), slot: &mut Option<Vec<T>>, item: T) -> Parse<usize> {
        match slot {
            Some(items) if items.is_empty() => Err(self.fail(span, "a line above says that there are none")),
            Some(items) => {
                items.push(item);
                Ok(items.len() - 1)
            }
            None => {
                *slot = Some(vec![item]);
                Ok(0)
            }
        }
    }

    /// `[a, b]`
    fn names(&mut self) -> Parse<Vec<String>> {
        let mut names = Vec::new();
        self.require('[')?;
        self.list(']', |parser| {
            names.push(parser.node_name()?.into_owned());
            Ok(())
        })?;
        Ok(names)
    }

    /// `[(100, 100), (140, 40)]`
    fn pairs(&mut self) -> Parse<Vec<(i64, i64)>> {
        let mut pairs = Vec::new();
        self.require('[')?;
        self.list(']', |parser| {
            parser.require('(')?;
            let peak = parser.int("bytes after the allocations")?;
            parser.require(',')?;
            let after = parser.int("bytes after the frees")?;
            parser.require(')')?;
            pairs.push((peak, after));
            Ok(())
        })?;
        Ok(pairs)
    }

    /// `NAME BYTES [from STEP] [freed STEP ...]`
    fn life(&mut self) -> Parse<ClaimedLife> {
        let name = self.node_name()?.into_owned();
        let bytes = self.int("bytes")?;
        let alloc = if self.eat_word("from") { Some(self.small_int("a step")?) } else { None };
        let mut frees = Vec::new();
        if self.eat_word("freed") {
            frees.push(self.small_int("a step")?);
            while !self.at_line_end() {
                frees.push(self.small_int("a step")?);
            }
        }
        Ok(ClaimedLife { name, bytes, alloc, frees })
    }

    /// `order [...] steps [...] [foresees BYTES of [...]]`
    fn increment(&mut self) -> Parse<Increment> {
        self.word("order")?;
        let order = self.names()?;
        self.word("steps")?;
        let steps = self.pairs()?;
        let mut potential = None;
        if self.eat_word("foresees") {
            let peak = self.int("bytes")?;
            self.word("of")?;
            potential = Some((self.names()?, peak));
        }
        Ok(Increment { order, steps, potential })
    }

    /// `NAME BYTE [in place of NAME]`
    fn offset(&mut self) -> Parse<Offset> {
        let name = self.node_name()?.into_owned();
        let offset = self.int("the first byte")?;
        let mut in_place_of = None;
        if self.eat_word("in") {
            self.word("place")?;
            self.word("of")?;
            in_place_of = Some(self.node_name()?.into_owned());
        }
        Ok(Offset { name, offset, in_place_of })
    }

    fn word(&mut self, word: &str) -> Parse<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.unexpected(&format!("`{word}`"))) }
    }
}

/// Fills a slot; whether it was empty.
fn put<T>(slot: &mut Option<T>, value: T) -> bool {
    slot.replace(value).is_none()
}

/// The lines of a claim in their order. Its graph is none of them.
pub(super) fn lines(claim: &Claim) -> Vec<(ClaimLine, String)> {
    let mut lines = Vec::new();
    if let Some(order) = &claim.order {
        lines.push((ClaimLine::Order, format!("order {}", names(order))));
    }
    if let Some(peak) = claim.peak {
        lines.push((ClaimLine::Peak, format!("peak {peak}")));
    }
    if let Some(before) = claim.before {
        lines.push((ClaimLine::Before, format!("before {before}")));
    }
    if let Some(steps) = &claim.steps {
        lines.push((ClaimLine::Steps, format!("steps {}", pairs(steps))));
    }
    several(&mut lines, &claim.lives, "lives", ClaimLine::NoLives, |i, life| {
        (ClaimLine::Life(i), life_line(life))
    });
    for (i, (name, bytes)) in claim.estimates.iter().enumerate() {
        lines.push((ClaimLine::Estimate(i), format!("estimate {} {bytes}", word_or_quoted(name))));
    }
    several(&mut lines, &claim.increments, "increments", ClaimLine::NoIncrements, |i, increment| {
        let Increment { order, steps, potential } = increment;
        let foreseen = potential.as_ref();
        let foreseen = foreseen.map(|(moved, peak)| format!(" foresees {peak} of {}", names(moved)));
        let line = format!("increment order {} steps {}", names(order), pairs(steps));
        (ClaimLine::Increment(i), line + &foreseen.unwrap_or_default())
    });
    several(&mut lines, &claim.offsets, "offsets", ClaimLine::NoOffsets, |i, offset| {
        let in_place = offset.in_place_of.as_ref().map(|of| format!(" in place of {}", name(of)));
        let line = format!("offset {} {}{}", name(&offset.name), offset.offset, in_place.unwrap_or_default());
        (ClaimLine::Offset(i), line)
    });
    several(&mut lines, &claim.verifier_runs, "runs", ClaimLine::NoRuns, |i, said| {
        let said: Vec<String> = said.iter().map(|text| quote(text)).collect();
        (ClaimLine::Run(i), format!("run {}", wrapped('[', &said, ']')))
    });
    lines
}

/// A line for each, or one that says that there are none.
fn several<T>(
    lines: &mut Vec<(ClaimLine, String)>,
    items: &Option<Vec<T>>,
    what: &str,
    none: ClaimLine,
    line: impl Fn(usize, &T) -> (ClaimLine, String),
) {
    match items.as_deref() {
        Some([]) => lines.push((none, format!("{what} []"))),
        items => lines.extend(items.into_iter().flatten().enumerate().map(|(i, item)| line(i, item))),
    }
}

fn life_line(life: &ClaimedLife) -> String {
    let mut line = format!("life {} {}", name(&life.name), life.bytes);
    if let Some(step) = life.alloc {
        line += &format!(" from {step}");
    }
    for (i, step) in life.frees.iter().enumerate() {
        line += &if i == 0 { format!(" freed {step}") } else { format!(" {step}") };
    }
    line
}

fn name(name: &str) -> String {
    words::node_name(&words::Groups::default(), name)
}

fn names(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|text| name(text)).collect();
    wrapped('[', &names, ']')
}

fn pairs(pairs: &[(i64, i64)]) -> String {
    let pairs: Vec<String> = pairs.iter().map(|(peak, after)| format!("({peak}, {after})")).collect();
    wrapped('[', &pairs, ']')
}

/// A list in brackets; a long one over several lines.
pub(super) fn wrapped(open: char, items: &[String], close: char) -> String {
    const WIDTH: usize = 100;
    let length = |item: &String| item.chars().count() + 2;
    let mut text = String::from(open);
    if items.iter().map(length).sum::<usize>() <= WIDTH {
        text += &items.join(", ");
        text.push(close);
        return text;
    }
    let mut column = WIDTH;
    for item in items {
        if column + length(item) > WIDTH {
            text += "\n    ";
            column = 4;
        } else {
            text.push(' ');
        }
        text += item;
        text.push(',');
        column += length(item);
    }
    text.push('\n');
    text.push(close);
    text
}
