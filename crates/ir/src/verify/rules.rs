//! The rule table: every check has one row here.
//!
//! Codes 207, 211 and 270 are the reference's; the others are this project's, numbered once and never
//! reused.

use hadal_isa::table::Confidence::{self, Assumed, Confirmed, Inferred, Strong};

use crate::diag::Violation;
use crate::program::{Instr, MemLoc};

/// A hardware rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Stable code.
    pub code: &'static str,
    /// What the rule demands.
    pub title: &'static str,
    /// What to do when it is broken.
    pub remedy: &'static str,
    /// Where the fact comes from.
    pub source: &'static str,
    /// How well it is proven.
    pub confidence: Confidence,
}

macro_rules! rules {
    ($($name:ident $code:literal $conf:ident $title:literal, $remedy:literal, $source:literal;)*) => {
        $(#[doc = $title] pub const $name: Rule = Rule {
            code: $code, title: $title, remedy: $remedy, source: $source, confidence: $conf,
        };)*

        /// Every rule, by code.
        pub const RULES: &[Rule] = &[$($name),*];
    };
}

rules! {
    // The reference's own numbers.
    QUANTIZE_ENGINE "V-207" Confirmed "QuantizeMx runs on the DVE engine",
        "set the instruction's engine to DVE", "birverifier error 207";
    QUANTIZE_PACKING "V-211" Confirmed "QuantizeMx data is x4-packed and the source has 4 elements for each container",
        "give the data operand an x4 type and a quarter of the source's elements", "birverifier error 211";
    QUANTIZE_SCALE "V-270" Confirmed "QuantizeMx has one scale for each 4 data elements",
        "make the scale's free size equal to the data's free size in containers", "birverifier error 270";

    // Operands inside their locations.
    OUT_OF_LOCATION "V-301" Confirmed "An operand stays inside its location",
        "shrink the pattern or the offset, or enlarge the location", "memory model";
    PARTITIONS_OUT "V-302" Confirmed "An operand's partitions lie inside its location",
        "shrink the partition count or enlarge the location", "memory model";
    PARTITION_STEP "V-303" Confirmed "The partition step of an SB or PSUM operand is 1",
        "use consecutive partitions", "the partition dimension folds into the start address";
    TOO_MANY_DIMS "V-304" Confirmed "An operand has no more free dimensions than its descriptor",
        "merge dimensions or split the instruction", "TENSOR3D and MEM_PATTERN3D descriptors";
    NO_GATHER "V-305" Inferred "Only the data operands of Matmult and MatmultMx are gathered, without a performance mode",
        "copy the gathered elements to a contiguous tile first", "no indirect descriptor was seen for other operands";
    NOT_ENCODABLE "V-306" Confirmed "Steps fit 16 signed bits and counts 16 unsigned bits",
        "use a smaller stride or count", "descriptor words";
    LOCATION_PARTITIONS "V-307" Confirmed "A location lies inside the 128 partitions",
        "lower the first partition or the number of partitions", "128 partitions in SBUF and PSUM";
    CAPACITY "V-308" Confirmed "A location lies inside its memory",
        "move or shrink the location", "SBUF 192/224/256 KiB and PSUM 16 KiB a partition";
    ALIGNMENT "V-309" Strong "An operand starts at a multiple of its element size",
        "align the location or the offset", "tensor_start_addr_valid (D-07)";
    SELF_OVERLAP "V-311" Inferred "An instruction writes each element of its destination once",
        "use a destination pattern that does not revisit bytes", "one write per element";
    GATHER_DATA "V-312" Strong "Gathered data is one free dimension of step 1 that counts the positions",
        "give the operand the pattern [[1, P], [1, N]] for N positions", "the gather form of a descriptor has no strides";
    GATHER_INDEX "V-313" Assumed "The positions of a gather are 16- or 32-bit integers in SB, consecutive, one for each element of each partition",
        "give the index the partitions and the free size of its data", "index address and count of the gather form; birsim asDtypeMatrix";
    OUTPUT_OVERLAP "V-314" Inferred "The destinations of one instruction do not overlap",
        "give data and scales bytes of their own", "one write per element";
    UNWRITTEN "V-315" Confirmed "An operand reads only written bytes of a location that the program writes",
        "write the bytes first, or read fewer", "written-byte tracking (D-43); checked by verify, found by a run itself";

    // Spaces.
    DST_NOT_PSUM "V-401" Confirmed "A matmul writes PSUM",
        "give the matmul a destination in PSUM and copy it out afterwards", "birsim resetAccumulation";
    OPERAND_NOT_SB "V-402" Confirmed "Matmul operands are in SBUF",
        "copy the operand to SB first", "public nc_matmul documentation";
    COMPUTE_IN_DRAM "V-403" Strong "Only DMA reaches DRAM",
        "move the tensor with DmaCopy", "engines see SBUF and PSUM";
    ENGINE "V-404" Strong "An operator runs on an engine that has it",
        "set the instruction's engine", "checkValidEngines";

    // Element types.
    IFMAP_TYPE "V-410" Confirmed "The moving operand is a float type or uint8",
        "convert the operand first", "birsim doMatmult";
    WEIGHTS_TYPE "V-411" Confirmed "The stationary operand is a float type or uint8",
        "convert the operand first", "birsim doMatmult";
    FP32_PAIR "V-412" Confirmed "float32 pairs only with float32, float32r only with float32r",
        "convert one operand to the other's type", "public nc_matmul documentation; birsim fp32r assert";
    E4M3_MIX "V-413" Confirmed "Legacy float8_e4m3 is never paired with float8_e4m3fn",
        "convert one operand; the formats differ at codes 78..7F and F8..FF", "public FP8 notes";
    X4_DENSE "V-414" Confirmed "x4-packed types are MX operands only",
        "use MatmultMx, or unpack the operand", "gen3 tag switch rejects x4 types";
    DOUBLE_ROW_TYPE "V-415" Confirmed "DoubleRow takes FP8 operands",
        "use FP8 operands or perf_mode None", "public nc_matmul documentation";
    DOUBLE_ROW_GEN "V-416" Confirmed "DoubleRow needs gen3 or later",
        "target trn2 or trn3, or use profile neuronx-cc-2.24 to encode it anyway (D-30)", "public documentation: NeuronCore-v2 has no performance mode";
    DST_TYPE "V-417" Confirmed "A matmul destination is float32 (bfloat16 too on gen4; a transpose on gen3+ keeps the operand's type)",
        "make the destination float32 and convert when copying it out", "public nc_matmul documentation";
    E4M3FN_GEN "V-418" Confirmed "float8_e4m3fn is a gen4 type",
        "use legacy float8_e4m3 on trn1 and trn2 (audit codes above 77)", "public FP8 notes";
    ZERO_POINT_TYPE "V-419" Inferred "Zero points belong to uint8 operands",
        "drop the zero point or use a uint8 operand", "birsim matmultImpl";

    // Shapes.
    K_MISMATCH "V-421" Confirmed "Moving and stationary operands have the same partitions",
        "make both operands cover the same contraction rows", "birsim: invalid matrix product";
    ROWS "V-422" Confirmed "The contraction fits the row tile (at most 128 partitions)",
        "tile the contraction and accumulate", "128 array rows";
    COLUMNS "V-423" Confirmed "The stationary free size fits the column tile (at most 128)",
        "tile the stationary operand", "128 array columns";
    MOVING_FREE "V-424" Confirmed "The moving free size fits (512 on gen2 and gen3; gen4: 4096, or 8192 into bfloat16)",
        "tile the moving operand", "public nc_matmul documentation";
    OUT_ROWS "V-425" Confirmed "Destination partitions equal the stationary free size",
        "match the destination to the stationary operand", "out = stationary.T @ moving";
    OUT_COLUMNS "V-426" Confirmed "Destination free size equals the moving free size",
        "match the destination to the moving operand", "out = stationary.T @ moving";
    TILE_SIZE "V-427" Confirmed "Tile sizes are 32, 64 or 128 (gen2: 64 or 128)",
        "use a tile size of the target", "public tiling documentation";
    TILE_POSITION "V-428" Confirmed "A tile position is a multiple of its size and inside the array",
        "move the tile to a multiple of its size", "public tiling documentation";
    DOUBLE_ROW_COLUMNS "V-429" Confirmed "DoubleRow uses the full column tile at 0",
        "drop the column tile", "public nc_matmul documentation";
    DOUBLE_ROW_SHAPE "V-430" Strong "DoubleRow operands hold a pair dimension of 2",
        "shape both operands [P, 2, F]", "both encoders force the first free dimension to 2 (D-50)";
    PERF_MODE "V-431" Inferred "DoubleColumn and DoublePixel have no proven encoding",
        "use another mode, or ask for inferred encodings", "no encoder was seen to emit them";
    MULTIBANK "V-433" Confirmed "Only gen4 clears more than one PSUM bank",
        "use psum_zero_region 0", "birsim: do not support psum multibank";
    TRANSPOSE_MODE "V-434" Strong "A transpose has no performance mode and does not accumulate",
        "use perf_mode None, and calc auto or start", "public nc_matmul documentation";
    MOVING_TRANSPOSE "V-435" Assumed "A transpose holds the data stationary and moves the identity",
        "swap the operands in the kernel, or pass --klr-transpose moving to transpose the moving operand", "D-31";
    REPLICATION "V-436" Confirmed "Only gen2 has replication codes",
        "drop the replication code, or target trn1", "LoadStationary and Matmul: bytes 24 and 25 are not written on gen3";
    ZERO_REGION_SIZE "V-437" Confirmed "psum_zero_region is at most 3, all 8 banks",
        "use a zero region of 0 to 3", "log2 of the number of banks; 8 banks of 2 KiB";
    ZERO_REGION_LEVEL "V-438" Inferred "Above level 40 a matmul clears no bank but its own bytes",
        "clear the banks with a Memset, and use psum_zero_region 0", "D-42: a Memset of the destination stands for START";
    ARCH_LEVEL "V-439" Confirmed "The operator exists on the target's generation",
        "target the generation that has it", "checkArchLevel; encoders by generation";

    // Placement.
    PARTITION_START "V-441" Confirmed "More than 64 partitions start at 0, 33..64 at 0 or 64, up to 32 at 0, 32, 64 or 96",
        "move the operand to a legal first partition", "public partition rules";
    TILE_PLACEMENT "V-442" Assumed "A set tile position agrees with the operands' first partitions",
        "place the operands at the tile, or drop tile_position", "D-27: partition p feeds row p, column c drains to partition c";
    BANK_CROSSING "V-443" Confirmed "A matmul destination stays in one PSUM bank (gen4: in 8)",
        "align the destination to a bank and keep it within 2048 bytes", "PSUM accumulation does not span banks";
    SB_FULL "V-444" Confirmed "Every SB location fits",
        "shrink or retire a location earlier", "SBUF capacity";
    PSUM_FULL "V-445" Confirmed "Every PSUM location fits",
        "copy results out earlier so that a bank is free", "8 banks of 2 KiB a partition";
    ROW_START "V-446" Assumed "Moving and stationary operands start at the same partition",
        "place both operands on the same partitions", "D-27: partition p feeds array row p";
    LEGALIZE_HIT "V-447" Strong "A destination widened to float32 does not reach its neighbour",
        "leave room for the float32 form, or write float32 yourself", "psum_legalization";

    // Accumulation.
    START_AND_ACCUMULATE "V-451" Confirmed "START and ACCUMULATE exclude each other",
        "use one of them", "checkAccumulationFlag: {0, 1, 2, 3, 4, 6}";
    NEVER_STARTED "V-452" Confirmed "Accumulation needs a region that a START covered",
        "start the group first, or use calc auto", "public nc_matmul documentation: undefined on all targets";
    OTHER_ENGINE "V-453" Confirmed "Accumulation over what another engine wrote is undefined before gen4",
        "start the group with a matmul, or target trn3", "public nc_matmul documentation";
    MIXED_COLUMNS "V-454" Inferred "First and later writes of a destination differ only along the moving free dimension",
        "split the matmul along its stationary columns", "D-28";
    ZERO_REGIONS "V-455" Assumed "Zero regions of interleaved groups do not overlap",
        "give the groups disjoint banks", "D-37";

    // MX.
    MX_TYPE "V-461" Confirmed "MX data is x4-packed",
        "pack the operand with QuantizeMx or offline", "getIfmapValidDtypes; D-22";
    MX_SCALE_TYPE "V-462" Confirmed "MX scales are float8_e8m0fnu or uint8",
        "give the scale operand type float8_e8m0fnu", "public nc_matmul_mx documentation";
    MX_PATTERN "V-463" Confirmed "An MX operand has one free dimension of step 1 or -1",
        "make the operand contiguous", "MXMEM_PATTERN1D";
    MX_PARTITIONS "V-464" Confirmed "MX operands take 32, 64 or 128 partitions (QuantizeMx 96 too)",
        "pad the partitions to a legal count", "checkMatmultMxInputs, checkQuantizeMxInstruction";
    MX_EVEN "V-465" Strong "The MX stationary free size is even and at most 128",
        "pad or tile the stationary operand", "public nc_matmul_mx documentation";
    MX_COLUMN_TILE "V-466" Confirmed "An MX matmul uses the full column tile at 0",
        "drop the column tile", "MX column group is forced to 0F";
    MX_SCALE_COUNT "V-467" Confirmed "MX data has 4 elements for each scale",
        "give the scale one element for each x4 container", "checkMatmultMxInputs";
    MX_SCALE_START "V-468" Confirmed "Scales start at row 0, 4, 8 or 12 of the data's first quadrant",
        "place the scale at the quadrant of its data, at offset 0, 4, 8 or 12", "scalePart; scale start % 32 < 16";
    MX_SCALE_ROWS "V-469" Confirmed "The rows that hold the scales lie inside the scale location",
        "give the scale location the partitions of its data", "scale row i sits at (i % 4) + 32 * (i / 4) + offset";
    MX_SOURCE "V-470" Confirmed "QuantizeMx reads bfloat16 or float16",
        "convert the source first", "public quantize_mx documentation";

    // Structured sparsity.
    SPARSE_RATIO "V-471" Confirmed "The compression ratio is 1, 2 or 4",
        "use a ratio the array has", "D-20";
    SPARSE_ROWS "V-472" Confirmed "A sparse matmul has 128 active rows",
        "use all 128 partitions", "birsim: Only the 128-active-rows case is supported!";
    SPARSE_TAGS "V-473" Confirmed "Tags are int16 or uint16 of shape [128, M/4]",
        "pack four 4-bit positions into each 16-bit tag word", "public structured-sparsity format";
    SPARSE_MOVING "V-474" Strong "The sparse moving operand is [128, ratio, N]",
        "put the ratio dimension first", "D-40";

    // MX, continued.
    MX_GATHER_PAIR "V-475" Strong "An MX matmul gathers both of its data operands or neither",
        "gather the other operand too, with positions 0, 1, 2, ... if need be", "checkMatmultMxInputs";

    // Data movement and helpers.
    SHAPE_MISMATCH "V-481" Confirmed "Source and destination have the same shape",
        "match the patterns", "element-wise operators";
    DMA_SIZE "V-482" Assumed "DmaCopy moves bytes between types of equal container size",
        "convert with TensorCopy", "DMA queues here carry no conversion";
    TRANSPOSE_SHAPE "V-483" Assumed "Transpose works on one block up to 32 x 32, or on whole 32 x 32 blocks",
        "pad to multiples of 32", "vector-engine block transpose";
    ALU_OP "V-484" Strong "The operation has a meaning for these operands",
        "use another operation", "ALU operations in float32";
    SELECT_SHAPE "V-485" Strong "An affine pattern covers the destination's free elements",
        "match the pattern's counts to the destination", "affine select";
    ACCUMULATOR "V-486" Confirmed "An accumulator command is 0 to 5, a load brings its value, and the reduction is add, max, min or mult",
        "give the command a value to load, or use another command", "birsim activation accumulator; D-44";
    CORE_RACE "V-491" Inferred "Cores do not write DRAM bytes that another core reads or writes",
        "give each core its own bytes; there is no barrier between them", "cores share DRAM and nothing else";
}

