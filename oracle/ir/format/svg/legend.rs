//! What the colours and lines of a picture mean: only what occurs in it.

use super::style::{self, MARGIN, STRIPE, number, role_colours, text_width};
use crate::format::picture::{Picture, Role, Tie, escape_xml, shorten};
use crate::graph::{Graph, Group};
use crate::ops::Collective;
use std::fmt::Write;

/// One entry of the legend.
enum Sample {
    /// Two fills of one border: a collective and its wait.
    Kind(Collective),
    Box(Role),
    Group(usize),
    Bucket,
    Cluster,
    Line(Tie),
    Fault,
}

pub(super) struct Legend {
    pub(super) title: String,
    entries: Vec<(Sample, String)>,
}

impl Legend {
    pub(super) fn new(graph: &Graph, picture: &Picture) -> Legend {
        let name = if graph.name.is_empty() { "graph" } else { &graph.name };
        let kind = if graph.kind.is_empty() { String::new() } else { format!(" ({})", graph.kind) };
        let ranks = graph.world.ranks.map(|r| format!(", {r} ranks")).unwrap_or_default();
        let title = format!("{}{kind}: {} nodes{ranks}", shorten(name, 60), graph.len());
        let mut entries = Vec::new();
        let mut kinds: Vec<Collective> = Vec::new();
        for sketch in &picture.nodes {
            if let Role::Start(kind) = sketch.role
                && !kinds.contains(&kind)
            {
                kinds.push(kind);
                entries.push((Sample::Kind(kind), format!("{}, wait", kind.name())));
            }
        }
        for (index, name) in picture.groups.iter().enumerate() {
            let text = format!(
                "group {}{}",
                shorten(name, 20),
                graph.world.group(name).map_or(String::new(), ranks_of)
            );
            entries.push((Sample::Group(index), text));
        }
        let has = |role: Role| picture.nodes.iter().any(|s| s.role == role);
        for (role, text) in [
            (Role::Input, "input"),
            (Role::Compute, "compute"),
            (Role::View, "view"),
            (Role::Write, "writes in place"),
        ] {
            if has(role) {
                entries.push((Sample::Box(role), text.to_string()));
            }
        }
        if picture.nodes.iter().any(|s| s.bucket.is_some()) {
            entries.push((Sample::Bucket, "bucket".to_string()));
        }
        if !graph.clusters.is_empty() {
            entries.push((Sample::Cluster, "cluster".to_string()));
        }
        let tied = |tie: Tie| picture.edges.iter().any(|e| e.2 == tie && e.0 < e.1);
        if tied(Tie::Async) {
            entries.push((Sample::Line(Tie::Async), "in flight".to_string()));
        }
        if tied(Tie::Order) {
            entries.push((Sample::Line(Tie::Order), "order only".to_string()));
        }
        let faulty = picture.nodes.iter().any(|s| !s.missing.is_empty());
        if faulty || picture.edges.iter().any(|e| e.0 >= e.1) {
            entries.push((Sample::Fault, "fault".to_string()));
        }
        Legend { title, entries }
    }

    /// The legend and its height.
    pub(super) fn draw(&self, width: f64) -> (String, f64) {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "<text x=\"{MARGIN}\" y=\"30\" font-size=\"15\" font-weight=\"bold\" fill=\"#1d1d1f\">{}</text>",
            escape_xml(&self.title)
        );
        let (mut x, mut y) = (MARGIN, 44.0);
        for (sample, words) in &self.entries {
            let room = 34.0 + text_width(words, 11.0) + 22.0;
            if x + room > width && x > MARGIN {
                (x, y) = (MARGIN, y + 22.0);
            }
            sample.draw(&mut text, x, y);
            let _ = writeln!(
                text,
                "<text x=\"{}\" y=\"{}\" font-size=\"11\" fill=\"#1d1d1f\">{}</text>",
                number(x + 34.0),
                number(y + 11.5),
                escape_xml(words)
            );
            x += room;
        }
        let bottom = y + 28.0;
        let _ = writeln!(
            text,
            "<path d=\"M{MARGIN},{0} L{1},{0}\" stroke=\"#dddddd\"/>",
            number(bottom),
            number(width - MARGIN)
        );
        (text, bottom)
    }
}

fn ranks_of(group: &Group) -> String {
    let instance = |ranks: &Vec<u32>| ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    match group.instances.as_slice() {
        [] => format!(": {} ranks", group.size),
        [one] if one.len() <= 8 => format!(" = [{}]", instance(one)),
        many if many.iter().map(Vec::len).sum::<usize>() <= 8 => {
            format!(" = [{}]", many.iter().map(instance).collect::<Vec<_>>().join(" | "))
        }
        many => format!(": {} x {} ranks", many.len(), group.size),
    }
}

impl Sample {
    fn draw(&self, text: &mut String, x: f64, y: f64) {
        let rect = |text: &mut String, x: f64, w: f64, fill: &str, stroke: &str, more: &str| {
            let _ = writeln!(
                text,
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"14\" fill=\"{fill}\" stroke=\"{stroke}\"{more}/>",
                number(x),
                number(y),
                number(w)
            );
        };
        let line = |text: &mut String, more: &str| {
            let _ =
                writeln!(text, "<path d=\"M{},{1} h28\" fill=\"none\" {more}/>", number(x), number(y + 7.0));
        };
        match self {
            Sample::Kind(kind) => {
                let (start, wait) = (role_colours(Role::Start(*kind)), role_colours(Role::Wait(Some(*kind))));
                rect(text, x, 14.0, start.fill, start.border, "");
                rect(text, x + 14.0, 14.0, wait.fill, wait.border, "");
            }
            Sample::Box(role) => {
                let colours = role_colours(*role);
                let more = if *role == Role::Input { " rx=\"7\"" } else { " rx=\"3\"" };
                rect(text, x, 28.0, colours.fill, colours.border, more);
            }
            Sample::Group(group) => {
                rect(text, x, 28.0, "#ffffff", "#c9c9c4", "");
                let colour = style::group_colour(*group);
                rect(text, x + 0.5, STRIPE, colour, colour, "");
            }
            Sample::Bucket => rect(text, x, 28.0, "#ffffff", "#1d1d1f", " rx=\"3\" stroke-width=\"3.5\""),
            Sample::Cluster => {
                let more = " rx=\"4\" stroke-dasharray=\"5 3\"";
                rect(text, x, 28.0, "#f7f9d9", style::CLUSTER, more);
            }
            Sample::Line(Tie::Async) => {
                line(text, "stroke=\"#12127d\" stroke-width=\"7\" stroke-opacity=\"0.35\"")
            }
            Sample::Line(_) => {
                line(
                    text,
                    &format!(
                        "stroke=\"{}\" stroke-dasharray=\"5 4\" marker-end=\"url(#order)\"",
                        style::ORDER_EDGE
                    ),
                );
            }
            Sample::Fault => {
                line(
                    text,
                    &format!("stroke=\"{}\" stroke-width=\"1.8\" marker-end=\"url(#fault)\"", style::FAULT),
                );
            }
        }
    }
}
