//! The analyses together: against a slow model on random programs, on cases written by hand, and on recorded
//! graphs.

mod cases;
mod faults;
mod model;
mod programs;
mod recorded;
mod storages;
