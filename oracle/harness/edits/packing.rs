//! Edits of packed buffers: members, chunks of ranks, slots.

use super::Places;
use super::communication::may_be_equal;
use super::reading::Reading;
use crate::graph::{Dim, Editor, Graph, NodeId, Out, Value};
use crate::ops::{Collective, Fill, Kind, Move, View};

/// A call that packs several tensors, with the place of their list among its arguments.
fn packed<'r>(reading: &'r Reading) -> impl Iterator<Item = (NodeId, usize, Vec<NodeId>)> + 'r {
    reading.calls().filter_map(|(id, info)| {
        let packs = matches!(
            info.kind,
            Kind::Move(
                Move::Cat
                    | Move::Stack
                    | Move::ChunkCat
                    | Move::PreBucketAllGather
                    | Move::PreBucketReduceScatter
                    | Move::AllGatherCopyIn
            ) | Kind::Collective(_)
        );
        let (index, members) =
            reading.graph.args(id).iter().enumerate().find_map(|(index, value)| match value {
                Value::List(span) => {
                    let members = reading.graph.values(*span).iter().map(|value| match value {
                        Value::Node(node) => Some(*node),
                        _ => None,
                    });
                    Some((index, members.collect::<Option<Vec<NodeId>>>()?))
                }
                _ => None,
            })?;
        (packs && members.len() > 1).then_some((id, index, members))
    })
}

/// Whether what a member carries is seen, and was so before the pass.
fn is_read(reading: &Reading, member: NodeId) -> bool {
    let carried = reading.graph.inputs(member);
    reading.is_live(member)
        && reading.is_settled(member)
        && carried.iter().all(|&input| reading.is_live(input) && reading.is_settled(input))
}

/// Whether all that the pass made behind a node is seen: no piece of a bucket is split off for nobody.
fn is_seen_whole(reading: &Reading, id: NodeId) -> bool {
    let (mut stack, mut seen) = (vec![id], vec![false; reading.graph.len()]);
    while let Some(at) = stack.pop() {
        if !reading.is_live(at) {
            return false;
        }
        let readers = reading.edges.users(at).iter().copied();
        for reader in readers.filter(|&reader| reader > at && reading.call(reader).is_some()) {
            let is_new = reading.twins[reader.index()].is_none();
            if is_new && !std::mem::replace(&mut seen[reader.index()], true) {
                stack.push(reader);
            }
        }
    }
    true
}

/// Two members of the same record trade places.
pub(super) fn exchanged(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, index, members) in packed(reading).filter(|(id, ..)| is_seen_whole(reading, *id)) {
        for (first, &a) in members.iter().enumerate() {
            let record = reading.record(a);
            let rest = members.iter().enumerate().skip(first + 1);
            let alike =
                |&(_, &b): &(usize, &NodeId)| b != a && record.is_some() && reading.record(b) == record;
            let Some((second, &b)) = rest.into_iter().find(alike) else { continue };
            let certain = is_read(reading, a) && is_read(reading, b) && reading.sources.differ(a, b);
            if !certain {
                places.left_out += 1;
                continue;
            }
            let what = format!(
                "{}: members {first} and {second}, {} and {}, trade places",
                graph.name(id),
                graph.name(a),
                graph.name(b)
            );
            places.add(id, what, move |editor| {
                let mut members: Vec<Value> = members_of(editor.graph(), id, index);
                if first < members.len() && second < members.len() {
                    members.swap(first, second);
                    set_members(editor, id, index, &members);
                }
            });
        }
    }
    places
}

fn members_of(graph: &Graph, id: NodeId, index: usize) -> Vec<Value> {
    match graph.arg(id, index) {
        Some(Value::List(span)) => graph.values(span).to_vec(),
        _ => Vec::new(),
    }
}

fn set_members(editor: &mut Editor, id: NodeId, index: usize, members: &[Value]) {
    let list = editor.graph_mut().list(members);
    super::operands::set_argument(editor, id, index, list);
}

/// A new contiguous tensor like that of `id` of other sizes.
fn contiguous_like(editor: &mut Editor, id: NodeId, sizes: &[i64]) -> Option<Out> {
    let like = *editor.graph().tensor_of(id)?;
    Some(editor.graph_mut().contiguous(sizes, like.dtype, like.device))
}

