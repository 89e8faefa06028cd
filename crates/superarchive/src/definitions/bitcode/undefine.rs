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

/// The record of a global value of the module.
struct GlobalRecord {
    code: u64,
    /// Its operands.
    numbers: Vec<Number>,
    /// Position of the block of the function's body, in bits.
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

impl GlobalRecord {
    fn operand(&self, index: usize) -> u64 {
        self.numbers.get(index).map_or(0, |number| number.value)
    }

    /// Makes it a declaration.
    fn declare(&self, out: &mut [u8]) -> Option<()> {
        self.numbers.get(operand::DECLARED)?.put(out, 1)?;
        self.numbers.get(operand::LINKAGE)?.put(out, 0)?;
        for index in operand::OF_DEFINITIONS {
            if let Some(number) = self.numbers.get(index) {
                number.put(out, 0)?;
            }
        }
        Number::of_block(self.body?).put(out, UNKNOWN_BLOCK)
    }

    fn comdat(&self) -> u64 {
        self.operand(match self.code {
            code::FUNCTION => operand::COMDAT,
            _ => operand::VARIABLE_COMDAT,
        })
    }
}

/// The global values of a file.
#[derive(Default)]
struct Globals<'d> {
    records: Vec<GlobalRecord>,
    strings: &'d [u8],
    module_count: usize,
    /// Positions of tables of symbols and of summaries.
    tables: Vec<u64>,
    has_old_names: bool,
}

const DAMAGED: Refused = (0, "the module is malformed");

/// The module with these functions declared only.
pub fn undefine(data: &[u8], names: &[&[u8]]) -> Result<Undefined, Refused> {
    let bitcode = unwrapped(data).map_err(|_| DAMAGED)?;
    let globals = Globals::read(bitcode).map_err(|_| DAMAGED)?;
    if globals.module_count != 1 {
        return Err((0, "the file has several modules"));
    }
    if globals.has_old_names {
        return Err((0, "the module was written by LLVM 4 or earlier"));
    }
    let start = bitcode.as_ptr().addr() - data.as_ptr().addr();
    let mut file = data.to_vec();
    let out = &mut file[start..start + bitcode.len()];
    let mut inlined = Vec::new();
    for (name_index, &name) in names.iter().enumerate() {
        let (number, record) = globals
            .find(name)
            .ok_or((name_index, "the module does not define it"))?;
        globals
            .check(number, record)
            .map_err(|reason| (name_index, reason))?;
        if ODR.contains(&record.operand(operand::LINKAGE)) {
            inlined.push(name_index);
        }
        record.declare(out).ok_or((
            name_index,
            "the record of the function has no room for the change",
        ))?;
    }
    for &table in &globals.tables {
        Number::of_block(table)
            .put(out, UNKNOWN_BLOCK)
            .ok_or(DAMAGED)?;
    }
    Ok(Undefined {
        data: file,
        inlined,
    })
}

/// Whether a module has a constant whose definitions are all equal (one-definition rule).
pub fn has_odr_constant(data: &[u8], name: &[u8]) -> bool {
    let Ok(globals) = unwrapped(data).and_then(Globals::read) else {
        return false;
    };
    globals.find(name).is_some_and(|(_, record)| {
        // `isconst`, and the initial value, which a declaration does not have.
        record.code == code::GLOBALVAR
            && record.operand(3) & 1 == 1
            && record.operand(4) != 0
            && ODR.contains(&record.operand(operand::LINKAGE))
    })
}

impl<'d> Globals<'d> {
    fn read(bytes: &'d [u8]) -> Result<Self, Problem> {
        let (mut stream, mut outside) = Stream::new(bytes)?;
        let mut globals = Self::default();
        while !stream.is_at_end() {
            let (position, Entry::Block(inner)) = stream.next_with_position(&mut outside)? else {
                return Err(Problem::Malformed("bitcode is not in blocks"));
            };
            match inner.id {
                block::MODULE => {
                    globals.module_count += 1;
                    globals.read_module(&mut stream, inner)?;
                }
                block::STRTAB => globals.strings = read_blob(&mut stream, inner)?,
                id => {
                    if id == block::SYMTAB {
                        globals.tables.push(position + u64::from(outside.width));
                    }
                    stream.skip(&inner)?;
                }
            }
        }
        Ok(globals)
    }

