//! From picture and layout to SVG text.

use super::layout::{self, Edge, Layout};
use super::legend::Legend;
use super::style::{self, MARGIN, STRIPE, number, role_colours, text_width};
use crate::format::picture::{Picture, Role, Sketch, Tie, escape_xml, shorten};
use crate::format::text;
use crate::graph::{Graph, NodeId};
use std::collections::BTreeMap;
use std::fmt::Write;

const NAME_SIZE: f64 = 12.0;
const TEXT_SIZE: f64 = 10.5;
/// Characters of a line in a box at most.
const LINE: usize = 30;
/// Bends of a line that the eye does not follow.
const FAR: usize = 8;
/// Missing names that a box shows at most.
const MISSING: usize = 3;
const LINE_HEIGHT: f64 = 14.0;
const PADDING: f64 = 7.0;
/// Height of the gap between two rows, and what is added where edges run far to the side.
const GAP: f64 = 26.0;
const GAP_EXTRA: f64 = 46.0;
/// The legend is at least this wide.
const LEGEND_WIDTH: f64 = 720.0;

/// A box with its text.
struct Label {
    lines: Vec<String>,
    index: String,
    width: f64,
    height: f64,
}

fn label(graph: &Graph, id: NodeId, sketch: &Sketch) -> Label {
    let mut lines = vec![shorten(graph.name(id), LINE)];
    if sketch.role != Role::Input && sketch.call != graph.name(id) {
        lines.push(shorten(&sketch.call, LINE));
    }
    if !sketch.ty.is_empty() {
        lines.push(shorten(&sketch.ty, LINE));
    }
    lines.extend(sketch.bucket.map(|members| format!("bucket of {members}")));
    lines.extend(sketch.missing.iter().take(MISSING).map(|name| shorten(&format!("missing: {name}"), LINE)));
    let index = format!("{}", id.0);
    let first = text_width(&lines[0], NAME_SIZE) + 10.0 + text_width(&index, 9.0);
    let rest = lines[1..].iter().map(|line| text_width(line, TEXT_SIZE)).fold(0.0, f64::max);
    let stripe = if sketch.group.is_some() { STRIPE } else { 0.0 };
    let width = first.max(rest) + 2.0 * PADDING + stripe;
    let height = LINE_HEIGHT * lines.len() as f64 + 9.0;
    Label { lines, index, width, height }
}

/// Vertical extent of the rows.
struct Rows {
    top: Vec<f64>,
    height: Vec<f64>,
}

pub(super) fn draw(graph: &Graph, picture: &Picture) -> String {
    let labels: Vec<Label> = graph.ids().map(|id| label(graph, id, &picture.nodes[id.index()])).collect();
    let boxes: Vec<layout::Box> = labels
        .iter()
        .zip(&picture.nodes)
        .map(|(label, sketch)| layout::Box {
            width: label.width,
            floats: matches!(sketch.role, Role::Input | Role::Attribute),
        })
        .collect();
    let drawn: Vec<&(NodeId, NodeId, Tie)> =
        picture.edges.iter().filter(|(from, to, _)| from != to).collect();
    let ends: Vec<Edge> = drawn
        .iter()
        .map(|(a, b, tie)| Edge {
            from: a.min(b).index(),
            to: a.max(b).index(),
            kind: *tie as u8 + if a > b { 8 } else { 0 },
        })
        .collect();
    let layout = layout::layout(&boxes, &ends);
    let legend = Legend::new(graph, picture);
    let right = layout.x.iter().zip(&boxes).map(|(x, b)| x + b.width / 2.0).fold(0.0, f64::max);
    let right = layout.bends.iter().flatten().copied().fold(right, f64::max);
    let width = right.max(LEGEND_WIDTH) + 2.0 * MARGIN;
    let shift = (width - right) / 2.0;
    let (legend_text, legend_height) = legend.draw(width);
    // A cluster surrounds its members.
    let gap = if graph.clusters.is_empty() { GAP } else { GAP + 16.0 };
    let rows = rows(&layout, &labels, &ends, legend_height + MARGIN, gap);
    let height = rows.top.last().copied().unwrap_or(legend_height)
        + rows.height.last().copied().unwrap_or(0.0)
        + MARGIN;
    let mut drawing = Drawing { text: String::new(), layout: &layout, labels: &labels, rows: &rows, shift };
    drawing.clusters(graph);
    // Broad lines lie under thin ones, and faults on top.
    let rank = |tie: Tie, fault: bool| (fault, tie != Tie::Async, tie);
    let mut order: Vec<usize> = (0..drawn.len()).collect();
    order.sort_by_key(|&e| rank(drawn[e].2, drawn[e].0 > drawn[e].1));
    let ports = Ports::new(&layout, &labels, &ends);
    let mut bends_drawn: BTreeMap<(NodeId, Tie), usize> = BTreeMap::new();
    for e in order {
        let &(from, to, tie) = drawn[e];
        // What edges of one line share is drawn once; a fault is drawn whole, since its arrow is at the top.
        let bends = layout.bends[e].len();
        let drawn_bends = bends_drawn.entry((from, tie)).or_insert(0);
        let skip = if from < to { bends.min(*drawn_bends) } else { 0 };
        *drawn_bends = bends.max(*drawn_bends);
        drawing.edge(graph, e, (from, to), tie, picture.nodes[from.index()].group, &ports, skip);
    }
    for id in graph.ids() {
        drawing.node(graph, id, &picture.nodes[id.index()]);
        drawing.origins(graph, id, &ends, &ports);
    }
    let mut svg = String::new();
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
         font-family=\"'DejaVu Sans Mono', Menlo, Consolas, monospace\">\n<title>{title}</title>\n\
         <defs>\n{data}{order}{fault}</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        w = number(width),
        h = number(height),
        title = escape_xml(&legend.title),
        data = arrow("data", style::DATA_EDGE),
        order = arrow("order", style::ORDER_EDGE),
        fault = arrow("fault", style::FAULT),
    );
    svg.push_str(&legend_text);
    svg.push_str(&drawing.text);
    svg.push_str("</svg>\n");
    svg
}

