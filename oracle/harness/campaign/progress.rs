//! The progress line of a campaign: there from the first second, and drawn anew with time, not with batches.

use super::{Limit, Summary};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// How often the line is drawn.
const TICK: Duration = Duration::from_millis(200);

pub(super) struct Progress {
    bar: ProgressBar,
    limit: Limit,
    /// Cases that were done before this run.
    before: u64,
}

impl Progress {
    pub(super) fn new(shown: bool, limit: Limit, done: &Summary) -> Progress {
        let length = match limit {
            Limit::Cases(cases) => cases,
            Limit::Time(time) => time.as_secs(),
        };
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(length), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {percent:>3}% {elapsed} {wide_msg}") {
            bar.set_style(style);
        }
        bar.set_message(done.title.clone());
        if shown {
            bar.enable_steady_tick(TICK);
        }
        Progress { bar, limit, before: done.total.cases }
    }

    /// One more case is judged.
    pub(super) fn judged(&self) {
        if let Limit::Cases(_) = self.limit {
            self.bar.inc(1);
        }
    }

    pub(super) fn show(&self, summary: &Summary, elapsed: Duration) {
        let total = &summary.total;
        self.bar.set_position(match self.limit {
            Limit::Cases(_) => total.cases,
            Limit::Time(_) => elapsed.as_secs(),
        });
        let rate = (total.cases - self.before) as f64 / elapsed.as_secs_f64().max(1e-9);
        let useful = 100.0 * total.useful as f64 / (total.cases as f64).max(1.0);
        let causes = summary.causes();
        let rules = causes.iter().filter_map(|cause| cause.rules.first().copied());
        let rules: Vec<&str> = rules.collect();
        self.bar.set_message(format!(
            "{} cases, {rate:.0}/s, {useful:.0}% useful, {} violated {}",
            total.cases,
            total.violated,
            rules.join(", ")
        ));
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
