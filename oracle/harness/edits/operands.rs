//! Wrong edits of what a call takes: another value, another piece, another window.

use super::Places;
use super::reading::Reading;
use crate::graph::{Editor, NodeId, Op, Value};
use crate::ops::{Binary, Bound, Kind, View};
use rustc_hash::FxHashMap;

/// Sets one positional argument of a call.
pub(super) fn set_argument(editor: &mut Editor, id: NodeId, index: usize, value: Value) {
    let mut args = editor.graph().args(id).to_vec();
    if let Some(slot) = args.get_mut(index) {
        *slot = value;
        editor.set_args(id, &args);
    }
}

/// States an argument: in its position where it is given there, else by its name.
pub(super) fn state(editor: &mut Editor, id: NodeId, index: Option<usize>, name: &str, value: Value) {
    let positions = editor.graph().args(id).len();
    if let Some(index) = index.filter(|&index| index < positions) {
        return set_argument(editor, id, index, value);
    }
    let given: Vec<(String, Value)> =
        editor.graph().kwargs(id).map(|(key, value)| (key.to_string(), value)).collect();
    let mut pairs = Vec::new();
    for (key, value) in given.into_iter().filter(|(key, _)| key != name).chain([(name.to_string(), value)]) {
        pairs.extend([Value::Str(editor.graph_mut().intern(&key)), value]);
    }
    let span = editor.graph_mut().push_values(&pairs);
    editor.graph_mut().node_mut(id).kwargs = span;
}

/// Partners looked at for one operand.
const TRIES: usize = 64;

/// A call takes, in place of one operand, another value of the same record that depends on other inputs.
pub(super) fn other(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    let mut by_record: FxHashMap<_, Vec<NodeId>> = FxHashMap::default();
    for id in graph.ids() {
        for (number, operand) in reading.operands(id).into_iter().enumerate() {
            let takes =
                reading.is_pure(id) && !matches!(reading.call(id).map(|info| info.kind), Some(Kind::GetItem));
            if !takes || !reading.is_live(id) || !reading.is_settled(operand) {
                continue;
            }
            let Some(record) = reading.record(operand) else { continue };
            let partners = by_record.get(&record).map_or(&[][..], Vec::as_slice);
            // Begin anywhere, so that partners are near and far.
            let start = (id.index() * 7 + number * 13) % partners.len().max(1);
            let partner = partners[start..]
                .iter()
                .chain(&partners[..start])
                .take(TRIES)
                .find(|&&partner| partner != operand && reading.sources.differ(operand, partner));
            let Some(&partner) = partner else {
                places.left_out += usize::from(partners.len() > 1);
                continue;
            };
            let what =
                format!("{} takes {} for {}", graph.name(id), graph.name(partner), graph.name(operand));
            places.add(id, what, move |editor| editor.replace_input(id, operand, partner));
        }
        if reading.is_settled(id)
            && let Some(record) = reading.record(id)
        {
            by_record.entry(record).or_default().push(id);
        }
    }
    places
}

/// The two operands of a call that does not commute trade places.
pub(super) fn exchanged(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, info) in reading.calls() {
        let ordered = matches!(
            info.kind,
            Kind::Binary(
                Binary::Sub
                    | Binary::Rsub
                    | Binary::Div
                    | Binary::Pow
                    | Binary::Lt
                    | Binary::Le
                    | Binary::Gt
                    | Binary::Ge
                    | Binary::ThresholdBackward
            )
        );
        let square = matches!(info.kind, Kind::Matmul(_));
        let [Value::Node(a), Value::Node(b), ..] = *graph.args(id) else { continue };
        let same = a != b && reading.record(a).is_some() && reading.record(a) == reading.record(b);
        let two = reading.operands(id).len() == 2;
        if !(ordered || square) || !same || !two || !reading.is_pure(id) || !reading.is_live(id) {
            continue;
        }
        if !reading.sources.differ(a, b) {
            places.left_out += 1;
            continue;
        }
        let what = format!("{}: {} and {} trade places", graph.name(id), graph.name(a), graph.name(b));
        places.add(id, what, move |editor| {
            let mut args = editor.graph().args(id).to_vec();
            args.swap(0, 1);
            editor.set_args(id, &args);
        });
    }
    places
}