/// Collects violations.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    pub(crate) core: usize,
    pub(crate) found: Vec<Violation>,
}

impl Sink {
    pub(crate) fn new(core: usize) -> Self {
        Sink { core, found: Vec::new() }
    }

    /// A rule an instruction broke.
    pub(crate) fn instr(
        &mut self,
        rule: &Rule,
        at: (usize, &Instr),
        operand: Option<&'static str>,
        text: String,
    ) {
        let (index, instr) = at;
        self.found.push(Violation {
            code: rule.code,
            core: self.core,
            instr: Some(index),
            subject: instr.name.clone(),
            operand,
            text,
            remedy: rule.remedy.to_owned(),
            confidence: rule.confidence,
            pos: instr.pos.clone(),
        });
    }

    /// A rule a location broke.
    pub(crate) fn loc(&mut self, rule: &Rule, loc: &MemLoc, text: String) {
        self.found.push(Violation {
            code: rule.code,
            core: self.core,
            instr: None,
            subject: format!("{} location `{}`", loc.space(), loc.name),
            operand: None,
            text,
            remedy: rule.remedy.to_owned(),
            confidence: rule.confidence,
            pos: loc.pos.clone(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_ascending() {
        for w in RULES.windows(2) {
            assert!(w[0].code < w[1].code, "{} before {}", w[0].code, w[1].code);
        }
        for r in RULES {
            assert!(!r.title.is_empty() && !r.remedy.is_empty() && !r.source.is_empty(), "{}", r.code);
        }
    }
}
