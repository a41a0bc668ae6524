//! The bucketing reference against PyTorch 2.15: recorded graphs, and graphs that `tests/peer/bucketing.py` makes.
//!
//! Both need files that are not in the repository; where they are absent, a line says so and counts them.

mod compare;
mod peer;
mod real;
