//! Worlds: ranks, and the process groups that partition them.
//!
//! Every group names a partition of all ranks into instances of one size, so that every rank can run every node.
//! On a world of composite size two groups may be the axes of a mesh; others overlap as they come.

use super::config::Config;
use super::source::Source;
use crate::graph::{Group, World};

/// Names of groups: axes as people call them, and numbers as PyTorch does.
const NAMES: [&str; 8] = ["dp", "tp", "pp", "ep", "cp", "0", "11", "fsdp_all"];

/// The name of the groups of one rank.
const SOLO: &str = "solo";

/// Draws ranks and groups.
pub(super) fn draw(source: &mut impl Source, config: &Config) -> World {
    let ranks = source.between(config.min_ranks, config.max_ranks);
    let mut world = World { ranks: Some(ranks), groups: Vec::with_capacity(config.max_groups as usize + 1) };
    let sizes: Vec<u32> = (2..ranks).filter(|&size| ranks.is_multiple_of(size)).collect();
    let mesh = source.percent(config.mesh) && !sizes.is_empty() && config.max_groups >= 2;
    if mesh {
        let inner = source.one_of(&sizes);
        push(&mut world, blocks(ranks, inner, 1));
        push(&mut world, blocks(ranks, ranks / inner, inner));
    } else {
        push(&mut world, blocks(ranks, ranks, 1));
    }
    while world.groups.len() < config.max_groups as usize && source.percent(50) {
        let instances = match source.below(3) {
            _ if sizes.is_empty() => blocks(ranks, ranks, 1),
            0 => blocks(ranks, ranks, 1),
            1 => {
                let size = source.one_of(&sizes);
                blocks(ranks, size, 1)
            }
            _ => {
                let size = source.one_of(&sizes);
                mirrored(ranks, size)
            }
        };
        push(&mut world, instances);
    }
    if source.percent(config.shuffled_ranks) {
        let which = source.below(world.groups.len() as u32) as usize;
        for instance in &mut world.groups[which].instances {
            instance.rotate_left(1);
        }
    }
    if source.percent(config.group_of_one) && ranks > 1 {
        push(&mut world, blocks(ranks, 1, 1));
        if let Some(group) = world.groups.last_mut() {
            group.name = SOLO.to_string();
        }
    }
    world
}

fn push(world: &mut World, instances: Vec<Vec<u32>>) {
    let size = instances.first().map_or(0, |ranks| ranks.len() as u32);
    let name = NAMES[world.groups.len() % NAMES.len()].to_string();
    world.groups.push(Group { name, size, recorded_rank: None, instances });
}

/// Instances of `size` ranks that lie `step` apart.
pub(super) fn blocks(ranks: u32, size: u32, step: u32) -> Vec<Vec<u32>> {
    let block = size * step;
    (0..ranks / block)
        .flat_map(|b| (0..step).map(move |s| b * block + s))
        .map(|first| (0..size).map(|i| first + i * step).collect())
        .collect()
}

/// Instances that take ranks from both ends: on 4 ranks in twos, [0, 3] and [1, 2].
fn mirrored(ranks: u32, size: u32) -> Vec<Vec<u32>> {
    let order: Vec<u32> = (0..ranks).map(|i| if i % 2 == 0 { i / 2 } else { ranks - 1 - i / 2 }).collect();
    order.chunks(size as usize).map(<[u32]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::super::source::Seeded;
    use super::*;

    #[test]
    fn partitions() {
        assert_eq!(blocks(4, 2, 1), [[0, 1], [2, 3]]);
        assert_eq!(blocks(4, 2, 2), [[0, 2], [1, 3]]);
        assert_eq!(blocks(8, 2, 2), [[0, 2], [1, 3], [4, 6], [5, 7]]);
        assert_eq!(mirrored(4, 2), [[0, 3], [1, 2]]);
    }

    #[test]
    fn worlds_are_whole() {
        let mut source = Seeded::new(11);
        for max_ranks in [1, 2, 4, 8] {
            let config = Config { min_ranks: 1, max_ranks, max_groups: 8, ..Config::default() };
            for _ in 0..300 {
                let world = draw(&mut source, &config);
                assert_eq!(world.faults(), [], "{world:?}");
                let ranks = world.ranks.unwrap();
                for group in &world.groups {
                    assert!((0..ranks).all(|rank| group.instance_of(rank).is_some()), "{world:?}");
                }
            }
        }
    }
}