/// A reader of the transpose of a square matrix takes the matrix.
pub(super) fn untransposed(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, info) in reading.calls() {
        let swaps = match info.kind {
            Kind::View(View::T | View::Transpose) => true,
            Kind::View(View::Permute) => {
                let dims =
                    info.schema.as_ref().and_then(|schema| Bound::new(graph, id, schema).ok()?.ints("dims"));
                dims.is_some_and(|dims| dims == [1, 0])
            }
            _ => false,
        };
        let [matrix] = graph.inputs(id)[..] else { continue };
        let Some([rows, columns]) = reading.sizes(matrix).and_then(|sizes| <[i64; 2]>::try_from(sizes).ok())
        else {
            continue;
        };
        if !swaps || rows != columns || rows < 2 {
            continue;
        }
        for &user in reading.edges.users(id) {
            // A product with the matrix itself could be symmetric.
            let reads_matrix = graph.inputs(user).contains(&matrix);
            let reads =
                matches!(reading.call(user).map(|info| info.kind), Some(Kind::Matmul(_) | Kind::Binary(_)));
            if !reads || reads_matrix || !reading.is_live(user) {
                continue;
            }
            if !reading.is_varied(matrix) || reading.sources.certain(matrix).is_clear() {
                places.left_out += 1;
                continue;
            }
            let what = format!("{} takes {} for {}", graph.name(user), graph.name(matrix), graph.name(id));
            places.add(user, what, move |editor| editor.replace_input(user, id, matrix));
        }
    }
    places
}

/// An item of a split is another one of the same size.
pub(super) fn piece(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, info) in reading.calls() {
        let [Value::Node(of), Value::Int(index)] = *graph.args(id) else { continue };
        let is_split = reading.call(of).is_some_and(|info| matches!(info.kind, Kind::View(_)));
        if info.kind != Kind::GetItem || !is_split || !reading.is_live(id) {
            continue;
        }
        let of_other = |&&other: &&NodeId| {
            other != id && is_item_of(reading, other, of) && reading.sizes(other) == reading.sizes(id)
        };
        let Some(&other) = reading.edges.users(of).iter().find(of_other) else { continue };
        let Some(Value::Int(instead)) = graph.arg(other, 1) else { continue };
        if instead == index
            || !(reading.is_varied(id)
                || reading.sources.differ(reading.handed_on(id), reading.handed_on(other)))
        {
            places.left_out += 1;
            continue;
        }
        let what = format!("{}: item {instead} of {} for {index}", graph.name(id), graph.name(of));
        places.add(id, what, move |editor| set_argument(editor, id, 1, Value::Int(instead)));
    }
    places
}

fn is_item_of(reading: &Reading, id: NodeId, of: NodeId) -> bool {
    reading.call(id).is_some_and(|info| info.kind == Kind::GetItem)
        && reading.graph.arg(id, 0) == Some(Value::Node(of))
}

/// A slice begins and ends one further, or one earlier; a select takes the neighbour.
pub(super) fn window(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, info) in reading.calls() {
        let (Kind::View(View::Slice | View::Select), Some(schema)) = (info.kind, &info.schema) else {
            continue;
        };
        let Ok(bound) = Bound::new(graph, id, schema) else { continue };
        let [base] = graph.inputs(id)[..] else { continue };
        let Some(sizes) = reading.sizes(base).filter(|_| reading.is_live(id)) else { continue };
        let Some(dim) =
            bound.int("dim").and_then(|dim| usize::try_from(dim.rem_euclid(sizes.len().max(1) as i64)).ok())
        else {
            continue;
        };
        let Some(&size) = sizes.get(dim) else { continue };
        // What is filled afterwards has no values yet.
        if !reading.is_varied(base) || !reading.is_settled(base) || graph.node(id).op != Op::Call {
            places.left_out += 1;
            continue;
        }
        let changed: Option<Vec<(usize, i64)>> = match info.kind {
            Kind::View(View::Select) => bound.int("index").filter(|_| size > 1).map(|index| {
                let index = index.rem_euclid(size);
                vec![(2, if index + 1 < size { index + 1 } else { index - 1 })]
            }),
            _ => match (bound.int("start"), bound.int("end"), bound.int("step")) {
                (Some(start), Some(end), Some(1)) if 0 <= start && end > start => {
                    let end = end.min(size);
                    match (end < size, start > 0) {
                        (true, _) => Some(vec![(2, start + 1), (3, end + 1)]),
                        (_, true) => Some(vec![(2, start - 1), (3, end - 1)]),
                        _ => None,
                    }
                }
                _ => None,
            },
        };
        let Some(changed) =
            changed.filter(|changed| changed.iter().all(|&(at, _)| at < graph.args(id).len()))
        else {
            continue;
        };
        let numbers: Vec<String> = changed.iter().map(|(_, n)| n.to_string()).collect();
        let what = format!("{} shows {} of dimension {dim}", graph.name(id), numbers.join(" to "));
        places.add(id, what, move |editor| {
            changed.iter().for_each(|&(at, n)| set_argument(editor, id, at, Value::Int(n)));
        });
    }
    places
}
