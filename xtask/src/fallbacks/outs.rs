//! Arguments that may be out-parameters.

use std::fmt;

use gpustub_cdecl::{DeclaredFunction, Type};

/// Argument that points to a handle, a number or a text buffer. Its text is an entry of `[zero-out]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutParameter {
    /// Index of the argument.
    pub argument: usize,
    /// Bytes that it points to.
    size: u64,
}

impl fmt::Display for OutParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { argument, size } = self;
        match size {
            8 => write!(f, "{argument}"),
            size => write!(f, "{{ arg = {argument}, size = {size} }}"),
        }
    }
}

/// Arguments that may be out-parameters: pointers to what is not constant, of at most eight bytes. A text buffer is one of
/// one byte, the first, since texts that a function reads are constant. Of functions with other arguments than integers and pointers there are none, since their positions differ.
pub fn out_parameters(function: &DeclaredFunction) -> Vec<OutParameter> {
    let types = &function.types;
    let Type::Function(signature) = types.get(function.function) else {
        return Vec::new();
    };
    let mut parameters = Vec::new();
    for (argument, ty) in signature.iter().skip(1).enumerate() {
        let pointee = match types.get(*ty) {
            Type::Integer(_) | Type::Enum { .. } => continue,
            Type::Pointer(pointee) => *pointee,
            _ => return Vec::new(),
        };
        if types.is_constant(pointee) {
            continue;
        }
        let bits = match types.get(pointee) {
            Type::Pointer(_) => 64,
            Type::Integer(bits @ 8..=64) | Type::Float(bits) => *bits,
            Type::Enum { size, .. } => *size,
            _ => continue,
        };
        let size = bits / 8;
        parameters.push(OutParameter { argument, size });
    }
    parameters
}
