//! The types of a KLR file as data: one row a type, walked by the reader, the JSON dump and the typed view.
//!
//! A row reads `Name tag: constructor(field type, ...) constructor ...`. The position of a constructor is its
//! number on disk, the number of fields is the count byte, `[T]` is a list and `(opt T)` an option. `Prop`
//! fields are proofs: they are counted but take no bytes (see [`super::read`] for the dialect where they take
//! one). Facts from the serialiser sources of leanprover/KLR (Apache-2.0), checked on files it wrote (CONFIRMED).

use std::fmt;

/// The type of one field.
#[derive(Debug, Clone, Copy)]
pub enum Ty {
    /// Unsigned integer.
    Nat,
    /// Signed integer.
    Int,
    /// Truth value.
    Bool,
    /// Floating-point number.
    Float,
    /// UTF-8 text.
    String,
    /// A proof, without content.
    Prop,
    /// List of values of one type.
    List(&'static Ty),
    /// Optional value.
    Opt(&'static Ty),
    /// A tagged value of the table.
    Ref(&'static TypeDef),
}

/// A tagged type.
pub struct TypeDef {
    /// Name in the format's own vocabulary.
    pub name: &'static str,
    /// First byte after the tag head.
    pub tag: u8,
    /// Number on disk of the first constructor (0 except for the file header).
    pub first: u8,
    /// Constructors in order of their number on disk.
    pub ctors: &'static [Ctor],
}

/// One constructor of a type.
#[derive(Debug)]
pub struct Ctor {
    /// Name; equal to the type's name for plain structures.
    pub name: &'static str,
    /// Fields in order on disk.
    pub fields: &'static [Field],
}

/// One field of a constructor.
#[derive(Debug)]
pub struct Field {
    /// Field name.
    pub name: &'static str,
    /// Field type.
    pub ty: Ty,
}

impl TypeDef {
    /// The constructor with this number on disk.
    pub fn ctor(&self, number: u8) -> Option<&'static Ctor> {
        self.ctors.get(usize::from(number.checked_sub(self.first)?))
    }

    /// Whether the type is one constructor named like the type: a plain structure.
    pub fn is_struct(&self) -> bool {
        matches!(self.ctors, [only] if only.name == self.name)
    }

    /// The fields of which a dialect may lack one.
    pub(crate) fn optional_fields(&self) -> &'static [&'static str] {
        MAY_BE_ABSENT.iter().find(|(ty, _)| std::ptr::eq(*ty, self)).map_or(&[], |(_, fields)| fields)
    }
}

impl fmt::Debug for TypeDef {
    /// Prints the name only: the table is cyclic.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Fields that a file may lack, with the count one less: the only freedom between the dialects that are read.
/// Older files lack `noReorder` or `priority` (CONFIRMED); none is known to lack `engine` (INFERRED).
const MAY_BE_ABSENT: &[(&TypeDef, &[&str])] =
    &[(&rows::Block, &["noReorder"]), (&rows::NcDmaCopy, &["priority", "engine"])];

macro_rules! ty {
    (Nat) => {
        Ty::Nat
    };
    (Int) => {
        Ty::Int
    };
    (Bool) => {
        Ty::Bool
    };
    (Float) => {
        Ty::Float
    };
    (String) => {
        Ty::String
    };
    (Prop) => {
        Ty::Prop
    };
    ([$item:tt]) => {
        Ty::List(&ty!($item))
    };
    ((opt $item:tt)) => {
        Ty::Opt(&ty!($item))
    };
    ($name:ident) => {
        Ty::Ref(&$name)
    };
}

macro_rules! types {
    ($($name:ident $tag:literal $(@ $first:literal)? :
        $($ctor:ident $(( $($field:ident $ty:tt),* ))?)+ ;)*) => {
        $(pub(crate) static $name: TypeDef = TypeDef {
            name: stringify!($name),
            tag: $tag,
            first: 0 $(+ $first)?,
            ctors: &[$(Ctor {
                name: stringify!($ctor),
                fields: &[$($(Field { name: stringify!($field), ty: ty!($ty) }),*)?],
            }),+],
        };)*

        /// Every type, in order of its tag.
        pub static TYPES: &[&TypeDef] = &[$(&$name),*];
    };
}

pub(crate) use rows::*;

#[allow(non_upper_case_globals)] // the names are the format's own
#[rustfmt::skip] // a row a type
mod rows {
use super::{Ctor, Field, Ty, TypeDef};

types! {
    Pos 100: Pos(line Nat, column Nat, lineEnd (opt Nat), columnEnd (opt Nat), filename (opt String));
    Stmt 103: oper(op Operator, name (opt String), pos Pos);
    Block 104: Block(label String, noReorder Bool, body [Stmt]);
    Kernel 105: Kernel(name String, inputs [TensorName], outputs [TensorName], body [Block]);
    SharedConstantFile 106: SharedConstantFile(name String, fileName String);
    Edges 107: Edges(fromEdge String, toEdges [String]);
    LncKernel 108: LncKernel(name String, inputs [TensorName], outputs [TensorName], bodies [[Block]],
        sharedConstants [SharedConstantFile], sharedBuffers [TensorName], edges [Edges]);
    Memory 110: hbm sbuf psum reg shared_hbm private_hbm;
    Dtype 111: bfloat16 float8e3 float8e4 float8e5 float16 float32 float32r int8 int16 int64 int32 uint8
        uint16 uint32 uint64 float8_e4m3 float8_e4m3fn float8_e5m2_x4 float8_e4m3fn_x4 float4_e2m1fn_x4;
    Shape 112: Shape(parDim Nat, freeDims [Nat]);
    Address 113: Address(name String, memory Memory, parSize Nat, freeSize Nat, parOffset (opt Nat),
        freeOffset (opt Nat), isShared Bool);
    TensorName 114: TensorName(name String, dtype Dtype, shape Shape, address Address, freeElements Nat,
        parWF Prop, freeWF Prop, addressRotation Bool);
    Slice 115: Slice(l Nat, u Nat, step Int, wf Prop);
    Index 117: coord(e Nat) slice(slice Slice);
    AccessBasic 118: AccessBasic(tensor TensorName, indexes [Index], lenWF Prop);
    APPair 119: APPair(step Int, num Nat, offset Nat);
    AccessPattern 120: AccessPattern(tensor TensorName, parNum Nat, pattern [APPair], parOffset Nat,
        freeOffset Nat, fixedAxis [Nat]);
    ScalarOffset 123: reg(r String) acc(a Access);
    BirAccessPattern 124: BirAccessPattern(tensor TensorName, offset Nat, pattern [APPair], scalarOffset
        (opt ScalarOffset), vectorOffset (opt Access), indirectDim Int, dtypeOverride (opt Dtype));
    Access 125: simple(tensor TensorName) basic(access AccessBasic) pattern(access AccessPattern)
        birPattern(access BirAccessPattern);
    TensorHbm 126: TensorHbm(name String, dtype Dtype, address Nat, dims [APPair]);
    TensorSram 127: TensorSram(name String, dtype Dtype, parNum Nat, pattern [APPair], parOffset Nat,
        freeOffset Nat);
    TensorRef 128: abstract(access Access) sbuf(view TensorSram) psum(view TensorSram) hbm(view
        TensorHbm) reg(reg Nat);
    MatmulPerfMode 129: None DoubleRow DoubleRowSwInterleave;
    Engine 130: unassigned act dma dve pe pool sp;
    Immediate 131: reg(reg Nat) pointer int32(i Int) float32(f Float);
    ActivationImm 132: reg(reg Nat) pointer float32(f Float);
    Operand 133: imm(i Immediate) tile(t TensorRef);
    DataPattern 134: DataPattern(offset Int, pattern [APPair], channelMultiplier Int);
    AluOp 135: abs add arith_shift_left arith_shift_right average bitwise_and bitwise_not bitwise_or
        bitwise_xor bypass divide is_equal is_ge is_gt is_le is_lt logical_and logical_or
        logical_shift_left logical_shift_right logical_xor max min mod mult not_equal pow rsqrt
        subtract;
    DropoutThresholdType 136: DropRate KeepRate;
    AccumCmd 137: Idle Zero Accumulate ZeroAccumulate LoadAccumulate;
    ActivationFunc 138: abs arctan copy erf erf_dx exp gelu gelu_apprx_tanh gelu_dx log mish reciprocal
        relu rsqrt sigmoid sign silu silu_dx sin softplus sqrt square tanh gelu_apprx_sigmoid
        gelu_apprx_sigmoid_dx;
    AffineSelectCmp 139: GreaterThan GreaterThanEq Eq NotEq;
    DgeComputeOp 140: none add;
    DmaBounds 141: skip error reg(reg Nat);
    MatmulGroupElement 142: first middle last whole;
    IndexMissBehavior 143: imm(value Immediate) skip;
    TensorScalarReverseOps 144: none first second both;
    TensorSubDim 145: X XY XYZ XYZW;
    TransposeOps 146: None WZXY WXZY WYXZ ZWYX ZYWX ZYXW YXWZ YXZW YWZX XWZY XZYW XYZW XYWZ;
    Dropout 147: Dropout(dst TensorRef, src TensorRef, thresholdType DropoutThresholdType, threshold
        Operand, dtype (opt Dtype));
    Activate 148: Activate(dst TensorRef, src TensorRef, accumulatorCmd AccumCmd, activationFunc
        ActivationFunc, scale Immediate, bias Immediate, imm Immediate);
    NcActivate 149: NcActivate(dst TensorRef, src TensorRef, accumulatorCmd AccumCmd, activationFunc
        ActivationFunc, scale Operand, bias (opt TensorRef), reduceOp (opt AluOp), reduceRes (opt
        TensorRef), dtype (opt Dtype));
    AffineSelect 150: AffineSelect(dst TensorRef, src TensorRef, fillMode AffineSelectCmp, fillReg Nat,
        maskPattern DataPattern);
    NcAffineSelect 151: NcAffineSelect(dst TensorRef, pred DataPattern, onTrueTile TensorRef,
        onFalseValue Immediate, dtype (opt Dtype), cmpOp AluOp);
    DmaCopy 152: DmaCopy(dst TensorRef, src TensorRef, compute_op DgeComputeOp, dstBoundsCheck
        DmaBounds, srcBoundsCheck DmaBounds);
    NcDmaCopy 153: NcDmaCopy(dst TensorRef, src TensorRef, compute_op DgeComputeOp, oobMode DmaBounds,
        dgeMode Nat, uniqueIndices Bool, priority (opt Nat), engine Engine);
    DmaTranspose 154: DmaTranspose(dst TensorRef, src TensorRef, axes TransposeOps, dtype (opt Dtype),
        dgeMode Nat, oobMode DmaBounds, priority (opt Nat));
    Transpose 155: Transpose(dst TensorRef, src TensorRef, dtype (opt Dtype), engine Engine);
    LoadMaskRegister 156: LoadMaskRegister(regNum Nat);
    Shuffle 157: Shuffle(dst TensorRef, src TensorRef, shuffleMask [Immediate], dtype (opt Dtype));
    MemSet 158: MemSet(dst TensorRef, value Immediate, dtype Dtype, engine Engine);
    Iota 159: Iota(dst TensorRef, pattern DataPattern, dtype (opt Dtype));
    LoadStationary 160: LoadStationary(src TensorRef, isTranspose Bool);
    MatMul 161: MatMul(dst TensorRef, moving TensorRef);
    LocalGather 162: LocalGather(dst TensorRef, src TensorRef, indexMissBehavior IndexMissBehavior,
        freePoolBuffer Bool);
    NcLocalGather 163: NcLocalGather(dst TensorRef, src TensorRef, index TensorRef, numElemPerIdx
        Immediate, numValidIndicies (opt Immediate));
    RangeSelect 164: RangeSelect(dst TensorRef, src TensorRef, reduceCommand AccumCmd, reduceOp AluOp,
        base Float, fillValue Float, compOp0 AluOp, compOp1 AluOp, bound0 Immediate, bound1 Immediate);
    NcRangeSelect 165: NcRangeSelect(dst TensorRef, reduceCommand AccumCmd, reduceRes (opt TensorRef),
        reduceOp (opt AluOp), compOp0 AluOp, compOp1 AluOp, bound0 TensorRef, bound1 TensorRef,
        rangeStart Immediate, onTrueTile TensorRef, onFalseValue Immediate, dtype (opt Dtype));
    ScalarTensorTensor 166: ScalarTensorTensor(dst TensorRef, src0 TensorRef, src1 TensorRef, op0 AluOp,
        op1 AluOp, reverseOperands TensorScalarReverseOps, imm0 Immediate, accumulatorCmd AccumCmd);
    NcScalarTensorTensor 167: NcScalarTensorTensor(dst TensorRef, data TensorRef, src0 Operand, src1
        Operand, op0 AluOp, op1 AluOp, reverseOperands TensorScalarReverseOps, dtype (opt Dtype));
    CopyPredicated 168: CopyPredicated(dst TensorRef, src TensorRef, predicate TensorRef, dtype (opt
        Dtype), reversePred Bool);
    TensorTensorScan 169: TensorTensorScan(dst TensorRef, src0 TensorRef, src1 TensorRef, op0 AluOp, op1
        AluOp, reverseOperands TensorScalarReverseOps, imm0 Operand, accumulatorCmd AccumCmd, dtype (opt
        Dtype));
    MatchValueLoad 170: MatchValueLoad(src TensorRef);
    FindIndex8 171: FindIndex8(dst TensorRef, src TensorRef, vals TensorRef, dtype (opt Dtype));
    MatchReplace8 172: MatchReplace8(dst TensorRef, src TensorRef, vals TensorRef, replaceValue
        Immediate, dstIdx (opt TensorRef), dtype (opt Dtype));
    Max8 173: Max8(dst TensorRef, src TensorRef, dtype (opt Dtype));
    BatchNormAggregate 174: BatchNormAggregate(dst TensorRef, src TensorRef, dtype (opt Dtype));
    BatchNormStats 175: BatchNormStats(dst TensorRef, src TensorRef, dtype (opt Dtype));
    Reciprocal 176: Reciprocal(dst TensorRef, src TensorRef, dtype (opt Dtype));
    Copy 177: Copy(dst TensorRef, src TensorRef, opDim (opt TensorSubDim));
    NcCopy 178: NcCopy(dst TensorRef, src TensorRef, dtype (opt Dtype), engine Engine);
    TensorReduce 179: TensorReduce(dst TensorRef, src TensorRef, op AluOp, opDim TensorSubDim, negated
        Bool, dtype (opt Dtype), keepdims Bool);
    TensorScalar 180: TensorScalar(dst TensorRef, src TensorRef, imm0 Operand, op0 AluOp, imm1 (opt
        Operand), op1 (opt AluOp), reverse TensorScalarReverseOps, engine Engine, dtype (opt Dtype));
    TensorScalarReduce 181: TensorScalarReduce(dst TensorRef, src TensorRef, operand0 Operand, op0
        AluOp, reverse0 Bool, dtype (opt Dtype), reduceOp (opt AluOp), reduceRes TensorRef, reduceCmd
        AccumCmd, reduceInit (opt Immediate));
    TensorTensor 182: TensorTensor(dst TensorRef, src0 TensorRef, src1 TensorRef, op AluOp, dtype (opt
        Dtype), engine Engine);
    NcMatMul 183: NcMatMul(dst TensorRef, stationary TensorRef, moving TensorRef, isStationaryOneZero
        Bool, isMovingZero Bool, isTranspose Bool, tilePosition [Nat], tileSize [Nat], perfMode
        MatmulPerfMode);
    TensorPartitionReduce 184: TensorPartitionReduce(dst TensorRef, op AluOp, data TensorRef, dtype (opt
        Dtype));
    SelectReduce 185: SelectReduce(dst TensorRef, predicate TensorRef, onTrue TensorRef, onFalse
        Operand, reduceRes (opt TensorRef), reduceCmd AccumCmd, reduceOp AluOp, reversePred Bool, dtype
        (opt Dtype));
    SequenceBounds 186: SequenceBounds(dst TensorRef, segmentIds TensorRef, dtype (opt Dtype));
    SendRecv 187: SendRecv(dst TensorRef, src TensorRef, sendToRank Immediate, recvFromRank Immediate,
        pipeId Immediate, useGpsimdDma Bool);
    SendRecvCompute 188: SendRecvCompute(dsts [TensorRef], srcs [TensorRef], sendToRanks [Immediate],
        recvFromRanks [Immediate], pipeId Immediate, op AluOp);
    BrCmpOp 189: always lt_imm le_imm eq_imm ne_imm ge_imm gt_imm lt_reg le_reg eq_reg ne_reg ge_reg
        gt_reg;
    TensorLoad 190: TensorLoad(dst String, src TensorRef);
    TensorStore 191: TensorStore(dst TensorRef, src String);
    RegisterMove 192: RegisterMove(dst String, imm Int);
    CmpBranch 193: CmpBranch(reg1 String, reg2 String, imm Int, op BrCmpOp, trueLabel String, falseLabel
        String);
    RegisterAluOp 194: RegisterAluOp(dst String, src String, imm Int, op AluOp);
    QuantizeMX 195: QuantizeMX(dst TensorRef, src TensorRef, dstScale TensorRef);
    MatMulMX 196: MatMulMX(dst TensorRef, stationary TensorRef, moving TensorRef, stationaryScale
        TensorRef, movingScale TensorRef, tilePosition (opt [Nat]), tileSize (opt [Nat]));
    DmaCompute 197: DmaCompute(dst TensorRef, srcs [TensorRef], scales [Immediate], reduceOp AluOp);
    ReplicaGroup 198: unspecified named(name String) literal(groups [[Int]]);
    CollectiveOp 199: CollectiveOp(dsts [TensorRef], srcs [TensorRef], op (opt AluOp), replicaGroup
        ReplicaGroup, concatDim (opt Int), sourceTargetPairs (opt [[Int]]), channel_id (opt Int),
        num_channels (opt Int), priority (opt Nat));
    RankId 200: RankId(dst String);
    CurrentProcessingRankId 201: CurrentProcessingRankId(dst String, iterationId Int, channelId Int,
        numChannels Int, replicaGroup [[Int]]);
    Send 202: Send(op AluOp, srcs [TensorRef], peerId Int);
    Recv 203: Recv(op AluOp, dsts [TensorRef], replicaGroups [Int], peerId Int);
    CoreBarrier 204: CoreBarrier(data TensorRef, cores [Int], engine Engine);
    Rng 205: Rng(dst TensorRef, engine Engine);
    Rand2 206: Rand2(dst TensorRef, min Operand, max Operand);
    RandGetState 207: RandGetState(dst TensorRef, engine Engine);
    SetRngSeed 208: SetRngSeed(src TensorRef);
    RandSetState 209: RandSetState(src TensorRef, engine Engine);
    ExtendedInst 210: ExtendedInst(opcode Nat, hasRead Bool, hasWrite Bool, ports Nat, data0 [Nat],
        data1 [Nat]);
    TensorScalarCumulative 211: TensorScalarCumulative(dst TensorRef, src TensorRef, op0 AluOp, op1
        AluOp, imm0 Operand, imm1 (opt Operand), reduceCmd AccumCmd, reverse TensorScalarReverseOps,
        dtype (opt Dtype));
    NcNGather 212: NcNGather(dst TensorRef, data TensorRef, indices TensorRef, dtype (opt Dtype));
    NonzeroWithCount 213: NonzeroWithCount(dst TensorRef, src TensorRef, indexOffset Immediate,
        paddingVal Immediate);
    PrintOutputBuffer 214: stdout stderr;
    DevicePrint 215: DevicePrint(src TensorRef, printPrefix String, buffer PrintOutputBuffer);
    Exponential 216: Exponential(dst TensorRef, src TensorRef, maxValue Operand, reduceRes (opt
        TensorRef), reducecmd AccumCmd, reduceInit Operand);
    Activate2 217: Activate2(dst TensorRef, src TensorRef, op0 AluOp, op1 AluOp, imm0 Operand, imm1
        Operand, activationFunc ActivationFunc, reluParam Operand, reduceOp AluOp, reduceRes (opt
        TensorRef), reduceCmd AccumCmd, reverse0 Bool, reverse1 Bool, dtype (opt Dtype));
    KLRFile 217 @ 247: KLRFile(major Nat, minor Nat, patch Nat);
    Operator 218: activate(op Activate) ncActivate(op NcActivate) activationReduce(op NcActivate)
        affineSelect(op AffineSelect) ncAffineSelect(op NcAffineSelect) batchNormAggregate(op
        BatchNormAggregate) batchNormStats(op BatchNormStats) copy(op Copy) ncCopy(op NcCopy)
        copyPredicated(op CopyPredicated) dmaCopy(op DmaCopy) ncDmaCopy(op NcDmaCopy) dmaTranspose(op
        DmaTranspose) dropout(op Dropout) findIndex8(op FindIndex8) iota(op Iota) loadMaskRegister(op
        LoadMaskRegister) loadStationary(op LoadStationary) localGather(op LocalGather) ncLocalGather(op
        NcLocalGather) matMul(op MatMul) ncMatMul(op NcMatMul) matchReplace8(op MatchReplace8)
        matchValueLoad(op MatchValueLoad) max8(op Max8) memSet(op MemSet) rangeSelect(op RangeSelect)
        ncRangeSelect(op NcRangeSelect) reciprocal(op Reciprocal) scalarTensorTensor(op
        ScalarTensorTensor) ncScalarTensorTensor(op NcScalarTensorTensor) shuffle(op Shuffle)
        tensorReduce(op TensorReduce) tensorScalar(op TensorScalar) tensorTensor(op TensorTensor)
        tensorTensorScan(op TensorTensorScan) tensorPartitionReduce(op TensorPartitionReduce)
        tensorScalarReduce(op TensorScalarReduce) transpose(op Transpose) selectReduce(op SelectReduce)
        sequenceBounds(op SequenceBounds) sendRecv(op SendRecv) sendRecvCompute(op SendRecvCompute)
        tensorLoad(op TensorLoad) tensorStore(op TensorStore) registerMove(op RegisterMove) cmpBranch(op
        CmpBranch) registerAluOp(op RegisterAluOp) quantizeMX(op QuantizeMX) ncMatMulMX(op MatMulMX)
        dmaCompute(op DmaCompute) allReduce(op CollectiveOp) allGather(op CollectiveOp) reduceScatter(op
        CollectiveOp) collectivePermute(op CollectiveOp) collectivePermuteImplicit(op CollectiveOp)
        collectivePermuteImplicitReduce(op CollectiveOp) broadcast(op CollectiveOp) allToAll(op
        CollectiveOp) rankId(op RankId) currentProcessingRankId(op CurrentProcessingRankId) send(op
        Send) recv(op Recv) coreBarrier(op CoreBarrier) rng(op Rng) rand2(op Rand2) randGetState(op
        RandGetState) setRngSeed(op SetRngSeed) randSetState(op RandSetState) extendedInst(op
        ExtendedInst) tensorScalarCumulative(op TensorScalarCumulative) ncNGather(op NcNGather)
        nonzeroWithCount(op NonzeroWithCount) devicePrint(op DevicePrint) exponential(op Exponential)
        activate2(op Activate2);
    KLRMetaData 235: KLRMetaData(format String);
    Contents 236: python(kernel Kernel) nki(kernel Kernel) kernel(kernel Kernel) lnc(kernel LncKernel)
        hlo(name String);
}
}

pub use rows::TYPES;
