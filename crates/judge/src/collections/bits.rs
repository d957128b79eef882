//! Sets of named bits.

/// Declares a set of bits, with a constant for each, and an enum of their positions.
macro_rules! bit_set {
    ($(#[$about:meta])* $set:ident, $bit:ident: $($(#[$doc:meta])* $name:ident),* $(,)?) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct $set(u32);

        /// Positions of the bits.
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum $bit { $($name,)* }

        impl $set {
            $($(#[$doc])* pub(crate) const $name: Self = Self(1 << $bit::$name as u32);)*

            /// Returns the union of two sets.
            pub(crate) const fn and(self, others: Self) -> Self {
                Self(self.0 | others.0)
            }

            /// Returns the set with `bits` added if `holds` is true.
            #[must_use]
            pub(crate) fn with(self, bits: Self, holds: bool) -> Self {
                if holds { self.and(bits) } else { self }
            }

            /// Returns true if the two sets have something in common.
            pub(crate) const fn any(self, of: Self) -> bool {
                self.0 & of.0 != 0
            }
        }
    };
}
pub(crate) use bit_set;
