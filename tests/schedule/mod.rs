//! The scheduling passes on generated cases.

mod peer;
mod tracking;

use graph_oracle::graph::NodeId;
use graph_oracle::passes::schedule::*;
use graph_oracle::simulate::Buffers;
