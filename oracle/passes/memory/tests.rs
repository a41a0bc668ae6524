use super::profile::{not_placeholder, not_primals};
use super::replay::{Options, replay};
use super::*;
use crate::format::{json, text};
use crate::graph::Graph;

fn real(name: &str) -> Graph {
    let path = format!("/work/shared/graphs/{name}.json.gz");
    json::read_path(path).unwrap().into_graph().unwrap()
}

fn graph(lines: &str) -> Graph {
    text::parse(lines).unwrap_or_else(|e| panic!("{}", e.render(None))).graph
}

#[test]
fn peaks_are_those_of_pytorch() {
    for (name, kept, default, physical) in [
        ("llama3_8b_fw_64_1d", 35_086_222_080i64, 35_086_222_080i64, 35_086_222_080i64),
        ("llama3_8b_fw_256_2d", 5_106_639_872, 5_106_639_872, 5_106_639_872),
        ("llama3_8b_bw_64_1d", 38_975_734_784, 37_020_517_120, 38_975_734_784),
        ("llama3_8b_bw_64_1d_after_bucket_ag_rs", 55_656_522_752, 45_727_152_096, 54_784_025_600),
        ("dsv3_fw_64", 55_756_508_704, 55_756_502_048, 0),
    ] {
        let graph = real(name);
        let now = std::time::Instant::now();
        let kept_profile = profile(&graph, &not_placeholder).unwrap();
        let t1 = now.elapsed();
        assert_eq!(kept_profile.steps.peak().0, kept, "{name}");
        assert_eq!(profile(&graph, &not_primals).unwrap().steps.peak().0, default, "{name}");
        let now = std::time::Instant::now();
        let truth = replay(&graph, Options { unbacked: Some(8192), ..Options::default() }).unwrap();
        println!(
            "{name} {} nodes profile {t1:?} replay {:?} {:?}",
            graph.len(),
            now.elapsed(),
            truth.steps.peak()
        );
        let ledger = profile::recorded_ledger(&graph);
        let d = difference::first_difference(
            &graph,
            &kept_profile.steps,
            Some((&ledger, &kept_profile.lives)),
            &truth,
        );
        println!("   {}", d.as_ref().unwrap().tell(&graph));
        println!(
            "   {:#?} uncertain {} {:?}",
            d.as_ref().unwrap().why,
            truth.uncertain.len(),
            truth.uncertain.first().map(|&n| graph.name(n))
        );
        if physical != 0 {
            assert_eq!(truth.steps.peak().0, physical, "{name}");
        }
    }
}
