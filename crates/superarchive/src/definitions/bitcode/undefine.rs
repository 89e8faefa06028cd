//! Functions of a module that become declarations, without moving a bit: numbers are written over in as many
//! digits as they have, and blocks that are no longer true get an unknown number, which LLVM skips.

use super::codes::{block, constants, module as code};
use super::operand::Number;
use super::stream::{Block, Entry, Stream};
use super::string_table::{read_blob, string_at};
use super::wrapper::unwrapped;
use crate::definitions::undefined::{Refused, Undefined};
use crate::error::Problem;

/// No block has this number. As small as the others, so that it has the same number of digits.
const UNKNOWN_BLOCK: u64 = 63;

/// A global value of the module.
struct Value {
    kind: u64,
    /// Operands of its record.
    numbers: Vec<Number>,
    /// Position of the block of its body, in bits.
    body: Option<u64>,
    /// Whether a constant is the address of one of its blocks.
    has_block_address: bool,
}

/// The operands of a function's record (`parseFunctionRecord` of LLVM's `BitcodeReader.cpp`), and of other
/// values that matter here.
mod operand {
    pub const DECLARED: usize = 4;
    pub const LINKAGE: usize = 5;
    pub const COMDAT: usize = 14;
    /// Unnamed address, prologue, comdat, prefix, personality: not for declarations.
    pub const OF_DEFINITIONS: [usize; 5] = [11, 12, COMDAT, 15, 16];
    pub const VARIABLE_COMDAT: usize = 13;
    pub const ALIASEE: usize = 4;
}

/// `weak_odr` and `linkonce_odr` (`getDecodedLinkage` of LLVM's `BitcodeReader.cpp`).
const ODR: [u64; 5] = [10, 11, 15, 17, 19];

impl Value {
    fn operand(&self, at: usize) -> u64 {
        self.numbers.get(at).map_or(0, |number| number.value)
    }

    /// Makes it a declaration.
    fn declare(&self, out: &mut [u8]) -> Option<()> {
        self.numbers.get(operand::DECLARED)?.put(out, 1)?;
        self.numbers.get(operand::LINKAGE)?.put(out, 0)?;
        for at in operand::OF_DEFINITIONS {
            if let Some(number) = self.numbers.get(at) {
                number.put(out, 0)?;
            }
        }
        Number::of_block(self.body?).put(out, UNKNOWN_BLOCK)
    }

    fn comdat(&self) -> u64 {
        self.operand(match self.kind {
            code::FUNCTION => operand::COMDAT,
            _ => operand::VARIABLE_COMDAT,
        })
    }
}

#[derive(Default)]
struct ScannedFile<'d> {
    values: Vec<Value>,
    texts: &'d [u8],
    modules: usize,
    /// Positions of tables of symbols and of summaries.
    tables: Vec<u64>,
    has_old_names: bool,
}

const DAMAGED: Refused = (0, "the module is malformed");

/// The module with these functions declared only.
pub fn undefine(data: &[u8], names: &[&[u8]]) -> Result<Undefined, Refused> {
    let bytes = unwrapped(data).map_err(|_| DAMAGED)?;
    let found = read(bytes).map_err(|_| DAMAGED)?;
    if found.modules != 1 {
        return Err((0, "the file has several modules"));
    }
    if found.has_old_names {
        return Err((0, "the module was written by LLVM 4 or earlier"));
    }
    let mut out = bytes.to_vec();
    let mut inlined = Vec::new();
    for (at, &name) in names.iter().enumerate() {
        let (number, value) = found
            .named(name)
            .ok_or((at, "the module does not define it"))?;
        found.check(number, value).map_err(|reason| (at, reason))?;
        if ODR.contains(&value.operand(operand::LINKAGE)) {
            inlined.push(at);
        }
        let no_room = (at, "the record of the function has no room for the change");
        value.declare(&mut out).ok_or(no_room)?;
    }
    for &at in &found.tables {
        Number::of_block(at)
            .put(&mut out, UNKNOWN_BLOCK)
            .ok_or(DAMAGED)?;
    }
    let start = bytes.as_ptr().addr() - data.as_ptr().addr();
    let mut whole = data.to_vec();
    whole[start..start + out.len()].copy_from_slice(&out);
    Ok(Undefined {
        data: whole,
        inlined,
    })
}

/// Whether a module has a constant whose definitions are all equal (one-definition rule).
pub fn has_odr_constant(data: &[u8], name: &[u8]) -> bool {
    let found = unwrapped(data).and_then(read);
    found.is_ok_and(|found| {
        found.named(name).is_some_and(|(_, value)| {
            // `isconst`, and the initial value, which a declaration does not have.
            value.kind == code::GLOBALVAR
                && value.operand(3) & 1 == 1
                && value.operand(4) != 0
                && ODR.contains(&value.operand(operand::LINKAGE))
        })
    })
}