fn arrow(id: &str, colour: &str) -> String {
    format!(
        "<marker id=\"{id}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
         markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0,0.8 L8,4 L0,7.2 z\" fill=\"{colour}\"/></marker>\n"
    )
}

fn rows(layout: &Layout, labels: &[Label], ends: &[Edge], top: f64, gap: f64) -> Rows {
    let mut height = vec![0.0f64; layout.rows];
    for (label, &row) in labels.iter().zip(&layout.row) {
        height[row] = height[row].max(label.height);
    }
    // Edges that run far to the side need room to turn.
    let mut sideways = vec![0.0f64; layout.rows];
    for (&Edge { from, to, .. }, bends) in ends.iter().zip(&layout.bends) {
        let mut x = layout.x[from];
        for (k, &next) in bends.iter().chain([&layout.x[to]]).enumerate() {
            let shift = &mut sideways[layout.row[from] + k];
            *shift = shift.max((next - x).abs());
            x = next;
        }
    }
    let mut tops = Vec::with_capacity(layout.rows);
    let mut at = top;
    for (height, sideways) in height.iter().zip(&sideways) {
        tops.push(at);
        at += height + gap + GAP_EXTRA * (sideways / 500.0).min(1.0);
    }
    Rows { top: tops, height }
}

/// Where edges touch boxes: spread along the sides, in the order of where they come from or go to.
struct Ports {
    upper: Vec<f64>,
    lower: Vec<f64>,
}

impl Ports {
    fn new(layout: &Layout, labels: &[Label], ends: &[Edge]) -> Ports {
        let mut ports = Ports { upper: vec![0.0; ends.len()], lower: vec![0.0; ends.len()] };
        let (mut out, mut into) = (vec![Vec::new(); labels.len()], vec![Vec::new(); labels.len()]);
        for (e, &Edge { from, to, kind }) in ends.iter().enumerate() {
            let bends = &layout.bends[e];
            // Edges that share a line leave from one port.
            let line = if bends.is_empty() { usize::MAX - e } else { usize::from(kind) };
            out[from].push((bends.first().copied().unwrap_or(layout.x[to]), line, e));
            into[to].push((bends.last().copied().unwrap_or(layout.x[from]), usize::MAX - e, e));
        }
        for (lists, side) in [(out, &mut ports.upper), (into, &mut ports.lower)] {
            for (node, mut list) in lists.into_iter().enumerate() {
                list.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                let lines: Vec<_> = list.chunk_by(|a, b| a.1 == b.1).collect();
                let room = (labels[node].width - 24.0) / lines.len().max(1) as f64;
                let step = room.min(14.0);
                let first = layout.x[node] - step * (lines.len().saturating_sub(1)) as f64 / 2.0;
                for (k, line) in lines.into_iter().enumerate() {
                    line.iter().for_each(|(_, _, e)| side[*e] = first + step * k as f64);
                }
            }
        }
        ports
    }
}

