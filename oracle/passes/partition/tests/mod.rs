//! Partitions of small graphs, and of captured ones against what PyTorch made of them.

mod recorded;
