//! Launches that meet although they are different collectives: same kind, dtype and size, other data.
//!
//! # The idea
//!
//! Nothing that a rank sees of another one's launch says which of several equals it is. Their graphs do. Where two
//! ranks launch the same collectives on a communicator and not in the same order, data are mixed up. *The same* are
//! collectives that
//! 1. compute the same ([`Computed::exact`](crate::analysis::Computed));
//! 2. compute the same but for numbers and devices, which a compiler bakes in rank by rank;
//! 3. have the same name and shapes.
//!
//! The first of these decides by which the launches of one rank are a permutation of the other's. Ranks that run graphs
//! of their own, like the stages of a pipeline, are no permutation of each other. There other shapes are a warning, and
//! so are names alone that trade places: that may be right, and is rarely meant.

use super::Operation;
use crate::analysis::sequences::Permuted;
use crate::ops::Collective;

/// How two ranks' launches on a communicator differ although all of them meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Difference {
    /// At this launch two collectives meet that are not the same; the second rank launches the first one's elsewhere.
    Exchanged { at: usize, elsewhere: usize },
    /// The same, but only names say so, or only numbers.
    Names { at: usize, elsewhere: usize },
    /// At this launch two shapes meet.
    Shapes { at: usize },
}

impl Difference {
    /// In words, of two ranks' launches on a process group.
    pub(super) fn describe(
        self,
        group: &str,
        (a, first): (u32, &[&Operation]),
        (b, second): (u32, &[&Operation]),
    ) -> String {
        let (Difference::Exchanged { at, .. } | Difference::Names { at, .. } | Difference::Shapes { at }) =
            self;
        let (x, y) = (first[at], second[at]);
        let what = match self {
            Difference::Exchanged { elsewhere, .. } | Difference::Names { elsewhere, .. } => {
                format!("rank {b} launches {} as launch {elsewhere}", x.name)
            }
            Difference::Shapes { .. } => {
                format!("it is {} there, and {} here", describe_shapes(x), describe_shapes(y))
            }
        };
        format!(
            "launch {at} on {group}: {} of rank {a} meets {} of rank {b}; {what}: the two may be different collectives, \
             whose data are mixed up",
            x.name, y.name
        )
    }
}

/// The shapes of what is sent and of the results.
fn describe_shapes(operation: &Operation) -> String {
    let Some([sent, received]) = &operation.shapes else { return "of unknown shape".to_string() };
    let of =
        |shapes: &[Vec<i64>]| shapes.iter().map(|shape| format!("{shape:?}")).collect::<Vec<_>>().join(" + ");
    format!("{} to {}", of(sent), of(received))
}

/// Compares what two ranks launch on a communicator, launch by launch.
pub(super) fn difference(first: &[&Operation], second: &[&Operation]) -> Option<Difference> {
    // A barrier moves nothing.
    let is_barrier = |operation: &Operation| operation.kind == Collective::Barrier;
    let number = |operation: &Operation, exact: bool| match operation.computed {
        _ if is_barrier(operation) => Some(0),
        Some(computed) => Some(if exact { computed.exact } else { computed.rough }),
        None => None,
    };
    let other_shapes = || first.iter().zip(second).position(|(a, b)| shapes(a) != shapes(b));
    let by_shapes = || Some(Difference::Shapes { at: other_shapes()? });
    let in_place = || permuted(first, second, |operation| Some(named(operation))) == Permuted::Same;
    let by_number = |exact| permuted(first, second, |operation| number(operation, exact));
    for exact in [true, false] {
        match by_number(exact) {
            Permuted::Not => {}
            // Numbers alone trade places, and no names: each rank may have numbers of its own there.
            Permuted::Order { at, elsewhere }
                if exact && in_place() && by_number(false) == Permuted::Same =>
            {
                return Some(Difference::Names { at, elsewhere });
            }
            Permuted::Order { at, elsewhere } => return Some(Difference::Exchanged { at, elsewhere }),
            // Launches that only numbers tell apart may still be exchanged.
            Permuted::Same if exact => return by_shapes(),
            Permuted::Same => {}
        }
    }
    // Of names that trade places, those of other shapes are told first: they say the most.
    match (permuted(first, second, |operation| Some(named(operation))), other_shapes()) {
        (Permuted::Order { .. }, Some(at)) => {
            let name = named(first[at]);
            let elsewhere = second.iter().position(|operation| named(operation) == name).unwrap_or(at);
            Some(Difference::Exchanged { at, elsewhere })
        }
        (Permuted::Order { at, elsewhere }, None) => Some(Difference::Names { at, elsewhere }),
        (Permuted::Same | Permuted::Not, _) => by_shapes(),
    }
}

/// Whether a message has another shape where it is sent than where it is received. Not known of batches.
pub(super) fn other_message(send: &Operation, receive: &Operation) -> bool {
    let shapes = |operation: &'_ Operation| {
        let is_one = matches!(operation.kind, Collective::Send | Collective::Recv);
        operation.shapes.as_ref().filter(|_| is_one).map(|[moved, _]| moved.clone())
    };
    shapes(send).zip(shapes(receive)).is_some_and(|(a, b)| a != b)
}

/// The shapes of what a launch sends and receives.
type Shapes<'o> = [Vec<&'o [i64]>; 2];

/// A launch by name and shapes.
fn named(operation: &Operation) -> (&str, Option<Shapes<'_>>) {
    match operation.kind {
        Collective::Barrier => ("", None),
        _ => (&operation.name, shapes(operation)),
    }
}

/// The shapes of a launch, as far as ranks must agree on them: of an all-to-all the number of rows differs.
fn shapes(operation: &Operation) -> Option<Shapes<'_>> {
    let rows = match operation.kind {
        Collective::Barrier => return None,
        Collective::AllToAll => 1,
        _ => 0,
    };
    fn of(shapes: &[Vec<i64>], rows: usize) -> Vec<&[i64]> {
        shapes.iter().map(|shape| &shape[shape.len().min(rows)..]).collect()
    }
    let [sent, received] = operation.shapes.as_ref()?;
    Some([of(sent, rows), of(received, rows)])
}

fn permuted<'o, K: Ord>(
    first: &[&'o Operation],
    second: &[&'o Operation],
    key: impl Fn(&'o Operation) -> Option<K>,
) -> Permuted {
    let keys = |of: &[&'o Operation]| of.iter().map(|operation| key(operation)).collect::<Option<Vec<K>>>();
    keys(first).zip(keys(second)).map_or(Permuted::Not, |(a, b)| Permuted::new(&a, &b))
}