/// Inserts the call of an operator that takes a tensor and sizes.
fn insert_sized(
    editor: &mut Editor,
    before: NodeId,
    target: &str,
    of: NodeId,
    argument: &[i64],
    sizes: &[i64],
) -> NodeId {
    let out = contiguous_like(editor, of, sizes).unwrap_or(Out::Absent);
    let list = editor.graph_mut().int_list(argument);
    editor.insert_before(Some(before), "edited", target, &[Value::Node(of), list], &[], out)
}

/// A member that is flattened by rows is flattened by columns.
pub(super) fn transposed(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, index, members) in packed(reading).filter(|(id, ..)| is_seen_whole(reading, *id)) {
        for (at, &member) in members.iter().enumerate() {
            let is_view =
                reading.call(member).is_some_and(|info| matches!(info.kind, Kind::View(View::Sizes)));
            let [matrix] = graph.inputs(member)[..] else { continue };
            let sizes = reading.sizes(matrix).and_then(|sizes| <[i64; 2]>::try_from(sizes).ok());
            let (Some([rows, columns]), Some(flat)) = (sizes, reading.sizes(member)) else { continue };
            if !is_view || rows < 2 || columns < 2 {
                continue;
            }
            if !is_read(reading, member)
                || !reading.is_varied(matrix)
                || reading.sources.certain(matrix).is_clear()
            {
                places.left_out += 1;
                continue;
            }
            let what =
                format!("{}: member {at}, {}, is packed transposed", graph.name(id), graph.name(matrix));
            places.add(id, what, move |editor| {
                let out = contiguous_like(editor, matrix, &[columns, rows]);
                let stride = editor.graph_mut().intern_sizes(&[1, columns]);
                if let Some(Out::Tensor(tensor)) = out {
                    editor.graph_mut().tensor_mut(tensor).stride = stride;
                }
                let turned = editor.insert_before(
                    Some(id),
                    "edited",
                    "aten.t.default",
                    &[Value::Node(matrix)],
                    &[],
                    out.unwrap_or(Out::Absent),
                );
                let flat = insert_sized(editor, id, "aten.reshape.default", turned, &flat, &flat);
                let mut members = members_of(editor.graph(), id, index);
                if let Some(member) = members.get_mut(at) {
                    *member = Value::Node(flat);
                    set_members(editor, id, index, &members);
                }
            });
        }
    }
    places
}

/// The merged reduce-scatters that are packed by rank: the `cat` of rows, its flat view, and the launch.
fn interleaved<'r>(reading: &'r Reading) -> impl Iterator<Item = (NodeId, NodeId, NodeId, Vec<NodeId>)> + 'r {
    packed(reading).filter_map(|(cat, index, members)| {
        let graph = reading.graph;
        let is_cat = index == 0 && reading.call(cat)?.kind == Kind::Move(Move::Cat);
        let by_column =
            graph.arg(cat, 1) == Some(Value::Int(1)) || graph.kwarg(cat, "dim") == Some(Value::Int(1));
        let [flat] = reading.edges.users(cat) else { return None };
        let [launch] = reading.edges.users(*flat) else { return None };
        let is_flat = reading.sizes(*flat)?.len() == 1 && reading.sizes(cat)?.len() == 2;
        let scatters = reading.call(*launch)?.collective() == Some(Collective::ReduceScatter);
        (is_cat && by_column && is_flat && scatters && reading.is_live(*launch))
            .then_some((cat, *flat, *launch, members))
    })
}

/// Members stand one after another instead of interleaved by rank.
pub(super) fn in_sequence(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (cat, flat, launch, members) in interleaved(reading) {
        let rows = reading.sizes(cat).map_or(0, |sizes| sizes[0]);
        if rows < 2 {
            continue;
        }
        // Two members that differ: the first of a later rank's chunk would then be another one's.
        let differ = members.windows(2).any(|pair| reading.sources.differ(pair[0], pair[1]));
        if !differ
            || !is_seen_whole(reading, launch)
            || !members.iter().all(|&member| is_read(reading, member))
        {
            places.left_out += 1;
            continue;
        }
        let numbers: Option<Vec<i64>> =
            members.iter().map(|&member| graph.numel(graph.tensor_of(member)?)).collect();
        let Some(numbers) = numbers else { continue };
        let what =
            format!("{}: the members of {} stand one after another", graph.name(launch), graph.name(cat));
        places.add(cat, what, move |editor| {
            let mut list = Vec::new();
            for (&member, &number) in members.iter().zip(&numbers) {
                let flat = insert_sized(editor, cat, "aten.reshape.default", member, &[number], &[number]);
                list.push(Value::Node(flat));
            }
            let list = editor.graph_mut().list(&list);
            let total: i64 = numbers.iter().sum();
            let out = contiguous_like(editor, flat, &[total]).unwrap_or(Out::Absent);
            let joined = editor.insert_before(
                Some(cat),
                "edited",
                "aten.cat.default",
                &[list, Value::Int(0)],
                &[],
                out,
            );
            editor.replace_uses(flat, joined);
            editor.erase_all(&[flat, cat]);
        });
    }
    places
}

