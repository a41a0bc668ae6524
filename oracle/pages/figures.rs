//! A small table of what the graphs cost, a column for each.

use crate::judge::input_faults;
use crate::report::cost::Cost;
use crate::rules::PassKind;
use crate::simulation::Estimates;
use crate::view::{Shown, View};
use crate::words::line;
use ir::words::{bytes, duration};
use maud::{Markup, html};

/// A column: what it is of, and its figures; `None` where the graph is at fault, so that they would mean nothing.
pub(crate) type Column = (String, Option<Cost>);

/// The column of a graph.
pub(crate) fn column(shown: &Shown, estimates: &Estimates) -> Column {
    let is_whole = input_faults(shown.graph, PassKind::Schedule).is_empty();
    (shown.title.clone(), is_whole.then(|| Cost::by(shown.graph, estimates)))
}

/// What a pass made of the figures, in one line; `None` where nothing is after, or a graph is at fault.
pub fn change(view: &View, estimates: &Estimates) -> Option<String> {
    let [before] = &view.before[..] else { return None };
    let after = view.after.iter().map(|shown| column(shown, estimates).1).collect::<Option<Vec<Cost>>>()?;
    let before = column(before, estimates).1?;
    (!after.is_empty()).then(|| before.change(&after))
}

/// The table; empty without columns.
pub(crate) fn table(columns: &[Column]) -> Markup {
    let row = |what: &str, of: &dyn Fn(&Cost) -> Option<String>| {
        let figure = |cost: &Option<Cost>| cost.as_ref().and_then(of).unwrap_or("not known".to_string());
        html! { tr { th scope="row" { (what) } @for (_, cost) in columns { td.number { (figure(cost)) } } } }
    };
    html! {
        @if !columns.is_empty() {
            section #figures {
                div.scroll { table.figures {
                    thead { tr { td {} @for (title, _) in columns { th scope="col" { (line(title)) } } } }
                    tbody {
                        (row("nodes", &|cost| Some(cost.nodes.to_string())))
                        (row("collectives", &|cost| Some(cost.collectives.to_string())))
                        (row("peak memory", &|cost| cost.peak.map(bytes)))
                        (row("exposed communication", &|cost| cost.exposed.map(duration)))
                    }
                } }
                p.quiet { "Peak memory in the scheduler's model: inputs that are named as the caller's do not count, others do until their last use. Exposed by estimates (docs/schedule.md)." }
            }
        }
    }
}
