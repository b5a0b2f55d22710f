//! The operations of kernels that work on 16-bit lanes, twice as many to a register.

use super::vector::RUN;

/// How a register holds its sixteen elements.
pub(crate) trait Order {
    /// Whether element `i` of the first eight is in lane `2 i` and of the others in lane `2 i + 1`.
    const DEALT: bool;
}

/// Each in the lane of its number.
pub(crate) enum InOrder {}

impl Order for InOrder {
    const DEALT: bool = false;
}

/// The first eight in the even lanes, the others in the odd ones.
pub(crate) enum Dealt {}

impl Order for Dealt {
    const DEALT: bool = true;
}

/// Registers of 16-bit lanes, for machines where they pay; elsewhere the same results come from 32-bit lanes.
///
/// Lanes are bfloat16 or float16 bits, or codes. Comparisons and extremes read them as signed.
pub(crate) trait Halves: Copy + Send + Sync + 'static {
    /// A register of 16-bit lanes, half a run of elements.
    type H: Copy;
    /// A register of float32 lanes.
    type V: Copy;
    /// The same bits in every lane.
    fn splat(self, bits: u16) -> Self::H;
    /// Bitwise and.
    fn and(self, a: Self::H, b: Self::H) -> Self::H;
    /// Bitwise or.
    fn or(self, a: Self::H, b: Self::H) -> Self::H;
    /// Bitwise exclusive or.
    fn xor(self, a: Self::H, b: Self::H) -> Self::H;
    /// Wrapping sum.
    fn add(self, a: Self::H, b: Self::H) -> Self::H;
    /// Wrapping difference.
    fn sub(self, a: Self::H, b: Self::H) -> Self::H;
    /// `max(a - b, 0)` of unsigned lanes.
    fn sub_floor(self, a: Self::H, b: Self::H) -> Self::H;
    /// The smaller lane.
    fn min(self, a: Self::H, b: Self::H) -> Self::H;
    /// The larger lane.
    fn max(self, a: Self::H, b: Self::H) -> Self::H;
    /// All ones where `a > b`.
    fn gt(self, a: Self::H, b: Self::H) -> Self::H;
    /// All ones where `a == b`.
    fn eq(self, a: Self::H, b: Self::H) -> Self::H;
    /// `a` where the mask, a result of a comparison, is set, `b` elsewhere.
    fn select(self, mask: Self::H, a: Self::H, b: Self::H) -> Self::H;
    /// Shift left by a constant; zeros in.
    fn shl<const N: i32>(self, v: Self::H) -> Self::H;
    /// Shift right by a constant; zeros in.
    fn shr<const N: i32>(self, v: Self::H) -> Self::H;
    /// `(v + 2^(n - 1)) >> n` of lanes from -1 up, where `power` is 2^(15 - n) in every lane.
    fn round_shr(self, v: Self::H, power: Self::H) -> Self::H;
    /// The entry of lanes below 16, given as all low bytes and all high bytes; entry 0 must be 0. Lanes from 16 to 127
    /// give some entry.
    fn lookup(self, table: &[[u8; 16]; 2], v: Self::H) -> Self::H;
    /// In the lanes of each four consecutive elements, the largest of them.
    fn max_of_four<O: Order>(self, v: Self::H) -> Self::H;
    /// The largest lane.
    fn largest(self, v: Self::H) -> i16;

    /// The float32 of the even bfloat16 lanes and of the odd ones.
    fn widen(self, v: Self::H) -> [Self::V; 2];
    /// The same float32 in every lane.
    fn float(self, x: f32) -> Self::V;
    /// float32 product.
    fn mulf(self, a: Self::V, b: Self::V) -> Self::V;
    /// float16 bits of non-negative float32, rounded up where they are not exact: first those of one register, then
    /// those of the other.
    fn float16_up(self, v: [Self::V; 2]) -> Self::H;

    /// The float32 of float16 lanes in order, the first eight and the others; a NaN becomes a quiet one.
    fn float16_down(self, v: Self::H) -> [Self::V; 2];

    /// Half `i` of a run of 16-bit codes.
    fn load(self, run: &[[u8; 2]; RUN], i: usize) -> Self::H;
    /// Half `i` of a run of bytes, zero-extended.
    fn load_u8(self, run: &[u8; RUN], i: usize) -> Self::H;
    /// Half `i` of a run of bytes, sign-extended.
    fn load_i8(self, run: &[u8; RUN], i: usize) -> Self::H;
    /// Half `i` of a run of float32, in order.
    fn load_floats(self, run: &[f32; RUN], i: usize) -> [Self::V; 2];
    /// Writes a run of float32 in order, past the caches if `stream` and the address allow.
    fn store_floats(self, run: &mut [f32; RUN], stream: bool, halves: [[Self::V; 2]; 2]);
    /// Half `i` of a run of float32, [`Dealt`], as bfloat16 rounded to odd: cut off, the last bit set if anything was
    /// lost.
    fn load_odd(self, run: &[f32; RUN], i: usize) -> Self::H;
    /// Writes a run of 16-bit codes, past the caches if `stream` and the address allow.
    fn store(self, run: &mut [[u8; 2]; RUN], stream: bool, codes: [Self::H; 2]);
    /// Writes a run of bytes: the smaller of code and `limit`, and the sign bit of the lanes of `signed`. The codes
    /// are those of its even lanes, and then those of its odd lanes.
    fn store_u8<O: Order>(
        self,
        run: &mut [u8; RUN],
        stream: bool,
        codes: [Self::H; 2],
        limit: u8,
        signed: [Self::H; 2],
    );
    /// Writes a run of nibbles, the first in the low one of its byte: the entry that a lane of `steps` selects in
    /// `table`, one more unless the lane is 0, and the sign of that lane of `signed` in bit 3. Lanes up to 3 select
    /// entry 0, then each the next one, and from 18 on the last.
    fn store_u4<O: Order>(
        self,
        run: &mut [u8; RUN / 2],
        steps: [Self::H; 2],
        table: &[u8; 16],
        signed: [Self::H; 2],
    );
}

