//! Enums whose variants have names in files, in JSON or on the command line.

/// Declares an enum, with the name of each variant, the list of all, and the way from a name to its variant.
macro_rules! named {
    ($(#[$about:meta])* $set:ident: $($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $set {
            $($(#[$doc])* $variant,)*
        }

        impl $set {
            /// All variants.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// Returns the variant's name in files, in JSON and on the command line.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns the variant with this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|variant| variant.name() == name)
            }
        }
    };
}
pub(crate) use named;
