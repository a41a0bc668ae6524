use super::*;
use crate::format::text;

fn graph(lines: &str) -> Graph {
    text::parse(lines).unwrap_or_else(|e| panic!("{}", e.render(None))).graph
}

const PROGRAM: &str = "\
graph \"two <gathers>\" forward
world 2 ranks, groups dp = [0 1]
x = input : f32[8]
a = relu(x)
g = all_gather(a, dp)
w = wait(g)
b = neg(w)
output b
";

#[test]
fn the_first_difference_is_told_with_its_cause() {
    let graph = graph(PROGRAM);
    let report = MemoryReport::new(&graph).unwrap();
    let text = report.text();
    assert_eq!((report.profile_peak_bytes(), report.replay_peak_bytes()), (160, 160));
    assert!(
        text.contains("they part first after the frees of step 1 (g): 96 bytes predicted, 128 bytes live"),
        "{text}"
    );
    assert!(
        text.contains("because the prediction frees 32 bytes of a; at run time they are still held: g is in flight with it until w"),
        "{text}"
    );
    assert_eq!(report.json()["first_difference"]["node"], "g");
}

#[test]
fn pictures_and_traces_are_well_formed() {
    let graph = graph(PROGRAM);
    let report = MemoryReport::new(&graph).unwrap();
    let picture = svg(&report);
    assert_eq!(picture, svg(&MemoryReport::new(&graph).unwrap()));
    assert!(picture.contains("two &lt;gathers&gt;") && picture.ends_with("</svg>\n"));
    assert_eq!(picture.matches("<circle").count(), 2);
    let trace: serde_json::Value = serde_json::from_str(&trace(&report)).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let count = |ph: &str| events.iter().filter(|event| event["ph"] == ph).count();
    // Four steps; x, a, g and b.
    assert_eq!((count("X"), count("C"), count("b"), count("e")), (4, 8, 4, 4));
    // Nothing at all is drawn, too.
    svg(&MemoryReport::new(&Graph::default()).unwrap());
}