/// The halves of levels that have none: there is no value of it.
#[derive(Clone, Copy)]
pub(crate) enum Never {}

macro_rules! never {
    ($(fn $name:ident $(<{$($generic:tt)*}>)? ($($arg:ident: $ty:ty),*) $(-> $out:ty)?;)*) => {
        impl Halves for Never {
            type H = Never;
            type V = Never;
            $(#[inline(always)]
            fn $name $(<$($generic)*>)? (self, $($arg: $ty),*) $(-> $out)? {
                let _ = ($($arg,)*);
                match self {}
            })*
        }
    };
}

never! {
    fn splat(bits: u16) -> Never;
    fn and(a: Never, b: Never) -> Never;
    fn or(a: Never, b: Never) -> Never;
    fn xor(a: Never, b: Never) -> Never;
    fn add(a: Never, b: Never) -> Never;
    fn sub(a: Never, b: Never) -> Never;
    fn sub_floor(a: Never, b: Never) -> Never;
    fn min(a: Never, b: Never) -> Never;
    fn max(a: Never, b: Never) -> Never;
    fn gt(a: Never, b: Never) -> Never;
    fn eq(a: Never, b: Never) -> Never;
    fn select(mask: Never, a: Never, b: Never) -> Never;
    fn shl<{const N: i32}>(v: Never) -> Never;
    fn shr<{const N: i32}>(v: Never) -> Never;
    fn round_shr(v: Never, power: Never) -> Never;
    fn lookup(table: &[[u8; 16]; 2], v: Never) -> Never;
    fn max_of_four<{O: Order}>(v: Never) -> Never;
    fn largest(v: Never) -> i16;
    fn widen(v: Never) -> [Never; 2];
    fn float(x: f32) -> Never;
    fn mulf(a: Never, b: Never) -> Never;
    fn float16_up(v: [Never; 2]) -> Never;
    fn float16_down(v: Never) -> [Never; 2];
    fn load(run: &[[u8; 2]; RUN], i: usize) -> Never;
    fn load_u8(run: &[u8; RUN], i: usize) -> Never;
    fn load_i8(run: &[u8; RUN], i: usize) -> Never;
    fn load_floats(run: &[f32; RUN], i: usize) -> [Never; 2];
    fn store_floats(run: &mut [f32; RUN], stream: bool, halves: [[Never; 2]; 2]);
    fn load_odd(run: &[f32; RUN], i: usize) -> Never;
    fn store(run: &mut [[u8; 2]; RUN], stream: bool, codes: [Never; 2]);
    fn store_u8<{O: Order}>(run: &mut [u8; RUN], stream: bool, codes: [Never; 2], limit: u8, signed: [Never; 2]);
    fn store_u4<{O: Order}>(run: &mut [u8; RUN / 2], steps: [Never; 2], table: &[u8; 16], signed: [Never; 2]);
}
