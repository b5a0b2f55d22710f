//! The passes, in the order they run.
//!
//! [`legalize`] widens narrow PSUM destinations (profile neuronx-cc-2.24), [`double_row`] brings row
//! pairs first, [`accumulate`] resolves first writes and accumulation groups, [`alloc`] gives every
//! location an address.

pub mod accumulate;
pub mod alloc;
pub mod double_row;
pub mod legalize;
pub mod slice;