/// The chunks of a packed buffer, a row for each rank, are moved on by one rank.
pub(super) fn next_rank(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    let scattered: Vec<NodeId> = interleaved(reading).map(|(cat, ..)| cat).collect();
    for (id, info) in reading.calls() {
        let gathered = matches!(info.kind, Kind::View(View::Sizes))
            .then(|| new_gather(reading, *graph.inputs(id).first()?))
            .flatten();
        if !(gathered.is_some() || scattered.contains(&id)) {
            continue;
        }
        let Some([rows, columns]) = reading.sizes(id).and_then(|sizes| <[i64; 2]>::try_from(sizes).ok())
        else {
            continue;
        };
        let readers: Vec<NodeId> = reading.edges.users(id).to_vec();
        if rows < 2 || columns < 1 {
            continue;
        }
        let split = |&reader: &NodeId| {
            reading.is_live(reader)
                && reading.call(reader).is_some_and(|info| matches!(info.kind, Kind::View(_)))
        };
        let alike = gathered.is_some_and(|launch| may_be_equal(reading, launch));
        if alike
            || !readers.iter().all(split)
            || !readers.iter().all(|&reader| is_seen_whole(reading, reader))
        {
            places.left_out += 1;
            continue;
        }
        let what = format!("the rows of {} are those of the ranks before", graph.name(id));
        places.add(id, what, move |editor| {
            let after = editor.next(id);
            let out = contiguous_like(editor, id, &[rows, columns]).unwrap_or(Out::Absent);
            let (by, dims) = (editor.graph_mut().int_list(&[1]), editor.graph_mut().int_list(&[0]));
            let args = [Value::Node(id), by, dims];
            let rolled = editor.insert_before(after, "edited", "aten.roll.default", &args, &[], out);
            readers.iter().for_each(|&reader| editor.replace_input(reader, id, rolled));
        });
    }
    places
}

/// The gather that a node waits for, if it was not there before the pass.
fn new_gather(reading: &Reading, wait: NodeId) -> Option<NodeId> {
    reading.call(wait).filter(|info| info.kind == Kind::Wait)?;
    let launch = *reading.graph.inputs(wait).first()?;
    let gathers = reading.call(launch)?.collective() == Some(Collective::AllGather);
    (gathers && reading.twins[launch.index()].is_none()).then_some(launch)
}

/// The own slot of a gather in place is the neighbour's.
pub(super) fn other_slot(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, info) in reading.calls() {
        let [Value::Node(buffer), dim, Value::Int(start), Value::Int(end), ..] = *graph.args(id) else {
            continue;
        };
        let is_buffer = reading.call(buffer).is_some_and(|info| info.kind == Kind::Fill(Fill::Empty));
        let size = reading.sizes(buffer).and_then(|sizes| sizes.first().copied());
        let (true, true, Value::Int(0), Some(size)) =
            (info.kind == Kind::View(View::Slice), is_buffer, dim, size)
        else {
            continue;
        };
        let (end, length) = (end.min(size), end.min(size) - start);
        // The slot itself says nothing; what is written into it does.
        let is_filled = reading.edges.users(id).iter().any(|&user| reading.is_live(user));
        if length <= 0 || start < 0 || !is_filled {
            places.left_out += 1;
            continue;
        }
        let by = if end + length <= size { length } else { -length };
        if start + by < 0 {
            continue;
        }
        let what = format!("{} begins at {} for {start}", graph.name(id), start + by);
        places.add(id, what, move |editor| {
            super::operands::set_argument(editor, id, 2, Value::Int(start + by));
            super::operands::set_argument(editor, id, 3, Value::Int(end + by));
        });
    }
    places
}

/// Elements added to each rank's chunk of a padded bucket.
const PADDING: i64 = 3;

