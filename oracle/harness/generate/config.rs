//! The knobs of the generator, all in one place.
//!
//! Three sorts of number: *sizes* have a unit of their own; *weights* say how often a step of the generator is
//! this one, in proportion to the other weights; *percentages* say how often a choice within a step falls this
//! way. A weight or percentage of 0 switches its feature off.
//!
//! # Swarms
//!
//! A case in which everything may happen seldom has much of anything. [`Config::swarm`] draws for each case which
//! features are on, and some of them doubled; the others are off. So each case is about a few things, and all
//! cases together are about everything (Groce et al., "Swarm testing", ISSTA 2012).

use super::source::Source;

/// How a swarm treats a knob.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Swarm {
    /// Left alone.
    Keep,
    /// On in 3 of 4 cases, and doubled in 1 of 4.
    Often,
    /// On in half of the cases, and doubled in 1 of 4.
    Half,
    /// On in 1 of 4 cases.
    Seldom,
}

/// What is known about one knob.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Knob {
    /// Its name: that of the field of [`Config`].
    pub name: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// The smallest and the largest value.
    pub range: (u32, u32),
    /// The value in [`Config::default`].
    pub default: u32,
    /// How a swarm treats it.
    pub swarm: Swarm,
}

macro_rules! knobs {
    ($($(#[doc = $doc:literal])+ $name:ident = $default:literal in $low:literal..=$high:literal, $swarm:ident;)*) => {
        /// What the generator makes, and how much of it. See the module for the three sorts of number.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct Config {
            $($(#[doc = $doc])+ pub $name: u32,)*
        }

        impl Default for Config {
            fn default() -> Config {
                Config { $($name: $default,)* }
            }
        }

        impl Config {
            /// All knobs, in the order of the fields.
            pub const KNOBS: &'static [Knob] = &[
                $(Knob {
                    name: stringify!($name),
                    doc: concat!($($doc),+),
                    range: ($low, $high),
                    default: $default,
                    swarm: Swarm::$swarm,
                },)*
            ];

            /// The knob called `name`, to be read or set.
            pub fn knob_mut(&mut self, name: &str) -> Option<&mut u32> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)*
                    _ => None,
                }
            }

            /// The same with every knob in its range.
            pub fn clamped(&self) -> Config {
                let mut this = Config { $($name: self.$name.clamp($low, $high),)* };
                this.max_nodes = this.max_nodes.max(this.min_nodes);
                this.max_ranks = this.max_ranks.max(this.min_ranks);
                this
            }

            fn draw(&mut self, bits: &mut impl FnMut() -> u32) {
                $(self.$name = Swarm::$swarm.apply(self.$name, $high, bits);)*
            }
        }
    };
}

