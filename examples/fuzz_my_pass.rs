//! A pass of one's own on random cases, until one breaks a rule; then that case, reduced:
//!
//!     cargo run --release --example fuzz_my_pass
//!
//! The pass means to turn `mul(x, 2.0)` into `add(x, x)`.

use graph_oracle::candidates::{Answer, Candidate, Capabilities, Refusal, Request, judging};
use graph_oracle::case::{Case, PassConfig};
use graph_oracle::generate::{Config, case};
use graph_oracle::judge::{Verdict, judge};
use graph_oracle::reduce::{Budget, Pin, reduce, violates};
use graph_oracle::report;
use graph_oracle::rules::PassKind;

struct Doubles;

impl Candidate for Doubles {
    fn name(&self) -> &str {
        "doubles"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::of(&[PassKind::Rewrite])
    }

    fn run(&self, request: &Request) -> Result<Vec<Answer>, Refusal> {
        let mut graph = request.graph.clone();
        for id in graph.ids() {
            if graph.target(id) == "aten.mul.Tensor" {
                // The bug: the second factor is not looked at.
                let factor = graph.arg(id, 0).ok_or_else(|| Refusal::new("a product of nothing"))?;
                let text = graph.intern("aten.add.Tensor");
                let (target, arguments) = (graph.target_named(text), graph.push_values(&[factor, factor]));
                let node = graph.node_mut(id);
                (node.target, node.args) = (target, arguments);
            }
        }
        Ok(vec![graph.into()])
    }
}

fn main() {
    for index in 0..1000 {
        let mut case = case(&Config::default(), 1, index).into_case();
        case.pass = Some(PassConfig::new("rewrite"));
        let Ok(judgement) = judge(&case, &Doubles, &judging()) else { continue };
        let Verdict::Violated(findings) = &judgement.verdict else { continue };
        let pin = Pin::of_finding(&findings[0]);
        let mut breaks_it = |case: &Case| violates(case, &Doubles, &judging(), &pin);
        if let Ok(reduced) = reduce(&case, Budget::default(), &mut breaks_it, &mut |_| {}) {
            case = reduced.case;
        }
        if let Ok(judgement) = judge(&case, &Doubles, &judging()) {
            print!("{}", report::text(&judgement, &format!("\n{case}"), None, false));
        }
        return;
    }
    println!("1000 cases, and nothing was found");
}
