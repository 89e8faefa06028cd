//! Script of a hostile client, decoded from arbitrary bytes.

use gpurpc::{Generation, PortIndex, opcode};

/// Opcodes of the driver's own services.
pub const ECHO: u32 = opcode::GPURPC_BASE | 1;
/// Another opcode of the driver's own services.
pub const BUDGET: u32 = opcode::GPURPC_BASE | 2;
/// Services that read each packet once, as a copy.
pub const COPIED: u32 = opcode::GPURPC_BASE | 3;
pub const WARP: u32 = opcode::GPURPC_BASE | 4;
/// As [`ECHO`], by a blocking handler. Unknown without that feature.
pub const BLOCKING: u32 = opcode::GPURPC_BASE | 5;

/// Number of ports of the device: a block of 64, and some.
pub const PORTS: u32 = 72;
/// Ports of the hostile client: at the ends of blocks, and the first ones.
pub const HOSTILE: [PortIndex; 6] = [
    PortIndex::new(0),
    PortIndex::new(1),
    PortIndex::new(2),
    PortIndex::new(63),
    PortIndex::new(64),
    PortIndex::new(71),
];
/// Port of the honest client, between them.
pub const HONEST: PortIndex = PortIndex::new(62);

/// Texts that are meaningful to some service.
const TEXTS: &[&[u8]] = &[
    b"%s|%s|%s\0",
    b"%d %*.*f %lc\0",
    b"%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s",
    b"%999999999d\0",
    b"%n\0",
    b"f\0",
    b"../f\0",
    b"/f\0",
    b"w+\0",
    b"r\0",
    b"a\0",
    b"\0",
];

/// Numbers close to limits.
const NUMBERS: &[u64] = &[
    0,
    1,
    2,
    3,
    4,
    8,
    55,
    56,
    57,
    64,
    65,
    120,
    121,
    511,
    512,
    513,
    1 << 20,
    (1 << 20) + 1,
    u32::MAX as u64,
    1 << 32,
    1 << 40,
    i64::MAX as u64,
    1 << 63,
    u64::MAX - 63,
    u64::MAX,
];

/// Limits and input of a device.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub lanes: u32,
    pub generation: &'static Generation,
    pub memory: Memory,
    pub input: Input,
}

/// Memory limit of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// More than the hostile client can use, so that enough is left for the honest one.
    Ample,
    /// Less than one hostile call can use.
    Tight,
    /// Much, with large messages.
    Large,
}

/// Standard input of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    Empty,
    Text,
    /// Returns nothing, and does not end before the client.
    Silent,
}

/// Contents for the packets of a port.
#[derive(Clone, Debug)]
pub struct Fill {
    /// First word, if it is written, and whether it differs between lanes.
    pub number: Option<(u64, bool)>,
    /// Bytes, and the index of the word at which they begin.
    pub text: Option<(usize, Vec<u8>)>,
}

/// Next step of the hostile client.
#[derive(Clone, Debug)]
pub enum Step {
    /// Begins a call as a client does, if it owns the port.
    Begin {
        port: PortIndex,
        opcode: u32,
        mask: u64,
        fill: Fill,
    },
    /// Continues a call as a client does, if it owns the port.
    Next { port: PortIndex, fill: Fill },
    /// Writes the client's mailbox, even if the server owns the port.
    Mailbox { port: PortIndex, value: u32 },
    /// Writes the server's mailbox.
    Theirs { port: PortIndex, value: u32 },
    Header {
        port: PortIndex,
        mask: u64,
        opcode: u32,
    },
    Word {
        port: PortIndex,
        lane: u32,
        word: usize,
        value: u64,
    },
    /// Polls the server so many times.
    Poll(u8),
    /// Waits some time for an answer.
    AwaitAnswer(PortIndex),
    /// Makes a call of the honest client.
    Honest { which: u8, mask: u64 },
}

/// Decodes steps until the bytes end.
pub struct Script<'d>(&'d [u8]);

impl<'d> Script<'d> {
    pub fn new(data: &'d [u8]) -> (Setting, Self) {
        let mut script = Self(data);
        let first = script.byte();
        let setting = Setting {
            lanes: [1, 32, 64][usize::from(first) % 3],
            generation: match (first & 0x80 != 0, first & 0x10 != 0) {
                (true, _) => Generation::LLVM_19,
                (_, true) => Generation::LLVM_23,
                _ => Generation::LLVM_20,
            },
            memory: [Memory::Ample, Memory::Tight, Memory::Large][usize::from(first >> 2) % 3],
            input: [Input::Empty, Input::Text, Input::Silent][usize::from(first >> 5) % 3],
        };
        (setting, script)
    }

    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    fn number(&mut self) -> u64 {
        match self.byte() {
            small @ ..0x60 => small.into(),
            known @ 0x60..0xe0 => NUMBERS[usize::from(known) % NUMBERS.len()],
            // Independent of the host's byte order.
            0xe0.. => u64::from_le_bytes(self.bytes()),
        }
    }

    fn port(&mut self) -> PortIndex {
        HOSTILE[usize::from(self.byte()) % HOSTILE.len()]
    }

    fn opcode(&mut self) -> u32 {
        match self.byte() {
            raw @ 0xf0.. => u32::from_le_bytes([raw, self.byte(), self.byte(), self.byte()]),
            0xe0..0xe4 => ECHO,
            0xe4..0xe8 => BLOCKING,
            0xe8..0xec => COPIED,
            0xec..0xf0 => WARP,
            known => opcode::ALL[usize::from(known) % opcode::ALL.len()].1,
        }
    }

    fn mask(&mut self) -> u64 {
        match self.byte() {
            0..0x60 => 1,
            0x60..0xa0 => u64::MAX,
            0xa0..0xb0 => 0,
            few @ 0xb0..0xe0 => 0b1011 << (few % 64),
            0xe0.. => u64::from_le_bytes(self.bytes()),
        }
    }

    fn fill(&mut self) -> Fill {
        let kind = self.byte();
        let number = (kind & 3 != 0).then(|| (self.number(), kind & 3 == 3));
        let text = (kind & 12 != 0).then(|| {
            let text = match self.byte() {
                known @ ..0xc0 => TEXTS[usize::from(known) % TEXTS.len()].to_vec(),
                size => (0..size % 64).map(|_| self.byte()).collect(),
            };
            (usize::from(kind & 12 != 4), text)
        });
        Fill { number, text }
    }

    fn step(&mut self) -> Step {
        match self.byte() % 20 {
            0..=3 => Step::Begin {
                port: self.port(),
                opcode: self.opcode(),
                mask: self.mask(),
                fill: self.fill(),
            },
            4..=9 => Step::Next {
                port: self.port(),
                fill: self.fill(),
            },
            10 => Step::Mailbox {
                port: self.port(),
                value: self.number() as u32,
            },
            11 => Step::Theirs {
                port: self.port(),
                value: self.number() as u32,
            },
            12 => Step::Header {
                port: self.port(),
                mask: self.mask(),
                opcode: self.opcode(),
            },
            13 => Step::Word {
                port: self.port(),
                lane: self.byte().into(),
                word: usize::from(self.byte()),
                value: self.number(),
            },
            14 => Step::Poll(self.byte() % 8),
            15..=17 => Step::AwaitAnswer(self.port()),
            _ => Step::Honest {
                which: self.byte(),
                mask: self.mask(),
            },
        }
    }
}

impl Iterator for Script<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        (!self.0.is_empty()).then(|| self.step())
    }
}
