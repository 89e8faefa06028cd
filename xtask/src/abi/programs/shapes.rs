//! Text form of a call's shape: location of each argument and of the result by the x86-64 psABI, 3.2.3
//! "Parameter Passing".
//!
//! ```text
//! int,struct12_ii,float4,struct64:stack,int:stack->status
//! ```
//!
//! `int` is any argument in an integer register. The letters of a struct are the kind of register for each
//! 8 bytes, integer or vector; a struct without letters is in memory.

use super::arguments::{Argument, Returned, Value};

/// The shape of a call.
pub fn shape(arguments: &[Argument], result: &Returned) -> String {
    let mut registers = FreeRegisters {
        integers: 6,
        vectors: 8,
    };
    let result = match result {
        Returned::Status => "status".to_owned(),
        Returned::Nothing => "void".to_owned(),
        Returned::Other(Argument::Value(value)) if value.vectors.is_empty() => {
            // The caller passes the address of the result.
            registers.integers -= 1;
            word(&Argument::Value(value.clone())) + ":memory"
        }
        Returned::Other(argument) => word(argument),
    };
    let mut words = Vec::new();
    for argument in arguments {
        words.push(if registers.take(argument) {
            word(argument)
        } else {
            word(argument) + ":stack"
        });
    }
    format!("{}->{result}", words.join(","))
}

/// Unused argument registers.
struct FreeRegisters {
    integers: usize,
    vectors: usize,
}

impl FreeRegisters {
    /// Returns whether an argument goes into registers, as a whole or not at all.
    fn take(&mut self, argument: &Argument) -> bool {
        let (integers, vectors) = match argument {
            Argument::Float(4 | 8) => (0, 1),
            Argument::Float(_) => return false,
            Argument::Value(Value { vectors, .. }) if vectors.is_empty() => return false,
            Argument::Value(Value { vectors, .. }) => {
                let count = vectors.iter().filter(|is_vector| **is_vector).count();
                (vectors.len() - count, count)
            }
            _ => (1, 0),
        };
        let fits = integers <= self.integers && vectors <= self.vectors;
        if fits {
            self.integers -= integers;
            self.vectors -= vectors;
        }
        fits
    }
}

fn word(argument: &Argument) -> String {
    match argument {
        Argument::Float(size) => format!("float{size}"),
        Argument::Value(value) => format!("struct{}", value.name()),
        _ => "int".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(size: u64, vectors: &[bool]) -> Argument {
        Argument::Value(Value {
            size,
            vectors: vectors.to_vec(),
        })
    }

    #[test]
    fn arguments_go_where_the_psabi_says() {
        use Argument::{Float, Integer};
        // cudaLaunchKernel: a pointer, two dim3, a pointer, a size and a stream.
        assert_eq!(
            shape(
                &[
                    Integer(8),
                    value(12, &[false, false]),
                    value(12, &[false, false]),
                    Integer(8),
                    Integer(8),
                    Integer(8)
                ],
                &Returned::Status
            ),
            "int,struct12_ii,struct12_ii,int,int:stack,int:stack->status"
        );
        // A struct that does not fit leaves its registers to later arguments.
        let arguments = [8, 8, 8, 8, 8, 16, 8].map(|size| match size {
            16 => value(16, &[false, false]),
            _ => Integer(size),
        });
        assert_eq!(
            shape(&arguments, &Returned::Nothing),
            "int,int,int,int,int,struct16_ii:stack,int->void"
        );
        let floats: Vec<_> = (0..9).map(|_| Float(4)).collect();
        assert!(
            shape(&floats, &Returned::Other(Float(8))).ends_with("float4,float4:stack->float8")
        );
        let mixed: Vec<_> = (0..7).map(|_| value(16, &[true, false])).collect();
        let mixed = shape(&mixed, &Returned::Status);
        assert_eq!(mixed.matches(":stack").count(), 1);
        // The address of the result is the first of six.
        let integers: Vec<_> = (0..6).map(|_| Integer(8)).collect();
        assert_eq!(
            shape(&integers, &Returned::Other(value(20, &[]))),
            "int,int,int,int,int,int:stack->struct20:memory"
        );
        assert!(!shape(&integers, &Returned::Other(Integer(8))).contains("stack"));
    }
}