knobs! {
    /// Nodes of a case, at least (a seeded source stops after this many or more; a byte source when it ends).
    /// 30 to 60 nodes hold a dozen collectives and are judged in a fraction of a millisecond.
    min_nodes = 30 in 5..=1_000_000, Keep;
    /// Nodes of a case, at most, but for waits and outputs that complete what has begun.
    max_nodes = 60 in 5..=1_000_000, Keep;
    /// Ranks of the world, at least. Below 2 every group has one rank.
    min_ranks = 2 in 1..=64, Keep;
    /// Ranks of the world, at most. Execution costs as much as there are ranks; 4 make a 2-D mesh.
    max_ranks = 4 in 1..=64, Keep;
    /// Groups with names of their own, at most.
    max_groups = 3 in 1..=8, Keep;
    /// Elements of an input, at most. Gathered results have up to as many on each rank of the world. Small
    /// tensors are cheap to execute, and a wrong element is as wrong as a wrong thousand.
    elements = 16 in 1..=16_777_216, Keep;

    /// Weight of a step that starts an all-gather.
    gather = 16 in 0..=1000, Keep;
    /// Weight of a step that starts a reduce-scatter.
    scatter = 9 in 0..=1000, Often;
    /// Weight of a step that starts an all-reduce.
    reduce = 8 in 0..=1000, Often;
    /// Weight of a step that waits for one of the collectives in flight.
    wait = 14 in 0..=1000, Keep;
    /// Weight of a step that starts several collectives of one key and waits for them in some order.
    burst = 10 in 0..=1000, Often;
    /// Weight of a step gather, compute, gather again.
    chain = 6 in 0..=1000, Often;
    /// Weight of an elementwise operator.
    pointwise = 14 in 0..=1000, Keep;
    /// Weight of a view.
    view = 8 in 0..=1000, Often;
    /// Weight of an operator with several results, of which some are not used.
    pieces = 5 in 0..=1000, Half;
    /// Whether such an operator may be a dropout: 1 or 0.
    dropout = 1 in 0..=1, Keep;
    /// Weight of an operator that takes a list: dependence through nested arguments.
    join = 5 in 0..=1000, Half;
    /// Weight of a cast.
    cast = 5 in 0..=1000, Half;
    /// Weight of matrix products and reductions.
    product = 4 in 0..=1000, Half;
    /// Weight of an in-place operator.
    write = 6 in 0..=1000, Half;
    /// Weight of a gather into a buffer (`out=`).
    buffer = 5 in 0..=1000, Half;
    /// Weight of a collective that reads a buffer into which another's result was written through an alias:
    /// dependence without a path of data edges.
    through_memory = 4 in 0..=1000, Half;
    /// Weight of a random operator.
    random = 5 in 0..=1000, Seldom;
    /// Weight of an assertion on a value of a tensor.
    assertion = 4 in 0..=1000, Seldom;
    /// Weight of a second wait for one collective, or a wait for a wait.
    second_wait = 4 in 0..=1000, Half;
    /// Weight of communication that is never bucketed: all-to-all, broadcast, coalesced and in-place forms.
    neighbour = 6 in 0..=1000, Half;
    /// Weight of the in-place form among such communication; at 0 no draw is in place either.
    in_place = 3 in 0..=1000, Keep;
    /// Weight of a barrier.
    barrier = 4 in 0..=1000, Seldom;
    /// Weight of a few identical layers (FSDP, tensor parallel, or a random body).
    layers = 3 in 0..=1000, Half;
    /// Weight of a reduce-scatter whose input is padded block by block.
    padded = 4 in 0..=1000, Seldom;
    /// Weight of nodes without users.
    dead = 4 in 0..=1000, Half;
    /// Weight of an operator that the oracle does not compute.
    uninterpreted = 3 in 0..=1000, Seldom;

    /// How often a collective is left in flight rather than waited for at once.
    late_wait = 45 in 0..=100, Keep;
    /// How often a collective uses the first key of its kind rather than another one.
    first_key = 75 in 0..=100, Keep;
    /// How often a collective takes a new graph input rather than a value at hand.
    fresh_input = 45 in 0..=100, Keep;
    /// How often the input of a collective is cast right before it.
    folded_cast = 25 in 0..=100, Often;
    /// How often such a cast has further users, or follows another cast.
    cast_variant = 30 in 0..=100, Half;
    /// How often the input of a collective is permuted or expanded.
    strided = 15 in 0..=100, Half;
    /// How often a new input has no elements or no dimensions.
    odd_shape = 12 in 0..=100, Half;
    /// How often a dtype is any of the twelve rather than the case's own two.
    odd_dtype = 15 in 0..=100, Half;
    /// How often an operand is given by keyword.
    keyword = 15 in 0..=100, Half;
    /// How often a step adds an ordering edge.
    ordering = 6 in 0..=100, Half;
    /// Whether ordering edges may begin at a launch, or end at a wait: 1 or 0.
    ordering_in_flight = 1 in 0..=1, Keep;
    /// How often an unused result becomes an output; the others are dead.
    output = 80 in 0..=100, Keep;
    /// How often a used result becomes an output too.
    used_output = 8 in 0..=100, Often;
    /// How often an input is overwritten at the end, as optimizers and batch norms do.
    epilogue = 25 in 0..=100, Half;
    /// How often some calls of a graph that is to be rewritten are the body of one.
    regions = 10 in 0..=100, Keep;
    /// How often a graph that is to be rewritten has values of symbolic sizes too.
    symbolic = 15 in 0..=100, Keep;
    /// How often the calls of a graph that is to be rewritten run on several streams.
    streams = 10 in 0..=100, Keep;
    /// How often calls of a graph are written otherwise: arguments by keyword, values that go through the host.
    forms = 10 in 0..=100, Keep;
    /// How often a name is one that a pass may want to make itself, a very long one, or not ASCII.
    odd_name = 20 in 0..=100, Seldom;
    /// How often nodes carry module paths, stack traces and tags.
    annotated = 100 in 0..=100, Half;
    /// How often the world is a 2-D mesh, where its size allows one.
    mesh = 60 in 0..=100, Often;
    /// How often there are groups of one rank.
    group_of_one = 30 in 0..=100, Half;
    /// How often a group lists its ranks in another order than ascending.
    shuffled_ranks = 30 in 0..=100, Half;

    /// How often the pass is the repair, and the list is shuffled. Such a graph has no writes, draws or effects:
    /// without a valid list order they have no meaning.
    repair = 10 in 0..=100, Keep;
    /// How often an unsorted graph is also cyclic. Only on request: no pass is to accept it.
    cycle = 0 in 0..=100, Keep;
    /// How often a bucketing pass is for one kind of collective rather than for all.
    one_kind = 40 in 0..=100, Keep;
    /// How often the packing mode is not the default one.
    other_mode = 50 in 0..=100, Often;
    /// How often bucketing groups over the whole graph (AutoParallel) rather than by adjacent waits.
    spanning = 25 in 0..=100, Often;
    /// How often the cap lies near the sizes of the graph's own collectives.
    tight_cap = 60 in 0..=100, Keep;
    /// How often a tight cap differs from bucket to bucket.
    cap_by_index = 30 in 0..=100, Half;
}

