//! The lines that are not nodes: graph, world and groups, device, symbols, facts, pass, expectations.

use super::lexer::Token;
use super::parse::{Mark, Parse, Parser, unexpected};
use super::words::{self, Groups};
use crate::case::{EstimateTable, Expectation, Expected, Part, PassConfig, Place, Setting, Subject};
use crate::graph::{Group, Symbol, World};
use crate::limits::Limit;
use rustc_hash::FxHashSet;

const VERDICTS: [&str; 4] = ["sound", "violates", "refused", "undecided"];

impl Parser<'_> {
    /// Refuses a header line that stands twice, or after the first node.
    fn header(&mut self, what: &str, stated: bool) -> Parse<()> {
        let start = self.here();
        let spanned = self.bump();
        let span = (start, spanned.end);
        if !self.graph.is_empty() {
            return Err(self.fail(span, format!("`{what}` must stand before the first node")));
        }
        if stated {
            return Err(self.fail(span, format!("`{what}` stands here for the second time")));
        }
        Ok(())
    }

    /// `graph NAME [KIND]`
    pub(super) fn graph_line(&mut self) -> Parse<()> {
        self.header("graph", self.stated.graph)?;
        self.stated.graph = true;
        self.graph.name = self.word_or_text("the name of the graph")?;
        self.graph.kind =
            if self.at_line_end() { String::new() } else { self.word_or_text("the kind of the graph")? };
        self.finish_bare()
    }

    /// `world N ranks[, groups ...]` or `world none`
    pub(super) fn world_line(&mut self) -> Parse<()> {
        self.header("world", self.stated.world)?;
        self.stated.world = true;
        self.graph.world = World::default();
        self.groups = Groups::default();
        if self.eat_word("none") {
            return self.finish_world();
        }
        self.graph.world.ranks = Some(self.small_int("the number of ranks")?);
        if !(self.eat_word("ranks") || self.eat_word("rank")) {
            return Err(self.unexpected("`ranks`"));
        }
        if self.eat(',') {
            if !self.eat_word("groups") {
                return Err(self.unexpected("`groups`"));
            }
            self.groups()?;
        }
        self.finish_world()
    }

    /// `groups NAME = ..., ...`: alone, or more groups of the line above.
    pub(super) fn groups_line(&mut self) -> Parse<()> {
        self.header("groups", false)?;
        if !self.stated.world {
            self.stated.world = true;
            self.graph.world = World::default();
            self.groups = Groups::default();
        }
        self.groups()?;
        self.finish_world()
    }

    fn finish_world(&mut self) -> Parse<()> {
        if self.part == Part::Before && self.graph.world != World::default() {
            return self.finish(|| Place::World);
        }
        self.finish_bare()
    }

    fn groups(&mut self) -> Parse<()> {
        loop {
            let name = self.word_or_text("the name of a group")?;
            self.require('=')?;
            let mut group = Group { name, size: 0, recorded_rank: None, instances: Vec::new() };
            if self.eat('[') {
                self.instances(&mut group)?;
                if self.eat_word("of") {
                    group.size = self.small_int("the size of the group")?;
                }
            } else {
                group.size = self.small_int("a list of ranks such as `[0 1 2 3]`, or a number of ranks")?;
                if !(self.eat_word("ranks") || self.eat_word("rank")) {
                    return Err(self.unexpected("`ranks`"));
                }
            }
            if self.eat_word("at") {
                group.recorded_rank = Some(self.small_int("an index in the group")?);
            }
            self.groups.add(&group);
            self.graph.world.groups.push(group);
            if !self.eat(',') {
                return Ok(());
            }
        }
    }

    /// `0 1 | 2 to 5]`
    fn instances(&mut self, group: &mut Group) -> Parse<()> {
        let mut instance = Vec::new();
        self.open.push(self.end());
        loop {
            self.skip_lines();
            if self.eat(']') {
                break;
            }
            if self.eat('|') {
                group.instances.push(std::mem::take(&mut instance));
                continue;
            }
            self.eat(',');
            self.rank_range(&mut instance, "a rank, `|` or `]`")?;
        }
        self.open.pop();
        group.instances.push(instance);
        group.size = group.instances.first().map_or(0, |i| i.len() as u32);
        Ok(())
    }

    /// `3` or `4 to 7`
    pub(super) fn rank_range(&mut self, ranks: &mut Vec<u32>, what: &str) -> Parse<()> {
        let start = self.here();
        let first = self.small_int(what)?;
        let last = if self.eat_word("to") { self.small_int("the last rank of the range")? } else { first };
        let span = (start, self.end());
        if last < first {
            return Err(self.fail(span, format!("the range {first} to {last} is empty")));
        }
        let count = u64::from(last - first) + 1;
        self.rank_budget = match self.rank_budget.checked_sub(count) {
            Some(left) => left,
            None => {
                return Err(
                    self.fail(span, format!("more than {} ranks in lists", Limit::Members.standard()))
                );
            }
        };
        ranks.extend(first..=last);
        Ok(())
    }

    /// `device NAME`
    pub(super) fn device_line(&mut self) -> Parse<()> {
        self.header("device", self.stated.device)?;
        self.stated.device = true;
        self.device = self.raw_or_text("a device such as `cuda:0`")?.0;
        self.finish_bare()
    }

    /// `symbol NAME [= HINT] [in LOW to HIGH] [unbacked]` or `symbol none`
    pub(super) fn symbol_line(&mut self) -> Parse<()> {
        self.header("symbol", false)?;
        if !self.stated.symbols {
            self.stated.symbols = true;
            self.graph.symbols.clear();
            self.symbol_at.clear();
        }
        if self.eat_word("none") {
            return self.finish_bare();
        }
        let name = self.word_or_text("the name of the symbol")?;
        let hint = if self.eat('=') { Some(self.int("the value that the symbol had")?) } else { None };
        let mut range = super::default_range();
        if self.eat_word("in") {
            range.0 = self.raw_or_text("the lower bound")?.0;
            if !self.eat_word("to") {
                return Err(self.unexpected("`to`"));
            }
            range.1 = self.raw_or_text("the upper bound")?.0;
        }
        let unbacked = self.eat_word("unbacked");
        if self.part == Part::Before {
            self.mark(Mark::Symbol(name.clone()));
        }
        self.symbol_at.entry(name.clone()).or_insert(self.graph.symbols.len());
        self.graph.symbols.push(Symbol { name, hint, range, unbacked });
        self.finish_bare()
    }

    /// `guard "CONDITION"` or `guard none`
    pub(super) fn guard_line(&mut self) -> Parse<()> {
        self.header("guard", false)?;
        if !self.stated.guards {
            self.stated.guards = true;
            self.graph.guards.clear();
        }
        if !self.eat_word("none") {
            let guard = self.text("a condition such as \"Eq(s0, 2*s1)\"")?;
            self.graph.guards.push(guard);
        }
        self.finish_bare()
    }

    /// `facts TARGET 'JSON'`
    pub(super) fn facts_line(&mut self) -> Parse<()> {
        self.header("facts", false)?;
        let (target, _) = self.raw_or_text("a target such as `mylib.op.default`")?;
        let start = self.here();
        let json = self.text("the facts as a string of JSON")?;
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&json) {
            return Err(self.fail((start, self.end()), format!("this is not JSON: {error}")));
        }
        self.graph.facts.push((target, json));
        self.finish_bare()
    }

    /// `pass NAME KEY=VALUE ...`
    pub(super) fn pass_line(&mut self) -> Parse<()> {
        let spanned = self.bump();
        let span = (spanned.start, spanned.end);
        if self.part != Part::Before {
            return Err(self.fail(span, "`pass` must stand before the first section"));
        }
        if self.case.pass.is_some() {
            return Err(self.fail(span, "`pass` stands here for the second time"));
        }
        let mut pass = PassConfig::new(self.raw_or_text("the name of a pass")?.0);
        let mut known = FxHashSet::default();
        while !self.at_line_end() {
            let start = self.here();
            let key = self.word_or_text("an option such as `cap=64MiB`")?;
            let span = (start, self.end());
            self.require('=')?;
            let setting = self.setting()?;
            if !known.insert(key.clone()) {
                return Err(self.fail(span, format!("option {key} stands here for the second time")));
            }
            pass.options.push((key, setting));
        }
        self.case.pass = Some(pass);
        self.finish(|| Place::Pass)
    }

    /// `estimates [rank N] [memory=X] [link=X] [latency=X] [{NAME: SECONDS, ...}]`
    pub(super) fn estimates_line(&mut self) -> Parse<()> {
        let spanned = self.bump();
        let span = (spanned.start, spanned.end);
        let Some(pass) = &self.case.pass else {
            return Err(self.fail(span, "`estimates` belongs to a pass, and none stands above"));
        };
        if self.part != Part::Before {
            return Err(self.fail(span, "`estimates` must stand before the first section"));
        }
        let index = pass.estimates.len();
        let mut table = EstimateTable::default();
        if self.eat_word("rank") {
            table.rank = Some(self.small_int("a rank")?);
        }
        let known =
            self.case.pass.iter().flat_map(|pass| &pass.estimates).any(|other| other.rank == table.rank);
        if known {
            return Err(self.fail(span, "these estimates stand here for the second time"));
        }
        while let Token::Word(word) = *self.peek() {
            let start = self.here();
            self.bump();
            let span = (start, self.end());
            let slot = match word {
                "memory" => &mut table.memory,
                "link" => &mut table.link,
                "latency" => &mut table.latency,
                _ => {
                    let message = "expected `memory=`, `link=`, `latency=` or a table such as `{g0: 1e-5}`";
                    return Err(self.fail(span, message));
                }
            };
            self.require('=')?;
            if slot.replace(self.float("a number")?).is_some() {
                return Err(self.fail(span, format!("{word} stands here for the second time")));
            }
        }
        if self.eat('{') {
            let mut seen = FxHashSet::default();
            self.list('}', |parser| {
                let start = parser.here();
                let name = parser.node_name()?.into_owned();
                let span = (start, parser.end());
                if !seen.insert(name.clone()) {
                    return Err(parser.fail(span, format!("{name} stands here for the second time")));
                }
                parser.require(':')?;
                table.seconds.push((name, parser.float("seconds")?));
                Ok(())
            })?;
        }
        if let Some(pass) = &mut self.case.pass {
            pass.estimates.push(table);
        }
        self.finish(|| Place::Estimates(index))
    }

    fn setting(&mut self) -> Parse<Setting> {
        if self.eat('[') {
            let mut items = Vec::new();
            self.list(']', |parser| {
                items.push(parser.setting()?);
                Ok(())
            })?;
            return Ok(Setting::List(items));
        }
        Ok(Setting::Text(self.raw_or_text("a value")?.0))
    }

    /// `expect ...`
    pub(super) fn expect_line(&mut self) -> Parse<()> {
        self.bump();
        let what = "`sound`, `violates`, `refused`, `undecided`, `fault` or whose outcome is meant";
        let (first, raw) = self.raw_or_text(what)?;
        let expectation = match first.as_str() {
            "fault" if raw => Expectation::Fault(self.raw_or_text("the kind of fault")?.0),
            "sound" | "violates" | "refused" | "undecided" if raw => {
                Expectation::Verdict { of: Subject::Reference, is: self.expected(&first)? }
            }
            _ => {
                let spanned = self.bump();
                let is = match spanned.token {
                    Token::Word(verdict) if VERDICTS.contains(&verdict) => self.expected(verdict)?,
                    _ => {
                        let fail = unexpected(&spanned, "`sound`, `violates`, `refused` or `undecided`");
                        return Err(match words::nearest(&first, VERDICTS.iter().copied()) {
                            Some(near) => {
                                fail.help(format!("`{first}` is read as a candidate; did you mean `{near}`?"))
                            }
                            None => fail,
                        });
                    }
                };
                let of = match first.as_str() {
                    "outcome" if raw => Subject::Outcome,
                    _ => Subject::Candidate(first),
                };
                Expectation::Verdict { of, is }
            }
        };
        self.case.expectations.push(expectation);
        let index = self.case.expectations.len() - 1;
        self.finish(|| Place::Expectation(index))
    }

    /// What follows the word of a verdict.
    fn expected(&mut self, verdict: &str) -> Parse<Expected> {
        match verdict {
            "sound" => return Ok(Expected::Sound),
            "refused" => return Ok(Expected::Refused),
            "undecided" => return Ok(Expected::Undecided),
            _ => {}
        }
        let mut rules = vec![self.raw_or_text("a rule such as `bucket/homogeneous`")?.0];
        loop {
            self.eat(',');
            if self.at_line_end() {
                return Ok(Expected::Violates(rules));
            }
            rules.push(self.raw_or_text("a rule")?.0);
        }
    }
}
