//! Colours and measures of pictures, shared by SVG and DOT.

use crate::format::picture::Role;
use crate::ops::Collective;

/// Width of a character of the monospaced font, per unit of size.
const CHARACTER: f64 = 0.605;
/// Room around the drawing.
pub(super) const MARGIN: f64 = 24.0;
/// Width of the stripe that shows the group.
pub(super) const STRIPE: f64 = 7.0;

/// The width of a text in letters of this size.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * CHARACTER
}

/// A coordinate with one digit behind the point.
pub(super) fn number(x: f64) -> String {
    let text = format!("{x:.1}");
    text.strip_suffix(".0").map(str::to_string).unwrap_or(text)
}

/// Fill, border and text of a box.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::format) struct Colours {
    pub(in crate::format) fill: &'static str,
    pub(in crate::format) border: &'static str,
    pub(in crate::format) text: &'static str,
}

const fn colours(fill: &'static str, border: &'static str) -> Colours {
    Colours { fill, border, text: "#1d1d1f" }
}

/// A collective is filled strongly, its wait lightly, in the colour of its kind.
pub(in crate::format) fn role_colours(role: Role) -> Colours {
    match role {
        Role::Start(kind) => {
            let (strong, _, border) = kind_colours(kind);
            colours(strong, border)
        }
        Role::Wait(Some(kind)) => {
            let (_, light, border) = kind_colours(kind);
            colours(light, border)
        }
        Role::Wait(None) => colours("#ffffff", "#55555a"),
        Role::Input => colours("#fbf6e0", "#b9a64a"),
        Role::Attribute => colours("#f3efe2", "#a8955a"),
        Role::Output => Colours { fill: "#3c4046", border: "#1d1d1f", text: "#ffffff" },
        Role::View => Colours { fill: "#ffffff", border: "#c9c9c4", text: "#55555a" },
        Role::Write => colours("#f6dfe3", "#a03a4e"),
        Role::Compute => colours("#eeeeec", "#96968f"),
    }
}

/// Strong fill, light fill and border.
fn kind_colours(kind: Collective) -> (&'static str, &'static str, &'static str) {
    match kind {
        Collective::AllGather => ("#8fc1f2", "#dcecfb", "#1f5f9e"),
        Collective::ReduceScatter => ("#f8b26a", "#fde8d0", "#b35c0c"),
        Collective::AllReduce => ("#93d08f", "#e0f3de", "#2a7a33"),
        Collective::AllToAll | Collective::ShardDimAllToAll => ("#c8a6ea", "#efe4fa", "#6b3aa3"),
        _ => ("#f2a0bd", "#fce2eb", "#a52a5c"),
    }
}

/// The colour of a process group, by order of first use. Apart from the colours of kinds in strength.
pub(in crate::format) fn group_colour(group: usize) -> &'static str {
    const COLOURS: [&str; 8] =
        ["#12127d", "#00897b", "#d81b60", "#f9a825", "#6d4c41", "#00b8d4", "#827717", "#7b1fa2"];
    COLOURS[group % COLOURS.len()]
}

pub(in crate::format) const DATA_EDGE: &str = "#8a8a85";
pub(in crate::format) const ORDER_EDGE: &str = "#55555a";
pub(in crate::format) const FAULT: &str = "#d50000";
pub(in crate::format) const CLUSTER: &str = "#5f6a00";
