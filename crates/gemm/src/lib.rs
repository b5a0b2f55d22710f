//! Matrix products of any size on the tensor engine: planned as tiled programs, executed to the bit.
//!
//! A product C = A @ B is cut into segments, each a whole contraction for a rectangle of C. Segments of one shape
//! share one program, which is verified and lowered once and run many times, on slices of the operands that are
//! converted when they are needed: neither all bundles of a large product nor a copy of its operands are ever held.
//!
//! In a segment, a stationary tile is loaded once and up to four banks of the moving operand stream past it; each
//! bank sums the passes of the contraction in ascending order, by the rules of [`hadal_sim`], and leaves through
//! SBUF. [`Plan::module`] is the same product as one program.

mod check;
mod error;
mod format;
mod operand;
mod plan;
mod problem;
mod program;
mod run;
mod tile;
mod worker;

pub use check::{Accuracy, Check, Checker};
pub use error::GemmError;
pub use format::Format;
pub use operand::{Dense, Matrix, Tensors};
pub use plan::{Estimate, Plan, Segment};
pub use problem::{K_LIMIT, LIMIT, OUTPUTS, Problem, Side, Stationary, Weights};
pub use run::{Block, RunOptions, Runner};
pub use tile::Blocking;
