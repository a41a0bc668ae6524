//! The terms on which a candidate takes a pass.
//!
//! A refusal says nothing about a pass, so a case that would be refused is made another one first.

use super::Without;
use crate::case::{PassConfig, Setting};
use std::collections::BTreeMap;

/// What a candidate takes of a pass, and what it promises.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Offer {
    /// By option, the values that it takes; any of an option that is not here.
    pub options: BTreeMap<String, Vec<String>>,
    /// The largest world; `None`: any.
    pub max_ranks: Option<u32>,
    /// What it does not take in a graph.
    pub without: Vec<Without>,
    /// What it promises by itself. Of several promises the first counts.
    pub promises: Vec<OfferedPromise>,
}

/// What is promised where the options of a pass have certain values.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OfferedPromise {
    /// By option, its values; an option that is not given has the empty one.
    pub when: BTreeMap<String, Vec<String>>,
    /// The promises, as options of the judge.
    pub options: Vec<(String, Setting)>,
}

impl OfferedPromise {
    fn is_about(&self, pass: &PassConfig) -> bool {
        let has = |key: &str, values: &[String]| {
            let word = pass.get(key).map_or(Some(""), Setting::word);
            word.is_some_and(|word| values.iter().any(|value| value == word))
        };
        self.when.iter().all(|(key, values)| has(key, values))
    }
}

impl Offer {
    /// The pass with what is promised for it. What it states itself stays.
    pub fn promised(&self, mut pass: PassConfig) -> PassConfig {
        for promised in &self.promises {
            let options = if promised.is_about(&pass) { &promised.options[..] } else { &[] };
            for (key, setting) in options {
                if pass.get(key).is_none() {
                    pass.options.push((key.clone(), setting.clone()));
                }
            }
        }
        pass
    }

    /// The pass without the options that are listed here.
    pub fn of_others(&self, pass: &PassConfig) -> PassConfig {
        let mut others = pass.clone();
        others.options.retain(|(key, _)| !self.options.contains_key(key));
        others
    }

    /// Whether an option may have this value.
    pub fn takes(&self, key: &str, value: &str) -> bool {
        self.options.get(key).is_none_or(|values| values.iter().any(|known| known == value))
    }

    /// A pass made one that is taken: options have values that are known. `number` decides which.
    pub fn narrow(&self, pass: &mut PassConfig, number: u64) {
        let selection = pass.get("selection").cloned();
        pass.options.retain(|(key, _)| self.options.get(key).is_none_or(|values| !values.is_empty()));
        for (key, setting) in &mut pass.options {
            let Some(values) = self.options.get(key) else { continue };
            replace(setting, values, number);
        }
        if pass.get("selection") != selection.as_ref() {
            // It belongs to the selection that is gone.
            pass.options.retain(|(key, _)| key != "max_topo_span");
        }
    }
}

/// Replaces values that are not allowed, each by one that is.
fn replace(setting: &mut Setting, values: &[String], number: u64) {
    match setting {
        Setting::Text(text) if values.contains(text) => {}
        Setting::Text(text) => {
            if let Some(value) = values.get((number % values.len().max(1) as u64) as usize) {
                text.clone_from(value);
            }
        }
        Setting::List(items) => items.iter_mut().for_each(|item| replace(item, values, number)),
    }
}
