//! Hadal: an open, exact toolchain for the tensor engine of AWS Trainium.
//!
//! A program (a KLR kernel, or the JSON form) is verified against every rule of a target, lowered to 64-byte
//! instruction bundles, and executed to the bit. The crates behind it are re-exported here:
//!
//! * [`num`]: element formats, casts, MX blocks, the dot product;
//! * [`isa`]: bundles, their codec, assembly text and manual;
//! * [`ir`]: programs, front ends, passes, verifier, lowering;
//! * [`sim`]: memory, kernels, the two executors, the cost model;
//! * [`gemm`]: matrix products of any size as tiled programs.
//!
//! What the `hadal` command adds to them, and other tools may use as well, stands beside: [`files`] (bounded
//! reading, writing that leaves a whole file or none), [`input`] (telling forms apart by content), [`npy`] and
//! [`safetensors`].
//!
//! ```
//! use hadal::ir::{json, verify};
//! use hadal::isa::Target;
//!
//! let text = r#"{"format": "hadal-bir", "version": 1, "memlocs": [], "instructions": []}"#;
//! let module = json::parse(text, "empty.bir.json")?;
//! let verified = verify::verify(module, verify::LowerOptions::new(Target::TRN2));
//! assert!(verified.is_ok());
//! # Ok::<(), json::JsonError>(())
//! ```

pub use hadal_gemm as gemm;
pub use hadal_ir as ir;
pub use hadal_isa as isa;
pub use hadal_num as num;
pub use hadal_sim as sim;

pub mod files;
pub mod input;
pub mod npy;
pub mod safetensors;
