//! The knobs of the generator of joint graphs, all in one place.
//!
//! Sizes have a unit of their own; weights say how often a forward step is this one, in proportion to the other
//! weights; percentages say how often something happens where it can. 0 switches a feature off.

use crate::generate::{FRAME, Source, Swarm};

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
            /// Name, range and default of each knob, in the order of the fields.
            pub const KNOBS: &'static [(&'static str, (u32, u32), u32)] =
                &[$((stringify!($name), ($low, $high), $default),)*];

            /// The knob called `name`, to be read or set.
            pub fn knob_mut(&mut self, name: &str) -> Option<&mut u32> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)*
                    _ => None,
                }
            }

            /// The same with every knob in its range.
            pub fn clamped(&self) -> Config {
                Config { $($name: self.$name.clamp($low, $high),)* }
            }

            /// The same with features switched off, or doubled, as `source` says.
            pub fn swarmed(mut self, source: &mut impl Source) -> Config {
                let mut drawn = 0;
                $(
                    // A frame of a byte source holds the choices for so many knobs.
                    if drawn % FRAME == 0 {
                        source.step();
                    }
                    drawn += 1;
                    self.$name = swarm(Swarm::$swarm, self.$name, $high, source);
                )*
                let _ = drawn;
                self
            }
        }
    };
}

knobs! {
    /// Forward steps, at most; each writes 1 to 6 forward nodes and about twice as many backward ones. 9 steps make
    /// 40 to 60 nodes, which are judged in a millisecond.
    steps = 9 in 1..=1_000_000, Keep;
    /// Outputs with a tangent, at most: each is a region of the backward part.
    towers = 3 in 1..=8, Keep;
    /// Ranks, at most (2 or a multiple of 2). Execution costs as much as there are ranks.
    ranks = 2 in 2..=8, Keep;

    /// Weight of an elementwise operator of one value.
    unary = 12 in 0..=1000, Keep;
    /// Weight of an elementwise operator of two values.
    binary = 8 in 0..=1000, Keep;
    /// Weight of a product with a parameter that every rank has whole.
    product = 6 in 0..=1000, Often;
    /// Weight of a product with a parameter that is gathered first.
    gathered = 14 in 0..=1000, Often;
    /// Weight of a dropout, whose mask backward reads.
    dropout = 5 in 0..=1000, Half;
    /// Weight of a mask made of random numbers by hand.
    mask = 4 in 0..=1000, Half;
    /// Weight of a split of which some items are used, some twice, some not at all.
    items = 7 in 0..=1000, Often;
    /// Weight of a sum over all ranks.
    reduced = 4 in 0..=1000, Half;
    /// Weight of a write to an intermediate value.
    write = 3 in 0..=1000, Seldom;
    /// Weight of a value that is read from a buffer.
    buffer = 6 in 0..=1000, Often;
    /// Weight of an elementwise chain of over 100 nodes: only the long-chain heuristics look so far.
    long_chain = 1 in 0..=1000, Seldom;
    /// Weight of a constant of the module.
    constant = 3 in 0..=1000, Half;
    /// Weight of a node that nobody reads.
    dead = 3 in 0..=1000, Half;

    /// Weight of a product with a number that is computed from the symbol: whole, or a fraction.
    scalar = 4 in 0..=1000, Half;
    /// Weight of a product with a sum over rows: a reduction to a half or a quarter.
    narrow = 3 in 0..=1000, Half;
    /// Weight of integers to which 1 and 1.0 are added.
    counted = 2 in 0..=1000, Half;

    /// How often there is a second process group: of single ranks, or the other axis of a mesh of four.
    second_group = 30 in 0..=100, Half;
    /// How often a step writes equal nodes, or backward computes anew what forward has.
    twin = 15 in 0..=100, Half;
    /// How often a gathered parameter is used again rather than another one gathered.
    shared = 40 in 0..=100, Often;
    /// How often backward gathers a parameter once more, beside forward's own gather.
    duplicate = 25 in 0..=100, Half;
    /// How often the gathers of a case are tagged to be repeated.
    reshard = 60 in 0..=100, Often;
    /// How often such tags stop at the wait, rather than go on to what views the gathered value.
    short_tags = 25 in 0..=100, Half;
    /// How often parts of the forward region are tagged as regions of activation checkpointing.
    checkpoint = 40 in 0..=100, Half;
    /// How often a forward node gets a tag of its own.
    loose_tag = 8 in 0..=100, Half;
    /// How often a tagged forward node has a backward hook.
    hook = 4 in 0..=100, Half;
    /// How often a buffer is written at the end of forward.
    epilogue = 70 in 0..=100, Often;
    /// How often a buffer is written at the end of backward.
    backward_write = 50 in 0..=100, Half;
    /// How often a backward write has the destination of a forward one.
    both_write = 70 in 0..=100, Often;
    /// How often a backward write needs no gradient: it clears the buffer.
    cleared = 30 in 0..=100, Half;
    /// How often a buffer that forward leaves alone is cleared before backward begins.
    early_clear = 20 in 0..=100, Half;
    /// How often the first size is a symbol.
    symbolic = 25 in 0..=100, Half;
    /// How often a condition on that symbol is asserted.
    assertion = 50 in 0..=100, Half;
    /// How often an intermediate value is returned to the user too.
    also_returned = 20 in 0..=100, Often;
    /// How often a view of an input is returned to the user.
    returned_view = 10 in 0..=100, Half;
    /// How often an input gets no gradient, or one that is not computed for it: an input, or a forward value.
    odd_gradient = 10 in 0..=100, Often;
    /// How often there is a tangent that nobody reads.
    unused_tangent = 10 in 0..=100, Half;
    /// How often there is an input that nobody reads.
    unused_input = 15 in 0..=100, Half;
    /// How often there is no tangent at all, and so no backward part.
    no_tangent = 2 in 0..=100, Keep;
    /// How often parameters are known to live for the whole program.
    static_inputs = 60 in 0..=100, Keep;
    /// How often the method is the replay, and values carry tags of an earlier partition.
    replay = 30 in 0..=100, Keep;
    /// How often a replay comes after a first partition of the same joint graph, rather than from tags.
    two_stages = 30 in 0..=100, Keep;
    /// How often the pass for activation checkpointing runs first, where nothing forbids it.
    checkpoint_pass = 15 in 0..=100, Keep;
    /// How often the method is the default partition rather than the minimum cut.
    default_method = 40 in 0..=100, Keep;
    /// How often a minimum cut has a memory budget.
    budget = 25 in 0..=100, Half;
}

/// One knob of a swarm.
fn swarm(kind: Swarm, value: u32, high: u32, source: &mut impl Source) -> u32 {
    let drawn = source.below(4);
    match (kind, drawn) {
        (Swarm::Keep, _) => value,
        (Swarm::Often, 0) | (Swarm::Half, 0 | 1) | (Swarm::Seldom, 0..=2) => 0,
        (Swarm::Often | Swarm::Half, 3) => value.saturating_mul(2).min(high),
        _ => value,
    }
}
