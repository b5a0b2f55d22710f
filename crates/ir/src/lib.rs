//! Tensor-engine programs: the IR, its front ends, the passes, the verifier, and lowering to bundles.
//!
//! The pipeline, one module a stage: [`json`] and [`klr`] read a [`program::Module`]; [`passes`] resolve
//! accumulation and addresses; [`verify`] checks every hardware rule and alone makes a
//! [`verify::Verified`]; [`encode`] turns that into bundles.
pub mod diag;
pub mod encode;
pub mod geom;
pub mod json;
pub mod klr;
pub mod passes;
pub mod program;
pub mod properties;
pub mod verify;
