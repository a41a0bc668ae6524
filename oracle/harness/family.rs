//! The families of passes, as far as they are generated and run here: a row each.
//!
//! # The idea
//!
//! A row says how cases are made, what the reference does, and which mutants there are. Candidates, campaigns, scores
//! and the conformance kit read the rows. What is judged, and how, stands in [`verdicts::family`].

use crate::candidates::partition as cutting;
use crate::candidates::pr158663::Pr158663;
use crate::candidates::{Answer, Candidate, Refusal, Request, memory, mutants, reference, rewrite, schedule};
use crate::case::Case;
use crate::generate::{self, Wanted};
use crate::rules::PassKind;

pub use verdicts::family::Gives;

/// A candidate that is broken on purpose.
pub struct Planted {
    /// What is wrong with it, in one line.
    pub about: &'static str,
    /// Reports of the bug that it stands for; a bare number is one of pytorch/pytorch.
    pub origin: &'static str,
    /// Who is broken.
    pub candidate: Box<dyn Candidate>,
}

/// What is known here of a family.
pub struct FamilyRow {
    /// The pass.
    pub pass: PassKind,
    /// Whether it has its turn where cases of all passes are wanted.
    in_turn: bool,
    /// Passes whose cases come with those of this one.
    brings: &'static [PassKind],
    /// What is made of real graphs, if anything.
    pub of_graphs: Option<&'static str>,
    /// Case `number`.
    make: fn(&Wanted, pass: PassKind, number: u64) -> Case,
    /// What the reference makes of a request.
    pub(crate) reference: fn(&Request) -> Result<Vec<Answer>, Refusal>,
    /// The mutants.
    mutants: fn() -> Vec<Planted>,
    /// Whether its mutants are scored where nobody is named.
    pub is_scored: bool,
}

impl FamilyRow {
    /// Its mutants.
    pub fn planted(&self) -> Vec<Planted> {
        (self.mutants)()
    }
}

/// Execution; and what others have that say nothing else.
const PLAIN: FamilyRow = FamilyRow {
    pass: PassKind::Execute,
    in_turn: false,
    brings: &[],
    of_graphs: None,
    make: generate::execution,
    reference: reference::execute,
    mutants: Vec::new,
    is_scored: false,
};

/// The rows, in the order in which they take turns.
pub static FAMILIES: &[FamilyRow] = &[
    FamilyRow {
        pass: PassKind::Bucketing,
        in_turn: true,
        brings: &[PassKind::Repair],
        of_graphs: Some("windows"),
        make: generate::bucketing,
        reference: reference::bucketing,
        mutants: || {
            let about = "the historic algorithm, five defects";
            let historic = Planted { about, origin: "#158663", candidate: Box::new(Pr158663) };
            mutants::planted().chain([historic]).collect()
        },
        is_scored: true,
    },
    FamilyRow {
        pass: PassKind::Repair,
        of_graphs: Some("windows"),
        make: generate::bucketing,
        reference: reference::repair,
        // Its mutants are among those of bucketing.
        ..PLAIN
    },
    FamilyRow {
        pass: PassKind::Partition,
        in_turn: true,
        of_graphs: Some("grafts"),
        make: generate::partition,
        reference: reference::partition,
        mutants: cutting::planted,
        is_scored: true,
        ..PLAIN
    },
    FamilyRow {
        pass: PassKind::Schedule,
        in_turn: true,
        make: generate::schedule_case,
        reference: reference::schedule,
        mutants: schedule::planted,
        ..PLAIN
    },
    FamilyRow {
        pass: PassKind::Memory,
        in_turn: true,
        make: |wanted, _, number| generate::memory::case(wanted.seed, number),
        reference: memory::reference,
        mutants: memory::planted,
        ..PLAIN
    },
    FamilyRow {
        pass: PassKind::Rewrite,
        of_graphs: Some("windows"),
        make: generate::rewrite,
        reference: |request| request.once(|_| Ok(rewrite::rewrite(request.graph).into())),
        mutants: rewrite::planted,
        ..PLAIN
    },
    PLAIN,
];

/// The row of a pass.
pub fn row(pass: PassKind) -> &'static FamilyRow {
    FAMILIES.iter().find(|row| row.pass == pass).unwrap_or(&FAMILIES[0])
}

impl Wanted<'_> {
    /// Case `number`, as all take it.
    pub fn case(&self, number: u64) -> Case {
        let pass = self.pass_of(number);
        let mut case = (row(pass).make)(self, pass, number);
        if let Some(config) = &mut case.pass {
            let own = PassKind::parse(&config.name).unwrap_or(pass);
            self.offers_for(own).for_each(|offer| offer.narrow(config, number));
            self.set.iter().for_each(|(key, value)| config.set(key.clone(), value.clone()));
        }
        case
    }

    /// The pass of case `number`: of all passes, each family in turn.
    fn pass_of(&self, number: u64) -> PassKind {
        let has = |pass: &PassKind| self.offers.first().is_some_and(|offers| offers.contains_key(pass));
        let implemented = |row: &&FamilyRow| has(&row.pass) || row.brings.iter().any(has);
        let rows: Vec<&FamilyRow> = FAMILIES.iter().filter(|row| row.in_turn).filter(implemented).collect();
        match (self.pass, rows.len() as u64) {
            (Some(pass), _) => pass,
            // Windows of real graphs are for bucketing and repair only.
            (None, 0) => PassKind::Bucketing,
            (None, _) if !self.graphs.is_empty() => PassKind::Bucketing,
            (None, count) => rows[(number % count) as usize].pass,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pass_has_one_row() {
        for &pass in PassKind::ALL {
            assert_eq!(FAMILIES.iter().filter(|row| row.pass == pass).count(), 1, "{}", pass.name());
            let wanted = Wanted { pass: Some(pass), small: true, ..Wanted::default() };
            assert_eq!(wanted.case(0).pass.map(|config| config.name), Some(pass.name().to_string()));
        }
    }
}