/// A merged reduce-scatter has some zeros more for each rank, which are cut off behind it.
pub(super) fn padded(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (cat, flat, launch, _) in interleaved(reading) {
        let Some((wait, split)) = behind(reading, launch) else {
            places.left_out += 1;
            continue;
        };
        let (Some(sizes), Some(out), Some(pieces)) = (
            reading.sizes(cat),
            reading.sizes(wait),
            graph.arg(split, 1).and_then(|value| match value {
                Value::List(span) => Some(graph.values(span).to_vec()),
                _ => None,
            }),
        ) else {
            continue;
        };
        let [rows, columns] = sizes[..] else { continue };
        if out.len() != 1 || out[0] != columns {
            places.left_out += 1;
            continue;
        }
        let what = format!("{} has {PADDING} zeros more for each rank", graph.name(cat));
        places.add(cat, what, move |editor| {
            let Some(&like) = editor.graph().tensor_of(cat) else { return };
            let shape = editor.graph_mut().int_list(&[rows, PADDING]);
            let record = editor.graph_mut().contiguous(&[rows, PADDING], like.dtype, like.device);
            let options = [("dtype", Value::Dtype(like.dtype)), ("device", Value::Device(like.device))];
            let zeros = editor.insert_before(
                Some(cat),
                "edited",
                "aten.full.default",
                &[shape, Value::Int(0)],
                &options,
                record,
            );
            let mut members = members_of(editor.graph(), cat, 0);
            members.push(Value::Node(zeros));
            set_members(editor, cat, 0, &members);
            let wide = columns + PADDING;
            for (node, sizes) in
                [(cat, vec![rows, wide]), (flat, vec![rows * wide]), (launch, vec![wide]), (wait, vec![wide])]
            {
                resize(editor, node, &sizes);
            }
            forget_bytes(editor, wait);
            let list = editor.graph_mut().int_list(&[rows * wide]);
            super::operands::set_argument(editor, flat, 1, list);
            let mut pieces = pieces.clone();
            pieces.push(Value::Int(PADDING));
            let list = editor.graph_mut().list(&pieces);
            super::operands::set_argument(editor, split, 1, list);
            if let Out::Tuple(span) = editor.graph().node(split).out {
                let mut outs = editor.graph().outs(span).to_vec();
                if let Some(&Out::Tensor(last)) = outs.last() {
                    let mut piece = *editor.graph().tensor(last);
                    piece.offset = columns;
                    piece.storage_bytes = None;
                    piece.shape = editor.graph_mut().intern_dims(&[Dim::Static(PADDING)]);
                    piece.stride = editor.graph_mut().intern_sizes(&[1]);
                    outs.push(Out::Tensor(editor.graph_mut().push_tensor(piece)));
                    let span = editor.graph_mut().push_outs(&outs);
                    editor.graph_mut().node_mut(split).out = Out::Tuple(span);
                }
            }
        });
    }
    places
}

/// The wait of a launch and the split of what it gives, where that is all that reads it.
fn behind(reading: &Reading, launch: NodeId) -> Option<(NodeId, NodeId)> {
    let [wait] = reading.edges.users(launch) else { return None };
    let [split] = reading.edges.users(*wait) else { return None };
    let splits = reading.call(*split)?.kind == Kind::View(View::SplitWithSizes);
    (reading.call(*wait)?.kind == Kind::Wait && splits).then_some((*wait, *split))
}

/// The record of a contiguous tensor gets other sizes; storages keep their names, their sizes are not recorded.
fn resize(editor: &mut Editor, id: NodeId, sizes: &[i64]) {
    let Some(&old) = editor.graph().tensor_of(id) else { return };
    let Out::Tensor(new) = editor.graph_mut().contiguous(sizes, old.dtype, old.device) else { return };
    let tensor = editor.graph_mut().tensor_mut(new);
    tensor.storage = old.storage;
    tensor.requires_grad = old.requires_grad;
    editor.graph_mut().node_mut(id).out = Out::Tensor(new);
}

/// The size of the storage that `id` shows is no longer recorded: it has changed.
fn forget_bytes(editor: &mut Editor, id: NodeId) {
    let Some(storage) = editor.graph().tensor_of(id).and_then(|tensor| tensor.storage) else { return };
    let graph = editor.graph_mut();
    let outs: Vec<Out> = graph.nodes().iter().map(|node| node.out).collect();
    for out in outs {
        let tensors: Vec<Out> = match out {
            Out::Tuple(span) => graph.outs(span).to_vec(),
            out => vec![out],
        };
        for out in tensors {
            if let Out::Tensor(tensor) = out
                && graph.tensor(tensor).storage == Some(storage)
            {
                graph.tensor_mut(tensor).storage_bytes = None;
            }
        }
    }
}
