//! The row types of the bundle table.

use crate::{Gen, Target};
use std::fmt;

/// How sure the byte is. Each choice behind an assumed or split reading has a decision number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Confidence {
    /// The exact store was seen.
    Confirmed,
    /// A look-up table or predicate agrees.
    Strong,
    /// Implied by zero initialisation or by a neighbour.
    Inferred,
    /// A choice of this project.
    Assumed,
}

impl Confidence {
    /// The word in capitals.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Confidence::Confirmed => "CONFIRMED",
            Confidence::Strong => "STRONG",
            Confidence::Inferred => "INFERRED",
            Confidence::Assumed => "ASSUMED",
        }
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The engine that executes a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// The tensor (matmul) engine.
    Pe,
    /// The vector engine.
    Dve,
}

impl Engine {
    /// `PE` or `DVE`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Pe => "PE",
            Engine::Dve => "DVE",
        }
    }
}

/// A byte layout: what a field's position depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Generation 2.
    Gen2,
    /// Generations 3 and 4 up to level 40.
    Gen34,
    /// Levels above 40, where dense accumulate and group bytes are not fields.
    Above40,
}

impl Layout {
    /// All layouts.
    pub const ALL: [Layout; 3] = [Layout::Gen2, Layout::Gen34, Layout::Above40];

    /// The layout of a target.
    #[must_use]
    pub const fn of(target: Target) -> Layout {
        match target.generation {
            Gen::Gen2 => Layout::Gen2,
            Gen::Gen3 | Gen::Gen4 if target.level > 40 => Layout::Above40,
            Gen::Gen3 | Gen::Gen4 => Layout::Gen34,
        }
    }

    /// Position in [`Layout::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// A set of layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layouts(u8);

impl Layouts {
    /// Every layout.
    pub const ALL: Layouts = Layouts(7);
    /// Generation 2 alone.
    pub const G2: Layouts = Layouts(1);
    /// Generations 3 and 4 at any level.
    pub const G34: Layouts = Layouts(6);
    /// Generation 2, and 3 and 4 up to level 40.
    pub const LE40: Layouts = Layouts(3);
    /// Levels above 40 alone.
    pub const GT40: Layouts = Layouts(4);

    /// True when the set holds `layout`.
    #[must_use]
    pub const fn holds(self, layout: Layout) -> bool {
        self.0 >> (layout as u8) & 1 != 0
    }

    /// True for the sets that leave out levels above 40 while holding generations 3 and 4.
    #[must_use]
    pub const fn is_level_gated(self) -> bool {
        self.holds(Layout::Gen34) && !self.holds(Layout::Above40)
    }
}

/// A set of generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Generations(u8);

impl Generations {
    /// Generations 2, 3 and 4.
    pub const ALL: Generations = Generations(7);
    /// Generation 3.
    pub const G3: Generations = Generations(2);
    /// Generation 4.
    pub const G4: Generations = Generations(4);

    /// True when the set holds `generation`.
    #[must_use]
    pub const fn holds(self, generation: Gen) -> bool {
        self.0 >> (generation as u8) & 1 != 0
    }

    /// The generations of the set, oldest first.
    pub fn iter(self) -> impl Iterator<Item = Gen> {
        Gen::ALL.into_iter().filter(move |&g| self.holds(g))
    }
}

/// Which bits of its bytes a field takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Every bit.
    Whole,
    /// One bit of one byte.
    Bit(u8),
    /// Every bit but the top one of the fourth byte (bit 31 of a start address).
    LessBit31,
}

/// Where a field is: first byte, and which bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// First byte in the bundle.
    pub offset: usize,
    /// Bits taken.
    pub shape: Shape,
}

/// What a field's value is, which decides how it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The type tag of the operand field named.
    Tag(&'static str),
    /// The type tag of an MX data operand.
    MxTag(&'static str),
    /// A count, shown in decimal.
    Count,
    /// An opaque code, shown in hex.
    Code,
    /// A quadrant mask.
    Group,
    /// Accumulate flags.
    Accumulate,
    /// A flag: 0 or 1.
    Flag,
    /// The ordinal of a performance mode.
    PerfMode,
    /// A performance variant.
    PerfVariant,
    /// A source (TENSORnD) pattern.
    Source,
    /// A destination (MEM_PATTERNnD) pattern.
    Destination,
    /// An MX descriptor.
    Mx,
}

/// One field of one bundle in some layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The member of the typed struct, and the key in assembly text.
    pub key: &'static str,
    /// The key as assembly text writes it: ` key=`.
    pub label: &'static str,
    /// The recovered name; null where none was recovered.
    pub name: Option<&'static str>,
    /// Place of the field.
    pub span: Span,
    /// Bytes.
    pub width: usize,
    /// Layouts that have the field here.
    pub layouts: Layouts,
    /// What the value is.
    pub kind: Kind,
    /// How sure the place and the value are.
    pub confidence: Confidence,
    /// The decision behind an assumed reading: 27 is D-27.
    pub decision: Option<u8>,
    /// What the value means and where it comes from.
    pub meaning: &'static str,
}

/// The dense destination tag: seen on gen2 and gen3, assumed on gen4.
const GEN4_DESTINATION_TAG: Option<u8> = Some(36);

impl Field {
    /// The confidence on a generation, which is lower where an older encoder is assumed to be
    /// inherited (D-36).
    #[must_use]
    pub fn confidence_on(&self, generation: Gen) -> Confidence {
        if generation == Gen::Gen4 && self.decision == GEN4_DESTINATION_TAG {
            Confidence::Assumed
        } else {
            self.confidence
        }
    }
}

/// Bytes that a layout leaves 0: `first..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// First byte.
    pub first: usize,
    /// Byte after the last.
    pub end: usize,
    /// Layouts in which the bytes are reserved.
    pub layouts: Layouts,
}

/// A bundle: its header, its fields and its reserved bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleInfo {
    /// The bundle's name, which is its mnemonic in assembly text.
    pub name: &'static str,
    /// Byte 0.
    pub opcode: u8,
    /// Recovered name of the opcode byte.
    pub opcode_name: Option<&'static str>,
    /// Recovered name of the wire structure.
    pub wire: Option<&'static str>,
    /// Recovered family name of the reserved bytes.
    pub reserved_name: Option<&'static str>,
    /// The executing engine.
    pub engine: Engine,
    /// Generations that have the bundle.
    pub generations: Generations,
    /// What the bundle does.
    pub doc: &'static str,
    /// Field rows, by struct member.
    pub fields: &'static [Field],
    /// Reserved ranges after the header.
    pub reserved: &'static [Reserved],
}

impl BundleInfo {
    /// The field rows present in a layout.
    pub fn fields_in(&self, layout: Layout) -> impl Iterator<Item = &'static Field> {
        self.fields.iter().filter(move |f| f.layouts.holds(layout))
    }

    /// The layouts that the bundle's generations can have.
    #[must_use]
    pub const fn has_layout(&self, layout: Layout) -> bool {
        match layout {
            Layout::Gen2 => self.generations.holds(Gen::Gen2),
            Layout::Gen34 => self.generations.holds(Gen::Gen3) || self.generations.holds(Gen::Gen4),
            Layout::Above40 => self.generations.holds(Gen::Gen4),
        }
    }
}
