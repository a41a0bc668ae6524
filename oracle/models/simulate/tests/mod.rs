mod cases;

use super::*;
use crate::graph::Group;
use crate::ops::Collective;

/// A world of groups, each a name and its instances.
fn world(ranks: u32, groups: &[(&str, &[&[u32]])]) -> World {
    let group = |&(name, instances): &(&str, &[&[u32]])| Group {
        name: name.to_string(),
        size: instances[0].len() as u32,
        recorded_rank: None,
        instances: instances.iter().map(|ranks| ranks.to_vec()).collect(),
    };
    World { ranks: Some(ranks), groups: groups.iter().map(group).collect() }
}

/// One program for each rank.
fn programs(world: World, programs: Vec<Program>) -> Programs {
    Programs { of_rank: (0..programs.len()).collect(), programs, world }
}

/// A program in words, parted by semicolons: `g dp` launches all-reduce `g` on `dp`, `wait g` waits for it,
/// `send s 1 pp` and `recv r 1 pp` are launched too, `barrier b dp` is waited for at once.
fn program(text: &str) -> Program {
    let mut program = Program::default();
    for line in text.split(';').map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["wait", name] => {
                let at = program.operations.iter().position(|operation| operation.name == name).unwrap();
                program.wait(&format!("wait_{name}"), at);
            }
            [kind @ ("send" | "recv"), name, peer, group] => {
                let peer = peer.parse().unwrap();
                program.launch(Operation::message(name, group, kind == "send", peer));
            }
            ["barrier", name, group] => {
                program.launch(Operation::collective(name, group, Collective::Barrier));
            }
            ["compute", name, nanoseconds] => {
                let nanoseconds = nanoseconds.parse().unwrap();
                program.steps.push(Step::Compute { name: name.to_string(), nanoseconds });
            }
            [name, group] => {
                program.launch(Operation::collective(name, group, Collective::AllReduce));
            }
            _ => panic!("{line}"),
        }
    }
    program
}

fn run(world: World, texts: &[&str], options: Options) -> Report {
    simulate(&programs(world, texts.iter().map(|text| program(text)).collect()), options)
}