impl Swarm {
    fn apply(self, value: u32, high: u32, bits: &mut impl FnMut() -> u32) -> u32 {
        let (on, double) = match self {
            Swarm::Keep => return value,
            Swarm::Often => (1, 3),
            Swarm::Half => (2, 3),
            Swarm::Seldom => (3, 4),
        };
        let drawn = bits();
        match drawn {
            _ if drawn >= double => value.saturating_mul(2).min(high),
            _ if drawn >= on => value,
            _ => 0,
        }
    }
}

impl Config {
    /// The default with features switched on and off, and some doubled, as `source` says.
    pub fn swarm(source: &mut impl Source) -> Config {
        Config::default().swarmed(source)
    }

    /// The same from this configuration: what is off stays off.
    pub fn swarmed(mut self, source: &mut impl Source) -> Config {
        source.step();
        // Two bits per knob, eight knobs per draw: all knobs fit into one frame of a byte source.
        let (mut word, mut left) = (0u32, 0);
        self.draw(&mut || {
            if left == 0 {
                (word, left) = (source.below(1 << 16), 8);
            }
            let bits = word & 3;
            (word, left) = (word >> 2, left - 1);
            bits
        });
        self
    }

    /// Nothing that writes, draws random numbers or has an effect.
    pub fn pure(mut self) -> Config {
        for knob in [
            &mut self.write,
            &mut self.buffer,
            &mut self.through_memory,
            &mut self.in_place,
            &mut self.random,
            &mut self.assertion,
            &mut self.barrier,
            &mut self.epilogue,
        ] {
            *knob = 0;
        }
        self
    }

    /// What is out of range, in words.
    pub fn faults(&self) -> Vec<String> {
        let mut this = self.clone();
        let mut faults = Vec::new();
        for knob in Config::KNOBS {
            let value = this.knob_mut(knob.name).map_or(0, |value| *value);
            let (low, high) = knob.range;
            if !(low..=high).contains(&value) {
                faults.push(format!("{} is {value}, but must be {low} to {high}", knob.name));
            }
        }
        for (low, high, what) in
            [(self.min_nodes, self.max_nodes, "nodes"), (self.min_ranks, self.max_ranks, "ranks")]
        {
            if low > high {
                faults.push(format!("min_{what} is {low}, but max_{what} is {high}"));
            }
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::{Bytes, FRAME, Seeded};
    use super::*;

    #[test]
    fn defaults_are_in_range() {
        assert_eq!(Config::default().faults(), Vec::<String>::new());
        let mut config = Config { min_ranks: 0, max_nodes: 7, ..Config::default() };
        *config.knob_mut("output").unwrap() = 101;
        assert_eq!(
            config.faults(),
            [
                "min_ranks is 0, but must be 1 to 64",
                "output is 101, but must be 0 to 100",
                "min_nodes is 30, but max_nodes is 7"
            ]
        );
        assert_eq!(config.clamped().faults(), Vec::<String>::new());
    }

    #[test]
    fn a_swarm_switches_features() {
        let mut source = Seeded::new(1);
        let swarms: Vec<Config> = (0..1000).map(|_| Config::swarm(&mut source)).collect();
        let share = |on: fn(&Config) -> bool| swarms.iter().filter(|c| on(c)).count() / 10;
        assert!((70..80).contains(&share(|c| c.view > 0)));
        assert!((45..55).contains(&share(|c| c.join > 0)));
        assert!((20..30).contains(&share(|c| c.join == 10)));
        assert!((20..30).contains(&share(|c| c.random > 0)));
        assert!(swarms.iter().all(|c| c.gather == 16 && c.faults().is_empty()));
    }

    #[test]
    fn one_frame_holds_a_swarm() {
        let drawn = Config::KNOBS.iter().filter(|knob| knob.swarm != Swarm::Keep).count();
        assert!(drawn.div_ceil(8) * 2 <= FRAME, "{drawn}");
        let all = Config::swarm(&mut Bytes::new(&[0xff; FRAME]));
        assert!(Config::KNOBS.iter().all(|k| k.default == 0 || all.clone().knob_mut(k.name) != Some(&mut 0)));
        let none = Config::swarm(&mut Bytes::new(&[]));
        assert_eq!((none.view, none.random, none.gather), (0, 0, 16));
    }
}
