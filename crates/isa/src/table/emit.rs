//! The macro that turns table rows into typed bundles. It carries data; functions do the work.

/// The span of a row: `at OFFSET`, `bit OFFSET BIT` or `less31 OFFSET`.
macro_rules! span {
    (at $offset:literal) => {
        Span { offset: $offset, shape: Shape::Whole }
    };
    (bit $offset:literal $bit:literal) => {
        Span { offset: $offset, shape: Shape::Bit($bit) }
    };
    (less31 $offset:literal) => {
        Span { offset: $offset, shape: Shape::LessBit31 }
    };
}

/// Emits a struct, its rows and its codec for each bundle, and the enum over them.
///
/// A row reads: layouts, place, kind, recovered name, confidence, decision, meaning.
macro_rules! bundles {
    ($(
        $(#[$bundle_doc:meta])*
        bundle $name:ident = $opcode:literal {
            doc: $doc:literal,
            wire: $wire:expr,
            opcode_name: $opcode_name:expr,
            reserved_name: $reserved_name:expr,
            engine: $engine:ident,
            generations: $generations:ident,
            fields: {$(
                $(#[$field_doc:meta])*
                $field:ident : $type:ty = $(
                    [$layouts:ident $place:ident $offset:literal $($bit:literal)?, $kind:expr, $census:expr,
                     $confidence:ident, $decision:expr, $meaning:literal]
                )+ ;
            )+},
            reserved: [$($first:literal .. $end:literal $in:ident),* $(,)?],
        }
    )+) => {
        $(
            $(#[$bundle_doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
            pub struct $name {
                $(
                    $(#[$field_doc])*
                    pub $field: $type,
                )+
            }

            impl Bundle for $name {
                const INFO: BundleInfo = BundleInfo {
                    name: stringify!($name),
                    opcode: $opcode,
                    opcode_name: $opcode_name,
                    wire: $wire,
                    reserved_name: $reserved_name,
                    engine: Engine::$engine,
                    generations: Generations::$generations,
                    doc: $doc,
                    fields: &[$($(
                        Field {
                            key: stringify!($field),
                            label: concat!(" ", stringify!($field), "="),
                            name: $census,
                            span: span!($place $offset $($bit)?),
                            width: <$type as Wire>::WIDTH,
                            layouts: Layouts::$layouts,
                            kind: $kind,
                            confidence: Confidence::$confidence,
                            decision: $decision,
                            meaning: $meaning,
                        },
                    )+)+],
                    reserved: &[$(Reserved { first: $first, end: $end, layouts: Layouts::$in }),*],
                };

                const RESIDUE: [[u8; 64]; 3] = [
                    residue_bits(&Self::INFO, Layout::Gen2),
                    residue_bits(&Self::INFO, Layout::Gen34),
                    residue_bits(&Self::INFO, Layout::Above40),
                ];

                #[inline]
                fn encode(&self, target: Target) -> Word {
                    // One straight-line writer a layout.
                    match Layout::of(target) {
                        Layout::Gen2 => self.write(Layout::Gen2),
                        Layout::Gen34 => self.write(Layout::Gen34),
                        Layout::Above40 => self.write(Layout::Above40),
                    }
                }

                #[inline]
                fn decode(word: &Word, target: Target) -> Self {
                    match Layout::of(target) {
                        Layout::Gen2 => Self::read(word, Layout::Gen2),
                        Layout::Gen34 => Self::read(word, Layout::Gen34),
                        Layout::Above40 => Self::read(word, Layout::Above40),
                    }
                }

                fn walk<'a>(&'a self, layout: Layout, mut visit: impl FnMut(&'static Field, Value<'a>)) {
                    let mut rows = const { Self::INFO.fields }.iter();
                    $($(
                        let _ = stringify!($layouts);
                        if let Some(row) = rows.next() && row.layouts.holds(layout) {
                            visit(row, self.$field.value());
                        }
                    )+)+
                }

                fn walk_mut(&mut self, layout: Layout, mut visit: impl FnMut(&'static Field, ValueMut<'_>)) {
                    let mut rows = const { Self::INFO.fields }.iter();
                    $($(
                        let _ = stringify!($layouts);
                        if let Some(row) = rows.next() && row.layouts.holds(layout) {
                            visit(row, self.$field.value_mut());
                        }
                    )+)+
                }
            }

            impl $name {
                #[inline(always)]
                fn write(&self, layout: Layout) -> Word {
                    let mut bytes = [0u8; 64];
                    bytes[0] = $opcode;
                    bytes[1] = LENGTH_WORDS;
                    $($(
                        if Layouts::$layouts.holds(layout) {
                            self.$field.put(&mut bytes, const { span!($place $offset $($bit)?) });
                        }
                    )+)+
                    Word(bytes)
                }

                #[inline(always)]
                fn read(word: &Word, layout: Layout) -> Self {
                    let mut bundle = Self::default();
                    $($(
                        if Layouts::$layouts.holds(layout) {
                            bundle.$field = Wire::take(&word.0, const { span!($place $offset $($bit)?) });
                        }
                    )+)+
                    bundle
                }
            }

            const _: () = prove(&<$name as Bundle>::INFO);
        )+

        /// An instruction: a typed bundle, or a word whose opcode the target does not have.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Inst {
            $(
                #[doc = $doc]
                $name($name),
            )+
            /// A word kept as it is.
            Raw(Word),
        }

        $(
            impl From<$name> for Inst {
                fn from(bundle: $name) -> Inst {
                    Inst::$name(bundle)
                }
            }
        )+

        /// Every bundle's rows, by opcode.
        pub const BUNDLES: &[BundleInfo] = &[$(<$name as Bundle>::INFO),+];

        impl Inst {
            /// The rows of the bundle; `None` for [`Inst::Raw`].
            #[must_use]
            pub const fn info(&self) -> Option<&'static BundleInfo> {
                match self {
                    $(Inst::$name(_) => Some(const { &<$name as Bundle>::INFO }),)+
                    Inst::Raw(_) => None,
                }
            }

            /// The wire word for a target: header and fields. Fields that the target's layout lacks
            /// are not written; [`Inst::Raw`] is copied. A bundle that the target's generation does
            /// not have is written all the same, and such a word decodes as raw.
            #[must_use]
            #[inline]
            pub fn encode(&self, target: Target) -> Word {
                match self {
                    $(Inst::$name(bundle) => bundle.encode(target),)+
                    Inst::Raw(word) => *word,
                }
            }

            /// Reads a word: the instruction, and the residue mask of its layout.
            #[inline]
            pub(crate) fn read(word: &Word, target: Target) -> (Inst, &'static [u8; 64]) {
                let layout = Layout::of(target).index();
                match word.opcode() {
                    $(
                        $opcode if Generations::$generations.holds(target.generation) => {
                            let masks: &'static [[u8; 64]; 3] = const { &<$name as Bundle>::RESIDUE };
                            (Inst::$name($name::decode(word, target)), &masks[layout])
                        }
                    )+
                    _ => (Inst::Raw(*word), &[0; 64]),
                }
            }

            /// Visits the fields of a layout in table order; [`Inst::Raw`] has none.
            pub fn walk<'a>(&'a self, layout: Layout, visit: impl FnMut(&'static Field, Value<'a>)) {
                match self {
                    $(Inst::$name(bundle) => bundle.walk(layout, visit),)+
                    Inst::Raw(_) => {}
                }
            }

            /// Visits the fields of a layout in table order, to change them.
            pub fn walk_mut(&mut self, layout: Layout, visit: impl FnMut(&'static Field, ValueMut<'_>)) {
                match self {
                    $(Inst::$name(bundle) => bundle.walk_mut(layout, visit),)+
                    Inst::Raw(_) => {}
                }
            }
        }
    };
}

pub(super) use {bundles, span};
