//! The numbers that mutants have in the benchmark of historic bugs from which they come. They were the mutants' names
//! once, so cases, stores and habits hold them: they are still understood. A new mutant needs none.

/// Numbers, and the names that they stand for now.
const NUMBERS: &[(&str, &str)] = &[
    ("K1", "bucket-direct-dependence"),
    ("K1b", "bucket-first-member-only"),
    ("K2", "bucket-no-key"),
    ("K2k", "bucket-key-without-kind"),
    ("K2r", "bucket-key-without-reduction"),
    ("K2g", "bucket-key-without-group"),
    ("K2t", "bucket-key-without-dtype"),
    ("K2p", "bucket-no-padding"),
    ("K2o", "bucket-local-offsets"),
    ("K3", "bucket-at-first-member"),
    ("K3p", "bucket-at-first-packed"),
    ("K3w", "bucket-wait-too-early"),
    ("K4", "bucket-lost-ordering"),
    ("K4u", "bucket-inner-ordering"),
    ("K4r", "repair-data-edges-only"),
    ("K5", "bucket-stale-reachability"),
    ("K5a", "bucket-module-reachability"),
    ("K6", "bucket-dead-collectives"),
    ("K6w", "bucket-lost-waits"),
    ("K7", "schedule-unordered-messages"),
    ("K8a", "schedule-unordered-effects"),
    ("K8b", "schedule-write-before-read"),
    ("K8c", "schedule-ordering-on-wait"),
    ("K8d", "schedule-ordering-keeps-memory"),
    ("K9", "schedule-own-estimates"),
    ("K9b", "schedule-own-budget"),
    ("K9c", "schedule-hash-order"),
    ("K10a", "partition-other-side"),
    ("K10b", "partition-own-weights"),
    ("K10c", "partition-own-budget"),
    ("K11a", "partition-saves-inputs-only"),
    ("K11b", "partition-unbans-draws"),
    ("K11c", "partition-repeats-draws"),
    ("K11d", "partition-unpaired-draws"),
    ("K12", "partition-ignores-writes"),
    ("K13a", "partition-writes-by-operands"),
    ("K13b", "partition-tangents-only"),
    ("K14a", "partition-saves-tuples"),
    ("K14b", "partition-unbans-tagged"),
    ("K15a", "partition-saves-tagged"),
    ("K15b", "partition-replays-backward"),
    ("K16a", "partition-repeats-slices"),
    ("K16b", "partition-repeats-waits"),
    ("K17a", "partition-loses-annotations"),
    ("K17b", "partition-loses-recompute"),
    ("K17c", "partition-loses-sides"),
    ("K17d", "partition-loses-merged-tags"),
    ("K17e", "partition-shares-tags"),
    ("K18a", "memory-freed-with-base"),
    ("K18b", "memory-identities-hold-nothing"),
    ("K18c", "memory-views-keep-nothing"),
    ("K19", "schedule-reads-in-flight"),
    ("K19a", "memory-launch-for-result"),
    ("K19b", "memory-freed-at-launch"),
    ("K19c", "memory-input-freed-in-flight"),
    ("K19i", "schedule-inputs-freed-early"),
    ("K20a", "memory-first-in-old-order"),
    ("K20b", "memory-peak-after-frees"),
    ("K20c", "memory-stale-last-use"),
    ("K20d", "memory-counts-aliases"),
    ("K20e", "memory-stale-peaks"),
    ("K21a", "partition-merges-written"),
    ("K21b", "partition-merges-numbers"),
    ("K21c", "partition-merges-sides"),
    ("K21d", "partition-merges-groups"),
    ("K21e", "partition-merges-draws"),
    ("K22a", "bucket-first-group-of-size"),
    ("K23a", "partition-splits-budget"),
    ("K23b", "partition-counts-twice"),
    ("K24", "memory-open-lives"),
    ("K24b", "memory-unused-without-life"),
    ("K25", "bucket-unlimited-span"),
    ("K26", "schedule-groups-apart"),
    ("K27a", "partition-binds-no-symbols"),
    ("K27b", "partition-tangent-outputs-only"),
    ("K28", "schedule-wrong-sign"),
    ("K29", "bucket-stops-at-conflict"),
    ("K30", "memory-elided-copy"),
    ("K31", "memory-received-into-sum"),
    ("K32", "partition-counts-on"),
    ("K33", "memory-keeps-unread"),
];

/// The name of a candidate that may be given by its number.
pub fn named(name: &str) -> &str {
    NUMBERS.iter().find(|(number, _)| *number == name).map_or(name, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_for_mutants() {
        for (number, name) in NUMBERS {
            assert!(crate::candidates::find(name).is_ok(), "{number} stands for {name}");
            assert!(crate::candidates::find(number).is_ok_and(|found| found.name() == *name));
        }
    }
}
