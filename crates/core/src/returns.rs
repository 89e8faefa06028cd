//! Results of functions that cannot be called.

/// Maximum size of a struct that a stub may have to fill with zeros.
pub(crate) const MAX_STRUCT_SIZE: i64 = 65_536;

/// Minimum size of a struct.
pub(crate) const MIN_STRUCT_SIZE: i64 = 1;

/// Return value of a function that cannot be called.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Returns {
    /// The library's status code for the reason.
    #[default]
    Status,
    /// This number, for every reason.
    Value(i32),
    /// The library's fall-back string, as a C string.
    String,
    /// NULL.
    Null,
    /// No value.
    Void,
    /// A zeroed struct of this size in bytes: through a hidden pointer, or in registers, as the target's ABI has it.
    ZeroedStruct(u32),
    /// The name of the status code in the first argument, as a C string.
    ErrorName,
    /// Number and name of that code, as a C string.
    ErrorString,
    /// 0, or this number if that code is unknown.
    UnknownError(i32),
    /// A zeroed struct of up to four equal floating-point members (AAPCS64 6.9), of this size in bytes: in vector
    /// registers on AArch64, elsewhere as other structs.
    ZeroedHfa(u32),
}

impl Returns {
    /// The classes of a symbol list, for messages.
    pub const CLASSES: &str = "one of status, null, string, void, value:N, zeroed-struct:SIZE and zeroed-hfa:SIZE; a \
                               SIZE is 1 to 65536 bytes, for zeroed-hfa those of 1 to 4 numbers of 2, 4, 8 or 16 bytes";

    /// Names in a symbol list, without those that have a number.
    const NAMES: [(&'static str, Self); 4] = [
        ("status", Self::Status),
        ("null", Self::Null),
        ("string", Self::String),
        ("void", Self::Void),
    ];

    /// Reads a class of a symbol list: `string`, `zeroed-struct:24`.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some((_, class)) = Self::NAMES.iter().find(|(name, _)| *name == text) {
            return Some(class.clone());
        }
        let (name, number) = text.split_once(':')?;
        match name {
            "value" => number.parse().ok().map(Self::Value),
            "zeroed-struct" => struct_size(number).map(Self::ZeroedStruct),
            "zeroed-hfa" => struct_size(number)
                .filter(|size| is_hfa_size(*size))
                .map(Self::ZeroedHfa),
            _ => None,
        }
    }
}

fn struct_size(number: &str) -> Option<u32> {
    let size = number.parse().ok()?;
    if (MIN_STRUCT_SIZE..=MAX_STRUCT_SIZE).contains(&size) {
        u32::try_from(size).ok()
    } else {
        None
    }
}

/// Whether one to four equal floating-point numbers have this size.
fn is_hfa_size(size: u32) -> bool {
    [2, 4, 8, 16]
        .iter()
        .any(|number| size % number == 0 && size / number <= 4)
}

#[cfg(feature = "tools")]
impl std::fmt::Display for Returns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value(value) => write!(f, "value:{value}"),
            Self::ZeroedStruct(size) => write!(f, "zeroed-struct:{size}"),
            Self::ZeroedHfa(size) => write!(f, "zeroed-hfa:{size}"),
            class => {
                let row = Self::NAMES.iter().find(|(_, named)| named == class);
                f.write_str(row.map_or("", |(name, _)| name))
            }
        }
    }
}