impl ScannedFile<'_> {
    fn named(&self, name: &[u8]) -> Option<(usize, &Value)> {
        let mut values = self.values.iter().enumerate();
        values.find(|(_, value)| {
            let text = string_at(self.texts, (value.operand(0), value.operand(1)));
            text.is_ok_and(|text| text == name)
        })
    }

    fn check(&self, number: usize, value: &Value) -> Result<(), &'static str> {
        if value.kind != code::FUNCTION {
            return Err("only functions of bitcode are supported, not variables and aliases");
        }
        if value.body.is_none() {
            return Err("the module does not define it");
        }
        if value.has_block_address {
            return Err("the module takes the address of a block of the function");
        }
        let globals = self.values.len() as u64;
        for (other, one) in self.values.iter().enumerate() {
            let comdat = value.comdat() != 0 && one.comdat() == value.comdat();
            match one.kind {
                code::ALIAS | code::IFUNC => {
                    // Behind the globals are constants, which may contain the function.
                    let of = one.operand(operand::ALIASEE);
                    if of == number as u64 || of >= globals {
                        return Err("the function has an alias");
                    }
                }
                _ if other != number && comdat => return Err("others share its COMDAT group"),
                _ => {}
            }
        }
        Ok(())
    }
}

fn read(bytes: &[u8]) -> Result<ScannedFile<'_>, Problem> {
    let (mut stream, mut outside) = Stream::new(bytes)?;
    let mut found = ScannedFile::default();
    while !stream.is_over() {
        let (at, Entry::Block(inner)) = stream.next_at(&mut outside)? else {
            return Err(Problem::Malformed("bitcode is not in blocks"));
        };
        match inner.id {
            block::MODULE => {
                found.modules += 1;
                read_module(&mut stream, inner, &mut found)?;
            }
            block::STRTAB => found.texts = read_blob(&mut stream, inner)?,
            id => {
                if id == block::SYMTAB {
                    found.tables.push(at + u64::from(outside.width));
                }
                stream.skip(&inner)?;
            }
        }
    }
    Ok(found)
}

fn read_module<'d>(
    stream: &mut Stream<'d>,
    mut module: Block,
    found: &mut ScannedFile<'d>,
) -> Result<(), Problem> {
    stream.forget();
    let mut bodies = Vec::new();
    let mut addresses = Vec::new();
    let mut has_texts = false;
    loop {
        match stream.next_at(&mut module)? {
            (_, Entry::End) => break,
            (at, Entry::Block(inner)) => match inner.id {
                block::FUNCTION => {
                    bodies.push(at + u64::from(module.width));
                    read_constants(stream, inner, &mut addresses)?;
                }
                block::CONSTANTS => read_records(stream, inner, &mut addresses)?,
                block::GLOBALVAL_SUMMARY | block::FULL_LTO_GLOBALVAL_SUMMARY => {
                    found.tables.push(at + u64::from(module.width));
                    stream.skip(&inner)?;
                }
                _ => stream.skip(&inner)?,
            },
            (at, Entry::Record) => match stream.record.code {
                code::VERSION => has_texts = stream.record.operand(0)? >= 2,
                kind @ (code::GLOBALVAR | code::FUNCTION | code::ALIAS | code::IFUNC) => {
                    let numbers = stream.numbers(&module, at)?;
                    found.values.push(Value {
                        kind,
                        numbers,
                        body: None,
                        has_block_address: false,
                    });
                }
                _ => {}
            },
        }
    }
    found.has_old_names |= !has_texts;
    for number in addresses {
        if let Some(value) = found.values.get_mut(number as usize) {
            value.has_block_address = true;
        }
    }
    // Bodies are in the order of the definitions.
    let mut bodies = bodies.into_iter();
    for value in &mut found.values {
        if value.kind == code::FUNCTION && value.operand(operand::DECLARED) == 0 {
            value.body = bodies.next();
        }
    }
    Ok(())
}

/// Reads the constants of a function's body.
fn read_constants(
    stream: &mut Stream<'_>,
    mut body: Block,
    addresses: &mut Vec<u64>,
) -> Result<(), Problem> {
    loop {
        match stream.next(&mut body)? {
            Entry::End => return Ok(()),
            Entry::Block(inner) if inner.id == block::CONSTANTS => {
                read_records(stream, inner, addresses)?;
            }
            Entry::Block(inner) => stream.skip(&inner)?,
            Entry::Record => {}
        }
    }
}

/// Adds the functions whose blocks have their addresses taken.
fn read_records(
    stream: &mut Stream<'_>,
    mut block: Block,
    addresses: &mut Vec<u64>,
) -> Result<(), Problem> {
    loop {
        match stream.next(&mut block)? {
            Entry::End => return Ok(()),
            Entry::Block(inner) => stream.skip(&inner)?,
            Entry::Record if stream.record.code == constants::BLOCKADDRESS => {
                addresses.push(stream.record.operand(1)?);
            }
            Entry::Record => {}
        }
    }
}
