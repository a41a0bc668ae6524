//! Extents.

mod arena;
mod intern;
mod key;
mod layout;
mod place;
mod reason;
mod run;
mod source;
mod topology;
mod value;
mod window;

pub use arena::{Arena, Limits};
pub use place::GroupId;
pub use reason::Reason;
pub use source::{Symbol, ValueId};
