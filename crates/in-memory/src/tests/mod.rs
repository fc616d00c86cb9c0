//! The broker through the seam.

mod faults;
mod groups;
mod harness;
mod lifecycle;
mod order;
mod publishing;
