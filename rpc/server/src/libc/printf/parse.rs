//! Parser of formats. It accepts the grammar of LLVM's server, because client and server must agree on the
//! position of each argument.

/// A piece of a format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece<'t> {
    /// Printed verbatim.
    Text(&'t [u8]),
    Conversion(Conversion<'t>),
}

/// A conversion specification: `%` up to its letter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conversion<'t> {
    /// Source text.
    pub text: &'t [u8],
    pub flags: Flags,
    pub width: Count,
    pub precision: Option<Count>,
    pub length: Length,
    /// The conversion letter; 0 if there is none.
    pub specifier: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flags {
    /// `-`
    pub left: bool,
    /// `+`
    pub plus: bool,
    /// A space.
    pub space: bool,
    /// `#`
    pub alternate: bool,
    /// `0`
    pub zero: bool,
}

/// A width or a precision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    Literal(usize),
    /// `*`: the next argument, an `int`.
    Argument,
}

/// Length modifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// `hh`
    Char,
    /// `h`
    Short,
    /// None.
    Int,
    /// `l ll j z t q L`: on all devices 64 bits.
    Long,
}

/// Kind of a conversion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Int,
    Char,
    String,
    Pointer,
    Double,
    Percent,
    /// `%n`, which writes to memory and prints nothing.
    WriteCount,
    /// Unknown: printed verbatim, without an argument.
    Unknown,
}

impl Conversion<'_> {
    pub fn kind(&self) -> Kind {
        match self.specifier {
            b'd' | b'i' | b'u' | b'o' | b'x' | b'X' | b'b' | b'B' => Kind::Int,
            b'c' => Kind::Char,
            b's' => Kind::String,
            b'p' => Kind::Pointer,
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => Kind::Double,
            b'%' => Kind::Percent,
            b'n' => Kind::WriteCount,
            _ => Kind::Unknown,
        }
    }

    /// Size in bytes of the value, without those of `*`.
    pub fn value_size(&self) -> Option<usize> {
        match (self.kind(), self.length) {
            (Kind::Char, _) | (Kind::Int, Length::Char | Length::Short | Length::Int) => Some(4),
            // Also for `long double`, which devices do not have.
            (Kind::Int | Kind::String | Kind::Pointer | Kind::Double | Kind::WriteCount, _) => {
                Some(8)
            }
            (Kind::Percent | Kind::Unknown, _) => None,
        }
    }
}

/// Iterator over the pieces of a format of any length, without allocation.
#[derive(Clone, Copy, Debug)]
pub struct Pieces<'t>(pub &'t [u8]);

impl<'t> Iterator for Pieces<'t> {
    type Item = Piece<'t>;

    fn next(&mut self) -> Option<Piece<'t>> {
        let until = self.0.iter().position(|byte| *byte == b'%');
        match until.unwrap_or(self.0.len()) {
            0 if self.0.is_empty() => None,
            0 => Some(Piece::Conversion(self.conversion())),
            until => {
                let (text, rest) = self.0.split_at(until);
                self.0 = rest;
                Some(Piece::Text(text))
            }
        }
    }
}

impl<'t> Pieces<'t> {
    fn conversion(&mut self) -> Conversion<'t> {
        let start = self.0;
        self.skip(b"%");
        let flags = self.flags();
        let width = self.count();
        let precision = self.skip(b".").then(|| self.count());
        let before = self.0.len();
        let length = self.length();
        let has_length = self.0.len() != before;
        let specifier = match self.0.first() {
            // `%` is no conversion with a length: the next one begins here, and `%q%d` prints all that it names.
            Some(b'%') if has_length => 0,
            Some(specifier) => {
                self.0 = &self.0[1..];
                *specifier
            }
            None => 0,
        };
        Conversion {
            text: &start[..start.len() - self.0.len()],
            flags,
            width,
            precision,
            length,
            specifier,
        }
    }

    fn flags(&mut self) -> Flags {
        let mut flags = Flags::default();
        while let [byte, rest @ ..] = self.0 {
            match byte {
                b'-' => flags.left = true,
                b'+' => flags.plus = true,
                b' ' => flags.space = true,
                b'#' => flags.alternate = true,
                b'0' => flags.zero = true,
                _ => break,
            }
            self.0 = rest;
        }
        flags
    }

    /// Parses `*` or digits; no digits count as 0.
    fn count(&mut self) -> Count {
        if self.skip(b"*") {
            return Count::Argument;
        }
        let mut count = 0_usize;
        while let [digit @ b'0'..=b'9', rest @ ..] = self.0 {
            let digit = usize::from(digit - b'0');
            count = count.saturating_mul(10).saturating_add(digit);
            self.0 = rest;
        }
        Count::Literal(count)
    }

    fn length(&mut self) -> Length {
        if self.skip(b"hh") {
            Length::Char
        } else if self.skip(b"h") {
            Length::Short
        } else if [&b"ll"[..], b"l", b"j", b"z", b"t", b"q", b"L"]
            .iter()
            .any(|modifier| self.skip(modifier))
        {
            Length::Long
        } else {
            Length::Int
        }
    }

    fn skip(&mut self, prefix: &[u8]) -> bool {
        let rest = self.0.strip_prefix(prefix);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }
}
