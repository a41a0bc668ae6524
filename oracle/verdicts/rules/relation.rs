//! Which rules state one relation in several ways, so that one mistake of a pass is not counted once for each.
//!
//! A circle among buckets shows as members that depend on each other, as buckets that do, or as a list that no order can
//! sort; which one it is depends on the graph and not on the mistake. Rules that are not listed state a relation of their
//! own.

/// Rules of one relation; the first one stands for it.
const RELATIONS: &[&[&str]] = &[
    // What depends on what has no circle.
    &["bucket/members-independent", "bucket/contracted-acyclic", "order/acyclic"],
    // What was ordered stays ordered.
    &["order/list-topological", "order/edges-kept", "order/effects-preserved"],
    &["order/producer-before-reader", "order/keep-ordering-edges"],
    // What the caller sees is the same. Memory that nobody wrote shows there, or in calls that nobody reads.
    &["rewrite/values", "rewrite/state", "rewrite/effects", "bucket/users-rewired", "rewrite/unwritten"],
    &["partition/semantics-equal", "partition/outputs-preserved", "partition/effects-once-in-order"],
    // All ranks finish.
    &["comm/all-ranks-finish", "comm/collective-order-aligned", "comm/overlapping-groups-ordered"],
];

/// The rule that stands for the relation which a rule states: itself, where it shares its relation with no other.
pub fn relation(rule: &str) -> &str {
    let shared = RELATIONS.iter().find(|rules| rules.contains(&rule));
    shared.and_then(|rules| rules.first()).copied().unwrap_or(rule)
}

#[cfg(test)]
mod tests {
    use super::super::statements;
    use super::*;

    /// Each is a rule of a catalogue, and of one relation.
    #[test]
    fn relations_are_of_rules() {
        let mut listed: Vec<&str> = RELATIONS.iter().flat_map(|rules| rules.iter().copied()).collect();
        let known: Vec<&str> = statements().iter().map(|rule| rule.id).collect();
        assert_eq!(listed.iter().find(|id| !known.contains(id)), None);
        listed.sort_unstable();
        let count = listed.len();
        listed.dedup();
        assert_eq!(listed.len(), count, "a rule states two relations");
    }

    #[test]
    fn a_rule_alone_is_its_own_relation() {
        assert_eq!(relation("order/acyclic"), relation("bucket/contracted-acyclic"));
        assert_eq!(relation("bucket/policy-cap"), "bucket/policy-cap");
    }
}