struct Drawing<'a> {
    text: String,
    layout: &'a Layout,
    labels: &'a [Label],
    rows: &'a Rows,
    shift: f64,
}

impl Drawing<'_> {
    /// Left, top, width and height of a node's box.
    fn frame(&self, node: usize) -> (f64, f64, f64, f64) {
        let (label, row) = (&self.labels[node], self.layout.row[node]);
        let left = self.layout.x[node] - label.width / 2.0 + self.shift;
        let top = self.rows.top[row] + (self.rows.height[row] - label.height) / 2.0;
        (left, top, label.width, label.height)
    }

    fn clusters(&mut self, graph: &Graph) {
        for cluster in &graph.clusters {
            for (k, member) in cluster.members.iter().enumerate() {
                let (left, top, width, height) = self.frame(member.index());
                let _ = writeln!(
                    self.text,
                    "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"9\" fill=\"#f7f9d9\" stroke=\"{}\" \
                     stroke-dasharray=\"5 3\"/>",
                    number(left - 8.0),
                    number(top - 8.0),
                    number(width + 16.0),
                    number(height + 22.0),
                    style::CLUSTER
                );
                let name = if k == 0 { cluster.name.clone() } else { format!("{} …", cluster.name) };
                let y = top + height + 10.0;
                self.write(left + 2.0, y, 8.5, style::CLUSTER, "", &shorten(&name, LINE));
            }
        }
    }

    fn write(&mut self, x: f64, y: f64, size: f64, colour: &str, more: &str, text: &str) {
        let _ = writeln!(
            self.text,
            "<text x=\"{}\" y=\"{}\" font-size=\"{size}\" fill=\"{colour}\"{more}>{}</text>",
            number(x),
            number(y),
            escape_xml(text)
        );
    }

    /// Draws an edge from its bend number `skip` on.
    fn edge(
        &mut self,
        graph: &Graph,
        e: usize,
        (from, to): (NodeId, NodeId),
        tie: Tie,
        group: Option<usize>,
        ports: &Ports,
        skip: usize,
    ) {
        let (upper, lower) = (from.min(to).index(), from.max(to).index());
        let (_, upper_top, _, upper_height) = self.frame(upper);
        let (_, lower_top, _, _) = self.frame(lower);
        // Down the page: points where the edge is vertical.
        let mut points = vec![(ports.upper[e], upper_top + upper_height)];
        let row = self.layout.row[upper];
        let band = |row: usize| (self.rows.top[row], self.rows.top[row] + self.rows.height[row]);
        points.push((ports.upper[e], band(row).1));
        for (k, &x) in self.layout.bends[e].iter().enumerate() {
            let (top, bottom) = band(row + 1 + k);
            points.extend([(x, top), (x, bottom)]);
        }
        points.push((ports.lower[e], band(self.layout.row[lower]).0));
        points.push((ports.lower[e], lower_top));
        if skip > 0 {
            points.drain(..2 * skip + 1);
        }
        let fault = from > to;
        if fault {
            points.reverse();
        }
        let point = |(x, y): (f64, f64)| format!("{},{}", number(x + self.shift), number(y));
        let mut path = format!("M{}", point(points[0]));
        for pair in points.windows(2) {
            let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
            if (x0 - x1).abs() < 0.05 {
                let _ = write!(path, " L{}", point((x1, y1)));
            } else {
                let middle = (y0 + y1) / 2.0;
                let _ = write!(path, " C{} {} {}", point((x0, middle)), point((x1, middle)), point((x1, y1)));
            }
        }
        let (colour, width, dash, marker) = match tie {
            _ if fault => (style::FAULT, 1.8, if tie == Tie::Order { "5 4" } else { "" }, "fault"),
            Tie::Data => (style::DATA_EDGE, 1.1, "", "data"),
            Tie::Order => (style::ORDER_EDGE, 1.1, "5 4", "order"),
            Tie::Async => {
                let colour = group.map_or("#77777a", style::group_colour);
                let _ = writeln!(
                    self.text,
                    "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"7\" stroke-opacity=\"0.35\"/>"
                );
                (colour, 1.4, "", "")
            }
        };
        let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        let marker =
            if marker.is_empty() { String::new() } else { format!(" marker-end=\"url(#{marker})\"") };
        let _ = writeln!(
            self.text,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{dash}{marker}>\
             <title>{} to {}</title></path>",
            escape_xml(graph.name(from)),
            escape_xml(graph.name(to)),
        );
    }

    /// Where a line comes from so far away that the eye does not follow it, its source is named at its end.
    fn origins(&mut self, graph: &Graph, id: NodeId, ends: &[Edge], ports: &Ports) {
        let far = |e: &usize| ends[*e].to == id.index() && self.layout.bends[*e].len() >= FAR;
        let mut far: Vec<usize> = (0..ends.len()).filter(far).collect();
        far.sort_by(|&a, &b| ports.lower[a].total_cmp(&ports.lower[b]));
        let sides = match far[..] {
            // On the side that the line does not come from.
            [one] if self.layout.bends[one].last().is_some_and(|&x| x > ports.lower[one]) => {
                vec![(one, "end", -5.0)]
            }
            [one] => vec![(one, "start", 5.0)],
            [left, right] => vec![(left, "end", -5.0), (right, "start", 5.0)],
            _ => return,
        };
        let y = self.rows.top[self.layout.row[id.index()]] - 5.0;
        for (e, anchor, aside) in sides {
            let name = shorten(graph.name(NodeId(ends[e].from as u32)), 20);
            let more = format!(
                " text-anchor=\"{anchor}\" stroke=\"#ffffff\" stroke-width=\"3\" paint-order=\"stroke\" \
                 font-style=\"italic\""
            );
            self.write(ports.lower[e] + aside + self.shift, y, 8.5, "#55555a", &more, &name);
        }
    }

    fn node(&mut self, graph: &Graph, id: NodeId, sketch: &Sketch) {
        let (left, top, width, height) = self.frame(id.index());
        let colours = role_colours(sketch.role);
        let own = graph.inputs(id).contains(&id);
        let faulty = own || !sketch.missing.is_empty();
        let border = if faulty { style::FAULT } else { colours.border };
        let heavy = sketch.bucket.is_some();
        let radius = if matches!(sketch.role, Role::Input | Role::Attribute) { height / 2.0 } else { 5.0 };
        let _ = writeln!(self.text, "<g><title>{}</title>", escape_xml(&text::node_line(graph, id)));
        let _ = writeln!(
            self.text,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\" fill=\"{}\" stroke=\"{border}\" \
             stroke-width=\"{}\"/>",
            number(left),
            number(top),
            number(width),
            number(height),
            number(radius),
            colours.fill,
            if heavy { "3.5" } else { "1.2" }
        );
        let mut text_left = left + PADDING;
        if let Some(group) = sketch.group {
            let inset = if heavy { 1.7 } else { 0.6 };
            let _ = writeln!(
                self.text,
                "<rect x=\"{}\" y=\"{}\" width=\"{STRIPE}\" height=\"{}\" fill=\"{}\"/>",
                number(left + inset),
                number(top + inset),
                number(height - 2.0 * inset),
                style::group_colour(group)
            );
            text_left += STRIPE;
        }
        let pill = if radius > 5.0 { 2.0 } else { 0.0 };
        let label = &self.labels[id.index()];
        let (lines, index) = (label.lines.clone(), label.index.clone());
        for (k, line) in lines.iter().enumerate() {
            let y = top + 14.0 + LINE_HEIGHT * k as f64;
            let last = lines.len() - sketch.missing.len().min(MISSING);
            let colour = if k >= last { style::FAULT } else { colours.text };
            let bucket = sketch.bucket.is_some() && k + 1 == last;
            let weight = if k == 0 || bucket { " font-weight=\"bold\"" } else { "" };
            self.write(text_left + pill, y, if k == 0 { NAME_SIZE } else { TEXT_SIZE }, colour, weight, line);
        }
        let x = left + width - PADDING - pill;
        let grey = match sketch.role {
            Role::Output => "#c9c9c4",
            Role::Start(_) => "#3c3c40",
            _ => "#77777a",
        };
        self.write(x, top + 12.5, 9.0, grey, " text-anchor=\"end\"", &index);
        if own {
            let (x, y) = (left + width, top + height / 2.0);
            let _ = writeln!(
                self.text,
                "<path d=\"M{x},{a} C{b},{a} {b},{c} {x},{c}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\" \
                 marker-end=\"url(#fault)\"/>",
                style::FAULT,
                x = number(x),
                a = number(y + 8.0),
                b = number(x + 18.0),
                c = number(y - 8.0),
            );
        }
        self.text.push_str("</g>\n");
    }
}
