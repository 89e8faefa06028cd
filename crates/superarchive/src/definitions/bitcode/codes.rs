//! Numbers of LLVM's bitcode that this crate uses, with LLVM's names: `llvm/Bitstream/BitCodes.h` for
//! the stream, `llvm/Bitcode/LLVMBitCodes.h` for modules.

/// First bytes of a file.
pub const MAGIC: &[u8; 4] = b"BC\xC0\xDE";

/// First number of a wrapper (`isBitcodeWrapper` of `llvm/Bitcode/BitcodeReader.h`), little-endian as
/// all of its numbers.
pub const WRAPPER: u32 = 0x0B17_C0DE;

/// Size of a wrapper's header, five numbers of 32 bits (`BWH_HeaderSize`).
pub const WRAPPER_SIZE: u64 = 20;

/// `FixedAbbrevIDs`: kind of the next entry of a block.
pub mod next {
    pub const END_BLOCK: u64 = 0;
    pub const ENTER_SUBBLOCK: u64 = 1;
    pub const DEFINE_ABBREV: u64 = 2;
    pub const UNABBREV_RECORD: u64 = 3;
    /// First number of abbreviations.
    pub const FIRST_APPLICATION_ABBREV: u64 = 4;
}

/// `BitCodeAbbrevOp::Encoding`: encoding of an operand of an abbreviation.
pub mod encoding {
    pub const FIXED: u64 = 1;
    pub const VBR: u64 = 2;
    pub const ARRAY: u64 = 3;
    pub const CHAR6: u64 = 4;
    pub const BLOB: u64 = 5;
}

/// `StandardBlockIDs` and `BlockIDs`.
pub mod block {
    pub const BLOCKINFO: u64 = 0;
    pub const MODULE: u64 = 8;
    pub const PARAMATTR: u64 = 9;
    pub const PARAMATTR_GROUP: u64 = 10;
    pub const CONSTANTS: u64 = 11;
    pub const FUNCTION: u64 = 12;
    pub const IDENTIFICATION: u64 = 13;
    pub const VALUE_SYMTAB: u64 = 14;
    pub const METADATA: u64 = 15;
    pub const METADATA_ATTACHMENT: u64 = 16;
    pub const TYPE_NEW: u64 = 17;
    pub const USELIST: u64 = 18;
    pub const GLOBALVAL_SUMMARY: u64 = 20;
    pub const OPERAND_BUNDLE_TAGS: u64 = 21;
    pub const METADATA_KIND: u64 = 22;
    /// Names of all values.
    pub const STRTAB: u64 = 23;
    pub const FULL_LTO_GLOBALVAL_SUMMARY: u64 = 24;
    /// The table of symbols that linkers use.
    pub const SYMTAB: u64 = 25;
    pub const SYNC_SCOPE_NAMES: u64 = 26;
}

/// `BlockInfoCodes`.
pub mod block_info {
    pub const SETBID: u64 = 1;
}

/// `IdentificationCodes`.
pub mod identification {
    pub const STRING: u64 = 1;
    pub const EPOCH: u64 = 2;
}

/// `ModuleCodes`.
pub mod module {
    pub const VERSION: u64 = 1;
    pub const TRIPLE: u64 = 2;
    pub const DATALAYOUT: u64 = 3;
    pub const ASM: u64 = 4;
    pub const SECTIONNAME: u64 = 5;
    pub const DEPLIB: u64 = 6;
    pub const GLOBALVAR: u64 = 7;
    pub const FUNCTION: u64 = 8;
    pub const ALIAS_OLD: u64 = 9;
    pub const GCNAME: u64 = 11;
    pub const COMDAT: u64 = 12;
    pub const VSTOFFSET: u64 = 13;
    pub const ALIAS: u64 = 14;
    pub const SOURCE_FILENAME: u64 = 16;
    pub const HASH: u64 = 17;
    pub const IFUNC: u64 = 18;
}

/// `AttributeCodes`, and the form of an attribute as `parseAttributeGroupBlock` of LLVM's
/// `BitcodeReader.cpp` reads it.
pub mod attribute {
    /// A list of groups.
    pub const ENTRY: u64 = 2;
    pub const GRP_ENTRY: u64 = 3;

    /// `AttributeList::FunctionIndex`: the group belongs to the function itself.
    pub const FUNCTION_INDEX: u64 = 0xFFFF_FFFF;

    pub const ENUM: u64 = 0;
    pub const INTEGER: u64 = 1;
    /// A zero-terminated text.
    pub const KEY: u64 = 3;
    /// Two such texts.
    pub const KEY_VALUE: u64 = 4;
    /// A type attribute without a type.
    pub const TYPE_WITHOUT_VALUE: u64 = 5;
    pub const TYPE: u64 = 6;
}

/// `TypeCodes`.
pub mod types {
    pub const NUMENTRY: u64 = 1;
    pub const METADATA: u64 = 16;
    pub const STRUCT_NAME: u64 = 19;
    pub const FUNCTION: u64 = 21;
}

/// `ValueSymtabCodes`.
pub mod symbol {
    pub const ENTRY: u64 = 1;
    pub const FNENTRY: u64 = 3;
}

/// `MetadataCodes`.
pub mod metadata {
    pub const VALUE: u64 = 2;
    pub const NODE: u64 = 3;
    pub const NAME: u64 = 4;
    pub const DISTINCT_NODE: u64 = 5;
    pub const KIND: u64 = 6;
    pub const NAMED_NODE: u64 = 10;
    pub const ATTACHMENT: u64 = 11;
    pub const STRINGS: u64 = 35;
    pub const GLOBAL_DECL_ATTACHMENT: u64 = 36;
    pub const INDEX_OFFSET: u64 = 38;
    pub const INDEX: u64 = 39;
}

/// `StrtabCodes` and `SymtabCodes`: the only record of both.
pub const BLOB: u64 = 1;

/// `ConstantsCodes`.
pub mod constants {
    pub const BLOCKADDRESS: u64 = 21;
}