    fn read_module(&mut self, stream: &mut Stream<'d>, mut module: Block) -> Result<(), Problem> {
        stream.clear_block_info();
        let mut bodies = Vec::new();
        let mut addressed_functions = Vec::new();
        let mut has_string_table = false;
        loop {
            match stream.next_with_position(&mut module)? {
                (_, Entry::End) => break,
                (position, Entry::Block(inner)) => match inner.id {
                    block::FUNCTION => {
                        bodies.push(position + u64::from(module.width));
                        read_body(stream, inner, &mut addressed_functions)?;
                    }
                    block::CONSTANTS => read_constants(stream, inner, &mut addressed_functions)?,
                    block::GLOBALVAL_SUMMARY | block::FULL_LTO_GLOBALVAL_SUMMARY => {
                        self.tables.push(position + u64::from(module.width));
                        stream.skip(&inner)?;
                    }
                    _ => stream.skip(&inner)?,
                },
                (position, Entry::Record) => match stream.record.code {
                    code::VERSION => has_string_table = stream.record.operand(0)? >= 2,
                    code @ (code::GLOBALVAR | code::FUNCTION | code::ALIAS | code::IFUNC) => {
                        self.records.push(GlobalRecord {
                            code,
                            numbers: stream.numbers(&module, position)?,
                            body: None,
                            has_block_address: false,
                        });
                    }
                    _ => {}
                },
            }
        }
        self.has_old_names |= !has_string_table;
        for number in addressed_functions {
            if let Some(record) = self.records.get_mut(number as usize) {
                record.has_block_address = true;
            }
        }
        // Bodies are in the order of the definitions.
        let mut bodies = bodies.into_iter();
        for record in &mut self.records {
            if record.code == code::FUNCTION && record.operand(operand::DECLARED) == 0 {
                record.body = bodies.next();
            }
        }
        Ok(())
    }

    fn find(&self, name: &[u8]) -> Option<(usize, &GlobalRecord)> {
        self.records.iter().enumerate().find(|(_, record)| {
            string_at(self.strings, (record.operand(0), record.operand(1))) == Ok(name)
        })
    }

    /// Checks that the function with this number can become a declaration.
    fn check(&self, number: usize, function: &GlobalRecord) -> Result<(), &'static str> {
        if function.code != code::FUNCTION {
            return Err("only functions of bitcode are supported, not variables and aliases");
        }
        if function.body.is_none() {
            return Err("the module does not define it");
        }
        if function.has_block_address {
            return Err("the module takes the address of a block of the function");
        }
        for (record_number, record) in self.records.iter().enumerate() {
            match record.code {
                code::ALIAS | code::IFUNC => {
                    // Behind the globals are constants, which may contain the function.
                    let aliasee = record.operand(operand::ALIASEE);
                    if aliasee == number as u64 || aliasee >= self.records.len() as u64 {
                        return Err("the function has an alias");
                    }
                }
                _ if record_number != number
                    && function.comdat() != 0
                    && record.comdat() == function.comdat() =>
                {
                    return Err("others share its COMDAT group");
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Reads the constants of a function's body.
fn read_body(
    stream: &mut Stream<'_>,
    mut body: Block,
    addressed_functions: &mut Vec<u64>,
) -> Result<(), Problem> {
    loop {
        match stream.next(&mut body)? {
            Entry::End => return Ok(()),
            Entry::Block(inner) if inner.id == block::CONSTANTS => {
                read_constants(stream, inner, addressed_functions)?;
            }
            Entry::Block(inner) => stream.skip(&inner)?,
            Entry::Record => {}
        }
    }
}

/// Adds the functions whose blocks have their addresses taken.
fn read_constants(
    stream: &mut Stream<'_>,
    mut block: Block,
    addressed_functions: &mut Vec<u64>,
) -> Result<(), Problem> {
    loop {
        match stream.next(&mut block)? {
            Entry::End => return Ok(()),
            Entry::Block(inner) => stream.skip(&inner)?,
            Entry::Record if stream.record.code == constants::BLOCKADDRESS => {
                addressed_functions.push(stream.record.operand(1)?);
            }
            Entry::Record => {}
        }
    }
}
